/**
 * The name of a run where `--name` gives none: the base name of the command and eight hex digits
 * over its arguments and directory, so that the same command line in the same directory always
 * meets itself. Pure: the hash is handed in.
 */

const LONGEST_BASE = 80;

/** Base name of the command, control characters and bytes that are not UTF-8 replaced by `_`. */
export function deriveJobName(command: string, digest: string): string {
  const base = command.slice(command.lastIndexOf("/") + 1);
  const clean = base.replace(/[\u0000-\u001f\u007f-\u009f\ufffd]/g, "_").slice(0, LONGEST_BASE);
  return `${clean === "" ? "command" : clean}-${digest.slice(0, 8)}`;
}
