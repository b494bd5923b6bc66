/**
 * what stands in the place of the journal is broken, planted, or of another version.
 * It never stops a run, is never followed or thrown away, and is told once.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { newestVersion } from "../../src/journal/schema.ts";
import { Journal } from "../../src/journal/journal.ts";
import { readEvents, readHistory } from "../../src/journal/queries.ts";
import { MOST_KEPT, setAside } from "../../src/journal/set-aside.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import {
  ended,
  historyOf,
  inspect,
  lease,
  openJournalScene,
  outcomesOf,
  runId,
  started,
} from "../support/journal-scene.ts";
import { rootTest } from "../support/scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const KEY = { kind: "job", name: "nightly" };

/** One run as `watchdog run` records it. @returns the troubles that were told */
function record(state: string, number: number): string[] {
  const troubles: string[] = [];
  const journal = new Journal(state, (line) => troubles.push(line));
  journal.put(started(number));
  journal.put(ended(number));
  journal.close(1000);
  return troubles;
}

function recorded(count = 1): string {
  const state = scene.newState();
  for (let number = 1; number <= count; number += 1) expect(record(state, number)).toEqual([]);
  return state;
}

function brokenNames(state: string): string[] {
  return readdirSync(state).filter((name) => name.includes("broken"));
}

/** As `mv` does it: another file in the place of the first. */
function replace(state: string, content: Uint8Array | string): void {
  for (const part of ["-wal", "-shm"]) rmSync(`${state}/journal.db${part}`, { force: true });
  writeFileSync(`${state}/journal.db.new`, content);
  renameSync(`${state}/journal.db.new`, `${state}/journal.db`);
}

const GOOD = (() => readFileSync(`${recorded(40)}/journal.db`))();

function overwritten(from: number, until: number): Buffer {
  return Buffer.from(GOOD).fill(0xa5, from, until);
}

describe("A-85: a database that is none", () => {
  test.each([
    ["random bytes", crypto.getRandomValues(new Uint8Array(6000))],
    ["its first 100 bytes", GOOD.subarray(0, 100)],
    ["its first half", GOOD.subarray(0, 4096 * Math.floor(GOOD.length / 8192))],
    ["zero bytes", new Uint8Array(16_384)],
    ["text", "#!/bin/sh\necho history\n"],
    ["a database whose tables are overwritten", overwritten(4096, GOOD.length)],
    ["a database whose schema is overwritten", overwritten(108, 4096)],
  ])("%s: is kept aside with one line, and the history works again", (_, content) => {
    const state = recorded();
    replace(state, content);
    const troubles = record(state, 2);
    expect(troubles).toHaveLength(1);
    expect(troubles[0]).toMatch(/^journal\.db was broken \(.+\); kept as journal\.db\.broken-\S+,/);
    const [kept] = brokenNames(state);
    expect(readFileSync(`${state}/${kept}`).equals(Buffer.from(content))).toBe(true);
    expect(historyOf(state).map((run) => [run.runId, run.exitStatus])).toEqual([[runId(2), 3]]);
    expect(readEvents(state, { limit: 9 })).toMatchObject({
      value: [{ name: "journal_set_aside", data: { name: kept } }],
    });
    expect(record(state, 3)).toEqual([]);
    expect(outcomesOf(state)).toEqual(["failed", "failed"]);
    expect(brokenNames(state)).toHaveLength(1);
  });

  test("an empty file is one that was not begun: nothing is told, nothing is kept aside", () => {
    const state = scene.newState();
    writeFileSync(`${state}/journal.db`, "");
    expect(readHistory(state, { limit: 9 })).toEqual({ kind: "missing" });
    expect(setAside(placeOfJournal(state))).toEqual({ kind: "sound" });
    expect(lstatSync(databaseOf(state)).size).toBe(0);
    expect(record(state, 1)).toEqual([]);
    expect(outcomesOf(state)).toEqual(["failed"]);
    expect(brokenNames(state)).toEqual([]);
  });

  test("an empty file with a -wal was more once: both are kept aside", () => {
    const state = recorded();
    replace(state, "");
    writeFileSync(`${state}/journal.db-wal`, "pages".repeat(1000));
    expect(readHistory(state, { limit: 9 })).toEqual({
      kind: "unreadable",
      reason: "journal.db cannot be used: it is empty, and its -wal is not",
    });
    expect(record(state, 2)).toEqual([
      expect.stringMatching(/^journal\.db was broken \(it is empty,/),
    ]);
    const [kept = "", wal = ""] = brokenNames(state).toSorted();
    expect(wal).toBe(`${kept}-wal`);
    expect(readFileSync(`${state}/${wal}`, "utf8")).toBe("pages".repeat(1000));
    expect(outcomesOf(state)).toEqual(["failed"]);
  });

  test("is not mistaken for one by a search for databases", () => {
    const state = recorded();
    replace(state, "none");
    record(state, 2);
    const found = readdirSync(state).filter((name) => /\.db$|\.sqlite/.test(name));
    expect(found).toEqual(["journal.db"]);
  });

  test("is an answer for who only reads, and stays where it is", () => {
    const state = recorded();
    replace(state, "none".repeat(1000));
    expect(readHistory(state, { limit: 9 })).toEqual({
      kind: "unreadable",
      reason: expect.stringContaining("not a database"),
    });
    expect(readFileSync(`${state}/journal.db`, "utf8")).toBe("none".repeat(1000));
  });

  test("takes its -wal along, so that the new one does not inherit it", () => {
    const state = recorded();
    replace(state, "none".repeat(1000));
    writeFileSync(`${state}/journal.db-wal`, "pages".repeat(1000));
    writeFileSync(`${state}/journal.db-shm`, "index");
    const moved = setAside(placeOfJournal(state));
    const name = moved.kind === "set-aside" ? moved.name : "";
    expect(brokenNames(state).toSorted()).toEqual([name, `${name}-wal`]);
    expect(readFileSync(`${state}/${name}-wal`, "utf8")).toBe("pages".repeat(1000));
    expect(readdirSync(state).toSorted()).toEqual([name, `${name}-wal`, "journal.lock"]);
    expect(record(state, 2)).toEqual([]);
  });

  test("is not one while it is sound: the second look leaves it alone", () => {
    const state = recorded();
    expect(setAside(placeOfJournal(state))).toEqual({ kind: "sound" });
    expect(brokenNames(state)).toEqual([]);
    expect(historyOf(state)).toHaveLength(1);
  });

  test("is one where an index alone is wrong, which takes the long look", () => {
    const state = recorded(3);
    const bytes = readFileSync(databaseOf(state), "latin1");
    // Everywhere: a schema of more than one page has left an old copy in its first one.
    const other = bytes.replaceAll("runs_by_job ON runs (job, ", "runs_by_job ON runs (pid, ");
    expect(other).not.toBe(bytes);
    replace(state, Buffer.from(other, "latin1"));
    expect(inspect(state, "PRAGMA quick_check")).toEqual([["ok"]]);
    expect(setAside(placeOfJournal(state))).toMatchObject({ kind: "set-aside" });
  });

  test("is set aside by one at a time", async () => {
    const state = recorded();
    replace(state, "none".repeat(1000));
    const lock = Bun.spawn(["flock", `${state}/journal.lock`, "sh", "-c", "echo holds; cat"], {
      stdin: "pipe",
      stdout: "pipe",
    });
    await lock.stdout.getReader().read();
    expect(setAside(placeOfJournal(state))).toEqual({ kind: "busy" });
    expect(brokenNames(state)).toEqual([]);
    await lock.stdin.end();
    await lock.exited;
    expect(setAside(placeOfJournal(state))).toMatchObject({ kind: "set-aside" });
  });

  test(`is kept ${MOST_KEPT} times, then the oldest goes`, () => {
    const state = recorded();
    for (let round = 0; round < MOST_KEPT + 3; round += 1) {
      replace(state, `broken ${round}`.repeat(200));
      record(state, round + 2);
    }
    expect(brokenNames(state)).toHaveLength(MOST_KEPT);
  });

  test("is noticed by a writer that had the old one open", () => {
    const state = recorded();
    const journal = new Journal(state, () => undefined);
    journal.put(started(2));
    replace(state, "none".repeat(1000));
    expect(record(state, 3)).toHaveLength(1);
    journal.put(ended(2));
    journal.close(1000);
    expect(historyOf(state).map((run) => run.runId)).toEqual([runId(2), runId(3)]);
  });
});

/** What stands in the place of the database, and the file that must not come into being. */
const PLANTED: readonly (readonly [string, string, (state: string, target: string) => void])[] = [
  ["a link", "it is a symbolic link", (state, target) => symlinkSync(target, databaseOf(state))],
  ["a directory", "it is not a regular file", (state) => mkdirSync(databaseOf(state))],
  [
    "a FIFO",
    "it is not a regular file",
    (state) => void Bun.spawnSync(["mkfifo", databaseOf(state)]),
  ],
];

function databaseOf(state: string): string {
  return `${state}/journal.db`;
}

describe("what is planted in the place of the journal", () => {
  test.each(PLANTED)("%s (%s) is neither followed nor replaced", (_, says, plant) => {
    const state = scene.newState();
    const target = `${scene.newState()}/target`;
    plant(state, target);
    const troubles = record(state, 1);
    expect(troubles).toEqual([`journal.db cannot be used: ${says}`]);
    expect(existsSync(target)).toBe(false);
    expect(readHistory(state, { limit: 1 })).toMatchObject({ kind: "unreadable" });
    expect(readdirSync(state).toSorted()).toEqual(["journal.db", "spool"]);
    rmSync(`${state}/journal.db`, { recursive: true });
    expect(outcomesOf(state)).toEqual(["failed"]);
  });

  test("a link to somebody's database leaves that one untouched", () => {
    const victim = recorded();
    const before = readFileSync(`${victim}/journal.db`);
    const state = scene.newState();
    symlinkSync(`${victim}/journal.db`, `${state}/journal.db`);
    expect(record(state, 9)).toHaveLength(1);
    expect(readFileSync(`${victim}/journal.db`)).toEqual(before);
    expect(lstatSync(`${state}/journal.db`).isSymbolicLink()).toBe(true);
  });

  test.each(["-wal", "-shm"])("a link in the place of %s is not followed", (part) => {
    const state = recorded();
    const target = `${scene.newState()}/target`;
    symlinkSync(target, `${state}/journal.db${part}`);
    expect(record(state, 2)).toHaveLength(1);
    expect(existsSync(target)).toBe(false);
  });

  test("a state directory below a link is fine", () => {
    const real = scene.newState();
    mkdirSync(`${real}/inner`);
    const link = `${scene.newState()}/link`;
    symlinkSync(real, link);
    expect(record(`${link}/inner`, 1)).toEqual([]);
    expect(outcomesOf(`${real}/inner`)).toEqual(["failed"]);
  });

  rootTest("a database of somebody else's is not used", () => {
    const state = recorded();
    chownSync(`${state}/journal.db`, 65_534, 65_534);
    expect(record(state, 2)).toEqual([expect.stringContaining("it belongs to uid 65534")]);
    chownSync(`${state}/journal.db`, 0, 0);
    expect(historyOf(state)).toHaveLength(2);
  });
});

describe("A-87: a database of another version", () => {
  test.each([
    [9999, "a newer watchdog"],
    [2001, "a newer watchdog"],
    [7, "no known watchdog"],
  ])("%d is not altered by a byte; the run is in the spool, with one line", (version, says) => {
    const state = recorded();
    inspect(state, `PRAGMA user_version = ${version}`);
    const before = readFileSync(`${state}/journal.db`);
    const troubles = record(state, 2);
    expect(troubles).toEqual([expect.stringContaining(says)]);
    expect(readFileSync(`${state}/journal.db`)).toEqual(before);
    expect(readdirSync(`${state}/spool`)).toHaveLength(2);
    expect(readHistory(state, { limit: 9 })).toMatchObject({
      kind: "read",
      value: [{ runId: runId(1) }],
      waiting: 2,
    });
  });

  test("0 comes back to its number, with all rows and what had to wait", () => {
    const state = recorded();
    inspect(state, "PRAGMA user_version = 9999");
    record(state, 2);
    inspect(state, "PRAGMA user_version = 0");
    expect(record(state, 3)).toEqual([]);
    expect(historyOf(state).map((run) => run.runId)).toEqual([runId(3), runId(2), runId(1)]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[newestVersion()]]);
  });

  test("a newer minor is written by column name, and keeps its own columns", () => {
    const state = recorded();
    inspect(state, "ALTER TABLE runs ADD COLUMN later TEXT NOT NULL DEFAULT 'x'");
    inspect(state, "PRAGMA user_version = 1042");
    expect(record(state, 2)).toEqual([]);
    expect(inspect(state, "SELECT later FROM runs ORDER BY seq")).toEqual([["x"], ["x"]]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[1042]]);
  });

  test("the number of a newer minor that was lost comes back, too", () => {
    const state = recorded();
    inspect(state, "INSERT INTO schema VALUES (1042, 0)");
    inspect(state, "PRAGMA user_version = 0");
    expect(record(state, 2)).toEqual([]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[1042]]);
  });

  test("its generations are still read", () => {
    const state = scene.newState();
    const journal = new Journal(state, () => undefined);
    journal.put(started(1, [lease("nightly", 12)]));
    journal.close(0);
    inspect(state, "PRAGMA user_version = 9999");
    const next = new Journal(state, () => undefined);
    expect(next.highestLease(KEY)).toMatchObject({ generation: 12 });
    next.close(0);
  });
});
