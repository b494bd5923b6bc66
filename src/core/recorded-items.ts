/** What a job has told of its items, as the record of its run holds it. Pure. */
import {
  doneOf,
  hasReported,
  type ItemCounts,
  LONGEST_CHECKPOINT,
  LONGEST_MESSAGE,
  shorten,
} from "./item-counts.ts";
import { perMinute } from "./progress-rate.ts";
import type { RecordedItems } from "./run-record.ts";

export interface RecordedFacts {
  /** Since the start, without pauses. */
  readonly elapsedMs: number;
  /** Takes the secrets out of what the job has told. */
  readonly mask: (text: string) => string;
}

/** Null: nothing was reported, and nothing tried to be. */
export function recordItems(counts: ItemCounts, facts: RecordedFacts): RecordedItems | null {
  if (!hasReported(counts) && counts.ignored === 0) return null;
  const { ok, failed, total, checkpoint, ignored, lastMessage } = counts;
  const rate = perMinute(doneOf(counts), facts.elapsedMs);
  const told = (text: string | undefined, longest: number): string | null =>
    text === undefined ? null : shorten(facts.mask(text), longest);
  return {
    ok,
    failed,
    total: total ?? null,
    checkpoint: told(checkpoint, LONGEST_CHECKPOINT),
    ignored,
    rate_per_minute: rate === undefined ? null : Math.round(rate * 100) / 100,
    last_message: told(lastMessage, LONGEST_MESSAGE),
  };
}
