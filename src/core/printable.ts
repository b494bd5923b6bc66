/**
 * Text that cannot move a cursor, change a colour, start a second line or reorder one, whatever
 * name, path or argument it was made of. Pure.
 */

/**
 * C0, DEL, C1, and the characters of Unicode that are invisible or turn the direction of writing.
 */
export function unprintable(): RegExp {
  // Made anew for each use: a global expression remembers where it stopped.
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
}

/** The text with each unprintable character as its escape: `\n`, `\x1b`, `\u{202e}`. */
export function escapeUnprintable(text: string): string {
  return text.replace(unprintable(), (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    return code < 0x100 ? `\\x${digits.padStart(2, "0")}` : `\\u{${digits}}`;
  });
}

/**
 * For a text that goes on where it is cut: the word in which the cut is may be half a secret, which
 * no mask would find. It stays where it is longer than a secret is, or all that there is.
 */
export function withoutLastWord(text: string): string {
  return text.replace(/(?<=[\s"',;])[^\s"',;]{1,256}$/, "").trimEnd();
}

/** The same for a text that has begun before. */
export function withoutFirstWord(text: string): string {
  return text.replace(/^[^\s"',;]{1,256}(?=[\s"',;])/, "").trimStart();
}
