/**
 * What a sink has been told about a job, and what it is told next: the change of a state, not every
 * failure. Pure; each sink of each job has a state of its own, so that one that was added while the
 * job fails hears of it at once.
 *
 * Always: a job that goes bad is told, once for each kind of bad ending until it is well again;
 * that it is well again is told; while it lasts it is told again after `remindEveryMs` and no
 * sooner. A ping hears every start and every end, because its service counts what does not come.
 *
 * Clock: the wall clock of whoever writes, handed in; one that was set back by more than the span
 * of a reminder makes it due, never silent for ever.
 */
import type { NoticeEvent } from "./notice.ts";
import { type SinkSpec, wantsEvent } from "./sink.ts";

export interface ToldState {
  readonly state: "good" | "bad";
  /** Since when, in wall-clock milliseconds. */
  readonly since: number;
  /** When a notice of this bad state was last made; null: none was. */
  readonly toldAt: number | null;
  /** Bad endings in a row. */
  readonly failures: number;
  /** The kinds of bad that were met since `since`. */
  readonly kinds: readonly string[];
  /** Of what is no state of the job: when it was last told, by event and what it was about. */
  readonly others: Readonly<Record<string, number>>;
}

export type Happening =
  | { readonly kind: "started" }
  | { readonly kind: "went-well" }
  /** A run has come to nothing, and its job is as good or bad as it was. */
  | { readonly kind: "refused" }
  /** The most telling event first; `what` is the kind of bad: an outcome, `overdue`, `stalled`. */
  | {
      readonly kind: "went-bad";
      readonly events: readonly NoticeEvent[];
      readonly what: string;
      /** False: nothing has ended, the job is only late or silent. */
      readonly isEnding: boolean;
    }
  /** One kind of bad is over, and no run has ended: it beats again. */
  | { readonly kind: "healed"; readonly what: string }
  /** It needs nobody's end: told again only after the span of a reminder. */
  | { readonly kind: "occurred"; readonly event: NoticeEvent; readonly about: string }
  | { readonly kind: "opened"; readonly event: NoticeEvent; readonly about: string }
  | { readonly kind: "closed"; readonly event: NoticeEvent; readonly about: string };

export interface TellingOptions {
  readonly sink: Pick<SinkSpec, "kind" | "events" | "id" | "shown" | "source">;
  readonly remindEveryMs: number;
  /** Wall clock. */
  readonly at: number;
}

export interface DecidedNotice {
  readonly event: NoticeEvent;
  readonly isReminder: boolean;
  readonly since: number | null;
  readonly failuresInRow: number;
}

export interface ToldDecision {
  readonly state: ToldState;
  /** One at most. */
  readonly notices: readonly DecidedNotice[];
}

/** More of each are forgotten, the oldest first: they may be told once more. */
export const MOST_KINDS = 20;
export const MOST_OTHERS = 50;

export function decideNotices(
  previous: ToldState | undefined,
  happening: Happening,
  options: TellingOptions,
): ToldDecision {
  const before = previous ?? unknownAt(options.at);
  switch (happening.kind) {
    case "started":
      return tell(before, pick(options, ["start"]), { since: null, failures: 0 });
    case "refused":
      return decideRefused(before, options);
    case "went-well":
      return decideGood(before, options);
    case "went-bad":
      return decideBad(before, happening, options);
    case "healed":
      return decideHealed(before, happening.what, options);
    case "occurred":
      return decideOccurred(before, happening, options);
    case "opened":
    case "closed":
      return decideCondition(before, happening, options);
  }
}

function unknownAt(at: number): ToldState {
  return { state: "good", since: at, toldAt: null, failures: 0, kinds: [], others: {} };
}

function decideGood(before: ToldState, options: TellingOptions): ToldDecision {
  const { others } = before;
  if (before.state === "good") {
    return tell(before, pick(options, ["success"]), { since: null, failures: 0 });
  }
  const state: ToldState = { ...unknownAt(options.at), others };
  const event = pick(options, ["recovered", "success"]);
  return tell(state, event, { since: before.since, failures: before.failures });
}

function decideBad(
  before: ToldState,
  { events, what, isEnding }: Extract<Happening, { kind: "went-bad" }>,
  options: TellingOptions,
): ToldDecision {
  const { at, sink } = options;
  const wasBad = before.state === "bad";
  const since = wasBad ? before.since : at;
  const failures = (wasBad ? before.failures : 0) + (isEnding ? 1 : 0);
  const isNew = !wasBad || !before.kinds.includes(what);
  const kinds = isNew ? [...(wasBad ? before.kinds : []), what].slice(-MOST_KINDS) : before.kinds;
  const event = pick(options, events);
  const isCounted = sink.kind === "ping" && isEnding;
  const isTold = event !== undefined && (isNew || isCounted || isDue(before.toldAt, options));
  const toldAt = isTold ? at : wasBad ? before.toldAt : null;
  const state: ToldState = { ...before, state: "bad", since, failures, kinds, toldAt };
  if (!isTold) return { state, notices: [] };
  const isReminder = !isNew;
  return { state, notices: [{ event, isReminder, since, failuresInRow: failures }] };
}

/** What lasts is told again when that is due; a ping has heard of the start, and hears the end. */
function decideRefused(before: ToldState, options: TellingOptions): ToldDecision {
  if (options.sink.kind !== "ping") return decideReminder(before, options);
  return tell(before, pick(options, ["failure"]), { since: null, failures: before.failures });
}

/** What else is bad stays so. A ping has heard nothing of it, and hears nothing now. */
function decideHealed(before: ToldState, what: string, options: TellingOptions): ToldDecision {
  if (before.state !== "bad") return { state: before, notices: [] };
  const kinds = before.kinds.filter((kind) => kind !== what);
  if (kinds.length > 0) return { state: { ...before, kinds }, notices: [] };
  const { others, since, failures } = before;
  const event = options.sink.kind === "ping" ? undefined : pick(options, ["recovered"]);
  return tell({ ...unknownAt(options.at), others }, event, { since, failures });
}

/** Never told although it lasts (a sink that has asked for less until now): told now. */
function isDue(toldAt: number | null, { at, remindEveryMs }: TellingOptions): boolean {
  return toldAt === null || Math.abs(at - toldAt) >= remindEveryMs;
}

function decideOccurred(
  before: ToldState,
  { event, about }: Extract<Happening, { kind: "occurred" }>,
  options: TellingOptions,
): ToldDecision {
  const key = `${event}:${about}`;
  const last = before.others[key];
  const isTold = pick(options, [event]) !== undefined && isDue(last ?? null, options);
  if (!isTold) return { state: before, notices: [] };
  const others = remember(before.others, key, options.at);
  return tell({ ...before, others }, event, { since: null, failures: 0 });
}

/** What was not told to begin is not told to be over. */
function decideCondition(
  before: ToldState,
  { kind, event, about }: Extract<Happening, { kind: "opened" | "closed" }>,
  options: TellingOptions,
): ToldDecision {
  const key = `open:${about}`;
  const since = before.others[key];
  const isChange = kind === "opened" ? since === undefined : since !== undefined;
  if (!isChange) return { state: before, notices: [] };
  const { [key]: _, ...rest } = before.others;
  const others = kind === "opened" ? remember(rest, key, options.at) : rest;
  const lastsSince = kind === "opened" ? options.at : (since ?? null);
  return tell({ ...before, others }, pick(options, [event]), { since: lastsSince, failures: 0 });
}

function remember(
  others: Readonly<Record<string, number>>,
  key: string,
  at: number,
): Readonly<Record<string, number>> {
  const { [key]: _, ...rest } = others;
  return Object.fromEntries([...Object.entries(rest), [key, at] as const].slice(-MOST_OTHERS));
}

function pick({ sink }: TellingOptions, events: readonly NoticeEvent[]): NoticeEvent | undefined {
  return events.find((event) => wantsEvent(sink, event));
}

function tell(
  state: ToldState,
  event: NoticeEvent | undefined,
  { since, failures }: { readonly since: number | null; readonly failures: number },
): ToldDecision {
  if (event === undefined) return { state, notices: [] };
  return { state, notices: [{ event, isReminder: false, since, failuresInRow: failures }] };
}

/**
 * A reminder of what lasts although nothing happens: for whoever looks after jobs that do not run.
 */
export function decideReminder(state: ToldState, options: TellingOptions): ToldDecision {
  const { remindEveryMs } = options;
  // 0 is "each end": there is none here.
  const isLasting = state.state === "bad" && state.toldAt !== null && remindEveryMs > 0;
  const isTold = isLasting && isDue(state.toldAt, options);
  const event = pick(options, [lastingEvent(state)]);
  if (!isTold || event === undefined || options.sink.kind === "ping") {
    return { state, notices: [] };
  }
  const { since, failures } = state;
  return {
    state: { ...state, toldAt: options.at },
    notices: [{ event, isReminder: true, since, failuresInRow: failures }],
  };
}

/** A run that has failed is worse than one that is late or silent. */
function lastingEvent({ kinds, failures }: ToldState): NoticeEvent {
  if (kinds.includes("overdue")) return "overdue";
  return failures === 0 && kinds.includes("stalled") ? "stalled" : "failure";
}
