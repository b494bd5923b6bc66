/**
 * Puts notices into the outbox: in the transaction of the entry that they are about, so that
 * wherever its writer dies there is the entry with all of its notices, or neither.
 *
 * Always: each thing is told to each sink once, under one key, however often it is written down;
 * trouble with a notice takes nothing from the entry. Not fenced: that a run has failed is true
 * whoever has its keys now. Clock: that of the entry.
 */
import type { Database } from "bun:sqlite";
import {
  entryIdOfEnd,
  happeningOfEnd,
  happeningOfEvent,
  occurrencesOfRun,
} from "../core/happening.ts";
import type { JournalEntry, JournalEvent } from "../core/journal-entry.ts";
import { noticeOfEvent, noticeOfRun } from "../core/make-notice.ts";
import type { Notice } from "../core/notice.ts";
import { isOfOneStep } from "../core/one-step.ts";
import { readNoticePart } from "../core/notice-part.ts";
import type { RunRecord } from "../core/run-record.ts";
import { decideNotices, type DecidedNotice, type Happening } from "../core/told-state.ts";
import { faultPoint } from "../os/faults.ts";
import { hasNotice, insertNotice, pruneOutbox, supersedeStart } from "./outbox-table.ts";
import { declareSinks, readDeclared, readTold, type ToldRow, writeTold } from "./told-rows.ts";
import { isOfTheEntry } from "./trouble.ts";

type Started = Extract<JournalEntry, { kind: "run-started" }>;
type Ended = Extract<JournalEntry, { kind: "run-ended" }>;
type Abandoned = Extract<JournalEntry, { kind: "run-abandoned" }>;

/** What one notice of it would say; the rest is the same for each sink. */
interface Telling {
  readonly entryId: string;
  readonly job: string;
  readonly runId: string | null;
  readonly at: number;
  readonly happening: Happening;
  readonly make: (row: ToldRow, entryId: string, decided: DecidedNotice) => Notice;
}

/** @throws an error of SQLite, as each of these */
export function tellStarted(db: Database, { run, at, telling }: Started): void {
  attempt(db, () => {
    const part = readNoticePart(telling);
    declareSinks(db, { job: run.job, part, at });
    if (part !== undefined) {
      const happening: Happening = { kind: "started" };
      tellAll(db, readTold(db, run.job, part), describe(run, { at, happening, tail: null }));
    }
  });
}

export function tellEnded(db: Database, { run, at, telling }: Ended): void {
  const part = readNoticePart(telling);
  if (part === undefined) return;
  attempt(db, () => {
    const { logTail: tail, verdict } = part;
    // A job whose command was never started is to be told of, too, when it is overdue.
    const isUndeclared = run.child_pid === null && readDeclared(db, run.job).length === 0;
    if (isUndeclared) declareSinks(db, { job: run.job, part, at });
    const happening = happeningOfEnd(run, verdict);
    if (happening === undefined && !isOfOneStep(run)) return;
    if (happening !== undefined) {
      tellAll(db, readTold(db, run.job, part), describe(run, { at, happening, tail }));
    }
    for (const { name, data } of occurrencesOfRun(run)) {
      const found = happeningOfEvent(name, {});
      if (found === undefined) continue;
      const event = { job: run.job, runId: run.run_id, because: null, data };
      const entryId = `${name}:${run.run_id}`;
      const about = { ...event, job: run.job, entryId, at, happening: found };
      tellAll(db, readTold(db, run.job, part), describeEvent(about));
    }
  });
}

/**
 * @param run  as the journal has it now. Its own sinks tell it where its guard writes; else those
 *   that its job has declared, or, where it has none, those of whoever has found it
 */
export function tellAbandoned(db: Database, run: RunRecord, { by, at, telling }: Abandoned): void {
  attempt(db, () => {
    const happening = happeningOfEnd(run, null);
    if (happening === undefined) return;
    const part = readNoticePart(telling);
    const declared = by === "guard" && part !== undefined ? [] : readDeclared(db, run.job);
    const rows = declared.length > 0 || part === undefined ? declared : readTold(db, run.job, part);
    tellAll(db, rows, describe(run, { at, happening, tail: part?.logTail ?? null }));
  });
}

/** To the sinks that the job's last run has declared, which may be the one that goes on. */
export function tellEvent(db: Database, id: string, event: JournalEvent): void {
  const { name, data, job, runId, because, at } = event;
  const happening = happeningOfEvent(name, data);
  if (happening === undefined || job === null) return;
  attempt(db, () => {
    const about = { entryId: `event:${id}`, job, runId, because, data, at, happening };
    tellAll(db, readDeclared(db, job), describeEvent(about));
  });
}

function describe(
  run: RunRecord,
  given: {
    readonly at: number;
    readonly happening: Happening;
    readonly tail: string | null;
  },
): Telling {
  const { at, happening, tail } = given;
  return {
    entryId: happening.kind === "started" ? `start:${run.run_id}` : entryIdOfEnd(run),
    job: run.job,
    runId: run.run_id,
    at,
    happening,
    make: ({ sink, origin }, entryId, decided) =>
      noticeOfRun({ entryId, sinkId: sink.id, at }, run, decided, { origin, tail }),
  };
}

interface EventTelling extends Omit<Telling, "make"> {
  readonly because: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

function describeEvent(about: EventTelling): Telling {
  const { job, runId, because, data, at } = about;
  return {
    ...about,
    make: ({ sink, origin }, entryId, decided) =>
      noticeOfEvent(
        { entryId, sinkId: sink.id, at },
        { job, runId, because, data },
        decided,
        origin,
      ),
  };
}

function tellAll(db: Database, rows: readonly ToldRow[], telling: Telling): void {
  for (const row of rows) tellOne(db, row, telling);
}

function tellOne(db: Database, row: ToldRow, telling: Telling): void {
  const { sink, remindEveryMs } = row;
  const { entryId, job, runId, at, happening } = telling;
  if (hasNotice(db, entryId, sink.id)) return;
  const { state, notices } = decideNotices(row.told, happening, { sink, remindEveryMs, at });
  for (const decided of notices) {
    const { event } = decided;
    faultPoint("outbox.insert", { entryId, sink: sink.id, event, job });
    const notice = telling.make(row, entryId, decided);
    insertNotice(db, { entryId, sink, job, runId, notice, at });
  }
  if (happening.kind !== "started") {
    writeTold(db, { job, row: { ...row, told: state }, at });
    if (runId !== null && notices.length > 0) supersedeStart(db, runId, sink.id);
  }
  if (notices.length > 0) pruneOutbox(db, at);
}

/** A notice that cannot be made must not cost the entry: that is left in any case. */
function attempt(db: Database, act: () => void): void {
  db.run("SAVEPOINT telling");
  try {
    act();
  } catch (error) {
    if (!isOfTheEntry(error)) throw error;
    db.run("ROLLBACK TO telling");
  }
  db.run("RELEASE telling");
}
