/**
 * The counts of a job's items in the 16 bytes of a slot's head that were left for them. Knows the
 * layout (slot.ts), and nothing of what they mean.
 *
 * Guarantees: a slot of an earlier version, with zeros there, has none. Non-guarantees: numbers
 * beyond what the bytes hold are the largest that they do.
 */
import type { SlotCounts } from "../../core/lease-record.ts";

const MOST_OK = 2 ** 48 - 1;
const MOST_FAILED = 2 ** 40 - 1;
/** One less than the bytes hold: what stands there is one more. */
const MOST_TOTAL = 2 ** 40 - 2;
const FAILED_AT = 6;
const TOTAL_AT = 11;

export function encodeCounts(view: DataView, at: number, counts: SlotCounts | null): void {
  if (counts === null) return;
  const { ok, failed, total } = counts;
  setNumber(view, { at, bytes: FAILED_AT, value: Math.min(ok, MOST_OK) });
  const bytes = TOTAL_AT - FAILED_AT;
  setNumber(view, { at: at + FAILED_AT, bytes, value: Math.min(failed, MOST_FAILED) });
  const value = total === null ? 0 : Math.min(total, MOST_TOTAL) + 1;
  setNumber(view, { at: at + TOTAL_AT, bytes, value });
}

export function decodeCounts(view: DataView, at: number): SlotCounts | null {
  const ok = getNumber(view, { at, bytes: FAILED_AT });
  const bytes = TOTAL_AT - FAILED_AT;
  const failed = getNumber(view, { at: at + FAILED_AT, bytes });
  const total = getNumber(view, { at: at + TOTAL_AT, bytes });
  if (ok === 0 && failed === 0 && total === 0) return null;
  return { ok, failed, total: total === 0 ? null : total - 1 };
}

interface Place {
  readonly at: number;
  readonly bytes: number;
}

function setNumber(view: DataView, { at, bytes, value }: Place & { value: number }): void {
  for (let index = 0, rest = value; index < bytes; index += 1, rest = Math.floor(rest / 256)) {
    view.setUint8(at + index, rest % 256);
  }
}

function getNumber(view: DataView, { at, bytes }: Place): number {
  let value = 0;
  for (let index = bytes - 1; index >= 0; index -= 1) {
    value = value * 256 + view.getUint8(at + index);
  }
  return value;
}
