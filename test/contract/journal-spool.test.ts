/** The spool of the journal: order, limits, and files that cannot be read in. */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import { readEvents, readHistory } from "../../src/journal/queries.ts";
import { addToSpool, listSpool, MOST_FILES } from "../../src/journal/spool.ts";
import type { NamedEntry } from "../../src/journal/apply.ts";
import {
  ended,
  historyOf,
  inspect,
  lease,
  openJournalScene,
  outcomesOf,
  recordInProcess,
  refusal,
  runId,
  started,
} from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

function named(entry: NamedEntry["entry"]): NamedEntry {
  return { id: crypto.randomUUID(), entry };
}

function spool(state: string, ...entries: NamedEntry["entry"][]): number {
  return addToSpool(placeOfJournal(state), entries.map(named));
}

function record(state: string, number: number): string[] {
  const troubles: string[] = [];
  const journal = new Journal(state, (line) => troubles.push(line));
  journal.put(ended(number));
  journal.close(5000);
  return troubles;
}

describe("what waits in the spool", () => {
  test("is private, whole, and read in by the next writer before its own", () => {
    const state = scene.newState();
    spool(state, started(1), ended(1));
    spool(state, refusal(2));
    const [name = ""] = listSpool(placeOfJournal(state));
    expect(name).toStartWith("0000000001-");
    expect(statSync(`${state}/spool/${name}`).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(`${state}/spool/${name}`, "utf8"))).toMatchObject({
      format: 1,
      entries: [{ entry: { kind: "run-started" } }, { entry: { kind: "run-ended" } }],
    });
    expect(record(state, 3)).toEqual([]);
    expect(historyOf(state).map((run) => run.runId)).toEqual([runId(3), runId(1)]);
    expect(readEvents(state, { limit: 9 })).toMatchObject({ value: [{ name: "refused" }] });
    expect(readdirSync(`${state}/spool`)).toEqual([]);
  });

  test("is read in its order, over many files", () => {
    const state = scene.newState();
    for (let number = 1; number <= 150; number += 1) spool(state, ended(number));
    record(state, 200);
    const expected = [200, ...Array.from({ length: 150 }, (_, index) => 150 - index)];
    expect(historyOf(state).map((run) => run.runId)).toEqual(expected.map(runId));
  });

  test("changes nothing the second time: a writer died before it removed the file", () => {
    const state = scene.newState();
    const key = [lease("nightly", 1)];
    spool(state, started(1, key), ended(1, key), refusal(1));
    const [name = ""] = listSpool(placeOfJournal(state));
    copyFileSync(`${state}/spool/${name}`, `${state}/again`);
    record(state, 2);
    const journal = new Journal(state, () => undefined);
    journal.put(started(3, [lease("nightly", 2)]));
    journal.close(0);
    copyFileSync(`${state}/again`, `${state}/spool/${name}`);
    expect(record(state, 4)).toEqual([]);
    expect(outcomesOf(state)).toEqual(["failed", null, "failed", "failed"]);
    expect(inspect(state, "SELECT count(*) FROM events")).toEqual([[1]]);
    expect(inspect(state, "SELECT generation, released_at FROM leases")).toEqual([[2, null]]);
  });

  test("is read in once by ten at the same time", async () => {
    const state = scene.newState();
    for (let number = 100; number < 200; number += 1) {
      spool(state, refusal(number), ended(number));
    }
    const numbers = Array.from({ length: 10 }, (_, number) => String(number));
    const all = await Promise.all(
      numbers.map((number) => recordInProcess(state, [number, "20000"])),
    );
    expect(all.flatMap((one) => one.lines)).toEqual([]);
    expect(historyOf(state)).toHaveLength(110);
    expect(inspect(state, "SELECT count(*) FROM events")).toEqual([[100]]);
  }, 180_000);

  test("keeps what is newer out while another one reads it in", async () => {
    const state = scene.newState();
    spool(state, ended(1));
    const lock = Bun.spawn(["flock", `${state}/spool`, "sh", "-c", "echo holds; cat"], {
      stdin: "pipe",
      stdout: "pipe",
    });
    await lock.stdout.getReader().read();
    const journal = new Journal(state, () => undefined);
    journal.put(ended(2));
    expect(inspect(state, "SELECT count(*) FROM runs")).toEqual([[0]]);
    await lock.stdin.end();
    await lock.exited;
    journal.close(5000);
    expect(historyOf(state).map((run) => run.runId)).toEqual([runId(2), runId(1)]);
  });

  test(`is at most ${MOST_FILES} files: the oldest go, are counted and told`, () => {
    const state = scene.newState();
    const place = placeOfJournal(state);
    mkdirSync(place.spool);
    for (let number = 1; number <= MOST_FILES; number += 1) {
      const name = `${String(number).padStart(10, "0")}-${crypto.randomUUID()}.json`;
      const content = { format: 1, entries: [named(ended(number))] };
      writeFileSync(`${place.spool}/${name}`, JSON.stringify(content));
    }
    expect(spool(state, ended(2000))).toBe(1);
    expect(spool(state, ended(2001))).toBe(1);
    expect(listSpool(place)).toHaveLength(MOST_FILES);
    expect(record(state, 3000)).toEqual(["2 spooled files were dropped: the spool was full"]);
    const runs = historyOf(state).map((run) => run.runId);
    expect([runs.length, runs[0], runs[1], runs.at(-1)]).toEqual([
      MOST_FILES + 1,
      runId(3000),
      runId(2001),
      runId(3),
    ]);
    expect(readEvents(state, { limit: 9 })).toMatchObject({
      value: [{ name: "entries_dropped", data: { count: 2 } }],
    });
  }, 180_000);
});

const NAME = `0000000005-${crypto.randomUUID()}.json`;

describe("a file of the spool", () => {
  test.each([
    ["is empty", ""],
    ["is cut off", '{"format":1,"entries":[{"id":"x","entry":{"kind":"run-end'],
    ["is no list", '{"format":1,"entries":{}}'],
    ["is null", "null"],
    ["holds an entry of no known kind", '{"format":1,"entries":[{"id":"x","entry":{"kind":"a"}}]}'],
    ["holds an entry of an inherited name", entryOf({ kind: "constructor", at: 1 })],
    ["holds a run without its fields", entryOf({ ...started(1), run: {} })],
    ["holds a generation that is no number", entryOf({ ...ended(1), leases: [{ kind: "job" }] })],
  ])("that %s is kept aside and told, and the rest is read in", (_, content) => {
    const state = scene.newState();
    spool(state, ended(1));
    writeFileSync(`${state}/spool/${NAME}`, content);
    spool(state, ended(2));
    expect(record(state, 3)).toEqual([`spool/${NAME} cannot be read; kept as ${NAME}.bad`]);
    expect(historyOf(state)).toHaveLength(3);
    expect(readdirSync(`${state}/spool`)).toEqual([`${NAME}.bad`]);
    expect(readFileSync(`${state}/spool/${NAME}.bad`, "utf8")).toBe(content);
  });

  test("that is a link is not followed", () => {
    const state = scene.newState();
    spool(state, ended(1));
    writeFileSync(`${state}/target`, JSON.stringify({ format: 1, entries: [named(ended(9))] }));
    symlinkSync(`${state}/target`, `${state}/spool/${NAME}`);
    expect(record(state, 2)).toHaveLength(1);
    expect(historyOf(state).map((run) => run.runId)).toEqual([runId(2), runId(1)]);
  });

  test("of a newer format waits for the version that knows it", () => {
    const state = scene.newState();
    spool(state, ended(1));
    writeFileSync(`${state}/spool/${NAME}`, '{"format":2,"entries":"?"}');
    expect(record(state, 2)).toEqual([]);
    expect(readdirSync(`${state}/spool`)).toEqual([NAME]);
    expect(readHistory(state, { limit: 9 })).toMatchObject({ kind: "read", waiting: 1 });
  });

  test("that a killed writer has left half is removed after an hour", () => {
    const state = scene.newState();
    spool(state, ended(1));
    const [old, young] = ["a", "b"].map((name) => `${state}/spool/.${name}.tmp`);
    for (const path of [old, young]) writeFileSync(path ?? "", "half");
    utimesSync(old ?? "", 1, 1);
    record(state, 2);
    expect(readdirSync(`${state}/spool`)).toEqual([".b.tmp"]);
  });
});

test("a link in the place of the spool is neither read nor written through", () => {
  const [state, elsewhere] = [scene.newState(), scene.newState()];
  symlinkSync(elsewhere, `${state}/spool`);
  writeFileSync(`${elsewhere}/${NAME}`, entryOf(ended(1)));
  expect(record(state, 2)).toEqual([]);
  expect(historyOf(state).map((run) => run.runId)).toEqual([runId(2)]);
  const place = placeOfJournal(state);
  expect(() => addToSpool(place, [{ id: "x", entry: ended(3) }])).toThrow("a symbolic link");
  expect(readdirSync(elsewhere)).toEqual([NAME]);
});

describe("an entry that the tables refuse", () => {
  test("is told and left out; those beside it are written", () => {
    const state = scene.newState();
    const strange = { ...ended(2), at: 1.5 } as NamedEntry["entry"];
    spool(state, ended(1), { ...refusal(2), at: 1.5 } as NamedEntry["entry"], strange, ended(3));
    const troubles = record(state, 4);
    expect(troubles).toEqual([expect.stringContaining("an entry cannot be written")]);
    expect(historyOf(state).map((run) => run.runId)).toContain(runId(3));
    expect(readdirSync(`${state}/spool`)).toEqual([]);
  });
});

function entryOf(entry: unknown): string {
  return JSON.stringify({ format: 1, entries: [{ id: "x", entry }] });
}
