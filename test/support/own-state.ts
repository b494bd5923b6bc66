/**
 * A state directory of a test's own within a scene, and its journal seen from outside: by SQL, and
 * held by a stranger. Asks watchdog nothing.
 */
import { Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import type { RunOptions, Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** The same scene, where everything that is started has another state directory. */
export function inState(scene: Scene, name: string): Scene {
  const stateDirectory = scene.path(name);
  const own = { WATCHDOG_STATE_DIR: stateDirectory };
  const within = (options: RunOptions = {}): RunOptions => ({
    ...options,
    env: { ...own, ...options.env },
  });
  return {
    ...scene,
    stateDirectory,
    env: { ...scene.env, ...own },
    run: (args, options) => scene.run(args, within(options)),
    start: (args, options) => scene.start(args, within(options)),
    startProgram: (argv, options) => scene.startProgram(argv, within(options)),
  };
}

export function databaseOf(scene: Scene): string {
  return `${scene.stateDirectory}/journal.db`;
}

/** Rows of a statement against the journal, each an array of its columns. */
export function query(scene: Scene, sql: string): unknown[][] {
  const database = new Database(databaseOf(scene), { readwrite: true, create: false });
  try {
    database.run("PRAGMA busy_timeout = 10000");
    return database.query(sql).values();
  } finally {
    database.close(true);
  }
}

/** What SQLite itself says of the database. */
export function healthOf(scene: Scene): { integrity: unknown; mode: unknown } {
  return {
    integrity: query(scene, "PRAGMA integrity_check")[0]?.[0],
    mode: query(scene, "PRAGMA journal_mode")[0]?.[0],
  };
}

export const HEALTHY = { integrity: "ok", mode: "wal" };

/** What waits for the next writer, and whatever else lies there. */
export function listSpool(scene: Scene): string[] {
  const spool = `${scene.stateDirectory}/spool`;
  return existsSync(spool) ? readdirSync(spool).sort() : [];
}

/** Databases that were set aside, without their logs. */
export function listBroken(scene: Scene): string[] {
  const names = readdirSync(scene.stateDirectory);
  return names.filter((name) => name.startsWith("journal.db.broken-") && !name.endsWith("-wal"));
}

export interface DatabaseHolder {
  /** Commits and leaves. */
  release(): Promise<void>;
}

/** `sqlite3` after BEGIN EXCLUSIVE: nobody else reads or writes. */
export async function holdDatabase(scene: Scene): Promise<DatabaseHolder> {
  const shell = Bun.spawn(["sqlite3", databaseOf(scene)], {
    env: scene.env,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  let heard = "";
  const reading = (async () => {
    for await (const part of shell.stdout) heard += Buffer.from(part).toString();
  })();
  shell.stdin.write("BEGIN EXCLUSIVE;\nSELECT 'holds';\n");
  await shell.stdin.flush();
  await waitFor(() => heard.includes("holds"), "sqlite3 to hold the database");
  return {
    release: async () => {
      shell.stdin.write("COMMIT;\n");
      await shell.stdin.end();
      await Promise.all([shell.exited, reading]);
    },
  };
}
