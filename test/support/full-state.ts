/**
 * State directories as they are after years: a journal with as many runs as are kept and more, and
 * lease directories that nobody has used for long. Made by SQL and copies of what a real run has
 * left, so that the format is that of the binary.
 */
import { Database } from "bun:sqlite";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { placeOf } from "./lease-seen.ts";
import { databaseOf } from "./own-state.ts";
import type { Scene } from "./scene.ts";

const DAY_MS = 86_400_000;

/** Of a run that `fillRuns` has made, the oldest first from 1. */
export function filledRunId(number: number): string {
  return `0195600a-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** Columns that each copy of a run has of its own. */
const OWN_COLUMNS = ["seq", "run_id", "run_path"];

/** So many copies of the last run, as ended `daysAgo`; each is newer than all that were there. */
export function fillRuns(scene: Scene, count: number, daysAgo = 1): void {
  withDatabase(scene, (database) => {
    const columns = database
      .query<{ name: string }, []>("PRAGMA table_info(runs)")
      .all()
      .map(({ name }) => name)
      .filter((name) => !OWN_COLUMNS.includes(name));
    const at = Date.now() - daysAgo * DAY_MS;
    const cells = columns.map((name) =>
      /^(started|ended|sort)_at$/.test(name) ? at : `last.${name}`,
    );
    const id = "printf('0195600a-0000-7000-8000-%012d', n)";
    database.run(`${NUMBERS(count)} INSERT INTO runs (run_id, ${columns.join()})
      SELECT ${id}, ${cells.join()}
      FROM numbers, (SELECT * FROM runs ORDER BY seq DESC LIMIT 1) AS last`);
    database.run(`${NUMBERS(count)} INSERT INTO attempts (run_id, attempt, state, started_at)
      SELECT ${id}, 1, 'ended', ${at} FROM numbers`);
  });
}

/** So many events, as a refused start leaves them. */
export function fillEvents(scene: Scene, count: number, daysAgo = 1): void {
  const at = Date.now() - daysAgo * DAY_MS;
  withDatabase(scene, (database) => {
    database.run(`${NUMBERS(count)} INSERT INTO events (entry_id, at, name, job)
      SELECT printf('filled-%d', n), ${at}, 'refused', 'filled' FROM numbers`);
  });
}

function NUMBERS(count: number): string {
  return `WITH RECURSIVE numbers(n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;
}

function withDatabase(scene: Scene, act: (database: Database) => void): void {
  const database = new Database(databaseOf(scene), { readwrite: true, create: false });
  try {
    database.run("PRAGMA busy_timeout = 10000");
    database.run("BEGIN IMMEDIATE");
    act(database);
    database.run("COMMIT");
  } finally {
    database.close(true);
  }
}

/** Lease directories of jobs, each a copy of that of `pattern`, last used `daysAgo`. */
export function plantLeases(
  scene: Scene,
  pattern: string,
  { names, daysAgo }: { names: readonly string[]; daysAgo: number },
): void {
  const from = placeOf(scene.stateDirectory, pattern);
  const record = JSON.parse(readFileSync(from.record, "utf8"));
  for (const name of names) {
    const to = placeOf(scene.stateDirectory, name);
    mkdirSync(to.directory, { mode: 0o700 });
    for (const file of readdirSync(from.directory)) {
      copyFileSync(`${from.directory}/${file}`, `${to.directory}/${file}`);
    }
    writeFileSync(to.record, JSON.stringify({ ...record, name }));
    ageLease(scene, name, daysAgo);
  }
}

/** Gives the directory and every file in it times of so many days ago. */
export function ageLease(scene: Scene, name: string, daysAgo: number): void {
  const { directory } = placeOf(scene.stateDirectory, name);
  const at = (Date.now() - daysAgo * DAY_MS) / 1000;
  for (const file of readdirSync(directory)) utimesSync(`${directory}/${file}`, at, at);
  utimesSync(directory, at, at);
}

/** Logs of runs of a job that ended long ago. */
export function plantLogs(scene: Scene, job: string, count: number): void {
  const directory = `${scene.stateDirectory}/logs/${job}`;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (let number = 1; number <= count; number += 1) {
    writeFileSync(`${directory}/${filledRunId(number)}.log`, `${number}\n`, { mode: 0o600 });
  }
}
