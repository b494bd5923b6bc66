/** The last probe as the record of a run has it. Pure. */
import type { RecordedDependency } from "../../core/run-record.ts";
import type { ProbeNote } from "../../core/shared-circuit.ts";
import { renderIso } from "../../core/time.ts";

type Last = Pick<RecordedDependency, "last_because" | "last_detail" | "last_at">;

export function recordLast(note: ProbeNote | null | undefined): Last {
  if (note === null || note === undefined) {
    return { last_because: null, last_detail: null, last_at: null };
  }
  const { because, detail, wallAt } = note;
  return {
    last_because: because,
    last_detail: detail,
    last_at: renderIso(wallAt),
  };
}
