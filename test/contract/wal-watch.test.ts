/** Whether a database was written, by its -wal alone: nothing that was committed is missed. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStill, stampSettledWal, type WalStamp } from "../../src/journal/wal-watch.ts";
import { waitFor } from "../support/wait-for.ts";

/** Less than what a -wal must be old. */
const QUICK_MS = 20;

let directory = "";
let path = "";
let wal = "";
let db: Database;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "watchdog-wal-"));
  path = join(directory, "journal.db");
  wal = `${path}-wal`;
  db = new Database(path, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE things (word TEXT)");
});
afterEach(() => {
  db.close();
  rmSync(directory, { recursive: true, force: true });
});

const settled = (): Promise<WalStamp> =>
  waitFor(() => stampSettledWal(wal), "the -wal to be old enough");

/** What is told of one that was written right now; where the machine was slow, once more. */
async function stampOfNow(): Promise<WalStamp | undefined> {
  const told = await waitFor(() => {
    const began = Date.now();
    utimesSync(wal, new Date(began), new Date(began));
    const stamp = stampSettledWal(wal);
    return Date.now() - began < QUICK_MS && { stamp };
  }, "a look within a moment");
  return told.stamp;
}

describe("a -wal", () => {
  test("is still while nobody writes, also where it is read", async () => {
    const before = await settled();
    db.query("SELECT * FROM things").all();
    db.query("PRAGMA data_version").get();
    expect(isStill(before, stampSettledWal(wal))).toBe(true);
  });

  test("is not after a commit, by this process or another", async () => {
    const before = await settled();
    db.run("INSERT INTO things VALUES ('a')");
    expect(await stampOfNow()).toBeUndefined(); // it was written a moment ago
    const after = await settled();
    expect(isStill(before, after)).toBe(false);
    const other = `const { Database } = require("bun:sqlite");
      new Database(${JSON.stringify(path)}).run("INSERT INTO things VALUES ('b')");`;
    expect(Bun.spawnSync([process.execPath, "-e", other]).exitCode).toBe(0);
    expect(isStill(after, await settled())).toBe(false);
  });

  test("is not where it begins anew and is as long as before", async () => {
    const write = (word: string): void => void db.run("UPDATE things SET word = ?", [word]);
    db.run("INSERT INTO things VALUES ('a')");
    db.run("PRAGMA wal_checkpoint(RESTART)");
    write("b");
    const before = await settled();
    db.run("PRAGMA wal_checkpoint(RESTART)");
    write("c");
    const after = await settled();
    expect(after.size).toBe(before.size);
    expect(isStill(before, after)).toBe(false);
  });

  test("is not known to be where there is none, or its time lies ahead", async () => {
    const before = await settled();
    utimesSync(wal, new Date(), new Date(Date.now() + 3_600_000));
    expect(stampSettledWal(wal)).toBeUndefined();
    const gone = join(directory, "gone.db-wal");
    expect(stampSettledWal(gone)).toBeUndefined();
    expect([isStill(before, undefined), isStill(undefined, before)]).toEqual([false, false]);
    expect(isStill(undefined, undefined)).toBe(false);
  });
});
