/**
 * A success that is far from usual: a dump of a tenth of its size, two seconds instead of forty
 * minutes. Decided from the good runs before, without a setting. Pure.
 *
 * The measure is the modified z-score of Iglewicz and Hoaglin (How to Detect and Handle Outliers,
 * 1993; NIST/SEMATECH e-Handbook, 1.3.5.17): M = 0.6745 × (x − median) / MAD, where MAD is the
 * median of |x_i − median|, and |M| > 3.5 is an outlier. Median and MAD bear that nearly half of
 * the runs before were odd themselves. Spans and sizes differ by factors, not by sums, so x is
 * ln(1 + value).
 *
 * A job that is always the same has MAD 0, and then anything would be an outlier. So there is a
 * floor, in two parts, both of which a value must be beyond: half or twice the usual (MAD is taken
 * as at least 0.6745 / 3.5 × ln 2, at which |M| = 3.5 for a factor of two), and LEAST_DIFFERENCE.
 *
 * Always: within half and twice the median nothing is suspicious, whatever the history.
 */

/** With fewer runs nobody can say what is usual. */
export const FEWEST_RUNS = 5;
/** So far back: a job that has changed for good is usual again after half of these. */
export const MOST_RUNS = 20;
const LIMIT_Z = 3.5;
/** The 0.75 quantile of the normal distribution: MAD / 0.6745 estimates its deviation. */
const CONSISTENCY = 0.6745;
export const LEAST_FACTOR = 2;
const LEAST_SPREAD = (CONSISTENCY / LIMIT_Z) * Math.log(LEAST_FACTOR);

/** What a machine's mood can do to a short job, or a time of the day to a short text. */
export const LEAST_DIFFERENCE = { duration_ms: 5_000, bytes: 1_024 } as const;

/** `duration_ms`, `output_bytes`, `artifact_bytes:PATH`. */
export type MeasureName = "duration_ms" | "output_bytes" | `artifact_bytes:${string}`;

/** As the record tells it. */
export interface Suspicion {
  readonly measure: MeasureName;
  readonly value: number;
  /** The median of the runs before (of two in the middle the geometric mean). */
  readonly usual: number;
  /** The factor by which half of the runs before lie around it, at most: exp(MAD). */
  readonly spread: number;
  /** How many runs before were compared with. */
  readonly runs: number;
}

export interface Measure {
  readonly name: MeasureName;
  readonly value: number;
  /** Of the good runs before, in any order. */
  readonly before: readonly number[];
}

/** @returns undefined: as usual, or nobody can say */
export function decideSuspicion({ name, value, before }: Measure): Suspicion | undefined {
  if (before.length < FEWEST_RUNS) return undefined;
  const logs = before.map(toLog);
  const center = median(logs);
  const spread = median(logs.map((one) => Math.abs(one - center)));
  const z = (CONSISTENCY * (toLog(value) - center)) / Math.max(spread, LEAST_SPREAD);
  const usual = Math.round(Math.expm1(center));
  if (Math.abs(z) <= LIMIT_Z || Math.abs(value - usual) <= leastDifferenceOf(name)) {
    return undefined;
  }
  return { measure: name, value, usual, spread: Math.exp(spread), runs: before.length };
}

export function decideSuspicions(measures: readonly Measure[]): readonly Suspicion[] {
  return measures.flatMap((measure) => decideSuspicion(measure) ?? []);
}

function leastDifferenceOf(name: MeasureName): number {
  return name === "duration_ms" ? LEAST_DIFFERENCE.duration_ms : LEAST_DIFFERENCE.bytes;
}

function toLog(value: number): number {
  return Math.log1p(Math.max(0, value));
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
