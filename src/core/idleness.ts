/**
 * Whether a tree has been idle for a whole span: no output, next to no CPU, next to no I/O. Pure:
 * samples in, answer out.
 *
 * CPU and I/O are judged as averages over the span, because a clock tick (10 ms) is more than one
 * percent of any short sample; output must have been none at all.
 */
import { type MonotonicAt, spanMs } from "./time.ts";

/** One look at the tree; both sums only grow. */
export interface ActivitySample {
  readonly at: MonotonicAt;
  readonly cpuMs: number;
  readonly ioBytes: number;
}

export interface IdlePolicy {
  readonly spanMs: number;
  readonly cpuPercent: number;
  readonly ioBytesPerMinute: number;
}

export type Idleness =
  | { readonly kind: "active"; readonly because: "young" | "output" | "cpu" | "io" }
  | { readonly kind: "idle"; readonly cpuMs: number; readonly ioBytes: number };

/**
 * @param samples  oldest first; the newest is now
 * @param lastOutputAt  when the last byte of output was seen; undefined: none yet
 */
export function decideIdleness(
  samples: readonly ActivitySample[],
  lastOutputAt: MonotonicAt | undefined,
  policy: IdlePolicy,
): Idleness {
  const now = samples.at(-1);
  if (now === undefined) return { kind: "active", because: "young" };
  const from = samples.findLast((sample) => spanMs(sample.at, now.at) >= policy.spanMs);
  if (from === undefined) return { kind: "active", because: "young" };
  if (lastOutputAt !== undefined && spanMs(lastOutputAt, now.at) < policy.spanMs) {
    return { kind: "active", because: "output" };
  }
  const elapsedMs = spanMs(from.at, now.at);
  const cpuMs = now.cpuMs - from.cpuMs;
  const ioBytes = now.ioBytes - from.ioBytes;
  if (cpuMs >= (elapsedMs * policy.cpuPercent) / 100) return { kind: "active", because: "cpu" };
  if (ioBytes >= (elapsedMs * policy.ioBytesPerMinute) / 60_000) {
    return { kind: "active", because: "io" };
  }
  return { kind: "idle", cpuMs, ioBytes };
}

/** Samples older than the span are needed no more, except the youngest of them. */
export function dropOldSamples(
  samples: readonly ActivitySample[],
  spanLengthMs: number,
): readonly ActivitySample[] {
  const now = samples.at(-1);
  if (now === undefined) return samples;
  const from = samples.findLastIndex((sample) => spanMs(sample.at, now.at) >= spanLengthMs);
  return from <= 0 ? samples : samples.slice(from);
}
