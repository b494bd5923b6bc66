/**
 * A list of names as the value of one variable: percent-encoded, blanks between them. Pure.
 * Always: what was joined is split into the same names again, but for empty ones, which have no
 * place there, and half characters, of which U+FFFD is made; what is no such list gives none.
 */

/**
 * The variable with the names of the circuits for which a run stands still while they are open:
 * `watchdog retry` waits for that, and does not give up.
 */
export const PAUSES_ON = "WATCHDOG_PAUSES_ON";

/** `a%20b c` for `a b` and `c`. */
export function joinNames(names: readonly string[]): string {
  return names.map((name) => encodeURIComponent(name.toWellFormed())).join(" ");
}

export function splitNames(text: string | undefined): readonly string[] {
  const words = (text ?? "").split(" ").filter((word) => word !== "");
  try {
    return words.map((word) => decodeURIComponent(word));
  } catch {
    return []; // URIError: somebody else's variable
  }
}
