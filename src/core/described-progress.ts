/**
 * The progress that a slot tells, for whoever asks about a lease: as it was written, with instants
 * that can be compared with now. Pure.
 *
 * Always: what is not known is null. Counts stand in the head of the slot and the rest behind it,
 * each with a checksum of its own, so one may be there without the other.
 */
import type { Slot, SlotCounts, SlotWork } from "./lease-record.ts";
import type { TreeUse } from "./progress.ts";
import { perMinute, timeLeftMs } from "./progress-rate.ts";

export interface DescribedProgress {
  readonly ok: number | null;
  readonly failed: number | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly checkpoint: string | null;
  readonly lastMessage: string | null;
  readonly ratePerMinute: number | null;
  readonly timeLeftMs: number | null;
  /** These four on CLOCK_MONOTONIC of the owner's boot, in milliseconds. */
  readonly reportedMs: number | null;
  readonly lastOutputMs: number | null;
  readonly filesChangedMs: number | null;
  readonly measuredMs: number | null;
  readonly cpuMs: number | null;
  /** Of one core. */
  readonly cpuPercent: number | null;
  readonly ioBytes: number | null;
  readonly ioBytesPerMinute: number | null;
}

/** Undefined: the slot tells nothing of it. */
export function describeProgress(slot: Slot | undefined): DescribedProgress | undefined {
  const counts = slot?.head.counts ?? null;
  const work = slot?.body?.work ?? null;
  if (counts === null && work === null) return undefined;
  const { told, use, ...signs } = work ?? NO_WORK;
  const known = counts ?? (told === null ? null : NOTHING_DONE);
  const { ratePerMinute, ...rest } = told ?? NOTHING_TOLD;
  return { ...describeItems(known, ratePerMinute), ...rest, ...signs, ...describeUse(use) };
}

const NOTHING_TOLD = {
  checkpoint: null,
  lastMessage: null,
  ratePerMinute: null,
  reportedMs: null,
} as const;

const NO_WORK: SlotWork = { told: null, lastOutputMs: null, filesChangedMs: null, use: null };
/** Whoever has told something else has done no item yet. */
const NOTHING_DONE: SlotCounts = { ok: 0, failed: 0, total: null };

type DescribedItems = Pick<
  DescribedProgress,
  "ok" | "failed" | "done" | "total" | "ratePerMinute" | "timeLeftMs"
>;

function describeItems(counts: SlotCounts | null, ratePerMinute: number | null): DescribedItems {
  if (counts === null) {
    return { ok: null, failed: null, done: null, total: null, ratePerMinute, timeLeftMs: null };
  }
  const done = counts.ok + counts.failed;
  const leftMs = timeLeftMs({ done, total: counts.total }, ratePerMinute) ?? null;
  return { ...counts, done, ratePerMinute, timeLeftMs: leftMs };
}

type DescribedUse = Pick<
  DescribedProgress,
  "measuredMs" | "cpuMs" | "cpuPercent" | "ioBytes" | "ioBytesPerMinute"
>;

function describeUse(use: TreeUse | null): DescribedUse {
  if (use === null) {
    return {
      measuredMs: null,
      cpuMs: null,
      cpuPercent: null,
      ioBytes: null,
      ioBytesPerMinute: null,
    };
  }
  const { measuredMs, cpuMs, ioBytes, windowMs, windowCpuMs, windowIoBytes } = use;
  return {
    measuredMs,
    cpuMs,
    cpuPercent: windowMs > 0 ? (windowCpuMs * 100) / windowMs : null,
    ioBytes,
    ioBytesPerMinute: perMinute(windowIoBytes, windowMs) ?? null,
  };
}
