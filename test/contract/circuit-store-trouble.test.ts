/**
 * Circuits where the journal is held, broken, planted or of another version: always an answer,
 * never an exception, and nothing of somebody else's is written over.
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import { Journal } from "../../src/journal/journal.ts";
import { readEvents } from "../../src/journal/queries.ts";
import { CIRCUIT } from "../support/circuit-samples.ts";
import { circuitOf, openStore, putCircuit } from "../support/circuit-scene.ts";
import {
  ended,
  historyOf,
  holdExclusively,
  inspect,
  openJournalScene,
  runId,
  started,
} from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DONE = { kind: "done" } as const;
const BUSY = { kind: "busy" } as const;
/** 50 ms, and what a loaded machine makes of it; the holder lets nobody in before it is told. */
const SOON_MS = 5_000;

function count(found: SharedCircuit | undefined): SharedCircuit {
  return { ...CIRCUIT, probes: (found?.probes ?? 0) + 1 };
}

function never(): undefined {
  throw new Error("nobody was to decide");
}

function withCircuit(): string {
  const state = scene.newState();
  putCircuit(state);
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

describe("while somebody else holds the database", () => {
  test("a change is busy after a moment, a read is answered, and later both are", async () => {
    const state = withCircuit();
    const { store, told } = openStore(state);
    const holder = await holdExclusively(state);
    const before = performance.now();
    expect(store.change("llm", never)).toEqual(BUSY);
    expect(performance.now() - before).toBeLessThan(SOON_MS);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: CIRCUIT.probes } });
    await holder.release();
    expect(store.change("llm", count)).toEqual(DONE);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: CIRCUIT.probes + 1 } });
    expect(told).toEqual([]);
    store.close();
  });

  test("and keeps readers out too, all is busy after a moment, and it may have changed", () => {
    const state = withCircuit();
    const { store } = openStore(state);
    const holder = new Database(`${state}/journal.db`, { readwrite: true });
    holder.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    const before = performance.now();
    expect([store.change("llm", never), store.read("llm"), store.list()]).toEqual([
      BUSY,
      BUSY,
      BUSY,
    ]);
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, true]);
    expect(performance.now() - before).toBeLessThan(4 * SOON_MS);
    holder.close(true);
    expect(store.read("llm")).toMatchObject({ kind: "found" });
    store.close();
  });
});

describe("a row that cannot be understood", () => {
  test("of a newer format is never written over, and nobody decides about it", () => {
    const state = withCircuit();
    const { store, told } = openStore(state);
    const newer = JSON.stringify({ format: 2, state: { is: "ajar" } });
    inspect(state, `UPDATE circuits SET record = '${newer}', state = 'ajar'`);
    const row = inspect(state, "SELECT * FROM circuits");
    const reason = "circuit llm is of a newer watchdog (format 2)";
    expect(store.read("llm")).toEqual({ kind: "unread", reason });
    expect(store.change("llm", never)).toEqual({ kind: "unwritten", reason });
    expect(store.list()).toEqual([]);
    store.close();
    expect(inspect(state, "SELECT * FROM circuits")).toEqual(row);
    expect(told).toEqual([]);
  });

  test.each(["", "{}", "no circuit", "[1]"])("(%j) is told, and begins anew", (record) => {
    const state = withCircuit();
    putCircuit(state, { ...CIRCUIT, name: "other" });
    const { store, told } = openStore(state);
    inspect(state, `UPDATE circuits SET record = '${record}' WHERE name = 'llm'`);
    expect(store.read("llm")).toMatchObject({
      kind: "unread",
      reason: expect.stringMatching(/^circuit llm cannot be read: /),
    });
    expect(store.list()).toMatchObject([{ name: "other" }]);
    expect(store.change("llm", () => undefined)).toEqual(DONE);
    expect(told).toEqual([]);
    expect(store.change("llm", count)).toEqual(DONE);
    expect(told).toEqual([
      expect.stringMatching(/^circuit llm could not be read \(.+\) and begins anew$/),
    ]);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: 1 } });
    expect(store.change("llm", count)).toEqual(DONE);
    expect(told).toHaveLength(1);
    store.close();
  });

  test("is not made: what is too long to be read is not written", () => {
    const state = withCircuit();
    const { store } = openStore(state);
    const long = { ...CIRCUIT, job: "x".repeat(100_000) };
    expect(store.change("llm", () => long)).toEqual({
      kind: "unwritten",
      reason: "circuit llm is too long to be kept",
    });
    expect(circuitOf(state)).toEqual(CIRCUIT);
    store.close();
  });
});

describe("a database of another version", () => {
  test.each([
    [2001, "a newer watchdog"],
    [7, "no known watchdog"],
  ])("%d is read as far as it can be, and not altered by a byte", (version, says) => {
    const state = withCircuit();
    inspect(state, `PRAGMA user_version = ${version}`);
    const before = readFileSync(`${state}/journal.db`);
    const { store } = openStore(state);
    expect(store.read("llm")).toMatchObject({ kind: "found" });
    expect(store.change("llm", never)).toEqual({
      kind: "unwritten",
      reason: expect.stringContaining(says),
    });
    store.close();
    expect(readFileSync(`${state}/journal.db`)).toEqual(before);
  });

  test("of a newer minor is written by column name, and keeps its own columns", () => {
    const state = withCircuit();
    inspect(state, "ALTER TABLE circuits ADD COLUMN later TEXT NOT NULL DEFAULT 'x'");
    inspect(state, "UPDATE circuits SET later = 'y'");
    inspect(state, "PRAGMA user_version = 1042");
    putCircuit(state, { ...CIRCUIT, probes: 50 });
    putCircuit(state, { ...CIRCUIT, name: "other" });
    expect(inspect(state, "SELECT name, later FROM circuits ORDER BY name")).toEqual([
      ["llm", "y"],
      ["other", "x"],
    ]);
    expect(circuitOf(state).probes).toBe(50);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[1042]]);
  });

  test("whose table is of another shape is unread", () => {
    const state = withCircuit();
    inspect(state, "ALTER TABLE circuits RENAME COLUMN record TO text");
    const { store } = openStore(state);
    expect(store.read("llm")).toMatchObject({ kind: "unread" });
    expect(store.change("llm", never)).toMatchObject({ kind: "unwritten" });
    store.close();
  });
});

describe("a broken database", () => {
  test.each([
    ["text", "no database at all".repeat(400)],
    ["zero bytes", new Uint8Array(16_384)],
  ])("(%s) is unread and stays; a change sets it aside with one line", (_, content) => {
    const state = withCircuit();
    replace(state, content);
    const { store, told } = openStore(state);
    expect(store.read("llm")).toMatchObject({
      kind: "unread",
      reason: expect.stringContaining("journal.db cannot be used"),
    });
    expect([brokenNames(state), told]).toEqual([[], []]);
    expect(store.change("llm", count)).toEqual(DONE);
    const [kept] = brokenNames(state);
    expect(readFileSync(`${state}/${kept}`)).toEqual(Buffer.from(content));
    expect(told).toEqual([expect.stringMatching(/^journal\.db was broken \(.+\); kept as /)]);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: 1 } });
    store.close();
    expect(readEvents(state, { limit: 9 })).toMatchObject({
      value: [{ name: "journal_set_aside", data: { name: kept } }],
    });
  });

  test("in its table of circuits alone is set aside while the run's journal is open", async () => {
    const state = withCircuit();
    const journal = new Journal(state, () => undefined);
    journal.put(started(1));
    const { store, told } = openStore(state);
    expect(store.change("llm", count)).toEqual(DONE);
    await overwriteTable(state, "circuits");
    expect(store.read("llm")).toMatchObject({ kind: "unread" });
    expect(store.change("llm", count)).toEqual(DONE);
    expect(told).toEqual([expect.stringContaining("journal.db was broken")]);
    journal.put(ended(1));
    expect(store.change("llm", count)).toEqual(DONE);
    journal.close(1000);
    expect(store.change("llm", count)).toEqual(DONE);
    store.close();
    expect(historyOf(state)).toMatchObject([{ runId: runId(1), outcome: "failed" }]);
    expect(circuitOf(state).probes).toBe(3);
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    expect(brokenNames(state).filter((name) => !name.endsWith("-wal"))).toHaveLength(1);
  });

  test("again and again is no longer looked through after a few times", () => {
    const state = withCircuit();
    const { store, told } = openStore(state);
    const kinds = Array.from({ length: 8 }, () => {
      replace(state, "none".repeat(1000));
      return store.change("llm", count).kind;
    });
    const [least, most] = [kinds.indexOf("unwritten"), kinds.length];
    expect(kinds.slice(least)).toEqual(Array(most - least).fill("unwritten"));
    expect([least, told.length]).toEqual([4, 4]);
    store.close();
  });
});

/** Garbage in the first page of a table, from outside, as a disk makes it. */
async function overwriteTable(state: string, table: string): Promise<void> {
  inspect(state, "PRAGMA wal_checkpoint(TRUNCATE)");
  const page = inspect(state, `SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`);
  const where = ["bs=4096", "count=1", "conv=notrunc", `seek=${Number(page[0]?.[0]) - 1}`];
  const files = ["if=/dev/urandom", `of=${state}/journal.db`];
  const dd = Bun.spawn(["dd", ...files, ...where, "status=none"]);
  expect(await dd.exited).toBe(0);
}

describe("what is planted in the place of the journal", () => {
  test.each<[string, string, (state: string, target: string) => void]>([
    [
      "a link",
      "it is a symbolic link",
      (state, target) => symlinkSync(target, `${state}/journal.db`),
    ],
    ["a directory", "it is not a regular file", (state) => mkdirSync(`${state}/journal.db`)],
    [
      "a FIFO",
      "it is not a regular file",
      (state) => void Bun.spawnSync(["mkfifo", `${state}/journal.db`]),
    ],
  ])("%s (%s) is neither followed nor replaced", (_, says, plant) => {
    const state = scene.newState();
    const target = `${scene.newState()}/target`;
    plant(state, target);
    const { store } = openStore(state);
    const reason = `journal.db cannot be used: ${says}`;
    expect(store.read("llm")).toEqual({ kind: "unread", reason });
    expect(store.change("llm", never)).toEqual({ kind: "unwritten", reason });
    expect(store.hasChanged()).toBe(true);
    store.close();
    expect(existsSync(target)).toBe(false);
    expect(readdirSync(state)).toEqual(["journal.db"]);
  });

  test("a link to somebody's database leaves that one untouched", () => {
    const victim = withCircuit();
    const before = readFileSync(`${victim}/journal.db`);
    const state = scene.newState();
    symlinkSync(`${victim}/journal.db`, `${state}/journal.db`);
    const { store } = openStore(state);
    expect(store.read("llm").kind).toBe("unread");
    expect(store.change("llm", count).kind).toBe("unwritten");
    store.close();
    expect(readFileSync(`${victim}/journal.db`)).toEqual(before);
  });
});
