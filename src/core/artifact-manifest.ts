/**
 * A directory as a text: its hash is the directory's. Two directories have the same text only where
 * they have the same names, kinds, sizes, contents and links; times, owners and permissions are no
 * part of it. Pure.
 *
 * One line an entry, in the order of the bytes of their paths: `KIND BYTES SHA256 PATH`. Below a
 * link nothing is listed: its hash is that of its text. A directory has 0 bytes and `-`.
 */
import { type ByteText, compareBytes } from "./byte-text.ts";

export interface ManifestEntry {
  readonly kind: "file" | "directory" | "link";
  /** From the directory on, without a slash at either end. */
  readonly path: ByteText;
  /** Of a file, or of the text of a link. */
  readonly bytes: number;
  /** Lower-case hex; of a directory: not looked at. */
  readonly sha256: string;
}

/** Line by line, so that a long one needs no text of its whole length. */
export function* renderManifest(entries: readonly ManifestEntry[]): Generator<string> {
  const sorted = entries.toSorted((one, other) => compareBytes(one.path, other.path));
  for (const { kind, path, bytes, sha256 } of sorted) {
    const content = kind === "directory" ? "0 -" : `${bytes} ${sha256}`;
    yield `${kind} ${content} ${escapePath(path)}\n`;
  }
}

/** Printable ASCII stays, but for the backslash; each other byte is `\xHH`. */
function escapePath(path: ByteText): string {
  return path.replace(/[^\x20-\x5b\x5d-\x7e]/g, (byte) => {
    return `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}
