/**
 * What an entry of the journal says beside its own matter to those who are told of it. Pure.
 *
 * Always: no secret. The sinks are as they may be stored (sink.ts, storableSink), the tail of the
 * output is masked. It may come from the spool, and from another version: what is no such part is
 * none.
 */
import { NOTICE_EVENTS, type NoticeEvent } from "./notice.ts";
import { SINK_KINDS, type SinkSpec, WEBHOOK_SHAPES } from "./sink.ts";

/** Where a run was: part of each notice about it. */
export interface NoticeOrigin {
  readonly host: string;
  /** `user@host`. */
  readonly runner: string;
}

export interface NoticePart extends NoticeOrigin {
  readonly sinks: readonly SinkSpec[];
  /** `--remind-every`. */
  readonly remindEveryMs: number;
  /** The last lines of the output, masked; null: none was kept. */
  readonly logTail: string | null;
  /** Of the key that was refused, unless its holder is well; null: none was. */
  readonly verdict: string | null;
}

export const DEFAULT_REMIND_EVERY_MS = 86_400_000;
/** More sinks than these of one job are not told. */
export const MOST_SINKS = 50;

type Fields = Readonly<Partial<Record<string, unknown>>>;

function isFields(found: unknown): found is Fields {
  return typeof found === "object" && found !== null;
}

export function readNoticePart(found: unknown): NoticePart | undefined {
  if (!isFields(found)) return undefined;
  const { host, runner, sinks, remindEveryMs, logTail, verdict } = found;
  if (typeof host !== "string" || typeof runner !== "string" || !Array.isArray(sinks)) {
    return undefined;
  }
  return {
    host,
    runner,
    sinks: sinks.filter(isStoredSink).slice(0, MOST_SINKS),
    remindEveryMs: isSpan(remindEveryMs) ? remindEveryMs : DEFAULT_REMIND_EVERY_MS,
    logTail: typeof logTail === "string" ? logTail : null,
    verdict: typeof verdict === "string" ? verdict : null,
  };
}

function isSpan(found: unknown): found is number {
  return typeof found === "number" && Number.isFinite(found) && found >= 0;
}

/** As far as code relies on it. */
export function isStoredSink(found: unknown): found is SinkSpec {
  if (!isFields(found)) return false;
  const { kind, shape, events, source, id, shown } = found;
  return (
    SINK_KINDS.some((one) => one === kind) &&
    (shape === undefined || WEBHOOK_SHAPES.some((one) => one === shape)) &&
    (events === "default" || (Array.isArray(events) && events.every(isNoticeEvent))) &&
    isSource(source) &&
    typeof id === "string" &&
    typeof shown === "string"
  );
}

function isNoticeEvent(found: unknown): found is NoticeEvent {
  return NOTICE_EVENTS.some((one) => one === found);
}

function isSource(found: unknown): boolean {
  if (!isFields(found)) return false;
  const { kind } = found;
  if (kind === "literal") return typeof found["text"] === "string";
  if (kind === "file") return typeof found["path"] === "string";
  if (kind === "variable") return typeof found["name"] === "string";
  return kind === "hidden";
}
