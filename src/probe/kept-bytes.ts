/**
 * What is kept of a body, in pieces of whatever size. Pure.
 *
 * Always: it holds about as much memory as it has bytes, also where they come one by one: each
 * piece for itself would cost a hundred times that. The first piece is kept without a copy, and is
 * the whole as a rule.
 */

/** From there on a piece is kept as it is. */
const LARGE_BYTES = 4_096;
const POOL_BYTES = 65_536;

export class KeptBytes {
  readonly #parts: Uint8Array[] = [];
  /** Small pieces, one behind the other; up to `#sealed` they are in `#parts`. */
  #pool = new Uint8Array(0);
  #sealed = 0;
  #used = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get whole(): Uint8Array {
    this.#seal();
    const [only] = this.#parts;
    return this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts);
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    const isFirst = this.#length === 0;
    this.#length += piece.length;
    if (isFirst || piece.length >= LARGE_BYTES) {
      this.#seal();
      this.#parts.push(piece);
      return;
    }
    if (this.#pool.length - this.#used < piece.length) this.#renew();
    this.#pool.set(piece, this.#used);
    this.#used += piece.length;
  }

  #seal(): void {
    if (this.#used > this.#sealed) this.#parts.push(this.#pool.subarray(this.#sealed, this.#used));
    this.#sealed = this.#used;
  }

  #renew(): void {
    this.#seal();
    this.#pool = new Uint8Array(POOL_BYTES);
    this.#sealed = 0;
    this.#used = 0;
  }
}
