/**
 * Pieces of a progress file on their way to counts: cut into lines, each line counted, the bounds
 * asked after each of them. Knows no file.
 *
 * Always: what comes out does not depend on where the pieces were cut. A line of more than
 * LONGEST_LINE bytes is one that is ignored, and is not held. Bytes that are no UTF-8 become U+FFFD
 * in a message and count for nothing elsewhere.
 */
import {
  countItems,
  decideItems,
  type ItemCounts,
  type ItemLimits,
  type ItemsFailure,
  NO_ITEMS,
  parseProgressLine,
} from "../core/item-counts.ts";

export const LONGEST_LINE = 4096;
const NEWLINE = 0x0a;
const NOTHING = new Uint8Array();

export class LineCounter {
  readonly #limits: ItemLimits;
  #counts = NO_ITEMS;
  #failure: ItemsFailure | undefined;
  #half: Uint8Array = NOTHING;
  #isTooLong = false;

  constructor(limits: ItemLimits) {
    this.#limits = limits;
  }

  get counts(): ItemCounts {
    return this.#counts;
  }

  /** The first bound that was passed, as it was at that line. */
  get failure(): ItemsFailure | undefined {
    return this.#failure;
  }

  /** The bytes behind those that were taken before. */
  take(piece: Uint8Array): void {
    const end = piece.lastIndexOf(NEWLINE);
    if (end < 0) return this.#hold(piece);
    const first = piece.indexOf(NEWLINE);
    this.#endLine(piece.subarray(0, first));
    if (end > first) {
      const whole = Buffer.from(piece.buffer, piece.byteOffset + first + 1, end - first - 1);
      for (const line of whole.toString("utf8").split("\n")) this.#count(line);
    }
    this.#hold(piece.subarray(end + 1));
  }

  /** What is held was never ended: the file was written over. */
  drop(): void {
    this.#half = NOTHING;
    this.#isTooLong = false;
  }

  /** No more bytes come: a last line without an end counts, and fewer items are judged. */
  end(): void {
    if (this.#half.length > 0 || this.#isTooLong) this.#endLine(NOTHING);
    this.#judge(true);
  }

  #hold(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#isTooLong ||= this.#half.length + piece.length > LONGEST_LINE;
    this.#half = this.#isTooLong ? NOTHING : join(this.#half, piece);
  }

  #endLine(rest: Uint8Array): void {
    this.#hold(rest);
    const line = this.#isTooLong ? "\0" : Buffer.from(this.#half).toString("utf8");
    this.drop();
    this.#count(line);
  }

  #count(line: string): void {
    const parsed = line.length > LONGEST_LINE ? UNKNOWN : parseProgressLine(line);
    this.#counts = countItems(this.#counts, parsed);
    // Good ones too: with them there may be enough of them to be judged.
    if (parsed.kind === "fail" || parsed.kind === "ok") this.#judge(false);
  }

  #judge(isAtEnd: boolean): void {
    if (this.#failure !== undefined) return;
    const decided = decideItems(this.#counts, this.#limits, isAtEnd);
    if (decided.kind === "failed") this.#failure = decided.failure;
  }
}

const UNKNOWN = { kind: "unknown" } as const;

function join(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
