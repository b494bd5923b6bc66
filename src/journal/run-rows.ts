/**
 * Rows of the journal as reading commands see them. No SQL.
 *
 * Always: a row that holds something strange is still a row; what cannot be read of it is null.
 */
import type { GrantedLease } from "../core/journal-entry.ts";
import type { RunRecord } from "../core/run-record.ts";
import { parseLeases, parseRecord } from "./rows.ts";

/** One row of `runs`. Instants are wall-clock milliseconds. */
export interface JournalRun {
  readonly runId: string;
  /** Ids of all runs around, outermost first, `/`-separated, own id last. */
  readonly runPath: string;
  readonly job: string;
  readonly state: "running" | "ended";
  /** `abandoned` where the supervisor was killed; null while it runs. */
  readonly outcome: string | null;
  readonly because: string | null;
  /** Who has written that it was abandoned: `guard`, `next-run`; null: it was not. */
  readonly abandonedBy: string | null;
  readonly exitStatus: number | null;
  readonly statusOf: string | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
  readonly pid: number;
  readonly pidStartTime: number | null;
  readonly childPid: number | null;
  readonly childStartTime: number | null;
  readonly logPath: string | null;
  readonly leases: readonly GrantedLease[];
  /** The whole record; undefined where the row holds none that can be read. */
  readonly record: RunRecord | undefined;
}

/** Also `journal_set_aside` and `entries_dropped`, which the journal tells about itself. */
export interface JournalEventRow {
  readonly at: number;
  readonly name: string;
  readonly runId: string | null;
  readonly job: string | null;
  /** `kind:name`. */
  readonly key: string | null;
  readonly because: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface RunRow {
  readonly run_id: string;
  readonly run_path: string;
  readonly job: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly because: string | null;
  readonly abandoned_by: string | null;
  readonly exit_status: number | null;
  readonly status_of: string | null;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly duration_ms: number | null;
  readonly pid: number;
  readonly pid_start_time: number | null;
  readonly child_pid: number | null;
  readonly child_start_time: number | null;
  readonly log_path: string | null;
  readonly leases: string;
  readonly record: string;
}

/** By name: a newer minor may have more of them. */
export const RUN_COLUMNS =
  "run_id, run_path, job, state, outcome, because, abandoned_by, exit_status, status_of, " +
  "started_at, ended_at, duration_ms, pid, pid_start_time, child_pid, child_start_time, " +
  "log_path, leases, record";

export function readRunRow(row: RunRow): JournalRun {
  return {
    runId: row.run_id,
    runPath: row.run_path,
    job: row.job,
    state: row.state === "running" ? "running" : "ended",
    outcome: row.outcome,
    because: row.because,
    abandonedBy: row.abandoned_by,
    exitStatus: row.exit_status,
    statusOf: row.status_of,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    durationMs: row.duration_ms,
    pid: row.pid,
    pidStartTime: row.pid_start_time,
    childPid: row.child_pid,
    childStartTime: row.child_start_time,
    logPath: row.log_path,
    leases: parseLeases(row.leases),
    record: parseRecord(row.record),
  };
}

export interface EventRow {
  readonly at: number;
  readonly name: string;
  readonly run_id: string | null;
  readonly job: string | null;
  readonly lease_key: string | null;
  readonly because: string | null;
  readonly data: string;
}

export const EVENT_COLUMNS = "at, name, run_id, job, lease_key, because, data";

export function readEventRow(row: EventRow): JournalEventRow {
  return {
    at: row.at,
    name: row.name,
    runId: row.run_id,
    job: row.job,
    key: row.lease_key,
    because: row.because,
    data: parseData(row.data),
  };
}

function parseData(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? { ...found } : {};
  } catch {
    return {}; // SyntaxError: a row that somebody else has written
  }
}
