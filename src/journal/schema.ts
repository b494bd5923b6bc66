/**
 * The tables of the journal, and how an older database becomes one of this version.
 *
 * `user_version` = major × 1000 + minor, and so far there are 1.1 to 1.6. Within a major,
 * migrations only add (tables, indexes, columns with defaults), so that every version writes, by
 * column name, into any newer minor. A newer major, or a number that no watchdog has ever written,
 * is never written into. 0 is a database that was just made, or whose number was lost: every step
 * can be repeated over tables that are there already, and rows stay.
 *
 * After a crash: each step is one transaction with its number in it, so the database is of one
 * version or of the next.
 */
import type { Database } from "bun:sqlite";
import { faultPoint } from "../os/faults.ts";
import { JOB_TABLES } from "./job-tables.ts";

const MAJOR = 1;
const VERSIONS_OF_A_MAJOR = 1000;

export interface Migration {
  readonly version: number;
  readonly apply: (db: Database) => void;
}

/**
 * `runs.seq` and `events.id` grow by one with each row and are never given twice, so that the first
 * and the last one tell how many there are. `runs.sort_at` is the order of the history
 * (write-rows.ts). Instants are wall-clock milliseconds.
 */
const FIRST_TABLES = `
CREATE TABLE IF NOT EXISTS schema (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS runs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  run_path TEXT NOT NULL DEFAULT '',
  job TEXT NOT NULL,
  state TEXT NOT NULL,
  outcome TEXT,
  because TEXT,
  exit_status INTEGER,
  status_of TEXT,
  sort_at INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  duration_ms INTEGER,
  abandoned_by TEXT,
  pid INTEGER NOT NULL,
  pid_start_time INTEGER,
  child_pid INTEGER,
  child_start_time INTEGER,
  log_path TEXT,
  leases TEXT NOT NULL DEFAULT '[]',
  record TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX IF NOT EXISTS runs_in_order ON runs (sort_at, seq);
CREATE INDEX IF NOT EXISTS runs_by_job ON runs (job, sort_at, seq);
CREATE INDEX IF NOT EXISTS runs_running ON runs (sort_at, seq) WHERE state = 'running';
CREATE TABLE IF NOT EXISTS attempts (
  run_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT,
  exit_code INTEGER,
  signal TEXT,
  child_pid INTEGER,
  child_start_time INTEGER,
  PRIMARY KEY (run_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  generation INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  released_at INTEGER,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  entry_id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  run_id TEXT,
  job TEXT,
  lease_key TEXT,
  because TEXT,
  data TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_job ON events (job, id);
`;

/**
 * What repairs have done (audit-rows.ts): rows are added and stay as they are. The third trigger is
 * for `INSERT OR REPLACE`, whose removal of the old row fires no trigger (sqlite.org,
 * "ON CONFLICT clause").
 */
const AUDIT_TABLE = `
CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  entry_id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  act_id TEXT NOT NULL,
  phase TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  lease_key TEXT NOT NULL,
  generation INTEGER,
  action TEXT NOT NULL,
  because TEXT NOT NULL,
  evidence TEXT NOT NULL DEFAULT '{}',
  who TEXT NOT NULL,
  uid INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  monotonic_ms REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS audit_by_key ON audit (lease_key, id);
CREATE TRIGGER IF NOT EXISTS audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER IF NOT EXISTS audit_is_not_removed BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER IF NOT EXISTS audit_is_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id OR entry_id = NEW.entry_id)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
`;

/**
 * The circuits of dependencies (circuit-rows.ts). `record` is what watchdog reads; the columns
 * before it repeat what a person asks for with sqlite3.
 */
const CIRCUITS_TABLE = `
CREATE TABLE IF NOT EXISTS circuits (
  name TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL,
  settings_hash TEXT,
  target TEXT,
  job TEXT,
  changed_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  record TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS circuits_by_age ON circuits (updated_at);
`;

/**
 * Notices that wait for their delivery (outbox.ts), and what each sink was told of each job
 * (told-rows.ts). `outbox.id` grows and is never given twice: the order in which one sink hears of
 * one job.
 */
const OUTBOX_TABLES = `
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  entry_id TEXT NOT NULL,
  sink_id TEXT NOT NULL,
  sink TEXT NOT NULL,
  job TEXT NOT NULL,
  run_id TEXT,
  event TEXT NOT NULL,
  notice TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting',
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  claimed_until INTEGER,
  claimed_by TEXT,
  last_because TEXT,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER,
  UNIQUE (entry_id, sink_id)
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_waiting ON outbox (sink_id, job, id) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (next_at) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS outbox_by_state ON outbox (state);
CREATE INDEX IF NOT EXISTS outbox_by_run ON outbox (run_id);
CREATE INDEX IF NOT EXISTS outbox_delivered ON outbox (sink_id, delivered_at)
  WHERE state = 'delivered';
CREATE TABLE IF NOT EXISTS told (
  job TEXT NOT NULL,
  sink_id TEXT NOT NULL,
  sink TEXT NOT NULL,
  origin TEXT NOT NULL DEFAULT '{}',
  is_declared INTEGER NOT NULL DEFAULT 0,
  remind_every_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'good',
  since INTEGER NOT NULL,
  told_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  kinds TEXT NOT NULL DEFAULT '[]',
  others TEXT NOT NULL DEFAULT '{}',
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (job, sink_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_by_age ON told (updated_at);
`;

/**
 * What jobs have declared about themselves (schedule-rows.ts), and what patrols have found and told
 * (patrol-rows.ts). `patrols` has one row: the last one.
 */
const SCHEDULE_TABLES = `
CREATE TABLE IF NOT EXISTS schedules (
  job TEXT NOT NULL PRIMARY KEY,
  every_ms INTEGER,
  cron TEXT,
  time_zone TEXT,
  declared_at INTEGER NOT NULL,
  declared_by TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  last_start_at INTEGER,
  last_success_at INTEGER,
  last_failure_at INTEGER,
  last_failure TEXT,
  last_refusal_at INTEGER,
  last_refusal TEXT,
  overdue_state TEXT,
  overdue_since INTEGER,
  told_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS schedules_by_age ON schedules (seen_at);
CREATE TABLE IF NOT EXISTS patrol_findings (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  state TEXT NOT NULL,
  because TEXT NOT NULL,
  run_id TEXT,
  job TEXT,
  lease_key TEXT,
  since INTEGER NOT NULL,
  told_at INTEGER,
  PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS patrols (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  monotonic_ms REAL NOT NULL,
  period_ms INTEGER,
  is_expected INTEGER NOT NULL DEFAULT 1,
  earlier TEXT NOT NULL DEFAULT '[]'
) STRICT;
`;

/** In order. A step must be right over tables that are there already. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1001, apply: (db) => void db.run(FIRST_TABLES) },
  { version: 1002, apply: (db) => void db.run(AUDIT_TABLE) },
  { version: 1003, apply: (db) => void db.run(CIRCUITS_TABLE) },
  { version: 1004, apply: (db) => void db.run(OUTBOX_TABLES) },
  { version: 1005, apply: (db) => void db.run(SCHEDULE_TABLES) },
  { version: 1006, apply: (db) => void db.run(JOB_TABLES) },
];

export function newestVersion(migrations: readonly Migration[] = MIGRATIONS): number {
  return migrations.at(-1)?.version ?? 0;
}

export type VersionDecision = "migrate" | "current" | "newer" | "unknown";

/** What to do with a database of this number. Pure. */
export function decideVersion(found: number, newest: number = newestVersion()): VersionDecision {
  if (found === 0) return "migrate";
  const major = Math.floor(found / VERSIONS_OF_A_MAJOR);
  if (major > MAJOR) return "newer";
  if (major < MAJOR) return "unknown";
  return found < newest ? "migrate" : "current";
}

/** `1.1` for 1001. */
export function renderVersion(version: number): string {
  const minor = version % VERSIONS_OF_A_MAJOR;
  return `${Math.floor(version / VERSIONS_OF_A_MAJOR)}.${minor}`;
}

/** @throws an error of SQLite */
export function readVersion(db: Database): number {
  return Number(db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version);
}

/** Whether anything of ours is in it: not so while it is being made. @throws an error of SQLite */
export function hasTables(db: Database): boolean {
  const found = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'runs'");
  return found.get() !== null;
}

/**
 * Takes every step that is missing, each in a transaction of its own.
 *
 * @param at  wall clock, for people
 * @throws an error of SQLite (SQLITE_BUSY: somebody else writes), with nothing half done
 */
export function migrate(db: Database, at: number, migrations = MIGRATIONS): void {
  for (const step of migrations) takeStep(db, step, at);
}

function takeStep(db: Database, step: Migration, at: number): void {
  db.run("BEGIN IMMEDIATE");
  try {
    const from = readVersion(db); // again: another one may have been faster
    if (from < step.version) {
      step.apply(db);
      db.run("INSERT OR IGNORE INTO schema (version, applied_at) VALUES (?, ?)", [
        step.version,
        at,
      ]);
      db.run(`PRAGMA user_version = ${knownVersion(db, step.version)}`);
      faultPoint("migration.step", { from, to: step.version });
    }
    db.run("COMMIT");
  } finally {
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

/** A number that was lost (0) comes back from the table: a newer minor is not forgotten. */
function knownVersion(db: Database, version: number): number {
  const highest = db
    .query<{ version: number | null }, [number]>(
      "SELECT max(version) AS version FROM schema WHERE version < ?",
    )
    .get((MAJOR + 1) * VERSIONS_OF_A_MAJOR)?.version;
  return Math.max(version, highest ?? 0);
}

/** For migrations to come: SQLite knows no `ADD COLUMN IF NOT EXISTS`. */
export function addColumn(db: Database, table: string, name: string, declaration: string): void {
  const columns = db.query<{ name: string }, []>(`PRAGMA table_info(${table})`).all();
  if (columns.some((column) => column.name === name)) return;
  db.run(`ALTER TABLE ${table} ADD COLUMN ${name} ${declaration}`);
}
