/**
 * Faults where a run reads the row of its circuit and where it writes it: the run is protected by
 * its own probes whatever becomes of the row, and whoever comes next finds a whole journal and what
 * was committed. Each fault has left its evidence, with the state of that moment.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { healthOf, HEALTHY, inState } from "../support/own-state.ts";
import { type Ended, FAULTS, findGuards, openScene, type Scene } from "../support/scene.ts";
import {
  circuitOf,
  DEP,
  dependsOn,
  DOWN,
  LONG_BACKOFF,
  PATIENT,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Evidence, readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 180_000;

interface Row {
  readonly point: "circuit.read" | "circuit.commit";
  readonly nth: number;
  /** As the fault has seen it. */
  readonly state: "closed" | "open";
  /** What is known when the run was killed there; undefined: no circuit. */
  readonly left: { readonly probes: number; readonly consecutive_failures: number } | undefined;
}

/** A start's good answer, then three bad ones of the job's: the fifth commit opens it. */
const ROWS: readonly Row[] = [
  { point: "circuit.commit", nth: 1, state: "closed", left: undefined },
  { point: "circuit.read", nth: 1, state: "closed", left: { probes: 0, consecutive_failures: 0 } },
  {
    point: "circuit.commit",
    nth: 2,
    state: "closed",
    left: { probes: 0, consecutive_failures: 0 },
  },
  {
    point: "circuit.commit",
    nth: 3,
    state: "closed",
    left: { probes: 1, consecutive_failures: 0 },
  },
  { point: "circuit.commit", nth: 5, state: "open", left: { probes: 3, consecutive_failures: 2 } },
];

interface Struck {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly ended: Ended;
  readonly evidence: readonly Evidence[];
  readonly record: Readonly<Record<string, unknown>>;
}

async function strike(name: string, fault: string | undefined): Promise<Struck> {
  const state = inState(scene, name);
  const server = openServer();
  server.goDownAt(2);
  const directory = scene.path(`${name}.faults`);
  const words = dependsOn(scene, server, [...PATIENT, ...LONG_BACKOFF]);
  const ended = await state.run([...scene.recordTo(name), ...words, "--", "sleep", "94021"], {
    binary: FAULTS,
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory },
  });
  const hasRecord = existsSync(scene.path(`${name}.json`));
  return {
    state,
    server,
    ended,
    evidence: readEvidence(directory),
    record: hasRecord ? scene.readRecord(name) : {},
  };
}

/** Nothing is broken, and nobody holds anything: with a server that is up again the job starts. */
async function expectNextRuns({ state, server }: Struck): Promise<void> {
  server.goUp();
  const words = [
    ...dependsOn(scene, server, [...PATIENT, ...LONG_BACKOFF]),
    "--",
    "sh",
    "-c",
    "exit 3",
  ];
  const { status, stderr } = await state.run(words);
  expect([status, stderr]).toEqual([3, ""]);
  expect(await circuitOf(state)).toMatchObject({ state: "closed", consecutive_failures: 0 });
  expect(healthOf(state)).toEqual(HEALTHY);
}

const DOWN_LINE = "watchdog: dep is down, the job is stopped: status 500, expected 200-299\n";
const UNSHARED =
  /^watchdog: circuits are not shared with other runs: journal\.db [^\n]+: fault injected at .+\n/;

/** As without the fault: four requests, the job is stopped, and the row says so. */
async function expectStopped({ state, server, ended, record }: Struck): Promise<void> {
  expect([ended.status, server.count]).toEqual([DOWN, 4]);
  expect(ended.stderr).toEndWith(DOWN_LINE);
  expect(record).toMatchObject({ outcome: "dependency_down", because: "circuit-opened" });
  const circuit = { state: "open", is_probed: false, probes: 4, good_probes: 1 };
  expect(await circuitOf(state)).toMatchObject(circuit);
  expect(healthOf(state)).toEqual(HEALTHY);
}

describe.each(ROWS.map((row) => [`${row.point}#${row.nth}`, row] as const))("%s", (at, row) => {
  const struckBy = async (act: string): Promise<Struck> => {
    const struck = await strike(`${at}-${act.split(":")[0]}`, `${at}=${act}`);
    const { point, nth, state } = row;
    expect(struck.evidence).toEqual([{ point, nth, act, state: { name: DEP, state } }]);
    return struck;
  };

  test(
    "that fails is told once, and one that takes its time is not: the job is stopped all the same",
    async () => {
      const struck = await Promise.all(["throw", "eio", "enospc", "delay:300"].map(struckBy));
      for (const one of struck) await expectStopped(one);
      const slow = struck.pop();
      expect([slow?.ended.stderr, slow?.record["degraded"]]).toEqual([DOWN_LINE, []]);
      for (const { ended, record } of struck) {
        expect(ended.stderr).toMatch(UNSHARED);
        expect(ended.stderr.replace(UNSHARED, "")).toBe(DOWN_LINE);
        expect(record["degraded"]).toEqual(["circuit-unshared"]);
      }
    },
    LIMIT_MS,
  );

  test(
    "that is the death of the run leaves what was committed, and nobody who probes",
    async () => {
      const struck = await struckBy("kill");
      const { ended, state } = struck;
      expect(ended.signal).toBe("SIGKILL");
      await waitFor(
        () => scene.findProcesses().length + findGuards(state.stateDirectory).length === 0,
        "the guard to have ended what was started",
      );
      const { circuits } = await askJson(state, ["circuit", "list"]);
      const left = row.left && { state: "closed", is_probed: false, ...row.left };
      expect(circuits).toMatchObject(left === undefined ? [] : [left]);
      await expectNextRuns(struck);
    },
    LIMIT_MS,
  );
});

test("without a fault the same run leaves no marker and no complaint", async () => {
  const struck = await strike("none", undefined);
  await expectStopped(struck);
  const { evidence, ended, record } = struck;
  expect([evidence, ended.stderr, record["degraded"]]).toEqual([[], DOWN_LINE, []]);
});

test("the release build has no such fault", async () => {
  const state = inState(scene, "release");
  const server = openServer();
  const env = { WATCHDOG_FAULT: "circuit.commit=kill", WATCHDOG_FAULT_DIR: scene.path("never") };
  const ended = await state.run([...dependsOn(scene, server), "--", "sh", "-c", "exit 3"], { env });
  expect([ended.status, ended.stderr, existsSync(scene.path("never"))]).toEqual([3, "", false]);
});
