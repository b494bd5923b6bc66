/**
 * The progress of a run in the words that main and the thread of the heartbeat share. Only layout
 * and access: knows no file, no clock, no policy.
 *
 * Always: main alone writes, and waits for nobody; a reader gets all of one writing or what it has
 * read before (a seqlock, as in state.ts). Numbers that are no whole ones are kept in thousandths.
 */
import {
  cutBytes,
  NO_PROGRESS,
  type Progress,
  SHOWN_CHECKPOINT_BYTES,
  SHOWN_MESSAGE_BYTES,
  type TreeUse,
} from "../../core/progress.ts";

const WORD_BYTES = 8;
const THOUSAND = 1_000;
/** A reader that met a writer so often takes what it has read last. */
const MOST_READS = 1_000;
/** In the place of a number that is not known; none of them is negative. */
const NOTHING = -1;

const USE_FIELDS = [
  "measuredMs",
  "cpuMs",
  "ioBytes",
  "windowMs",
  "windowCpuMs",
  "windowIoBytes",
] as const satisfies readonly (keyof TreeUse)[];

const WORD = {
  version: 0,
  lastOutput: 1,
  use: 2,
  reported: 2 + USE_FIELDS.length,
  ok: 3 + USE_FIELDS.length,
  failed: 4 + USE_FIELDS.length,
  total: 5 + USE_FIELDS.length,
  rate: 6 + USE_FIELDS.length,
  filesChanged: 7 + USE_FIELDS.length,
  checkpoint: 8 + USE_FIELDS.length,
} as const;

/** A text: its length in bytes, and the bytes. */
const CHECKPOINT_WORDS = 1 + Math.ceil(SHOWN_CHECKPOINT_BYTES / WORD_BYTES);
const MESSAGE_WORDS = 1 + Math.ceil(SHOWN_MESSAGE_BYTES / WORD_BYTES);
const MESSAGE_AT = WORD.checkpoint + CHECKPOINT_WORDS;
export const PROGRESS_WORDS = MESSAGE_AT + MESSAGE_WORDS;

export class ProgressWords {
  readonly #words: BigInt64Array;
  #lastRead = NO_PROGRESS;

  constructor(words: BigInt64Array) {
    this.#words = words;
  }

  /** Main only. */
  show(progress: Progress): void {
    const { items, use, lastOutputMs, filesChangedMs } = progress;
    Atomics.add(this.#words, WORD.version, 1n);
    this.#store(WORD.lastOutput, thousandths(lastOutputMs));
    this.#store(WORD.filesChanged, thousandths(filesChangedMs));
    USE_FIELDS.forEach((field, index) =>
      this.#store(WORD.use + index, use === null ? NOTHING : thousandths(use[field])),
    );
    this.#store(WORD.reported, thousandths(items?.reportedMs ?? null));
    this.#store(WORD.ok, items?.ok ?? 0);
    this.#store(WORD.failed, items?.failed ?? 0);
    this.#store(WORD.total, items?.total ?? NOTHING);
    this.#store(WORD.rate, thousandths(items?.ratePerMinute ?? null));
    this.#storeText(WORD.checkpoint, items?.checkpoint ?? "", SHOWN_CHECKPOINT_BYTES);
    this.#storeText(MESSAGE_AT, items?.lastMessage ?? "", SHOWN_MESSAGE_BYTES);
    Atomics.add(this.#words, WORD.version, 1n);
  }

  read(): Progress {
    for (let attempt = 0; attempt < MOST_READS; attempt += 1) {
      const before = this.#load(WORD.version);
      if (before === 0) return NO_PROGRESS;
      const read = this.#readOnce();
      if (before % 2 === 0 && this.#load(WORD.version) === before) {
        this.#lastRead = read;
        return read;
      }
    }
    return this.#lastRead;
  }

  #readOnce(): Progress {
    const [measuredMs, cpuMs, ioBytes, windowMs, windowCpuMs, windowIoBytes] = USE_FIELDS.map(
      (_, index) => this.#exact(WORD.use + index),
    );
    const use = { measuredMs, cpuMs, ioBytes, windowMs, windowCpuMs, windowIoBytes };
    const reportedMs = this.#exact(WORD.reported);
    const total = this.#load(WORD.total);
    const items = {
      ok: this.#load(WORD.ok),
      failed: this.#load(WORD.failed),
      total: total === NOTHING ? null : total,
      checkpoint: this.#loadText(WORD.checkpoint, SHOWN_CHECKPOINT_BYTES),
      lastMessage: this.#loadText(MESSAGE_AT, SHOWN_MESSAGE_BYTES),
      ratePerMinute: this.#exact(WORD.rate),
    };
    return {
      lastOutputMs: this.#exact(WORD.lastOutput),
      filesChangedMs: this.#exact(WORD.filesChanged),
      // Written in one go: all of them or none.
      use: measuredMs === null ? null : (use as TreeUse),
      items: reportedMs === null ? null : { ...items, reportedMs },
    };
  }

  #exact(at: number): number | null {
    const value = this.#load(at);
    return value === NOTHING ? null : value / THOUSAND;
  }

  #load(at: number): number {
    return Number(Atomics.load(this.#words, at));
  }

  #store(at: number, value: number): void {
    Atomics.store(this.#words, at, BigInt(Math.trunc(value)));
  }

  #storeText(at: number, text: string, longest: number): void {
    const bytes = new TextEncoder().encode(cutBytes(text, longest));
    this.#store(at, bytes.length);
    const padded = new Uint8Array(Math.ceil(bytes.length / WORD_BYTES) * WORD_BYTES);
    padded.set(bytes);
    const words = new BigInt64Array(padded.buffer);
    words.forEach((word, index) => Atomics.store(this.#words, at + 1 + index, word));
  }

  #loadText(at: number, longest: number): string | null {
    const length = Math.min(this.#load(at), longest);
    if (length <= 0) return null;
    const words = BigInt64Array.from({ length: Math.ceil(length / WORD_BYTES) }, (_, index) =>
      Atomics.load(this.#words, at + 1 + index),
    );
    return new TextDecoder().decode(new Uint8Array(words.buffer, 0, length));
  }
}

function thousandths(value: number | null): number {
  if (value === null) return NOTHING;
  return Math.min(Math.max(0, value * THOUSAND), Number.MAX_SAFE_INTEGER);
}
