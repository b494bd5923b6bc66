/** Sinks and parts of entries for tests of what is told. Addresses of nobody. */
import type { JournalEntry } from "../../src/core/journal-entry.ts";
import type { NoticeEvent } from "../../src/core/notice.ts";
import type { NoticePart } from "../../src/core/notice-part.ts";
import { makeSink, type SinkKind, type SinkSpec } from "../../src/core/sink.ts";

export function sinkTo(
  name: string,
  events: readonly NoticeEvent[] | "default" = "default",
  kind: SinkKind = "webhook",
): SinkSpec {
  const text = `http://127.0.0.1:1/${name}`;
  return makeSink({ kind, source: { kind: "literal", text }, events });
}

export function partFor(sinks: readonly SinkSpec[], changes: Partial<NoticePart> = {}): NoticePart {
  return {
    host: "host",
    runner: "me@host",
    sinks,
    remindEveryMs: 86_400_000,
    logTail: null,
    verdict: null,
    ...changes,
  };
}

/** The same entry, with whom it tells. */
export function telling<Entry extends JournalEntry>(entry: Entry, part: NoticePart): Entry {
  return { ...entry, telling: part };
}
