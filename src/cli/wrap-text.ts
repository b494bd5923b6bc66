/**
 * Breaks sentences into lines of a limited width.
 *
 * Knows nothing of what it wraps. Always: no line is longer than the width, but for a single word
 * that is.
 */

export interface Frame {
  readonly indent: number;
  readonly width: number;
}

export function wrapText(text: string, frame: Frame): readonly string[] {
  const lines: string[] = [];
  const margin = " ".repeat(frame.indent);
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && margin.length + longer.length > frame.width) {
      lines.push(margin + line);
      line = word;
    } else {
      line = longer;
    }
  }
  lines.push(margin + line);
  return lines;
}

/** `left` in a column of its own, `text` wrapped in the one beside it. */
export function wrapBeside(left: string, text: string, frame: Frame): readonly string[] {
  const [first = "", ...more] = wrapText(text, frame);
  const head = `  ${left}`;
  if (head.length + 2 > frame.indent) return [head, first, ...more];
  return [head.padEnd(frame.indent) + first.trimStart(), ...more];
}
