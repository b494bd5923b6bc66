/** Starts while a circuit is open: refused at once and unasked, and after the wait one trial. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { askJson, askLines } from "../support/ask.ts";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { placeOf } from "../support/lease-seen.ts";
import { inState } from "../support/own-state.ts";
import { readLines } from "../support/processes.ts";
import { openScene, type Scene } from "../support/scene.ts";
import {
  Announcing,
  circuitOf,
  dependsOn,
  DOWN,
  LONG_BACKOFF,
  openByCall,
  PATIENT,
  startJobs,
  statusesOf,
  waitForState,
  waitUntilAllWait,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;
const SHORT_BACKOFF = ["--probe-backoff", "300ms..300ms", "--probe-max-elapsed", "1h"];

interface Open {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly words: readonly string[];
  /** Starts with the same probe, and how many requests that has cost. */
  start(name: string, command?: readonly string[]): Promise<Start>;
}

interface Start {
  readonly status: number;
  readonly stderr: string;
  readonly requests: number;
}

/** A job that goes on, whose dependency dies: what opens the circuit is its liveness. */
async function openByLiveness(name: string, backoff: readonly string[]): Promise<Open> {
  const state = inState(scene, name);
  const server = openServer();
  const words = dependsOn(scene, server, [...PATIENT, ...backoff]);
  const job = new Announcing(scene, name);
  const run = state.start(["--name", "opens", ...words, ...job.command]);
  await job.waitForAll(1);
  server.goDown();
  expect((await run.ended).status).toBe(DOWN);
  expect((await circuitOf(state)).state).toBe("open");
  const start = async (job: string, command: readonly string[] = ["true"]): Promise<Start> => {
    const before = server.count;
    const ended = await state.run(["--name", job, ...words, "--", ...command]);
    return { status: ended.status, stderr: ended.stderr, requests: server.count - before };
  };
  return { state, server, words, start };
}

async function waitUntilDue(state: Scene): Promise<void> {
  await waitFor(async () => (await circuitOf(state)).retry_in_ms === 0, "a trial that is due");
}

describe("while a circuit is open", () => {
  test(
    "a start is refused at once, without a request, and is told since when and until when",
    async () => {
      const { state, start } = await openByLiveness("long", LONG_BACKOFF);
      const mark = scene.path("never-ran");
      const { status, stderr, requests } = await start("late", ["touch", mark]);
      expect([status, requests, existsSync(mark)]).toEqual([DOWN, 0, false]);
      expect(stderr).toMatch(
        new RegExp(
          "^watchdog: not started: dep is down, its circuit has been open for [0-9.]+ s: " +
            "status 500, expected 200-299\\n" +
            "watchdog: hint: the next trial of dep may be made in [0-9.]+ s\\n$",
        ),
      );
      // No lease was granted: there is no record of one.
      expect(existsSync(placeOf(state.stateDirectory, "late").record)).toBe(false);
      const { runs } = await askJson(state, ["history", "late"]);
      expect(runs).toMatchObject([
        { outcome: "dependency_down", exit_status: DOWN, because: "circuit-open" },
      ]);
    },
    LIMIT_MS,
  );

  test(
    "that calls alone have opened, the first start with a probe leaves it open",
    async () => {
      const [state, server] = [inState(scene, "calls"), openServer()];
      server.goDown();
      for (let calls = 0; calls < 3; calls += 1) await openByCall(state);
      expect((await circuitOf(state)).state).toBe("open");
      const words = dependsOn(scene, server, [...PATIENT, ...LONG_BACKOFF]);
      const { status } = await state.run(["--name", "first", ...words, "--", "true"]);
      // The first wait of calls is left to chance, up to a second: then it is one trial.
      expect([status, server.count <= 1]).toEqual([DOWN, true]);
      expect(await circuitOf(state)).toMatchObject({ state: "open", job: "first" });
    },
    LIMIT_MS,
  );

  test(
    "and its wait is over, one trial decides: a bad one refuses, a good one starts and closes it",
    async () => {
      const { state, server, start } = await openByLiveness("due", SHORT_BACKOFF);
      await waitUntilDue(state);
      const bad = await start("bad");
      expect([bad.status, bad.requests]).toEqual([DOWN, 1]);
      expect(bad.stderr).toMatch(
        /^watchdog: not started: dep is down, a trial has failed, its circuit has been open for /,
      );
      expect(await circuitOf(state)).toMatchObject({ state: "open", attempts: 2 });
      server.goUp();
      await waitUntilDue(state);
      const good = await start("good", ["sh", "-c", "exit 3"]);
      expect(good).toEqual({ status: 3, stderr: "", requests: 1 });
      expect(await circuitOf(state)).toMatchObject({ state: "closed", consecutive_failures: 0 });
    },
    LIMIT_MS,
  );

  test(
    "ten starts after its wait make one trial together, whatever it finds",
    async () => {
      const state = inState(scene, "ten");
      const server = openServer();
      // The trial is to last until all are there.
      const patient = ["--probe-period", "60s", "--probe-timeout", "60s"];
      const threshold = ["--probe-failure-threshold", "1"];
      const words = dependsOn(scene, server, [...patient, ...threshold, ...SHORT_BACKOFF]);
      expect((await state.run([...words, "--", "true"])).status).toBe(0);
      await openByCall(state);
      const ran = scene.path("ten.ran");
      const command = ["--", "sh", "-c", `echo "$WATCHDOG_JOB" >>'${ran}'`];
      const startTen = async (prefix: string): Promise<number[]> => {
        await waitUntilDue(state);
        const letGo = server.hold();
        const before = server.count;
        const runs = startJobs(state, { prefix, count: 10 }, [...words, ...command]);
        await waitUntilAllWait(runs);
        letGo();
        const statuses = await statusesOf(runs);
        return [server.count - before, ...new Set(statuses)];
      };
      server.goDown();
      expect([await startTen("bad"), existsSync(ran)]).toEqual([[1, DOWN], false]);
      server.goUp();
      expect([await startTen("good"), new Set(readLines(ran)).size]).toEqual([[1, 0], 10]);
    },
    LIMIT_MS,
  );
});

/** The cases have the number of repeats: two of them are three attempts. */
const A70 = ["--probe-timeout", "1s", "--probe-max-attempts", "3", "--probe-backoff", "5ms..10ms"];

describe("A-70: a circuit that stays open between runs", () => {
  test(
    "is not opened by starts, which make their attempts each time and leave it closed",
    async () => {
      const state = inState(scene, "a70-starts");
      const server = openServer();
      server.goDown();
      const job = ["--name", "a70", "--probe", server.url, ...A70, "--", "echo", "ran"];
      for (let count = 1; count <= 12; count += 1) {
        const { status, stdout } = await state.run(job);
        expect([status, stdout.toString(), server.count]).toEqual([DOWN, "", 3 * count]);
      }
      const [circuit] = (await askJson(state, ["circuit", "list"])).circuits;
      expect(circuit).toMatchObject({ state: "closed", consecutive_failures: 0, probes: 36 });
      server.goUp();
      for (let count = 1; count <= 6; count += 1) {
        const { status, stdout } = await state.run(job);
        expect([status, stdout.toString(), server.count]).toEqual([0, "ran\n", 36 + count]);
      }
      expect((await askJson(state, ["lease", "show", "job:a70"])).verdict).toBe("free");
    },
    LIMIT_MS,
  );

  test(
    "is opened by a job that runs: starts send nothing, the status shows it, one trial closes it",
    async () => {
      const { state, server, start } = await openByLiveness("a70-liveness", [
        "--probe-max-attempts",
        "3",
        "--probe-backoff",
        "2s..2s",
      ]);
      const before = server.count;
      const opened = await circuitOf(state);
      const lines = await askLines(state, ["status"]);
      expect(lines.join("\n")).toContain("\ncircuits\n  dep  open since ");
      let trials = 0;
      for (let count = 0; count < 12; count += 1) {
        const { status, requests } = await start("a70");
        expect([status, requests <= 1]).toEqual([DOWN, true]);
        trials += requests;
      }
      // Each request was a trial that was due.
      expect(server.count - before).toBe(trials);
      const shown = await circuitOf(state);
      expect(shown.probes).toBe(opened.probes + trials);
      server.goUp();
      await waitUntilDue(state);
      for (const requests of [1, 1]) {
        expect(await start("a70")).toEqual({ status: 0, stderr: "", requests });
        await waitForState(state, "closed");
      }
      expect((await askJson(state, ["status"])).circuits).toEqual([]);
    },
    LIMIT_MS,
  );
});
