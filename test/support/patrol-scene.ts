/**
 * Asking `watchdog patrol` from outside, and moving what it judges into the past: the journal as
 * SQLite has it, changed behind watchdog's back. No clock is faked for it.
 */
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { ask, waitForRow } from "./ask.ts";
import { QUICK, stopStill, waitForVerdict } from "./repair-scene.ts";
import type { Ended, RunOptions, Scene, Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever was answered: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

export const HOUR_MS = 3_600_000;

export function patrol(
  scene: Scene,
  words: readonly string[] = [],
  options: RunOptions = {},
): Promise<Ended> {
  return ask(scene, ["patrol", ...words], options);
}

/** Its answer in JSON, answered with 0. */
export async function patrolJson(scene: Scene, words: readonly string[] = []): Promise<Parsed> {
  const { status, stdout, stderr } = await patrol(scene, [...words, "--json"]);
  if (status !== 0) throw new Error(`${status}: ${stdout.toString()} ${stderr}`);
  return JSON.parse(stdout.toString());
}

/** One job of it; undefined: it has no schedule. */
export async function judgedJob(scene: Scene, job: string): Promise<Parsed> {
  const { jobs } = await patrolJson(scene);
  return jobs.find((one: Parsed) => one.job === job);
}

export function withJournal<T>(scene: Scene, act: (db: Database) => T): T {
  const db = new Database(`${scene.stateDirectory}/journal.db`);
  try {
    db.run("PRAGMA busy_timeout = 5000");
    return act(db);
  } finally {
    db.close();
  }
}

const INSTANTS = [
  "declared_at",
  "seen_at",
  "last_start_at",
  "last_success_at",
  "last_failure_at",
  "last_refusal_at",
];

/** Everything that is known of the job has happened so much earlier. */
export function ageJob(scene: Scene, job: string, ms: number): void {
  withJournal(scene, (db) => {
    const changes = INSTANTS.map((name) => `${name} = ${name} - ${ms}`).join(", ");
    db.run(`UPDATE schedules SET ${changes} WHERE job = ?`, [job]);
    db.run("UPDATE runs SET started_at = started_at - ? WHERE job = ? AND state = 'ended'", [
      ms,
      job,
    ]);
  });
}

/** The last patrol was here so much earlier. */
export function agePatrol(scene: Scene, ms: number): void {
  withJournal(scene, (db) => {
    db.run("UPDATE patrols SET at = at - ?1, monotonic_ms = monotonic_ms - ?1", [ms]);
  });
}

export function eventsOf(scene: Scene, name: string): Parsed[] {
  return withJournal(scene, (db) =>
    db
      .query<{ job: string; because: string; lease_key: string; data: string }, [string]>(
        "SELECT job, because, lease_key, data FROM events WHERE name = ? ORDER BY id",
      )
      .all(name)
      .map((row) => ({ ...row, data: JSON.parse(row.data) })),
  );
}

/** Patrols that the journal knows of; at most as many as it remembers. */
export function countPatrols(scene: Scene): number {
  if (!existsSync(`${scene.stateDirectory}/journal.db`)) return 0;
  return withJournal(scene, (db) => {
    const row = db.query<{ earlier: string }, []>("SELECT earlier FROM patrols").get();
    return row === null ? 0 : (JSON.parse(row.earlier) as unknown[]).length + 1;
  });
}

/** A run that stands still in the middle of a transaction would keep every other writer out. */
const QUIET_MS = 500;

/** Nobody has written into the journal for a moment: what a start has to write is written. */
export async function waitForQuietJournal(scene: Scene): Promise<void> {
  await waitFor(() => {
    const wal = statSync(`${scene.stateDirectory}/journal.db-wal`, { throwIfNoEntry: false });
    return Date.now() - (wal?.mtimeMs ?? 0) > QUIET_MS;
  }, "a journal that nobody writes into");
}

/** A holder whose beats are old, because it stands still, and that has nothing of the journal. */
export async function startStalled(scene: Scene, job: string, line: string): Promise<Started> {
  const run = scene.start(["--name", job, ...QUICK, "--", ...line.split(" ")]);
  await waitForRow(scene, job, "running");
  await waitForQuietJournal(scene);
  await stopStill(run);
  await waitForVerdict(scene, `job:${job}`, "stalled");
  return run;
}
