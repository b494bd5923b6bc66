/**
 * Circuits on a disk that takes nothing, and faults at each numbered place. A fault counts only
 * with the marker that it has written itself.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import { openCircuitStore } from "../../src/journal/circuit-rows.ts";
import { CIRCUIT } from "../support/circuit-samples.ts";
import { circuitOf, openStore, putCircuit, useCircuit } from "../support/circuit-scene.ts";
import { inspect, openJournalScene } from "../support/journal-scene.ts";
import { rootTest } from "../support/scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DONE = { kind: "done" } as const;

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

describe("a disk that takes nothing", () => {
  test("of more than no byte: a change is unwritten, and what was there is read", async () => {
    const state = withCircuit();
    const run = await useCircuit([state, "llm", "1"], { under: ["prlimit", "--fsize=0"] });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(run.lines).toEqual([expect.stringMatching(/^journal\.db cannot be used: /), "done"]);
    expect(circuitOf(state)).toEqual(CIRCUIT);
  });

  rootTest("in a directory that is mounted read-only: nothing is made or written", async () => {
    const state = withCircuit();
    const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
    const under = ["unshare", "-m", "sh", "-c", readOnly, state];
    const run = await useCircuit([state, "llm", "1"], { under });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(run.lines).toEqual([expect.stringMatching(/^journal\.db cannot be used: /), "done"]);
    expect(circuitOf(state)).toEqual(CIRCUIT);
    const empty = scene.newState();
    const none = await useCircuit([empty, "llm", "read"], {
      under: [...under.slice(0, -1), empty],
    });
    expect(none.lines).toEqual(['{"kind":"missing"}', "done"]);
    expect(readdirSync(empty)).toEqual([]);
  });

  rootTest("that is nearly full: a change is unwritten, and reading goes on", async () => {
    const state = scene.newState();
    await Bun.$`mount -t tmpfs -o size=4m,mode=700 watchdog-test ${state}`.quiet();
    try {
      const fill = (): void => writeFileSync(`${state}/fill`, new Uint8Array(3_500_000));
      const reason = expect.stringContaining("nearly full");
      putCircuit(state);
      const { store } = openStore(state);
      store.read("llm");
      expect([store.hasChanged(), store.hasChanged()]).toEqual([true, false]);
      fill();
      expect(store.hasChanged()).toBe(true);
      expect(store.change("llm", never)).toEqual({ kind: "unwritten", reason });
      rmSync(`${state}/fill`);
      expect(store.read("llm")).toEqual({ kind: "found", circuit: CIRCUIT });
      expect(readdirSync(state)).toContain("journal.db-shm");
      fill();
      expect(store.read("llm")).toEqual({ kind: "found", circuit: CIRCUIT });
      expect(store.list()).toEqual([CIRCUIT]);
      // Nothing of it is mapped into memory any more.
      expect(readdirSync(state).toSorted()).toEqual(["fill", "journal.db", "journal.lock"]);
      expect(store.change("llm", never)).toEqual({ kind: "unwritten", reason });
      rmSync(`${state}/fill`);
      expect(store.change("llm", count)).toEqual(DONE);
      store.close();
      expect(circuitOf(state).probes).toBe(CIRCUIT.probes + 1);
    } finally {
      await Bun.$`umount --lazy ${state}`.quiet();
    }
  });
});

describe("a listener or a decision that throws", () => {
  test("reaches nobody: nothing is written", () => {
    const state = withCircuit();
    const { store } = openStore(state);
    expect(store.change("llm", never)).toMatchObject({
      kind: "unwritten",
      reason: expect.stringContaining("nobody was to decide"),
    });
    expect(circuitOf(state)).toEqual(CIRCUIT);
    expect(store.change("llm", count)).toEqual(DONE);
    store.close();
  });

  test("keeps no circuit from beginning anew", () => {
    const state = withCircuit();
    inspect(state, "UPDATE circuits SET record = '{}'");
    const store = openCircuitStore(state, () => {
      throw new Error("the terminal is gone");
    });
    expect(store.change("llm", count)).toEqual(DONE);
    expect(store.read("llm")).toMatchObject({ circuit: { probes: 1 } });
    store.close();
  });
});

interface Marker {
  readonly point: string;
  readonly state: Readonly<Record<string, unknown>>;
}

async function useWithFault(words: readonly string[], fault: string) {
  const directory = scene.newState();
  const run = await useCircuit(words, {
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory },
  });
  const markers = readdirSync(directory).map((name): Marker =>
    JSON.parse(readFileSync(`${directory}/${name}`, "utf8")),
  );
  return { run, markers };
}

describe("a fault", () => {
  test.each(["eio", "enospc", "throw"])("(%s) at circuit.commit undoes the change", async (act) => {
    const state = withCircuit();
    const { run, markers } = await useWithFault([state, "llm", "2"], `circuit.commit=${act}`);
    expect(markers).toMatchObject([
      { point: "circuit.commit", state: { name: "llm", state: "open" } },
    ]);
    expect(run.lines).toEqual([expect.stringContaining("fault injected"), "done"]);
    expect(circuitOf(state).probes).toBe(CIRCUIT.probes + 1);
  });

  test.each(["eio", "enospc", "throw"])("(%s) at circuit.read is an answer", async (act) => {
    const state = withCircuit();
    const { run, markers } = await useWithFault([state, "llm", "read"], `circuit.read=${act}`);
    expect(markers).toMatchObject([
      { point: "circuit.read", state: { name: "llm", state: "open" } },
    ]);
    expect(run.lines).toEqual([expect.stringMatching(/"unread".*fault injected/), "done"]);
  });

  test("that kills before a commit leaves what was committed, and the journal whole", async () => {
    const state = withCircuit();
    const { run, markers } = await useWithFault([state, "llm", "9"], "circuit.commit#4=kill");
    expect([run.signal, run.lines, markers.length]).toEqual(["SIGKILL", [], 1]);
    expect(circuitOf(state).probes).toBe(CIRCUIT.probes + 3);
    putCircuit(state, { ...CIRCUIT, probes: 5 });
    expect(circuitOf(state).probes).toBe(5);
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
  });

  test("that is not there leaves no marker and no complaint", async () => {
    const state = withCircuit();
    const { run, markers } = await useWithFault([state, "llm", "9"], "nowhere=kill");
    expect([run.lines, markers]).toEqual([["done"], []]);
  });
});
