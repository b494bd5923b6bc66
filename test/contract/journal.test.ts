/** The journal with real files, real processes and real locks of SQLite. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { BUSY_MS, openToWrite } from "../../src/journal/open.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import { newestVersion } from "../../src/journal/schema.ts";
import { findRun, readEvents } from "../../src/journal/queries.ts";
import {
  abandoned,
  ended,
  historyOf,
  holdExclusively,
  inspect,
  lease,
  openJournalScene,
  outcomesOf,
  recordInProcess,
  refusal,
  runId,
  started,
} from "../support/journal-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const KEY = { kind: "job", name: "nightly" };

function open(state = scene.newState()) {
  const troubles: string[] = [];
  const journal = new Journal(state, (line) => troubles.push(line));
  return { state, troubles, journal };
}

describe("a run", () => {
  test("is in the history while it goes on, and with its end afterwards", () => {
    const { state, troubles, journal } = open();
    journal.put(started(1, [lease("nightly", 7)]));
    expect(historyOf(state)).toMatchObject([
      { runId: runId(1), state: "running", outcome: null, pid: 4711, pidStartTime: 100 },
    ]);
    journal.put(ended(1, [lease("nightly", 7)]));
    journal.close(1000);
    expect(historyOf(state)).toMatchObject([
      {
        runId: runId(1),
        runPath: runId(1),
        job: "nightly",
        state: "ended",
        outcome: "failed",
        exitStatus: 3,
        durationMs: 1000,
        pidStartTime: 100,
        childPid: 4712,
        childStartTime: 101,
        leases: [lease("nightly", 7)],
        record: { command: ["sh", "-c", "exit 3"] },
      },
    ]);
    expect(troubles).toEqual([]);
  });

  test("leaves one file of the database behind, 0600 whatever the umask", async () => {
    const state = scene.newState();
    expect((await recordInProcess(state, ["1"])).lines).toEqual([]);
    expect(readdirSync(state).toSorted()).toEqual(["journal.db", "journal.lock"]);
    for (const name of readdirSync(state)) {
      expect([name, statSync(`${state}/${name}`).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  test("has a private -wal and -shm while it goes on", () => {
    const { state, journal } = open();
    const old = process.umask(0o777);
    journal.put(started(1));
    process.umask(old);
    const modes = ["", "-wal", "-shm"].map((part) => statSync(`${state}/journal.db${part}`).mode);
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o600, 0o600, 0o600]);
    journal.close(0);
  });

  test("is durable when it was put: WAL, synchronous=FULL, and the other settings", () => {
    const opened = openToWrite(placeOfJournal(scene.newState()));
    if (opened.kind !== "open") throw new Error(`found ${opened.kind}`);
    const ask = (name: string): unknown => opened.db.query(`PRAGMA ${name}`).values()[0]?.[0];
    expect(["journal_mode", "synchronous", "trusted_schema", "busy_timeout"].map(ask)).toEqual([
      "wal",
      2,
      0,
      BUSY_MS,
    ]);
    expect(ask("user_version")).toBe(newestVersion());
    opened.db.close(true);
  });

  test("that was refused is an event and a row without a lease", () => {
    const { state, journal } = open();
    journal.put(refusal(2));
    journal.put(ended(2, [], { outcome: "locked", status_of: "watchdog", child_pid: null }));
    journal.close(0);
    expect(outcomesOf(state)).toEqual(["locked"]);
    expect(readEvents(state, { limit: 9 })).toMatchObject({
      kind: "read",
      value: [{ name: "refused", key: "job:nightly", because: "held", data: { waited_ms: 0 } }],
    });
    expect(inspect(state, "SELECT count(*) FROM attempts")).toEqual([[0]]);
  });

  test("whose supervisor was killed is abandoned, once", () => {
    const { state, journal } = open();
    journal.put(started(1, [lease("nightly", 1)]));
    journal.put(abandoned(1, [lease("nightly", 1)]));
    journal.put(abandoned(1, [lease("nightly", 1)]));
    journal.close(0);
    expect(historyOf(state)).toMatchObject([
      { outcome: "abandoned", because: "watchdog-killed", record: { outcome: "abandoned" } },
    ]);
    expect(inspect(state, "SELECT state, outcome FROM attempts")).toEqual([["ended", "abandoned"]]);
    expect(open(state).journal.highestLease(KEY)).toMatchObject({ isReleased: false });
  });
});

describe("A-83: first starters", () => {
  test("fifty at once are all in the history, and nobody hears of a lock", async () => {
    const state = scene.newState();
    const numbers = Array.from({ length: 50 }, (_, number) => number);
    const all = await Promise.all(
      numbers.map((number) => recordInProcess(state, [String(number), "20000"])),
    );
    expect(all.filter((one) => one.status !== 0 || one.lines.length > 0)).toEqual([]);
    expect(
      historyOf(state)
        .map((run) => [run.job, run.exitStatus])
        .toSorted(),
    ).toEqual(numbers.map((number): [string, number] => [`job-${number}`, 3]).toSorted());
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    expect(readdirSync(state).filter((name) => name.includes("broken"))).toEqual([]);
  }, 180_000);
});

describe("A-84: while somebody else holds the database", () => {
  test("put does not wait, close keeps the rest, and the next reader reads it in", async () => {
    const { state, troubles, journal } = open();
    journal.put(started(1, [lease("nightly", 1)]));
    const holder = await holdExclusively(state);
    const before = performance.now();
    journal.put(ended(1, [lease("nightly", 1)]));
    const putMs = performance.now() - before;
    journal.close(200);
    const allMs = performance.now() - before;
    expect(putMs).toBeLessThan(1_000);
    expect(allMs).toBeLessThan(2_000);
    expect(readdirSync(`${state}/spool`)).toHaveLength(1);
    expect(statSync(`${state}/spool`).mode & 0o777).toBe(0o700);
    expect(open(state).journal.highestLease(KEY)).toMatchObject({ isReleased: true });
    await holder.release();
    expect(outcomesOf(state)).toEqual(["failed"]);
    expect(readdirSync(`${state}/spool`)).toEqual([]);
    expect(troubles).toEqual([]);
  });

  test("a reader is answered within seconds, and is told what waits", async () => {
    const { state, journal } = open();
    journal.put(started(1));
    const holder = await holdExclusively(state);
    journal.put(ended(1));
    journal.close(0);
    const before = performance.now();
    expect(findRun(state, "nightly")).toMatchObject({
      kind: "read",
      value: { state: "running" },
      waiting: 1,
    });
    expect(performance.now() - before).toBeLessThan(2000);
    await holder.release();
    expect(findRun(state, "nightly")).toMatchObject({ value: { state: "ended" }, waiting: 0 });
  });

  test("what was put is written by the timer once it is free, without a word", async () => {
    const { state, troubles, journal } = open();
    journal.put(started(1));
    const holder = await holdExclusively(state);
    journal.put(ended(1));
    expect(inspect(state, "SELECT state FROM runs")).toEqual([["running"]]);
    await holder.release();
    await waitFor(
      () => inspect(state, "SELECT state FROM runs")[0]?.[0] === "ended",
      "the timer to write",
    );
    journal.close(0);
    expect(troubles).toEqual([]);
  });

  test("after a while it lies in the spool, where a kill does not reach it", async () => {
    const { state, journal } = open();
    journal.put(started(1));
    const holder = await holdExclusively(state);
    journal.put(ended(1));
    await waitFor(() => existsSync(`${state}/spool`) && readdirSync(`${state}/spool`)[0], "a file");
    await holder.release();
    await waitFor(() => readdirSync(`${state}/spool`).length === 0, "the timer to read it in");
    journal.close(0);
    expect(outcomesOf(state)).toEqual(["failed"]);
  });

  test("the end of a run is read in before the start of its successor", async () => {
    const first = open();
    first.journal.put(started(1, [lease("nightly", 1)]));
    const holder = await holdExclusively(first.state);
    first.journal.put(ended(1, [lease("nightly", 1)]));
    first.journal.close(0);
    await holder.release();
    const second = open(first.state);
    second.journal.put(started(2, [lease("nightly", 2)]));
    second.journal.close(1000);
    expect(outcomesOf(first.state)).toEqual([null, "failed"]);
    expect([...first.troubles, ...second.troubles]).toEqual([]);
  });
});

describe("the last generation of a key", () => {
  test("is not known where there is no journal, and asking makes none", () => {
    const { state, journal } = open();
    expect(journal.highestLease(KEY)).toBeUndefined();
    expect(readdirSync(state)).toEqual([]);
    journal.close(0);
    expect(readdirSync(state)).toEqual([]);
  });

  test("is that of its last grant, and released when its run was", () => {
    const { state, journal } = open();
    journal.put(started(1, [lease("nightly", 4)]));
    expect(journal.highestLease(KEY)).toEqual({
      generation: 4,
      runId: runId(1),
      isReleased: false,
    });
    expect(journal.highestLease({ kind: "lane", name: "nightly" })).toBeUndefined();
    journal.put(ended(1, [lease("nightly", 4)]));
    journal.close(0);
    expect(open(state).journal.highestLease(KEY)).toMatchObject({ isReleased: true });
  });

  test("asked first, serves the same connection that writes afterwards", () => {
    const { state, journal } = open();
    journal.put(started(1, [lease("nightly", 4)]));
    journal.close(0);
    const next = open(state);
    expect(next.journal.highestLease(KEY)).toMatchObject({ generation: 4 });
    next.journal.put(started(2, [lease("nightly", 5)]));
    expect(next.journal.highestLease(KEY)).toMatchObject({ generation: 5, runId: runId(2) });
    next.journal.close(0);
  });

  test("is unread at once where the database is none", async () => {
    const { state, journal } = open();
    await Bun.write(`${state}/journal.db`, "no database at all".repeat(400));
    const before = performance.now();
    expect(journal.highestLease(KEY)).toBe("unread");
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(readdirSync(state)).toEqual(["journal.db"]);
  });
});

describe("an entry of an older generation", () => {
  test("is refused and told, and the newer one stays", () => {
    const { state, troubles, journal } = open();
    journal.put(started(1, [lease("nightly", 1)]));
    journal.put(started(2, [lease("nightly", 2)]));
    journal.put(ended(1, [lease("nightly", 1)]));
    journal.close(0);
    // The newer grant has settled the row of the older run: it is over.
    expect(outcomesOf(state)).toEqual([null, "abandoned"]);
    expect(troubles).toEqual([
      expect.stringMatching(/refused: job:nightly has generation 2 .* generation 1$/),
    ]);
    expect(open(state).journal.highestLease(KEY)).toMatchObject({ generation: 2 });
  });
});

describe("the queue", () => {
  test("is bounded: what is too much goes to the spool, in order", async () => {
    const { state, journal } = open();
    journal.put(started(0));
    const holder = await holdExclusively(state);
    for (let number = 1; number <= 450; number += 1) journal.put(ended(number));
    expect(readdirSync(`${state}/spool`)).toHaveLength(2);
    await holder.release();
    journal.close(5000);
    expect(historyOf(state).map((run) => run.runId)).toEqual(
      Array.from({ length: 451 }, (_, number) => runId(450 - number)),
    );
  });

  test("takes entries after the end, too: they wait in the spool", () => {
    const { state, journal } = open();
    journal.close(0);
    journal.put(ended(1));
    expect(readdirSync(`${state}/spool`)).toHaveLength(1);
    expect(outcomesOf(state)).toEqual(["failed"]);
  });

  test("loses nothing to a listener that throws", () => {
    const state = scene.newState();
    mkdirSync(`${state}/journal.db`);
    const journal = new Journal(state, () => {
      throw new Error("the terminal is gone");
    });
    expect(() => journal.put(ended(1))).not.toThrow();
    journal.close(0);
    expect(readdirSync(`${state}/spool`)).toHaveLength(1);
  });
});

describe("A-88: many short runs", () => {
  test("cost the last one as much as the first, and leave no more files", () => {
    const state = scene.newState();
    const spans = Array.from({ length: 1500 }, (_, number) => {
      const before = performance.now();
      const { journal } = open(state);
      journal.put(started(number, [lease("nightly", number + 1)]));
      journal.put(ended(number, [lease("nightly", number + 1)]));
      journal.close(1000);
      return performance.now() - before;
    });
    // The least of a hundred is that of a moment in which the machine did nothing else.
    const [first, last] = [Math.min(...spans.slice(10, 111)), Math.min(...spans.slice(-101))];
    expect(last).toBeLessThan(2 * first);
    expect(readdirSync(state).toSorted()).toEqual(["journal.db", "journal.lock"]);
    expect(historyOf(state)).toHaveLength(1500);
  }, 180_000);
});
