/** The circuits of a state directory with real files, real processes and real locks of SQLite. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { migrate, MIGRATIONS, newestVersion } from "../../src/journal/schema.ts";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../src/core/time.ts";
import { BARE_CIRCUIT, CIRCUIT, CIRCUIT_CLOCK, listCircuits } from "../support/circuit-samples.ts";
import { circuitOf, openStore, putCircuit, useCircuit } from "../support/circuit-scene.ts";
import {
  ended,
  historyOf,
  inspect,
  lease,
  openJournalScene,
  runId,
  started,
} from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DONE = { kind: "done" } as const;
const again = (found: SharedCircuit | undefined): SharedCircuit => found ?? CIRCUIT;

function count(found: SharedCircuit | undefined): SharedCircuit {
  return { ...CIRCUIT, probes: (found?.probes ?? 0) + 1 };
}

describe("a circuit", () => {
  test("is missing where there is no journal, and asking makes none", () => {
    const state = scene.newState();
    const { store } = openStore(state);
    expect([store.read("llm"), store.list()]).toEqual([{ kind: "missing" }, { kind: "missing" }]);
    expect(store.hasChanged()).toBe(true);
    expect(store.read("llm")).toEqual({ kind: "missing" });
    store.close();
    expect(readdirSync(state)).toEqual([]);
  });

  test("is missing where there is no state directory, and cannot be written", () => {
    const { store } = openStore(`${scene.newState()}/none`);
    expect(store.read("llm")).toEqual({ kind: "missing" });
    expect(store.change("llm", again)).toMatchObject({
      kind: "unwritten",
      reason: expect.stringContaining("ENOENT"),
    });
  });

  test("is missing in a journal that has others", () => {
    const state = scene.newState();
    putCircuit(state);
    const { store } = openStore(state);
    expect(store.read("LLM")).toEqual({ kind: "missing" });
    store.close();
  });

  test("that was written is what another store reads, whatever it holds", () => {
    const state = scene.newState();
    const [writer, reader] = [openStore(state), openStore(state)];
    const wrong = listCircuits().filter((circuit) => {
      const change = writer.store.change("llm", () => circuit);
      const look = reader.store.read("llm");
      return !Bun.deepEquals([change, look], [DONE, { kind: "found", circuit }], true);
    });
    expect(wrong).toEqual([]);
    expect([...writer.told, ...reader.told]).toEqual([]);
    for (const { store } of [writer, reader]) store.close();
    expect(readdirSync(state).toSorted()).toEqual(["journal.db", "journal.lock"]);
  });

  test("is given to whoever decides, and undefined leaves it as it is", () => {
    const state = scene.newState();
    const { store } = openStore(state);
    const seen: unknown[] = [];
    const look = (found: SharedCircuit | undefined): undefined => void seen.push(found?.probes);
    expect(store.change("llm", look)).toEqual(DONE);
    expect(store.read("llm")).toEqual({ kind: "missing" });
    expect(store.change("llm", again)).toEqual(DONE);
    const version = inspect(state, "SELECT updated_at, record FROM circuits");
    expect(store.change("llm", look)).toEqual(DONE);
    expect(seen).toEqual([undefined, CIRCUIT.probes]);
    expect(inspect(state, "SELECT updated_at, record FROM circuits")).toEqual(version);
    store.close();
  });

  test("has columns for a person with sqlite3", () => {
    const state = scene.newState();
    putCircuit(state);
    putCircuit(state, { ...BARE_CIRCUIT, name: "bare", changedAt: 7.6 as WallAt });
    const columns = "name, state, settings_hash, target, job, changed_at";
    expect(inspect(state, `SELECT ${columns} FROM circuits ORDER BY name`)).toEqual([
      ["bare", "closed", null, null, null, 8],
      ["llm", "open", CIRCUIT.settingsHash, CIRCUIT.target, CIRCUIT.job, CIRCUIT.changedAt],
    ]);
  });

  test("is listed by name", () => {
    const state = scene.newState();
    for (const name of ["b", "http://x/?#1", "a", "Z"]) putCircuit(state, { ...CIRCUIT, name });
    const { store } = openStore(state);
    const list = store.list();
    expect("kind" in list ? list : list.map(({ name }) => name)).toEqual([
      "Z",
      "a",
      "b",
      "http://x/?#1",
    ]);
    store.close();
  });

  test("is moved to the clock of another boot", () => {
    const state = scene.newState();
    const writer = openStore(state, CIRCUIT_CLOCK);
    expect(writer.store.change("llm", again)).toEqual(DONE);
    writer.store.close();
    const wallMs = (CIRCUIT_CLOCK.wallMs + 500) as WallAt;
    const clock = { ...CIRCUIT_CLOCK, bootId: "next", nowMs: 9_000 as MonotonicAt, wallMs };
    const reader = openStore(state, clock);
    // Due 5 s after it was written, half a second ago.
    expect(reader.store.read("llm")).toMatchObject({ circuit: { state: { retryAt: 13_500 } } });
    reader.store.close();
  });

  test("whose row went while it was used begins anew", () => {
    const state = scene.newState();
    const { store } = openStore(state);
    for (let round = 0; round < 3; round += 1) store.change("llm", count);
    inspect(state, "DELETE FROM circuits");
    expect(store.read("llm")).toEqual({ kind: "missing" });
    expect(store.change("llm", count)).toEqual(DONE);
    expect(circuitOf(state).probes).toBe(1);
    store.close();
  });

  test("that is new takes old ones away, as the other rows do", () => {
    const state = scene.newState();
    const journal = new Journal(state, () => undefined);
    for (const number of [1, 2, 3]) {
      journal.put(ended(number, [], { started_at: new Date().toISOString() }));
    }
    journal.close(1000);
    putCircuit(state, { ...CIRCUIT, name: "old" });
    putCircuit(state, { ...CIRCUIT, name: "recent" });
    inspect(state, "UPDATE circuits SET updated_at = 5 WHERE name = 'old'");
    putCircuit(state, { ...CIRCUIT, name: "recent" });
    expect(inspect(state, "SELECT count(*) FROM circuits")).toEqual([[2]]);
    putCircuit(state, { ...CIRCUIT, name: "new" });
    expect(inspect(state, "SELECT name FROM circuits ORDER BY name").flat()).toEqual([
      "new",
      "recent",
    ]);
  });
});

describe("whether somebody else has written", () => {
  test("is told once for each time, and not for what was written here", async () => {
    const state = scene.newState();
    putCircuit(state);
    const { store } = openStore(state);
    expect(store.hasChanged()).toBe(true);
    store.read("llm");
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, false]);
    expect(store.change("llm", count)).toEqual(DONE);
    expect(store.hasChanged()).toBe(false);
    expect((await useCircuit([state, "llm", "1"])).lines).toEqual(["done"]);
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, false]);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: CIRCUIT.probes + 2 } });
    expect(store.hasChanged()).toBe(false);
    store.close();
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, true]);
  });

  test("is yes where the database was set aside", () => {
    const state = scene.newState();
    putCircuit(state);
    const { store } = openStore(state);
    store.read("llm");
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, false]);
    renameSync(`${state}/journal.db`, `${state}/journal.db.broken-1`);
    expect([store.hasChanged(), store.hasChanged()]).toEqual([true, true]);
    store.close();
  });
});

describe("at the same time", () => {
  const PROCESSES = 4;
  const TIMES = 60;

  test("many processes change one circuit, begin the journal, and lose nothing", async () => {
    const state = scene.newState();
    const words = [state, "llm", String(TIMES)];
    const all = await Promise.all(Array.from({ length: PROCESSES }, () => useCircuit(words)));
    expect(all.map(({ lines, stderr }) => [...lines, stderr])).toEqual(all.map(() => ["done", ""]));
    expect(circuitOf(state).probes).toBe(PROCESSES * TIMES);
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
  }, 60_000);

  test("each has a circuit of its own, beside a run that is recorded", async () => {
    const state = scene.newState();
    const journal = new Journal(state, () => undefined);
    journal.put(started(1));
    const names = ["a", "b", "c"];
    const all = await Promise.all(names.map((name) => useCircuit([state, name, "20"])));
    expect(all.flatMap(({ lines }) => lines)).toEqual(names.map(() => "done"));
    journal.put(ended(1));
    journal.close(1000);
    expect(names.map((name) => circuitOf(state, name).probes)).toEqual([20, 20, 20]);
    expect(historyOf(state)).toHaveLength(1);
  }, 60_000);
});

/** As the version before the circuits has left it. */
function makeOlder(state: string): void {
  const db = new Database(`${state}/journal.db`, { create: true, readwrite: true });
  db.run("PRAGMA journal_mode = WAL");
  migrate(
    db,
    5,
    MIGRATIONS.filter(({ version }) => version <= 1002),
  );
  for (const statement of OLDER_ROWS) db.run(statement);
  db.close(true);
}

/** As a watchdog of 1.2 writes them, by column name. */
const OLDER_ROWS = [
  `INSERT INTO runs (run_id, run_path, job, state, outcome, because, exit_status, status_of,
     started_at, ended_at, duration_ms, pid, log_path, record, pid_start_time, child_pid,
     child_start_time, leases, sort_at)
   VALUES ('${runId(7)}', '${runId(7)}', 'nightly', 'ended', 'failed', 'exited', 3, 'command',
     1, 2, 1, 4711, NULL, '{}', 100, 4712, 101, '[]', 1)`,
  `INSERT INTO attempts (attempt, run_id, state, started_at, child_pid, child_start_time)
   VALUES (1, '${runId(7)}', 'running', 1, 4712, 101)
   ON CONFLICT (run_id, attempt) DO UPDATE SET state = excluded.state`,
  `INSERT INTO leases (kind, name, generation, run_id, granted_at)
   VALUES ('job', 'nightly', 7, '${runId(7)}', 1) ON CONFLICT (kind, name) DO NOTHING`,
  `INSERT OR IGNORE INTO events (entry_id, at, name, run_id, job, lease_key, because, data)
   VALUES ('e', 1, 'refused', '${runId(7)}', 'nightly', NULL, NULL, '{}')`,
  `INSERT INTO audit (entry_id, uid, pid, at, act_id, phase, plan_id, lease_key, generation,
     action, because, evidence, who, boot_id, monotonic_ms)
   VALUES ('a', 0, 1, 1, 'act', 'intended', 'plan', 'job:x', 1, 'mark', 'why', '{}', 'u@h', 'b',
     1)`,
];

function rowsOf(state: string): unknown {
  const tables = ["runs", "attempts", "leases", "events", "audit"];
  return tables.map((table) => inspect(state, `SELECT * FROM ${table}`));
}

describe("a journal of 1.2", () => {
  test("has no circuit, and is not changed by asking", () => {
    const state = scene.newState();
    makeOlder(state);
    const before = readFileSync(`${state}/journal.db`);
    const { store } = openStore(state);
    expect([store.read("llm"), store.list()]).toEqual([{ kind: "missing" }, { kind: "missing" }]);
    store.close();
    expect(readFileSync(`${state}/journal.db`)).toEqual(before);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[1002]]);
  });

  test("takes circuits with the first change, and keeps its rows", () => {
    const state = scene.newState();
    makeOlder(state);
    const before = rowsOf(state);
    const { store, told } = openStore(state);
    store.read("llm");
    expect(store.change("llm", again)).toEqual(DONE);
    expect(store.read("llm")).toMatchObject({ kind: "found", circuit: { probes: 41 } });
    store.close();
    expect(rowsOf(state)).toEqual(before);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[newestVersion()]]);
    expect(told).toEqual([]);
  });

  test("is written by a watchdog of 1.2 as before, once it has circuits", () => {
    const [state, older] = [scene.newState(), scene.newState()];
    putCircuit(state);
    for (const statement of OLDER_ROWS) inspect(state, statement);
    makeOlder(older);
    expect(rowsOf(state)).toEqual(rowsOf(older));
    const journal = new Journal(state, () => undefined);
    expect(journal.highestLease(lease("nightly", 0))).toMatchObject({ generation: 7 });
    journal.close(0);
    expect(circuitOf(state)).toEqual(CIRCUIT);
  });

  test("whose number was lost after it had circuits keeps them", () => {
    const state = scene.newState();
    putCircuit(state);
    inspect(state, "PRAGMA user_version = 0");
    putCircuit(state, { ...CIRCUIT, name: "other" });
    expect(circuitOf(state)).toEqual(CIRCUIT);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[newestVersion()]]);
  });
});

describe("a database that was replaced meanwhile", () => {
  test("is noticed: nothing is read from the old one, or written into it", () => {
    const state = scene.newState();
    putCircuit(state);
    const { store } = openStore(state);
    expect(store.change("llm", count)).toEqual(DONE);
    renameSync(`${state}/journal.db`, `${state}/old.db`);
    for (const part of ["-wal", "-shm"]) rmSync(`${state}/journal.db${part}`, { force: true });
    expect(store.read("llm")).toEqual({ kind: "missing" });
    putCircuit(state, { ...CIRCUIT, probes: 7 });
    expect(store.read("llm")).toMatchObject({ circuit: { probes: 7 } });
    expect(store.change("llm", count)).toEqual(DONE);
    expect(circuitOf(state).probes).toBe(8);
    store.close();
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    expect(circuitOf(state).probes).toBe(8);
  });
});
