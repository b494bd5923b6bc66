/** Circuits as a reader finds them and as a reset leaves them: a real database and real locks. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { CircuitPlace } from "../../src/circuit/place.ts";
import {
  answerCircuitList,
  answerCircuitReset,
  answerCircuitShow,
} from "../../src/cli/answer-circuits.ts";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt } from "../../src/core/time.ts";
import {
  readBrokenCircuits,
  readCircuit,
  readCircuits,
  resetCircuit,
} from "../../src/inspect/circuits.ts";
import { readStatus, showStatus } from "../../src/inspect/status.ts";
import { openCircuitStore } from "../../src/journal/circuit-rows.ts";
import { readEvents } from "../../src/journal/queries.ts";
import { monotonicNow, wallNow } from "../../src/os/clock.ts";
import {
  closedCircuit,
  halfOpenCircuit,
  openCircuit,
  permanentCircuit,
} from "../support/circuit-views.ts";
import { openScene } from "../support/scene.ts";
import { NOBODY_KEPT } from "../support/survivor-scene.ts";

const scene = openScene(import.meta.file);
const treeLook = {
  scanUrl: new URL("../../src/tree/scan-worker.ts", import.meta.url),
  readKept: NOBODY_KEPT,
};
let count = 0;

function newState(circuits: readonly SharedCircuit[] = []): string {
  count += 1;
  const path = scene.path(`state-${count}`);
  mkdirSync(path, { mode: 0o700 });
  if (circuits.length === 0) return path;
  const store = openCircuitStore(path, () => undefined);
  for (const circuit of circuits)
    expect(store.change(circuit.name, () => circuit)).toEqual({ kind: "done" });
  store.close();
  return path;
}

function contextOf(stateDirectory: string) {
  return { stateDirectory, scanUrl: treeLook.scanUrl, runPath: undefined };
}

const LOOKING = { stateDir: undefined, configFile: undefined } as const;

/** Whoever probes; the lock is another open file, as that of another process is. */
function probing(state: string, name: string): CircuitPlace {
  const place = new CircuitPlace(state, name);
  expect(place.tryLock()).toBe("locked");
  return place;
}

describe("a look", () => {
  test("finds each circuit, by name, with its prober", () => {
    const state = newState([
      openCircuit({ name: "llm" }),
      closedCircuit({ name: "db 1/2" }),
      halfOpenCircuit({ name: "unused" }),
    ]);
    const [llm, unused] = [probing(state, "llm"), probing(state, "unused")];
    unused.unlock();
    const { circuits, isReadable, troubles } = readCircuits(state);
    expect(circuits.map(({ circuit, isProbed }) => [circuit.name, isProbed])).toEqual([
      ["db 1/2", false],
      ["llm", true],
      ["unused", false],
    ]);
    expect([isReadable, troubles]).toEqual([true, []]);
    llm.unlock();
    expect(readCircuit(state, "llm")).toMatchObject({ kind: "found", view: { isProbed: false } });
  });

  test("leaves whoever wants to probe the lock", () => {
    const state = newState([openCircuit()]);
    probing(state, "api").unlock();
    expect(readCircuit(state, "api").kind).toBe("found");
    probing(state, "api").unlock();
  });

  test("makes nothing, neither where there is nothing nor where there is a circuit", () => {
    const nothing = newState();
    expect(readCircuits(nothing)).toMatchObject({ circuits: [], isReadable: true, troubles: [] });
    expect(readCircuit(nothing, "api")).toEqual({ kind: "unknown" });
    expect(resetCircuit(nothing, "api")).toEqual({ kind: "unknown" });
    expect(readdirSync(nothing)).toEqual([]);
    expect(readCircuits(scene.path("no-such-state")).circuits).toEqual([]);
    const state = newState([openCircuit()]);
    expect(readCircuits(state).circuits[0]?.isProbed).toBe(false);
    expect(resetCircuit(state, "ap")).toEqual({ kind: "unknown" });
    expect(existsSync(`${state}/circuits`)).toBe(false);
  });

  test("does not follow what stands in the place of a lock", () => {
    const state = newState([openCircuit()]);
    mkdirSync(`${state}/circuits/api`, { recursive: true });
    mkdirSync(`${state}/circuits/api/lock`);
    expect(readCircuits(state).circuits[0]?.isProbed).toBeUndefined();
  });

  test("of a broken database is an answer with its reason", () => {
    const state = newState();
    writeFileSync(`${state}/journal.db`, "no database".repeat(1_000), { mode: 0o600 });
    chmodSync(`${state}/journal.db`, 0o600);
    const view = readCircuits(state);
    expect([view.isReadable, view.circuits]).toEqual([false, []]);
    expect(view.troubles).toEqual([expect.stringMatching(/^journal: /)]);
    expect(readCircuit(state, "api")).toMatchObject({ kind: "unread" });
    expect(
      answerCircuitShow(
        { kind: "circuit-show", name: "api", isJson: false, ...LOOKING },
        contextOf(state),
      ),
    ).toEqual({
      lines: view.troubles,
      code: 125,
    });
    expect(
      answerCircuitList({ kind: "circuit-list", isJson: false, ...LOOKING }, contextOf(state)),
    ).toEqual({
      text: "",
      lines: view.troubles,
      code: 125,
    });
  });

  test("of status sees those alone that are not closed, and none where none ever was", async () => {
    const circuits = [
      openCircuit(),
      closedCircuit({ name: "db" }),
      permanentCircuit({ name: "z", job: "other" }),
    ];
    const state = newState(circuits);
    expect(readBrokenCircuits(state).circuits.map(({ circuit }) => circuit.name)).toEqual([
      "api",
      "z",
    ]);
    const about = { stateDirectory: state, treeLook };
    const all = await readStatus({ ...about, name: undefined });
    expect(all.circuits.map(({ circuit }) => circuit.name)).toEqual(["api", "z"]);
    expect(showStatus(all)["circuits"]).toMatchObject([
      { name: "api", is_probed: null },
      { name: "z" },
    ]);
    const named = await readStatus({ ...about, name: "nightly" });
    expect(named.circuits.map(({ circuit }) => circuit.name)).toEqual(["api"]);
    const none = await readStatus({ stateDirectory: newState(), name: undefined, treeLook });
    expect([none.circuits, none.troubles]).toEqual([[], []]);
  });
});

describe("a reset", () => {
  const events = (state: string): unknown[] => {
    const answer = readEvents(state, { limit: 10 });
    return answer.kind === "read"
      ? answer.value.map(({ name, because, data }) => [name, because, data])
      : [];
  };

  test("closes the circuit, forgets whose it is, and tells the journal once", () => {
    const state = newState([openCircuit(), openCircuit({ name: "other" })]);
    const reset = resetCircuit(state, "api");
    expect(reset).toMatchObject({
      kind: "reset",
      isProbed: false,
      forgetsSettings: true,
      troubles: [],
    });
    const found = readCircuit(state, "api");
    expect(found).toMatchObject({
      kind: "found",
      view: { circuit: { state: { kind: "closed" }, settingsHash: null, target: null, job: null } },
    });
    expect(events(state)).toEqual([
      ["circuit_closed", "reset", { circuit: "api", from: "open", to: "closed" }],
    ]);
    expect(resetCircuit(state, "api")).toMatchObject({ kind: "reset", transition: undefined });
    expect(events(state)).toHaveLength(1);
    expect(readCircuit(state, "other")).toMatchObject({
      view: { circuit: { state: { kind: "open" } } },
    });
    // The lock is free again.
    probing(state, "api").unlock();
  });

  test("beside somebody who probes leaves the settings, whatever else", () => {
    const state = newState([openCircuit()]);
    const prober = probing(state, "api");
    expect(resetCircuit(state, "api")).toMatchObject({ isProbed: true, forgetsSettings: false });
    expect(readCircuit(state, "api")).toMatchObject({
      view: {
        isProbed: true,
        circuit: { state: { kind: "closed" }, settingsHash: openCircuit().settingsHash },
      },
    });
    prober.unlock();
  });

  test("of a database that somebody else has for too long is not made", () => {
    const state = newState([openCircuit()]);
    const other = new Database(`${state}/journal.db`);
    other.run("BEGIN IMMEDIATE");
    const reset = resetCircuit(state, "api");
    other.run("ROLLBACK");
    other.close();
    expect(reset).toEqual({
      kind: "unread",
      reason: "journal: the database is held by somebody else for too long",
    });
    expect(readCircuit(state, "api")).toMatchObject({
      view: { circuit: { state: { kind: "open" } } },
    });
  });
});

describe("the answers", () => {
  test("of a name that nobody knows leave with 1 and say where names are to be had", () => {
    const context = contextOf(newState([openCircuit()]));
    const expected = {
      lines: ['error: no circuit is known of "apo"', "hint: watchdog circuit list"],
      code: 1,
    };
    const named = { name: "apo", ...LOOKING } as const;
    expect(answerCircuitShow({ kind: "circuit-show", isJson: true, ...named }, context)).toEqual(
      expected,
    );
    expect(answerCircuitReset({ kind: "circuit-reset", ...named }, context)).toEqual(expected);
  });

  test("of a reset and a list are successes, and the list is what was left", () => {
    const at = (monotonicNow() - 1_000) as MonotonicAt;
    const note = { because: "refused", detail: "x", at, wallAt: wallNow() } as const;
    const state = newState([openCircuit({ lastProbe: note })]);
    const context = contextOf(state);
    const reset = answerCircuitReset({ kind: "circuit-reset", name: "api", ...LOOKING }, context);
    expect(reset).toEqual({
      text: "api: was open, is closed; its settings are forgotten: the next probe brings its own\n",
      lines: [],
      code: 0,
    });
    const list = answerCircuitList({ kind: "circuit-list", isJson: true, ...LOOKING }, context);
    expect(JSON.parse(list.text ?? "")).toMatchObject({
      format: 1,
      state_directory: state,
      circuits: [{ name: "api", state: "closed", last_probe: { because: "refused" } }],
      troubles: [],
    });
  });
});
