/**
 * The tables of jobs of many steps, and what a row of them is. No statement but those that make
 * them; job-rows.ts writes, job-queries.ts reads.
 *
 * `jobs.seq` grows with each job and is never given twice: it is the order of the jobs of a name,
 * because a wall clock may be set back. `steps_until` is how many steps all jobs up to this one had
 * when they began, so that retention counts rows without reading them. `is_superseded`: nobody
 * needs it any more (job-rows.ts), so that retention finds at once what may go. `artifacts` holds
 * rows of steps that are done, and of no other. Instants are wall-clock milliseconds.
 */

export const JOB_TABLES = `
CREATE TABLE IF NOT EXISTS jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  file TEXT NOT NULL,
  directory TEXT NOT NULL,
  state TEXT NOT NULL,
  because TEXT,
  exit_status INTEGER,
  run_id TEXT NOT NULL,
  generation INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ended_at INTEGER,
  steps_until INTEGER NOT NULL DEFAULT 0,
  is_superseded INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS jobs_by_name ON jobs (name, seq);
CREATE INDEX IF NOT EXISTS jobs_needed ON jobs (name, seq) WHERE is_superseded = 0;
CREATE INDEX IF NOT EXISTS jobs_superseded ON jobs (seq) WHERE is_superseded = 1;
CREATE INDEX IF NOT EXISTS jobs_last_done ON jobs (seq)
  WHERE is_superseded = 0 AND state = 'done';
CREATE TABLE IF NOT EXISTS steps (
  job_id TEXT NOT NULL,
  step TEXT NOT NULL,
  position INTEGER NOT NULL,
  job TEXT NOT NULL,
  job_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  because TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL,
  run_id TEXT,
  command_print TEXT,
  input_print TEXT,
  side_effects TEXT,
  started_at INTEGER,
  ended_at INTEGER,
  exit_code INTEGER,
  signal TEXT,
  detail TEXT,
  PRIMARY KEY (job_id, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS steps_done ON steps (job, step, job_seq) WHERE state = 'done';
CREATE TABLE IF NOT EXISTS artifacts (
  job_id TEXT NOT NULL,
  step TEXT NOT NULL,
  path TEXT NOT NULL,
  kind TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, step, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step_attempts (
  job_id TEXT NOT NULL,
  step TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  because TEXT,
  generation INTEGER NOT NULL,
  run_id TEXT,
  started_at INTEGER,
  ended_at INTEGER,
  exit_code INTEGER,
  signal TEXT,
  PRIMARY KEY (job_id, step, attempt)
) STRICT, WITHOUT ROWID;
`;
