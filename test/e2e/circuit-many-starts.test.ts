/**
 * Fifty runs of different jobs that wait for one server: it counts what one run alone would send,
 * and when it is back all of them start.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { readLines } from "../support/processes.ts";
import { openScene, type Started } from "../support/scene.ts";
import {
  circuitOf,
  DOWN,
  letPass,
  probersOf,
  startJobs,
  statusesOf,
  waitUntilAllWait,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 180_000;
const MANY = 50;
/** "50 runs sharing a circuit: at most so many times the requests of one". */
const SHARE = 1.2;
/** What each probe takes paces whoever probes; the waits between them are next to nothing. */
const ANSWER_MS = 200;
const SPAN_MS = 3_000;
const PACED = [
  ["--probe-backoff", "1ms..1ms", "--probe-max-attempts", "100000"],
  ["--probe-startup-wait", "10m", "--probe-max-elapsed", "10m"],
  ["--probe-period", "10s", "--probe-timeout", "10s"],
].flat();

/** From now on each run opens the journal for its leases, too (waitUntilAllWait). */
beforeAll(async () => {
  expect((await scene.run(["--log", "off", "--", "true"])).status).toBe(0);
});

function noting(file: string): string[] {
  return ["--", "sh", "-c", `echo "$WATCHDOG_JOB" >>'${scene.path(file)}'`];
}

/** Requests a second of runs that all wait, from the first request to the end of the span. */
async function rateOf(server: CountingServer, runs: readonly Started[]): Promise<number> {
  await waitFor(() => server.count > 0, "a first request");
  await waitUntilAllWait(runs);
  await letPass(SPAN_MS);
  const [first = 0] = server.times;
  return server.count / ((performance.now() - first) / 1_000);
}

describe("fifty runs that wait for one server", () => {
  test(
    "send what one sends in the same time, and all start when it is back",
    async () => {
      const alone = openServer();
      alone.goDown();
      alone.delayMs = ANSWER_MS;
      const [one] = startJobs(scene, { prefix: "alone", count: 1 }, [
        "--log",
        "off",
        "--probe",
        `alone=${alone.url}`,
        ...PACED,
        ...noting("alone"),
      ]);
      const rate = await rateOf(alone, one === undefined ? [] : [one]);
      alone.goUp();
      expect((await one?.ended)?.status).toBe(0);
      expect(rate).toBeLessThanOrEqual(1_000 / ANSWER_MS + 1);

      const server = openServer();
      server.goDown();
      server.delayMs = ANSWER_MS;
      const runs = startJobs(scene, { prefix: "many", count: MANY }, [
        "--log",
        "off",
        "--probe",
        `many=${server.url}`,
        ...PACED,
        ...noting("many"),
      ]);
      expect(await rateOf(server, runs)).toBeLessThanOrEqual(SHARE * rate);
      expect([probersOf(scene, "many").length, readLines(scene.path("many"))]).toEqual([1, []]);
      const back = server.goUp();
      expect(await statusesOf(runs)).toEqual(Array(MANY).fill(0));
      expect(new Set(readLines(scene.path("many"))).size).toBe(MANY);
      // The good answer that lets one start is everybody's.
      expect(server.countFrom(back)).toBeLessThanOrEqual(2);
    },
    LIMIT_MS,
  );

  const UNHURRIED = [
    ["--probe-backoff", "200ms..400ms", "--probe-period", "60s", "--probe-timeout", "60s"],
    ["--probe-startup-wait", "10m", "--probe-max-elapsed", "10m"],
  ].flat();

  /** The first answer waits until all are there: none of them has missed an attempt. */
  async function startTogether(server: CountingServer, file: string, more: readonly string[]) {
    const letGo = server.hold();
    const runs = startJobs(scene, { prefix: file, count: MANY }, [
      "--log",
      "off",
      "--probe",
      `${file}=${server.url}`,
      ...UNHURRIED,
      ...more,
      ...noting(file),
    ]);
    await waitUntilAllWait(runs);
    expect(server.count).toBe(1);
    return { runs, letGo };
  }

  const SIX = ["--probe-max-attempts", "6"];

  test(
    "have the attempts of all for their own: with six, six requests or seven, and none starts",
    async () => {
      const server = openServer();
      server.goDown();
      const { runs, letGo } = await startTogether(server, "six", SIX);
      letGo();
      expect(await statusesOf(runs)).toEqual(Array(MANY).fill(DOWN));
      expect(server.count).toBeGreaterThanOrEqual(6);
      expect(server.count).toBeLessThanOrEqual(6 * SHARE);
      expect(readLines(scene.path("six"))).toEqual([]);
      const circuit = await circuitOf(scene, "six");
      expect(circuit).toMatchObject({ state: "closed", is_probed: false, good_probes: 0 });
      expect(circuit.probes).toBe(server.count);
    },
    LIMIT_MS,
  );

  test(
    "have the good answer of one for their own: with six attempts and the fourth a good one",
    async () => {
      const server = openServer();
      server.comeUpAt(4);
      const { runs, letGo } = await startTogether(server, "fourth", SIX);
      letGo();
      expect(await statusesOf(runs)).toEqual(Array(MANY).fill(0));
      expect(new Set(readLines(scene.path("fourth"))).size).toBe(MANY);
      expect(server.count).toBe(4);
    },
    LIMIT_MS,
  );
});
