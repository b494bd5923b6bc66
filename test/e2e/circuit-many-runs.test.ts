/**
 * Fifty runs whose jobs go on and that share a circuit: one of them probes for all, and all hear of
 * what it finds: stopped together, or frozen and continued together.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { inState, query } from "../support/own-state.ts";
import { ask } from "../support/ask.ts";
import { openScene, type Scene } from "../support/scene.ts";
import {
  Announcing,
  areStopped,
  circuitOf,
  dependsOn,
  DOWN,
  letPass,
  LONG_BACKOFF,
  probersOf,
  startJobs,
  statusesOf,
  STEADY,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 180_000;
const MANY = 50;
/** "50 runs sharing a circuit: at most so many times the requests of one". */
const SHARE = 1.2;
const SPAN_MS = 2_500;
/** Of STEADY. */
const PERIOD_MS = 400;
const THRESHOLD = 5;

interface Going {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly job: Announcing;
  readonly pids: readonly number[];
  readonly ended: Promise<number[]>;
  /** Requests in each period, from the first one to the end of a span in which all jobs ran. */
  readonly perPeriod: number;
}

async function letGoOn(name: string, count: number, more: readonly string[]): Promise<Going> {
  const state = inState(scene, name);
  const server = openServer();
  const job = new Announcing(scene, name);
  const words = [...dependsOn(scene, server, [...STEADY, ...more]), ...job.command];
  const runs = startJobs(state, { prefix: name, count }, words);
  const pids = await job.waitForAll(count);
  await letPass(SPAN_MS);
  const [first = 0] = server.times;
  const perPeriod = server.count / ((performance.now() - first) / PERIOD_MS);
  return { state, server, job, pids, perPeriod, ended: statusesOf(runs) };
}

function countTrials(state: Scene): number {
  const [[trials] = []] = query(
    state,
    "SELECT count(*) FROM events WHERE name = 'circuit_half_open'",
  );
  return Number(trials);
}

/** When an event was, as the server counts. */
function timeOf(state: Scene, name: string): number {
  const [[at] = []] = query(state, `SELECT at FROM events WHERE name = '${name}'`);
  return Number(at) - performance.timeOrigin;
}

describe("fifty runs that share a circuit", () => {
  test(
    "send what one sends, and when the server dies all are stopped by the failures of one",
    async () => {
      const one = await letGoOn("one", 1, LONG_BACKOFF);
      const oneDied = one.server.goDown();
      expect(await one.ended).toEqual([DOWN]);
      expect(one.server.countFrom(oneDied)).toBeLessThanOrEqual(THRESHOLD);

      const many = await letGoOn("many", MANY, LONG_BACKOFF);
      expect(many.perPeriod).toBeLessThanOrEqual(SHARE * one.perPeriod);
      expect(probersOf(many.state)).toHaveLength(1);
      const died = many.server.goDown();
      expect(await many.ended).toEqual(Array(MANY).fill(DOWN));
      const most = THRESHOLD + countTrials(many.state);
      expect(many.server.countFrom(died)).toBeLessThanOrEqual(most);
      expect(await circuitOf(many.state)).toMatchObject({ state: "open", is_probed: false });
    },
    LIMIT_MS,
  );

  test(
    "and pause on it are frozen and continued together, with no request but trials between",
    async () => {
      const trials = ["--probe-backoff", "1s..1s", "--probe-max-attempts", "100000"];
      const policy = ["--on-open", "pause", "--probe-max-elapsed", "10m"];
      const { state, server, job, pids, ended } = await letGoOn("paused", MANY, [
        ...trials,
        ...policy,
      ]);
      const died = server.goDown();
      await waitFor(() => areStopped(pids), `${MANY} jobs that stand still`);
      await waitFor(() => server.countFrom(died) >= THRESHOLD + 2, "two trials");
      expect(areStopped(pids)).toBe(true);
      expect(probersOf(state)).toHaveLength(1);
      server.goUp();
      await waitFor(() => !pids.some((pid) => areStopped([pid])), "all jobs to go on");
      writeFileSync(job.gate, "");
      expect(await ended).toEqual(Array(MANY).fill(0));
      await ask(state, ["history"]); // reads in what waits in the spool
      const [opened, closed] = [timeOf(state, "circuit_open"), timeOf(state, "circuit_closed")];
      // The request whose failure has opened it may be of the same millisecond.
      const whileOpen = server.times.filter((at) => at > opened + 1 && at < closed);
      expect(whileOpen.length).toBeGreaterThanOrEqual(2);
      expect(whileOpen.length).toBeLessThanOrEqual(countTrials(state));
    },
    LIMIT_MS,
  );
});
