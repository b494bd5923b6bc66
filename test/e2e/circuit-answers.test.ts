/**
 * What is answered about a circuit that jobs share, by each command that tells of it: while it is
 * closed, while it is open and a job stands still, and when a person has reset it. That the JSON
 * has the documented fields is answer-fields.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { askJson, askLines } from "../support/ask.ts";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import { inState, query } from "../support/own-state.ts";
import { openScene, type Scene, type Started } from "../support/scene.ts";
import {
  Announcing,
  areStopped,
  circuitOf,
  DEP,
  dependsOn,
  LONG_BACKOFF,
  PATIENT,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const SETTINGS = [...PATIENT, ...LONG_BACKOFF, "--on-open", "pause"];
const INSTANT = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;
const FOUND = String.raw`status [^:]+ ago: status 500, expected 200-299`;
/** The wait is an hour at most, and any part of it. */
const TRIAL = String.raw`next trial in [\d hmins]+`;

interface Batch {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly target: string;
  readonly job: Announcing;
  readonly run: Started;
}

/** A job that goes on, and is frozen while its circuit is open. */
async function startBatch(name: string): Promise<Batch> {
  const state = inState(scene, name);
  const server = openServer();
  const job = new Announcing(scene, name);
  const run = state.start([
    "--name",
    "batch",
    ...dependsOn(scene, server, SETTINGS),
    ...job.command,
  ]);
  await job.waitForAll(1);
  return { state, server, job, run, target: server.url };
}

async function waitUntilPaused({ server, job }: Batch): Promise<void> {
  server.goDown();
  await waitFor(() => areStopped(job.pids), "a job that stands still");
}

async function end({ job, run }: Batch) {
  writeFileSync(job.gate, "");
  return run.ended;
}

/** Columns are as wide as their widest cell. */
function cells(line: string | undefined): string[] {
  return (line ?? "").trim().split(/ {2,}/);
}

const like = (pattern: string) => expect.stringMatching(new RegExp(`^${pattern}$`));

describe("a circuit that somebody probes", () => {
  test("while it is closed is told with its last answer, and is no news for status", async () => {
    const batch = await startBatch("closed");
    const { state, target } = batch;
    // Good ones are written with the next one that says something new, or within ten seconds.
    await waitFor(async () => (await circuitOf(state)).good_probes > 1, "a probe during the run");
    expect((await askLines(state, ["circuit", "list"])).map(cells)).toEqual([
      [DEP, "closed", like(`since ${INSTANT}`), "0 failures", "probed", target, like("good .+")],
    ]);
    const shown = await askLines(state, ["circuit", "show", DEP]);
    expect(shown).toContain("  why       everything goes through: 0 of 3 failures in a row");
    expect(shown).toContain("  probed    by somebody now");
    const lines = await askLines(state, ["status"]);
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}state {5}running, /));
    expect(lines).not.toContain("circuits");
    expect((await end(batch)).status).toBe(0);
    expect(await circuitOf(state)).toMatchObject({ state: "closed", is_probed: false });
  }, 40_000);

  test("while it is open is told with its next trial, and who stands still", async () => {
    const batch = await startBatch("open");
    const { state, target, run } = batch;
    await waitUntilPaused(batch);
    expect((await askLines(state, ["circuit", "list"])).map(cells)).toEqual([
      [DEP, "open", like(`since ${INSTANT}`), like(TRIAL), "probed", target, like(FOUND)],
    ]);
    const [head, why, attempts] = await askLines(state, ["circuit", "show", DEP]);
    expect([head, why, attempts]).toEqual([
      like(`dep  open since ${INSTANT}`),
      like(`  why       too many failures: nothing starts, ${TRIAL}`),
      like("  attempts  1 of 20, .+ of 10 h"),
    ]);
    const shown = await circuitOf(state);
    expect(shown).toMatchObject({
      state: "open",
      is_probed: true,
      job: "batch",
      target,
      attempts: 1,
      consecutive_failures: null,
      last_probe: { because: "status", detail: "status 500, expected 200-299" },
    });
    const { leases, circuits } = await askJson(state, ["status"]);
    expect(leases).toMatchObject([{ key: "job:batch", verdict: "held", run_state: "paused" }]);
    expect(circuits).toMatchObject([{ name: DEP, state: "open", is_probed: null }]);
    const status = await askLines(state, ["status", "batch"]);
    expect(status).toContainEqual(expect.stringMatching(/^ {2}state {5}paused, /));
    expect(cells(status[status.indexOf("circuits") + 1])).toEqual([
      DEP,
      like(`open since ${INSTANT}`),
      like(TRIAL),
      like(FOUND),
    ]);
    run.kill("SIGTERM");
    expect((await run.ended).status).toBe(143);
  });

  test("is closed by a reset: the job goes on, and what is wrong is found again", async () => {
    const batch = await startBatch("reset");
    const { state, server, job } = batch;
    for (let round = 0; round < 2; round += 1) {
      await waitUntilPaused(batch);
      server.goUp();
      expect(await askLines(state, ["circuit", "reset", DEP])).toEqual([
        "dep: was open, is closed; somebody probes now, and its settings stay",
      ]);
      await waitFor(() => !areStopped(job.pids), "the job to go on");
      expect((await askJson(state, ["status"])).circuits).toEqual([]);
    }
    const { status, stderr } = await end(batch);
    const told = ["watchdog: dep is down", "watchdog: dep is back"];
    expect([status, [...stderr.matchAll(/^watchdog: dep is (?:down|back)/gm)].map(String)]).toEqual(
      [0, [...told, ...told]],
    );
    const events = ["circuit_open consecutive-failures", "paused null", "circuit_closed reset"];
    const known = "SELECT name, because FROM events WHERE name LIKE 'circuit_%' OR name = 'paused'";
    const rows = query(state, `${known} ORDER BY at, id`);
    expect(rows.map(([name, because]) => `${name} ${because}`)).toEqual([...events, ...events]);
    const { runs } = await askJson(state, ["history", "batch"]);
    expect(runs).toMatchObject([{ outcome: "ok", dependencies: [{ name: DEP, state: "closed" }] }]);
    expect(runs[0].paused_ms).toBeGreaterThan(0);
  });
});

test("a probe that nobody has named shares the circuit that `probe` tells of", async () => {
  const state = inState(scene, "unnamed");
  const server = openServer();
  const { probes } = await askJson(state, ["probe", server.url]);
  expect(probes).toMatchObject([{ because: "good", target: server.url }]);
  const [{ circuit }] = probes;
  expect((await state.run(["--probe", server.url, "--", "true"])).status).toBe(0);
  expect(await circuitOf(state, circuit)).toMatchObject({ target: server.url, good_probes: 1 });
  expect(await askLines(state, ["circuit", "reset", circuit])).toEqual([
    `${circuit}: was closed, is closed; its settings are forgotten: the next probe brings its own`,
  ]);
});
