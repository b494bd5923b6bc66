/**
 * The environment of a process as `KEY=value` entries of bytes: finding the value of a key, and the
 * ids of the runs around it. Pure.
 */
import { isRunId } from "./run-id.ts";

/** The value of the first entry with this key, as getenv(3) would find it. */
export function valueOf(entries: readonly Uint8Array[], key: string): string | undefined {
  const entry = entries.find((one) => keyOf(one) === key);
  return entry === undefined
    ? undefined
    : Buffer.from(entry)
        .toString("utf8")
        .slice(key.length + 1);
}

/** All of them as text; of two with one key the first counts, as for getenv(3). */
export function readVariables(entries: readonly Uint8Array[]): Record<string, string> {
  const texts = entries.map((entry) => Buffer.from(entry).toString("utf8"));
  const pairs = texts.flatMap((text): [string, string][] => {
    const end = text.indexOf("=");
    return end < 1 ? [] : [[text.slice(0, end), text.slice(end + 1)]];
  });
  return Object.fromEntries(pairs.toReversed());
}

/** Only keys of plain ASCII are compared, so decoding as latin1 is exact. */
export function keyOf(entry: Uint8Array): string {
  const end = entry.indexOf(0x3d);
  return Buffer.from(end === -1 ? entry : entry.subarray(0, end)).toString("latin1");
}

/** The ids of the runs around us, outermost first; what is no run id is nobody's. */
export function splitRunPath(path: string | undefined): string[] {
  return (path ?? "").split("/").filter(isRunId);
}
