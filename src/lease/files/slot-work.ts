/**
 * What a slot says about the work of a run, in the bytes behind its members. Knows the layout, and
 * nothing of files, clocks and ages.
 *
 * Guarantees: what `encodeWork` made, `decodeWork` gives back, texts cut to what there is room for;
 * a slot of an earlier version has none, and of a later one what this version knows is read: new
 * fields come at the end. Non-guarantees: none about what the job has told.
 *
 * Layout, little endian:
 *
 *       0  f64  last output, MONOTONIC ms; 0: none
 *       8  f64  tree measured at; 0: not measured
 *      16  u64  CPU ms    24  u64  I/O bytes    32  f64  window, ms
 *      40  u64  CPU ms within the window        48  u64  I/O bytes within it
 *      56  f64  items reported at; 0: none      64  f64  items a minute; negative: not known
 *      72  checkpoint and last message: u16 length, UTF-8; empty: none
 *          f64  files last changed, MONOTONIC ms; 0: not seen
 */
import type { SlotWork } from "../../core/lease-record.ts";
import {
  cutBytes,
  SHOWN_CHECKPOINT_BYTES,
  SHOWN_MESSAGE_BYTES,
  type TreeUse,
} from "../../core/progress.ts";
import { SlotReader, SlotWriter } from "./slot-bytes.ts";

const FIXED_BYTES = 72;
const LENGTH_BYTES = 2;
const INSTANT_BYTES = 8;
export const MOST_WORK_BYTES =
  FIXED_BYTES + 2 * LENGTH_BYTES + SHOWN_CHECKPOINT_BYTES + SHOWN_MESSAGE_BYTES + INSTANT_BYTES;
const NOT_KNOWN = -1;
const NOT_MEASURED: TreeUse = {
  measuredMs: 0,
  cpuMs: 0,
  ioBytes: 0,
  windowMs: 0,
  windowCpuMs: 0,
  windowIoBytes: 0,
};

export function encodeWork(work: SlotWork | null): Uint8Array {
  if (work === null) return new Uint8Array();
  const bytes = new Uint8Array(MOST_WORK_BYTES);
  const writer = new SlotWriter(bytes, 0, MOST_WORK_BYTES);
  const { told } = work;
  const use = work.use ?? NOT_MEASURED;
  writer.f64(work.lastOutputMs ?? 0);
  writer.f64(use.measuredMs);
  writer.u64(wholeOf(use.cpuMs));
  writer.u64(wholeOf(use.ioBytes));
  writer.f64(use.windowMs);
  writer.u64(wholeOf(use.windowCpuMs));
  writer.u64(wholeOf(use.windowIoBytes));
  writer.f64(told?.reportedMs ?? 0);
  writer.f64(told?.ratePerMinute ?? NOT_KNOWN);
  writer.text(cutBytes(told?.checkpoint ?? "", SHOWN_CHECKPOINT_BYTES));
  writer.text(cutBytes(told?.lastMessage ?? "", SHOWN_MESSAGE_BYTES));
  writer.f64(work.filesChangedMs ?? 0);
  return bytes.subarray(0, MOST_WORK_BYTES - writer.room);
}

function wholeOf(value: number): number {
  return Math.min(Math.max(0, Math.round(value)), Number.MAX_SAFE_INTEGER);
}

export function decodeWork(bytes: Uint8Array): SlotWork | null {
  if (bytes.length < FIXED_BYTES) return null;
  const reader = new SlotReader(bytes, 0, bytes.length);
  const lastOutputMs = reader.f64();
  const measuredMs = reader.f64();
  const [cpuMs, ioBytes] = [reader.u64(), reader.u64()];
  const windowMs = reader.f64();
  const [windowCpuMs, windowIoBytes] = [reader.u64(), reader.u64()];
  const reportedMs = reader.f64();
  const rate = reader.f64();
  const [checkpoint, lastMessage] = [reader.text(), reader.text()];
  // 0 in a slot of a version that did not tell.
  const filesChangedMs = reader.f64();
  const use = { measuredMs, cpuMs, ioBytes, windowMs, windowCpuMs, windowIoBytes };
  const told = {
    checkpoint: checkpoint === "" ? null : checkpoint,
    lastMessage: lastMessage === "" ? null : lastMessage,
    ratePerMinute: rate >= 0 ? rate : null,
    reportedMs,
  };
  return {
    lastOutputMs: lastOutputMs === 0 ? null : lastOutputMs,
    filesChangedMs: filesChangedMs === 0 ? null : filesChangedMs,
    use: measuredMs === 0 ? null : use,
    told: reportedMs === 0 ? null : told,
  };
}
