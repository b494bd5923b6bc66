/**
 * The text of a file that is open already, as a whole or not at all: for files that a person has
 * written. Knows no path and no format.
 */
import { readSync } from "node:fs";

/**
 * @param most  bytes that there may be
 * @returns undefined: there are more
 * @throws the error of read(2)
 */
export function readAtMost(descriptor: number, most: number): Uint8Array | undefined {
  const bytes = new Uint8Array(most + 1);
  let length = 0;
  while (length < bytes.length) {
    const count = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (count === 0) return bytes.subarray(0, length);
    length += count;
  }
  return undefined;
}

/** @returns undefined: it is not UTF-8 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // TypeError
  }
}
