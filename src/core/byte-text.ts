/**
 * Names of files as the kernel has them: any bytes but `/` and NUL, in any encoding or none. Kept
 * as a text of one character a byte (U+0000 to U+00FF), so that they can be keys, lose nothing, and
 * are in the order of their bytes where texts are compared. Pure.
 */
import { escapeUnprintable } from "./printable.ts";

declare const BYTES: unique symbol;
export type ByteText = string & { readonly [BYTES]: true };

/** The bytes of a text in UTF-8: what a path of a file of ours means. */
export function bytesOfText(text: string): ByteText {
  return Buffer.from(text, "utf8").toString("latin1") as ByteText;
}

export function asByteText(bytes: Uint8Array): ByteText {
  return Buffer.from(bytes).toString("latin1") as ByteText;
}

export function joinBytes(above: ByteText, name: ByteText): ByteText {
  return (above === "" ? name : `${above}/${name}`) as ByteText;
}

/** For people: as UTF-8 where it is, with escapes for what cannot be shown. Not to be read back. */
export function showBytes(bytes: ByteText): string {
  return escapeUnprintable(Buffer.from(bytes, "latin1").toString("utf8"));
}

/** Negative, 0 or positive, by bytes. */
export function compareBytes(one: ByteText, other: ByteText): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
