/**
 * A job that runs, beside a start that waits in a long backoff on the same dependency: the job is
 * watched meanwhile, and the start goes by what its watch finds.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { inState } from "../support/own-state.ts";
import { openScene, type Scene, type Started } from "../support/scene.ts";
import {
  Announcing,
  circuitOf,
  dependsOn,
  DOWN,
  LONG_BACKOFF,
  PATIENT,
  probersOf,
  startJobs,
  statusesOf,
  waitForProber,
  waitForState,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;
/** Of PATIENT. */
const PERIOD_MS = 400;
const WAITING = 5;
/** The good one of the job at its start, and the bad one of the first that waits. */
const BEFORE = 2;
const running: Started[] = [];

afterEach(async () => {
  for (const run of running) run.kill("SIGTERM");
  await Promise.all(running.splice(0).map((run) => run.ended));
});

/** The first wait of a start is shorter than such a test once in two hundred times. */
const STARTUP = ['timeout = "20s"', 'backoff = "1h..1h"', 'wait = "2h"'];
const PACED = [...PATIENT, ...LONG_BACKOFF];

interface Beside {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly job: Started;
  /** One of them has the place, and waits in its backoff. */
  readonly starts: readonly Started[];
}

/**
 * The job leaves the place to others for its first delay; within that the server dies, and starts
 * of other jobs come.
 */
async function startBeside(name: string, policy: readonly string[]): Promise<Beside> {
  const state = inState(scene, name);
  const server = openServer();
  const settings = [...PACED, ...policy];
  const delayed = [...settings, "--probe-initial-delay", "12s"];
  const command = new Announcing(scene, name);
  const words = dependsOn(scene, server, delayed, STARTUP);
  const job = state.start(["--name", name, ...words, ...command.command]);
  running.push(job);
  await command.waitForAll(1);
  server.goDown();
  const others = [...dependsOn(scene, server, settings, STARTUP), "--", "true"];
  const first = startJobs(state, { prefix: `${name}-first`, count: 1 }, others);
  running.push(...first);
  await waitForProber(state, first);
  await waitFor(async () => (await circuitOf(state)).probes === BEFORE, "a bad answer");
  // Now that the newest answer is a bad one they wait, too.
  const more = startJobs(state, { prefix: `${name}-more`, count: WAITING - 1 }, others);
  running.push(...more);
  return { state, server, job, starts: [...first, ...more] };
}

describe("while starts wait in a long backoff", () => {
  test(
    "a job that runs is stopped within its periods of the death of the dependency",
    async () => {
      const { state, server, job, starts } = await startBeside("stop", [
        "--on-open",
        "stop",
        "--probe-failure-threshold",
        "3",
      ]);
      expect([(await job.ended).status, server.count]).toEqual([DOWN, BEFORE + 3]);
      // What the watch has found is news for the starts, too: nobody starts on an open circuit.
      expect(await statusesOf(starts)).toEqual(Array(WAITING).fill(DOWN));
      expect(server.count).toBe(BEFORE + 3);
      expect(await circuitOf(state)).toMatchObject({ state: "open", is_probed: false });
    },
    LIMIT_MS,
  );

  test(
    "a job that runs finds that it is back, and they all start by that answer",
    async () => {
      const many = ["--probe-failure-threshold", "1000", "--probe-max-attempts", "1000"];
      const { state, server, job, starts } = await startBeside("back", many);
      await waitFor(() => server.count > BEFORE + 2, "requests of the watch");
      expect(probersOf(state)).toEqual([job.pid]);
      const back = server.goUp();
      expect(await statusesOf(starts)).toEqual(Array(WAITING).fill(0));
      const most = (performance.now() - back) / PERIOD_MS + 2;
      expect(server.countFrom(back)).toBeLessThanOrEqual(most);
    },
    LIMIT_MS,
  );

  test(
    "a job that is only told hears that it died, was back, and died again",
    async () => {
      const policy = ["--on-open", "notify", "--probe-backoff", "1s..1s"];
      const { state, server, job, starts } = await startBeside("notify", policy);
      const opened = await waitForState(state, "open");
      expect(await statusesOf(starts)).toEqual(Array(WAITING).fill(DOWN));
      server.goUp();
      await waitForState(state, "closed");
      server.goDown();
      await waitFor(
        async () => (await circuitOf(state)).changed_at > opened.changed_at,
        "a change",
      );
      await waitForState(state, "open");
      expect(probersOf(state)).toEqual([job.pid]);
    },
    LIMIT_MS,
  );
});
