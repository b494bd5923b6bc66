/**
 * Writes one entry into the tables, inside a transaction that the caller has begun.
 *
 * Guarantees: an entry that is applied twice changes nothing the second time (a writer may die
 * between the commit and the removal of the spool file); a run that has ended never runs again;
 * the generation of a key never falls. Fencing: rows of a granted run are refused only where the
 * journal knows a larger generation of one of its keys; a missing or smaller one is written first.
 * Events and runs without a lease are not fenced, nor is `run-abandoned`, which only ends a row
 * that still says `running` and releases nothing: whether survivors are left is for the verdict.
 * Nor is the end that a guard tells for its watchdog: the next run may be faster than a guard, and
 * what a run's own row says of its end takes nothing from anybody.
 *
 * With an entry that is new go the notices about it (tell.ts), in the same transaction; those of an
 * end also where its rows are refused.
 *
 * Non-guarantees: whether a lease is lost is decided by the beat, never here. Clock: the wall clock
 * of whoever writes, handed in.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../core/errors.ts";
import type { JournalEntry, JournalEvent } from "../core/journal-entry.ts";
import { renderKey } from "../core/lease-key.ts";
import type { RunRecord } from "../core/run-record.ts";
import { insertAudit } from "./audit-rows.ts";
import { findFence, findPredecessors, raiseLeases, releaseLeases } from "./lease-rows.ts";
import { applyPatrolled } from "./patrol-rows.ts";
import { pruneEvents, pruneRuns } from "./retention.ts";
import { type Cell, cellsOf, markAbandoned, parseRecord } from "./rows.ts";
import { RECORD_COLUMNS, renderLeases } from "./rows.ts";
import { forgetSchedule, newsOf, noteRun } from "./schedule-rows.ts";
import { tellAbandoned, tellEnded, tellEvent, tellStarted } from "./tell.ts";
import { type AttemptRow, writeAttempt, writeRun } from "./write-rows.ts";

/** An entry with a name of its own, by which a second time is noticed. */
export interface NamedEntry {
  readonly id: string;
  readonly entry: JournalEntry;
}

export type Applied =
  | { readonly kind: "written" }
  /** It says nothing new: the row is there, or has ended already. */
  | { readonly kind: "known" }
  | { readonly kind: "fenced"; readonly reason: string };

type Started = Extract<JournalEntry, { kind: "run-started" }>;
type Ended = Extract<JournalEntry, { kind: "run-ended" }>;
type Abandoned = Extract<JournalEntry, { kind: "run-abandoned" }>;

const WRITTEN: Applied = { kind: "written" };
const KNOWN: Applied = { kind: "known" };

/**
 * @param directAt  the wall clock, where the entry is written by whoever made it; undefined: it
 *   comes from the spool
 * @throws an error of SQLite; the caller rolls back
 */
export function applyEntry(db: Database, { id, entry }: NamedEntry, directAt?: number): Applied {
  assert(db.inTransaction, "an entry is applied inside a transaction");
  switch (entry.kind) {
    case "run-started":
      return applyStarted(db, entry, directAt);
    case "run-ended":
      return applyEnded(db, entry, directAt);
    case "run-abandoned":
      return applyAbandoned(db, entry, directAt);
    case "event":
      return applyEvent(db, id, entry);
    case "audit":
      return insertAudit(db, id, entry) === 0 ? KNOWN : WRITTEN;
    case "schedule-forgotten":
      return forgetSchedule(db, entry.job) ? WRITTEN : KNOWN;
    case "patrolled": {
      const isDirect = directAt !== undefined;
      const put = (eventId: string, event: JournalEvent) => void applyEvent(db, eventId, event);
      return applyPatrolled(db, { id, entry, isDirect }, put) ? WRITTEN : KNOWN;
    }
  }
}

function applyStarted(db: Database, entry: Started, directAt?: number): Applied {
  const { run, at, leases } = entry;
  const known = readRun(db, run.run_id);
  if (known?.state === "ended") return KNOWN;
  const fence = findFence(db, leases);
  if (fence !== undefined) return fence;
  settlePredecessors(db, entry);
  raiseLeases(db, leases, run.run_id, at);
  writeRun(
    db,
    { isKnown: known !== undefined, directAt },
    {
      run_id: run.run_id,
      run_path: entry.runPath,
      ...columnsOf(run, at),
      pid_start_time: entry.owner?.start_time ?? null,
      child_pid: entry.child?.pid ?? run.child_pid,
      child_start_time: entry.child?.start_time ?? null,
      leases: renderLeases(leases),
    },
  );
  writeAttempt(db, {
    run_id: run.run_id,
    state: "running",
    started_at: at,
    child_pid: entry.child?.pid ?? run.child_pid,
    child_start_time: entry.child?.start_time ?? null,
  });
  noteRun(db, newsOf(entry, columnsOf(run, at), directAt !== undefined));
  if (known === undefined) pruneRuns(db, at);
  tellStarted(db, entry);
  return WRITTEN;
}

/**
 * A run that was killed after its record said `released` and before its end was written here: no
 * takeover tells of it, but the next grant of its key does.
 */
function settlePredecessors(db: Database, { run, at, leases }: Started): void {
  for (const runId of findPredecessors(db, leases, run.run_id)) {
    const because = "superseded";
    const entry = { at, runId, by: "next-run", run: null, leases: [], because } as const;
    if (readRun(db, runId)?.state === "running") {
      applyAbandoned(db, { kind: "run-abandoned", ...entry });
    }
  }
}

function applyEnded(db: Database, entry: Ended, directAt?: number): Applied {
  const { run, at, leases } = entry;
  const known = readRun(db, run.run_id);
  // A supervisor that was taken for dead knows better how its run ended.
  if (known?.state === "ended" && known.outcome !== "abandoned") return KNOWN;
  const fence = entry.by === "guard" ? undefined : findFence(db, leases);
  tellEnded(db, entry);
  if (fence !== undefined) return fence;
  raiseLeases(db, leases, run.run_id, at);
  if (entry.isReleased) releaseLeases(db, leases, run.run_id, at);
  writeRun(
    db,
    { isKnown: known !== undefined, directAt },
    {
      run_id: run.run_id,
      run_path: entry.runPath,
      ...columnsOf(run, at),
      abandoned_by: null,
      child_pid: run.child_pid,
      leases: renderLeases(leases),
    },
  );
  if (run.child_pid !== null) writeAttempt(db, endedAttempt(run.run_id, entry));
  noteRun(db, newsOf(entry, columnsOf(run, at), directAt !== undefined));
  if (known === undefined) pruneRuns(db, at);
  return WRITTEN;
}

function endedAttempt(runId: string, { run, at }: Ended): AttemptRow {
  const cells = columnsOf(run, at);
  return {
    run_id: runId,
    state: "ended",
    started_at: cells["started_at"] ?? at,
    ended_at: cells["ended_at"] ?? at,
    outcome: run.outcome,
    exit_code: run.exit_code,
    signal: run.signal,
    child_pid: run.child_pid,
  };
}

function applyAbandoned(db: Database, entry: Abandoned, directAt?: number): Applied {
  const known = readRun(db, entry.runId);
  if (known?.state === "ended") return KNOWN;
  const row = known === undefined ? undefined : parseRecord(known.record);
  // Who comes later knows of it what stands in the lease alone; the run's own row says more.
  const run = entry.by === "guard" ? (entry.run ?? row) : (row ?? entry.run ?? undefined);
  if (known === undefined && run === undefined) return KNOWN; // nobody knows what it was
  raiseLeases(db, entry.leases, entry.runId, entry.at);
  if (run === undefined) {
    db.query(
      "UPDATE runs SET state = 'ended', outcome = 'abandoned', because = ?, abandoned_by = ?, " +
        "ended_at = ? WHERE run_id = ?",
    ).run(entry.because, entry.by, entry.at, entry.runId);
  } else {
    const dead = markAbandoned(run, entry.because, entry.at);
    writeRun(
      db,
      { isKnown: known !== undefined, directAt },
      {
        run_id: entry.runId,
        ...columnsOf(dead, entry.at),
        abandoned_by: entry.by,
        ...(known === undefined ? leavesOf(entry) : {}),
      },
    );
    tellAbandoned(db, dead, entry);
  }
  endAttempts(db, entry);
  noteAbandoned(db, entry, run ?? known, directAt !== undefined);
  if (known === undefined) pruneRuns(db, entry.at);
  return WRITTEN;
}

/** Where its record cannot be read, its row tells whose run it was. */
function noteAbandoned(
  db: Database,
  { at, runId, schedule }: Abandoned,
  run: Pick<RunRecord, "job" | "started_at"> | KnownRun | undefined,
  isDirect: boolean,
): void {
  if (run === undefined) return;
  const startedAt = new Date(run.started_at).getTime();
  const end = { at, outcome: "abandoned" };
  noteRun(db, { job: run.job, runId, at, schedule, startedAt, end, isDirect });
}

function leavesOf(entry: Abandoned): Record<string, Cell> {
  return {
    run_path: entry.run?.run_path ?? entry.runId,
    child_pid: entry.run?.child_pid ?? null,
    leases: renderLeases(entry.leases),
  };
}

function endAttempts(db: Database, { runId, at }: Abandoned): void {
  db.query(
    "UPDATE attempts SET state = 'ended', outcome = 'abandoned', ended_at = ? " +
      "WHERE run_id = ? AND state = 'running'",
  ).run(at, runId);
}

function applyEvent(db: Database, id: string, event: JournalEvent): Applied {
  const changes = insertEvent(db, id, event);
  if (changes === 0) return KNOWN;
  tellEvent(db, id, event);
  pruneEvents(db, event.at);
  return WRITTEN;
}

/** Also for what the journal has to tell about itself. @returns 0 where it is there already */
export function insertEvent(
  db: Database,
  id: string,
  event: Omit<JournalEvent, "name" | "kind"> & { readonly name: string },
): number {
  return db
    .query(
      "INSERT OR IGNORE INTO events " +
        "(entry_id, at, name, run_id, job, lease_key, because, data) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .run(
      id,
      event.at,
      event.name,
      event.runId,
      event.job,
      event.key === null ? null : renderKey(event.key),
      event.because,
      JSON.stringify(event.data),
    ).changes;
}

interface KnownRun {
  readonly job: string;
  readonly started_at: number;
  readonly state: string;
  readonly outcome: string | null;
  readonly record: string;
}

function readRun(db: Database, runId: string): KnownRun | undefined {
  return (
    db
      .query<KnownRun, [string]>(
        "SELECT job, started_at, state, outcome, record FROM runs WHERE run_id = ?",
      )
      .get(runId) ?? undefined
  );
}

function columnsOf(run: Parameters<typeof cellsOf>[0], at: number): Record<string, Cell> {
  const cells = cellsOf(run, at);
  return Object.fromEntries(RECORD_COLUMNS.map((name, index) => [name, cells[index] ?? null]));
}
