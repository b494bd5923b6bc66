/**
 * Faults right before F1 to F4 of a fence over two keys: whatever strikes there, the operation is
 * not started unless both fences are held, nobody keeps a fence that has no operation, and a stop
 * between check and use lets neither an operation start after a grant nor a grant begin during one.
 * A row counts only with the marker that the fault itself has written, with the state that it saw.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { readEnvironment, saveEnvironment, startJob, startStranger } from "../support/fencing.ts";
import { placeOf } from "../support/lease-seen.ts";
import { findProgram } from "../support/outside.ts";
import { readLines, readStatusLine } from "../support/processes.ts";
import { FAULTS, openScene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;
const RUN_ID = expect.stringMatching(/^[0-9a-f-]{36}$/);

interface Row {
  readonly point: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** Which of the fences (job, lane) are held at that moment. */
  readonly held: readonly [job: boolean, lane: boolean];
}

const numbered = (name: string, key: string) => ({
  key: `${key === "job" ? `job:${name}` : `lane:${name}`}`,
  generation: 1,
});

function rowsOf(name: string): Row[] {
  const [job, lane] = [numbered(name, "job"), numbered(name, "lane")];
  const both = [true, true] as const;
  return [
    { point: "fence.F1", state: { ...job, isFenced: false }, held: [false, false] },
    { point: "fence.F1#2", state: { ...lane, isFenced: false }, held: [true, false] },
    { point: "fence.F2", state: { ...job, isFenced: true }, held: both },
    { point: "fence.F2#2", state: { ...lane, isFenced: true }, held: both },
    { point: "fence.F3", state: { ...job, runId: RUN_ID, isFenced: true }, held: both },
    { point: "fence.F3#2", state: { ...lane, runId: RUN_ID, isFenced: true }, held: both },
    { point: "fence.F4", state: { leases: [job, lane], isFenced: true }, held: both },
  ];
}

const POINTS = rowsOf("").map(({ point }) => point);

/** What each act does to fence itself, as a shell shows it, and what it says. */
const ACTS = [
  { act: "throw", status: 125, says: /^watchdog: bug: fault injected at / },
  { act: "eio", status: 125, says: /^watchdog: error: the fence cannot be had: EIO/ },
  { act: "enospc", status: 125, says: /^watchdog: error: the fence cannot be had: ENOSPC/ },
  { act: "term", status: 143, says: /^(Terminated\n)?$/ },
  { act: "kill", status: 137, says: /^(Killed\n)?$/ },
  { act: "delay:100", status: 0, says: /^$/ },
] as const;

let runs = 0;

function faultOf(point: string, act: string, directory: string) {
  return { WATCHDOG_FAULT: `${point}=${act}`, WATCHDOG_FAULT_DIR: directory };
}

function isFree(path: string): boolean {
  return Bun.spawnSync([findProgram("flock"), "-n", "-x", path, "true"]).exitCode === 0;
}

function evidenceOf(row: Row, act: string) {
  const [point, nth = "1"] = row.point.split("#");
  return [{ point, nth: Number(nth), act, state: row.state }];
}

describe.each(POINTS)("at %s", (point) => {
  test.each(ACTS)(
    "$act: nothing is started by who fails, and no fence stays",
    async (one) => {
      const name = `fault-${(runs += 1)}`;
      const row = rowsOf(name).find((each) => each.point === point) as Row;
      const [ran, evidence] = [scene.path(`${name}.ran`), scene.path(`${name}.faults`)];
      const places = ["job", "lane"].map((kind) => placeOf(scene.stateDirectory, name, kind));
      const checks = places.map(({ fence }) => `flock -n -x '${fence}' echo free`).join("; ");
      const again = `${checks}; "$W" fence -- echo again`;
      const script = `"$F" fence -- touch '${ran}'; echo status $?; ${again}`;
      const env = { F: FAULTS, ...faultOf(point, one.act, evidence) };
      const run = startJob(scene, name, script, { words: ["--lane", name], env });
      const { status, stdout, stderr } = await run.ended;
      expect<object>(readEvidence(evidence)).toEqual(evidenceOf(row, one.act));
      expect([status, stdout.toString()]).toEqual([0, `status ${one.status}\nfree\nfree\nagain\n`]);
      expect(stderr).toMatch(one.says);
      expect(existsSync(ran)).toBe(one.status === 0);
    },
    LIMIT_MS,
  );
});

test("without a fault the same line leaves no evidence, and runs", async () => {
  const [ran, evidence] = [scene.path("plain.ran"), scene.path("plain.faults")];
  const env = { F: FAULTS, WATCHDOG_FAULT_DIR: evidence };
  const { ended } = startJob(scene, "plain", `"$F" fence -- touch '${ran}'`, { env });
  expect([(await ended).status, existsSync(ran), existsSync(evidence)]).toEqual([0, true, false]);
});

async function waitUntilStopped({ pid }: Started): Promise<void> {
  await waitFor(() => readStatusLine(pid, "State")?.startsWith("T"), `a stopped ${pid}`);
}

/**
 * A process outside the tree, which has the environment of a run, stopped at a point; then its run
 * ends, and another one asks for both keys.
 */
async function stopStranger(point: string) {
  const name = `stopped-${(runs += 1)}`;
  const path = (end: string) => scene.path(`${name}.${end}`);
  const [saved, over, log, evidence] = [path("env"), path("over"), path("log"), path("faults")];
  const waits = `until [ -e '${over}' ]; do sleep 0.02; done`;
  const words = ["--lane", name];
  const run = startJob(scene, name, `${saveEnvironment(saved)}; ${waits}`, { words });
  const operation = ["--", "sh", "-c", `echo begin >>'${log}'; sleep 0.3; echo end >>'${log}'`];
  const stranger = startStranger(scene, await readEnvironment(saved), operation, {
    binary: FAULTS,
    env: faultOf(point, "stop", evidence),
  });
  await waitUntilStopped(stranger);
  const row = rowsOf(name).find((each) => each.point === point) as Row;
  expect<object>(readEvidence(evidence)).toEqual(evidenceOf(row, "stop"));
  const places = ["job", "lane"].map((kind) => placeOf(scene.stateDirectory, name, kind));
  expect(places.map(({ fence }) => !isFree(fence))).toEqual([...row.held]);
  writeFileSync(over, "");
  await run.ended;
  const next = startJob(scene, name, `echo next >>'${log}'`, { words });
  return { stranger, next, log, lock: (places[0] as (typeof places)[0]).lock };
}

test(
  "stopped at fence.F1 it holds nothing: the next run is granted, and then it is refused",
  async () => {
    const { stranger, next, log } = await stopStranger("fence.F1");
    expect((await next.ended).status).toBe(0);
    stranger.kill("SIGCONT");
    expect((await stranger.ended).status).toBe(76);
    expect(readLines(log)).toEqual(["next"]);
  },
  LIMIT_MS,
);

test.each(POINTS.filter((point) => point !== "fence.F1"))(
  "stopped at %s nobody is granted anything until it goes on",
  async (point) => {
    const { stranger, next, log, lock } = await stopStranger(point);
    await waitFor(() => !isFree(lock), "a newcomer that has the lock");
    expect(readLines(log)).toEqual([]);
    stranger.kill("SIGCONT");
    const { status } = await stranger.ended;
    expect((await next.ended).status).toBe(0);
    // What it had looked at before the stop it does not look at again: the fence was held.
    const hasLooked = point === "fence.F4";
    expect(status).toBe(hasLooked ? 0 : 76);
    expect(readLines(log)).toEqual(hasLooked ? ["begin", "end", "next"] : ["next"]);
  },
  LIMIT_MS,
);

test(
  "a fence that is replaced between open and lock is not the one that is held",
  async () => {
    const name = "replaced";
    const [saved, gate, log] = ["env", "gate", "log"].map((end) => scene.path(`${name}.${end}`));
    const waits = `until [ -e '${gate}' ]; do sleep 0.02; done`;
    const run = startJob(scene, name, `${saveEnvironment(String(saved))}; ${waits}`);
    const operation = ["--", "sh", "-c", `echo begin >>'${log}'; ${waits}`];
    const stranger = startStranger(scene, await readEnvironment(String(saved)), operation, {
      binary: FAULTS,
      env: faultOf("fence.F1", "stop", scene.path(`${name}.faults`)),
    });
    await waitUntilStopped(stranger);
    const { fence } = placeOf(scene.stateDirectory, name);
    writeFileSync(`${fence}.new`, "", { mode: 0o600 });
    renameSync(`${fence}.new`, fence);
    stranger.kill("SIGCONT");
    await waitFor(() => readLines(String(log)).length > 0, "the operation");
    expect(isFree(fence)).toBe(false);
    writeFileSync(String(gate), "");
    expect([(await stranger.ended).status, (await run.ended).status]).toEqual([0, 0]);
  },
  LIMIT_MS,
);

test("the sweep strikes every point with every act, and each of the keys", () => {
  expect([
    POINTS.length * ACTS.length,
    POINTS.filter((point) => point.endsWith("#2")).length,
  ]).toEqual([42, 3]);
});
