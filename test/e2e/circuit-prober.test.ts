/**
 * The one run that probes is killed: exactly one other takes over, what was known of the circuit
 * stays, and nothing is asked meanwhile that was not to be asked.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { killAlone } from "../support/killing.ts";
import { inState } from "../support/own-state.ts";
import { isDead } from "../support/processes.ts";
import { openScene, type Scene, type Started } from "../support/scene.ts";
import {
  Announcing,
  areStopped,
  circuitOf,
  DEP,
  dependsOn,
  DOWN,
  letPass,
  LONG_BACKOFF,
  openByCall,
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
const COUNT = 5;
/** Of PATIENT. */
const PERIOD_MS = 400;
const PAUSE = ["--on-open", "pause", "--probe-max-attempts", "100000"];
const running: Started[] = [];

afterEach(async () => {
  for (const run of running) run.kill("SIGTERM");
  await Promise.all(running.splice(0).map((run) => run.ended));
});

interface Sharing {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly runs: readonly Started[];
  readonly pids: readonly number[];
}

async function share(
  name: string,
  more: readonly string[],
  depend = (server: CountingServer, settings: readonly string[]) =>
    dependsOn(scene, server, settings),
): Promise<Sharing> {
  const state = inState(scene, name);
  const server = openServer();
  const job = new Announcing(scene, name);
  const words = [...depend(server, [...PATIENT, ...more]), ...job.command];
  const noPipes = { stdout: "ignore", stderr: "ignore" } as const;
  const runs = startJobs(state, { prefix: name, count: COUNT }, words, noPipes);
  running.push(...runs);
  return { state, server, runs, pids: await job.waitForAll(COUNT) };
}

/** A start that is as hurried as the rest: how long one may be silent goes by that. */
function onTheLine(server: CountingServer, settings: readonly string[]): string[] {
  return ["--log", "off", "--probe", `${DEP}=${server.url}`, ...settings];
}

/** Two clocks that are told in whole milliseconds. */
const SLACK_MS = 50;

/** The circuit, and between which two moments it was looked at. */
async function lookAtCircuit(state: Scene) {
  const from = performance.now();
  const shown = await circuitOf(state);
  return [shown, { from, until: performance.now() }] as const;
}

/** SIGKILL, and who has the lock then. */
async function killProber({ state, runs }: Sharing): Promise<{ dead: Started; next: Started }> {
  const dead = await waitForProber(state, runs);
  await killAlone(dead);
  const next = await waitForProber(state, runs, (run) => run !== dead);
  return { dead, next };
}

test(
  "a prober that is killed is followed by one other, and the requests stay those of one",
  async () => {
    const sharing = await share("closed", []);
    const { state, server } = sharing;
    await waitFor(() => server.count >= 3, "three requests");
    const { next } = await killProber(sharing);
    const since = performance.now();
    await letPass(5 * PERIOD_MS);
    const most = (performance.now() - since) / PERIOD_MS + 2;
    expect(server.countFrom(since)).toBeGreaterThan(0);
    expect(server.countFrom(since)).toBeLessThanOrEqual(most);
    expect(probersOf(state)).toEqual([next.pid]);
    const shown = await circuitOf(state);
    expect(shown).toMatchObject({ state: "closed", is_probed: true, good_probes: shown.probes });
  },
  LIMIT_MS,
);

test(
  "a prober that is stopped protects nobody: another takes over, and hears that the server dies",
  async () => {
    const { state, server, runs } = await share(
      "stopped",
      ["--probe-backoff", "1s..1s"],
      onTheLine,
    );
    const stopped = await waitForProber(state, runs);
    stopped.kill("SIGSTOP");
    const others = runs.filter((run) => run !== stopped);
    await waitForProber(state, others);
    server.goDown();
    expect(await statusesOf(others)).toEqual(others.map(() => DOWN));
    // It goes on as one of those who share, with what was found meanwhile.
    const sent = server.count;
    stopped.kill("SIGCONT");
    expect(await statusesOf([stopped])).toEqual([DOWN]);
    expect(server.count - sent).toBeLessThanOrEqual(1);
  },
  LIMIT_MS,
);

describe("while the circuit is open", () => {
  test(
    "it stays open, with the same wait, and nothing is asked by whoever takes over",
    async () => {
      const sharing = await share("open", [...PAUSE, ...LONG_BACKOFF]);
      const { state, server, pids, runs } = sharing;
      server.goDown();
      const [before, at] = await waitFor(async () => {
        const [shown, between] = await lookAtCircuit(state);
        return shown.state === "open" && ([shown, between] as const);
      }, "an open circuit");
      await waitFor(() => areStopped(pids), "jobs that stand still");
      const sent = server.count;
      const { dead } = await killProber(sharing);
      // The other one that is killed had taken over.
      await killProber({ ...sharing, runs: runs.filter((run) => run !== dead) });
      await letPass(5 * PERIOD_MS);
      const [after, later] = await lookAtCircuit(state);
      expect(server.count).toBe(sent);
      expect(after).toMatchObject({
        state: "open",
        is_probed: true,
        attempts: before.attempts,
        changed_at: before.changed_at,
        probes: before.probes,
      });
      const passedMs = before.retry_in_ms - after.retry_in_ms;
      expect(passedMs).toBeGreaterThan(later.from - at.until - SLACK_MS);
      expect(passedMs).toBeLessThan(later.until - at.from + SLACK_MS);
    },
    LIMIT_MS,
  );

  test(
    "the backoff goes on: the next trial is the one that was waited for, and then it is closed",
    async () => {
      const backoff = ["--probe-backoff", "4s..4s", "--probe-max-elapsed", "10m"];
      const sharing = await share("backoff", [...PAUSE, ...backoff]);
      const { state, server, pids, runs } = sharing;
      server.goDown();
      await waitFor(() => areStopped(pids), "jobs that stand still");
      const [open, read] = await waitFor(async () => {
        const [shown, between] = await lookAtCircuit(state);
        const isLong = shown.state === "open" && shown.retry_in_ms > 1_500;
        return isLong && ([shown, between] as const);
      }, "a wait in which there is time to kill somebody");
      const { dead, next } = await killProber(sharing);
      const trialAt = await waitFor(() => server.times.find((at) => at > read.until), "a trial");
      expect(trialAt - read.from).toBeGreaterThan(open.retry_in_ms - SLACK_MS);
      const failed = await waitFor(async () => {
        const shown = await circuitOf(state);
        return shown.state === "open" && shown.attempts > open.attempts && shown;
      }, "one attempt more, at least");
      expect(failed.probes - open.probes).toBe(failed.attempts - open.attempts);
      expect(probersOf(state)).toEqual([next.pid]);
      server.goUp();
      await waitForState(state, "closed");
      await waitFor(() => !pids.some((pid) => areStopped([pid])), "jobs that go on");
      // The guard of the dead one has ended its job, which stood still.
      expect(pids.filter((pid) => !isDead(pid))).toHaveLength(
        runs.filter((run) => run !== dead).length,
      );
    },
    LIMIT_MS,
  );

  test(
    "a trial that was out is lost with its prober, and one other is made in its place",
    async () => {
      const backoff = ["--probe-backoff", "100ms..100ms", "--probe-timeout", "30s"];
      const more = [...PAUSE, ...backoff, "--probe-period", "30s", "--probe-max-elapsed", "10m"];
      const sharing = await share("trial", [...more, "--probe-failure-threshold", "1"]);
      const { state, server, runs } = sharing;
      const sent = server.count;
      const letGo = server.hold();
      await openByCall(state);
      await waitFor(() => server.count > sent, "a trial");
      const tried = await circuitOf(state);
      expect(tried).toMatchObject({ state: "half-open", is_trial_out: true });
      const { dead, next } = await killProber(sharing);
      expect(tried.trial_pid).toBe(dead.pid);
      await waitFor(() => server.count > sent + 1, "another trial");
      expect(await circuitOf(state)).toMatchObject({ state: "half-open", trial_pid: next.pid });
      await letPass(5 * PERIOD_MS);
      expect(server.count).toBe(sent + 2);
      letGo();
      await waitForState(state, "closed");
      expect(runs).toHaveLength(COUNT);
    },
    LIMIT_MS,
  );
});
