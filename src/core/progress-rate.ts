/**
 * How fast a job works through its items, and how long it will take for the rest. Pure.
 *
 * The rate is the average over a window that moves with the job: the last five minutes, and for a
 * slow job as long as ten reports take, so that it is neither the past of a long run nor the jump
 * of a single item. The instants are those of one clock that stands still where the job does.
 */
import { type MonotonicAt, spanMs } from "./time.ts";

const MINUTE_MS = 60_000;
const WINDOW_MS = 5 * MINUTE_MS;
const FEWEST_SAMPLES = 10;
export const MOST_SAMPLES = 64;
/** Reports that come quicker are one sample: 64 of them span the window. */
const SAMPLE_MS = 5_000;
/** Of a shorter span nothing is told. */
const SHORTEST_MS = 1_000;

/** How many items were done at an instant. */
export interface ProgressSample {
  readonly at: MonotonicAt;
  readonly done: number;
}

/** Oldest first. The first one is that of the start, with nothing done. */
export function addSample(
  samples: readonly ProgressSample[],
  sample: ProgressSample,
): readonly ProgressSample[] {
  const last = samples.at(-1);
  if (last !== undefined && spanMs(last.at, sample.at) < SAMPLE_MS) return samples;
  if (last?.done === sample.done) return samples;
  const all = [...samples, sample].slice(-MOST_SAMPLES);
  const isOld = (one: ProgressSample): boolean => spanMs(one.at, sample.at) > WINDOW_MS;
  const spare = Math.max(0, all.length - FEWEST_SAMPLES);
  // One that is too old stays as the beginning of the window.
  const old = all.findLastIndex(isOld);
  return all.slice(Math.min(Math.max(old, 0), spare));
}

/** Undefined: there is no span to tell it of. */
export function itemsPerMinute(
  samples: readonly ProgressSample[],
  now: ProgressSample,
): number | undefined {
  const [first] = samples;
  if (first === undefined) return undefined;
  return perMinute(now.done - first.done, spanMs(first.at, now.at));
}

export function perMinute(amount: number, elapsedMs: number): number | undefined {
  if (!(elapsedMs >= SHORTEST_MS)) return undefined;
  return Math.max(0, (amount * MINUTE_MS) / elapsedMs);
}

/** Undefined: nobody knows, because the job has not said how much there is, or stands still. */
export function timeLeftMs(
  { done, total }: { readonly done: number; readonly total: number | null | undefined },
  ratePerMinute: number | null | undefined,
): number | undefined {
  if (total === null || total === undefined) return undefined;
  if (done >= total) return 0;
  if (ratePerMinute === null || ratePerMinute === undefined || ratePerMinute <= 0) return undefined;
  const leftMs = ((total - done) / ratePerMinute) * MINUTE_MS;
  return leftMs <= LONGEST_MS ? leftMs : undefined;
}

/** A hundred years: beyond that it is no answer. */
const LONGEST_MS = 100 * 365 * 86_400_000;
