/**
 * Makes the notice about a run or an event from what the journal knows of it. Pure.
 *
 * Always: it is complete, so that whoever sends it hours later needs nothing else; its id follows
 * from what it is about and whom it is for, so that however often the same thing is written down,
 * it is told under one key.
 */
import type { Notice } from "./notice.ts";
import type { NoticeOrigin } from "./notice-part.ts";
import { type EndWords, sentenceOfEvent, sentenceOfRun } from "./notice-sentence.ts";
import type { RunRecord } from "./run-record.ts";
import { renderIso } from "./time.ts";
import type { DecidedNotice } from "./told-state.ts";

export interface NoticeKey {
  /** What it is about: `end:RUN_ID`, `event:ENTRY_ID`. */
  readonly entryId: string;
  readonly sinkId: string;
  /** Wall clock, in milliseconds. */
  readonly at: number;
}

const ID_DIGITS = 32;
/** Of the command line and of the details; a notice is read by people. */
const LONGEST_COMMAND = 4096;
const LONGEST_DETAILS = 32_768;
const MOST_NAMED = 20;

export function makeKeyedId({ entryId, sinkId }: NoticeKey): string {
  return new Bun.CryptoHasher("sha256")
    .update(`${entryId}\n${sinkId}`)
    .digest("hex")
    .slice(0, ID_DIGITS);
}

/** @param tail  the last lines of the output, masked */
export function noticeOfRun(
  key: NoticeKey,
  run: RunRecord,
  decided: DecidedNotice,
  { origin, tail }: { readonly origin: NoticeOrigin; readonly tail: string | null },
): Notice {
  const isStart = decided.event === "start";
  return {
    ...frameOf(key, decided, origin),
    job: run.job,
    run_id: run.run_id,
    outcome: run.outcome,
    because: run.because,
    exit_status: run.exit_status,
    status_of: run.status_of,
    summary: sentenceOfRun({ job: run.job, host: origin.host }, wordsOf(run), decided),
    started_at: run.started_at,
    ended_at: run.ended_at,
    duration_ms: run.duration_ms,
    command: cutCommand(run.command),
    cwd: run.cwd,
    log_tail: isStart ? null : tail,
    details: detailsOf(run),
  };
}

function wordsOf({ outcome, because, exit_code, signal, duration_ms }: RunRecord): EndWords {
  return { outcome, because, exit_code, signal, duration_ms };
}

export interface ToldEvent {
  readonly job: string | null;
  readonly runId: string | null;
  readonly because: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export function noticeOfEvent(
  key: NoticeKey,
  event: ToldEvent,
  decided: DecidedNotice,
  origin: NoticeOrigin,
): Notice {
  const { job, runId, because, data } = event;
  const about = typeof data["name"] === "string" ? data["name"] : "";
  const words = { because, about, isReminder: decided.isReminder };
  return {
    ...frameOf(key, decided, origin),
    job,
    run_id: runId,
    outcome: null,
    because,
    exit_status: null,
    status_of: null,
    summary: sentenceOfEvent({ job, host: origin.host }, decided.event, words),
    started_at: null,
    ended_at: null,
    duration_ms: null,
    command: null,
    cwd: null,
    log_tail: null,
    details: JSON.stringify(data).length > LONGEST_DETAILS ? {} : data,
  };
}

/** It says so itself, and can be told from a real one by `details`. */
export function noticeOfTest({
  sinkId,
  at,
  origin,
}: {
  readonly sinkId: string;
  readonly at: number;
  readonly origin: NoticeOrigin;
}): Notice {
  const decided: DecidedNotice = {
    event: "failure",
    isReminder: false,
    since: null,
    failuresInRow: 0,
  };
  const key = { entryId: `test:${at}`, sinkId, at };
  const event = { job: "watchdog-test", runId: null, because: null, data: { is_test: true } };
  const summary = `this is a test of watchdog on ${origin.host}; nothing has failed`;
  return { ...noticeOfEvent(key, event, decided, origin), summary };
}

type Frame = Pick<
  Notice,
  "id" | "at" | "event" | "host" | "runner" | "is_reminder" | "since" | "failures_in_row"
>;

function frameOf(key: NoticeKey, decided: DecidedNotice, { host, runner }: NoticeOrigin): Frame {
  const { since } = decided;
  return {
    id: makeKeyedId(key),
    at: new Date(key.at).toISOString(),
    event: decided.event,
    host,
    runner,
    is_reminder: decided.isReminder,
    since: since === null ? null : renderIso(since),
    failures_in_row: decided.failuresInRow,
  };
}

function cutCommand(words: readonly string[]): string[] {
  const shown: string[] = [];
  let room = LONGEST_COMMAND;
  for (const word of words) {
    if (room <= 0) return [...shown, "…"];
    shown.push(word.length > room ? `${word.slice(0, room)}…` : word);
    room -= word.length;
  }
  return shown;
}

/** What of a record a person asks for next. */
const DETAILS = [
  "exit_code",
  "signal",
  "held_by",
  "limits",
  "checks",
  "items",
  "steps",
  "suspicions",
];

function detailsOf(run: RunRecord): Record<string, unknown> {
  const fields: Readonly<Record<string, unknown>> = { ...run };
  const details: Record<string, unknown> = {};
  for (const name of DETAILS) {
    if (fields[name] !== undefined && fields[name] !== null) details[name] = fields[name];
  }
  if (run.leftovers.length > 0) details["leftovers"] = run.leftovers.slice(0, MOST_NAMED);
  const bad = run.dependencies.filter(({ state }) => state !== "closed" && state !== "ready");
  if (bad.length > 0) details["dependencies"] = bad.slice(0, MOST_NAMED);
  const path = run.log?.path ?? null;
  if (path !== null) details["log"] = path;
  return JSON.stringify(details).length > LONGEST_DETAILS ? {} : details;
}
