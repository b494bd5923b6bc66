/**
 * Whether a job works, for people: what it has reported, and what its tree does. Pure text from
 * what a run has shown; decides nothing.
 *
 * Always: beside the heartbeat and never in its place: a job whose watchdog lives may stand still.
 */

import { type DescribedProgress, describeProgress } from "../core/described-progress.ts";
import type { LeaseView } from "../inspect/leases.ts";
import { renderAge, renderSpanText } from "./render-words.ts";

/** `900 of 1800 items (50 %), 12 failed, 45 a minute, 20 min left`; undefined: nothing reported. */
export function describeItems(progress: DescribedProgress): string | undefined {
  const { done, failed, total, checkpoint, ratePerMinute, timeLeftMs } = progress;
  if (done === null) return undefined;
  const parts = [
    total === null ? `${done} items` : `${done} of ${total} items (${percentOf(done, total)} %)`,
    failed === null || failed === 0 ? "" : `${failed} failed`,
    ratePerMinute === null ? "" : `${renderRate(ratePerMinute)} a minute`,
    timeLeftMs === null || timeLeftMs === 0 ? "" : `${renderSpanText(timeLeftMs)} left`,
    checkpoint === null ? "" : `at ${checkpoint}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** 100 only where all is done. */
export function percentOf(done: number, total: number): number {
  if (done >= total) return 100;
  return Math.floor((done * 100) / total);
}

export function renderRate(perMinute: number): string {
  if (perMinute >= 10) return String(Math.round(perMinute));
  return String(Math.round(perMinute * 100) / 100);
}

/**
 * `output 3 s ago, files changed 20 s ago, CPU 12 % of a core, I/O 3 MiB a minute`; undefined:
 * nothing is known.
 */
export function describeWork(view: LeaseView): string | undefined {
  const { slot, beatAgeMs } = view.evidence;
  const progress = describeProgress(slot);
  if (progress === undefined || slot === undefined) return undefined;
  const ageOf = (ms: number): string | undefined =>
    beatAgeMs === undefined ? undefined : renderAge(beatAgeMs + slot.head.monotonicMs - ms);
  const { lastOutputMs, filesChangedMs, cpuPercent, ioBytesPerMinute } = progress;
  const output = lastOutputMs === null ? undefined : ageOf(lastOutputMs);
  const files = filesChangedMs === null ? undefined : ageOf(filesChangedMs);
  const parts = [
    output === undefined ? "" : `output ${output}`,
    files === undefined ? "" : `files changed ${files}`,
    cpuPercent === null ? "" : `CPU ${Math.round(cpuPercent)} % of a core`,
    ioBytesPerMinute === null ? "" : `I/O ${renderBytes(ioBytesPerMinute)} a minute`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? undefined : parts.join(", ");
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** `0 B`, `512 B`, `1.5 KiB`, `3 MiB`. */
export function renderBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const shown = amount >= 10 || unit === 0 ? Math.round(amount) : Math.round(amount * 10) / 10;
  return `${shown} ${UNITS[unit] ?? ""}`;
}
