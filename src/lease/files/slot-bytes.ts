/**
 * Numbers and texts one behind the other in a piece of a slot, little endian. Knows no layout.
 *
 * Guarantees: nothing outside the piece is written or read. A writer that has too little room stops
 * with an assertion; a reader that is led out of it gives zeros and says so (`isBeyond`).
 */
import { assert } from "../../core/errors.ts";

export class SlotWriter {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, from: number, end: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = from;
    this.#end = end;
  }

  /** Bytes that are left. */
  get room(): number {
    return this.#end - this.#at;
  }

  u8(value: number): void {
    this.#view.setUint8(this.#take(1), value);
  }

  u16(value: number): void {
    this.#view.setUint16(this.#take(2), value, true);
  }

  u32(value: number): void {
    this.#view.setUint32(this.#take(4), value, true);
  }

  f64(value: number): void {
    this.#view.setFloat64(this.#take(8), value, true);
  }

  /** @param value  a whole number, at most 2^53 */
  u64(value: number): void {
    this.#view.setBigUint64(this.#take(8), BigInt(value), true);
  }

  text(value: string): void {
    const encoded = new TextEncoder().encode(value);
    this.u16(encoded.length);
    this.#bytes.set(encoded, this.#take(encoded.length));
  }

  /** With their number before them. */
  bytes(piece: Uint8Array): void {
    this.u16(piece.length);
    this.#bytes.set(piece, this.#take(piece.length));
  }

  #take(count: number): number {
    assert(count <= this.room, "what a slot must hold fits into it");
    const at = this.#at;
    this.#at += count;
    return at;
  }
}

export class SlotReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  #at: number;
  #isBeyond = false;

  constructor(bytes: Uint8Array, from: number, end: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = from;
    this.#end = end;
  }

  /** Whether more was asked for than there is. */
  get isBeyond(): boolean {
    return this.#isBeyond;
  }

  u8(): number {
    const at = this.#take(1);
    return at === undefined ? 0 : this.#view.getUint8(at);
  }

  u16(): number {
    const at = this.#take(2);
    return at === undefined ? 0 : this.#view.getUint16(at, true);
  }

  u32(): number {
    const at = this.#take(4);
    return at === undefined ? 0 : this.#view.getUint32(at, true);
  }

  u64(): number {
    const at = this.#take(8);
    return at === undefined ? 0 : Number(this.#view.getBigUint64(at, true));
  }

  f64(): number {
    const at = this.#take(8);
    return at === undefined ? 0 : this.#view.getFloat64(at, true);
  }

  text(): string {
    const length = this.u16();
    const at = this.#take(length);
    return at === undefined ? "" : new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }

  bytes(): Uint8Array {
    const length = this.u16();
    const at = this.#take(length);
    return at === undefined ? new Uint8Array() : this.#bytes.subarray(at, at + length);
  }

  #take(count: number): number | undefined {
    if (this.#isBeyond || this.#at + count > this.#end) {
      this.#isBeyond = true;
      return undefined;
    }
    const at = this.#at;
    this.#at += count;
    return at;
  }
}
