/**
 * Runs and owners beside a repair that is slow, stopped or killed at its points: no job is lost to
 * a repair that did nothing, nobody is ended on old evidence, and whoever asks is told what goes
 * on.
 */
import { afterEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { placeOf, waitForBeat } from "../support/lease-seen.ts";
import { findByCommand } from "../support/processes.ts";
import * as scenery from "../support/repair-scene.ts";
import {
  planOf,
  readAudit,
  readRuns,
  repair,
  repairJson,
  waitForVerdict,
} from "../support/repair-scene.ts";
import { FAULTS, openScene, RELEASE, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { waitForStopped } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LINE = "sleep 97601";
const started: Started[] = [];
let count = 0;

afterEach(async () => {
  for (const one of started.splice(0)) {
    one.kill("SIGCONT");
    one.kill("SIGTERM");
    await one.ended;
  }
  await endAll(scene, findByCommand(scene, LINE));
});

function newJob(): string {
  count += 1;
  return `beside-${count}`;
}

/** A command that ends by itself when the test says so. */
function untilTold(job: string): string[] {
  const go = scene.path(`${job}.go`);
  return ["sh", "-c", `while [ ! -e ${go} ]; do sleep 0.05; done`];
}

const leaveOrphans = (job: string) => scenery.leaveOrphans(scene, job, LINE);

async function startStalled(job: string, command: readonly string[] = LINE.split(" ")) {
  const stalled = await scenery.startStalled(scene, job, command);
  started.push(stalled.run);
  return stalled;
}

/** A repair with a fault; resolves when that has struck, or when the repair stands still by it. */
function startRepair(words: readonly string[], fault: string) {
  const directory = scene.path(`faults-${(count += 1)}`);
  const env = { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory };
  const child = scene.startProgram([FAULTS, "repair", ...words], { env });
  started.push(child);
  const hasStruck = () => existsSync(directory) && readdirSync(directory).length > 0;
  return {
    child,
    struck: () => waitFor(hasStruck, fault),
    stopped: () => waitForStopped(directory),
  };
}

function listEndings(job: string): string[] {
  const { directory } = placeOf(scene.stateDirectory, job);
  return readdirSync(directory).filter((name) => name.startsWith("repair."));
}

describe("a run whose owner was to be ended", () => {
  test("and never was: the next run is granted the key at once", async () => {
    const job = newJob();
    const { run, lease } = await startStalled(job, untilTold(job));
    const id = planOf(lease, "end-owner");
    const { child } = startRepair([`job:${job}`, "--approve", id], "repair.act=kill");
    expect((await child.ended).signal).toBe("SIGKILL");
    expect(listEndings(job)).toEqual(["repair.1"]);
    run.kill("SIGCONT");
    writeFileSync(scene.path(`${job}.go`), "");
    expect(await run.ended).toMatchObject({ status: 0 });
    expect((await repair(scene, [`job:${job}`, "--apply"])).status).toBe(0);
    expect(listEndings(job)).toEqual([]);
    const next = await scene.run(["--name", job, "--", "true"]);
    expect([next.status, next.stderr]).toEqual([0, ""]);
  });

  test("and goes on before it is asked is not asked", async () => {
    const job = newJob();
    const { run, lease } = await startStalled(job);
    const words = [`job:${job}`, "--approve", planOf(lease, "end-owner")];
    const { child, stopped } = startRepair(words, "repair.act=stop");
    await stopped();
    run.kill("SIGCONT");
    await waitForBeat(placeOf(scene.stateDirectory, job), lease.heartbeat_seq + 2);
    child.kill("SIGCONT");
    const ended = await child.ended;
    expect([ended.status, ended.stderr]).toEqual([
      77,
      `watchdog: error: the evidence about job:${job} has changed: nobody was signalled\n`,
    ]);
    expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual([
      "intended",
      "failed",
    ]);
    expect(listEndings(job)).toEqual([]);
    await waitForVerdict(scene, `job:${job}`, "held");
    expect(findByCommand(scene, LINE)).toHaveLength(1);
  });

  test("and ends by itself while the repair stands still is told apart by who asks", async () => {
    const job = newJob();
    const { run, lease } = await startStalled(job, untilTold(job));
    const words = [`job:${job}`, "--approve", planOf(lease, "end-owner")];
    const { child, stopped } = startRepair(words, "repair.act=stop");
    await stopped();
    run.kill("SIGCONT");
    writeFileSync(scene.path(`${job}.go`), "");
    await run.ended;
    const [first, second] = await Promise.all([
      scene.run(["--name", job, "--", "true"]),
      repair(scene),
    ]);
    expect([first.status, first.stderr]).toEqual([0, ""]);
    expect(second.stdout.toString()).toContain("is at work since");
    child.kill("SIGCONT");
    expect((await child.ended).status).toBe(77);
    const next = await scene.run(["--name", job, "--", "true"]);
    expect([next.status, next.stderr]).toEqual([0, ""]);
  });

  test("and was asked by a repair that is gone: the way on is told", async () => {
    const job = newJob();
    const { lease } = await startStalled(job, ["sh", "-c", "trap '' TERM; sleep 97601; sleep 5"]);
    const words = [`job:${job}`, "--approve", planOf(lease, "end-owner")];
    const child = scene.startProgram([RELEASE, "repair", ...words]);
    started.push(child);
    await waitFor(() => listEndings(job).length > 0 && readFileOf(job).includes("asked"), "asked");
    child.kill("SIGKILL");
    await child.ended;
    const told = (await repair(scene)).stdout.toString();
    expect(told).toContain(
      `its owner was asked to end and still has the key: watchdog stop ${lease.run_id}`,
    );
    const stopped = await ask(scene, ["stop", "--kill-after", "1s", lease.run_id]);
    expect(stopped.status).toBe(0);
    expect((await scene.run(["--name", job, "--", "true"])).status).toBe(75);
  });
});

function readFileOf(job: string): string {
  const { directory } = placeOf(scene.stateDirectory, job);
  const name = listEndings(job)[0] ?? "";
  return readFileSync(`${directory}/${name}`, "utf8");
}

describe("a run that starts while a repair settles its key", () => {
  test("waits for it, and runs", async () => {
    const job = newJob();
    await leaveOrphans(job);
    const { child, struck } = startRepair([`job:${job}`, "--apply"], "repair.mark=delay:1500");
    await struck();
    const run = await scene.run(["--name", job, "--", "echo", "ran"]);
    expect([run.status, run.stdout.toString(), run.stderr]).toEqual([0, "ran\n", ""]);
    expect((await child.ended).status).toBe(0);
  });

  test("is told who has it, and so is whoever asks", async () => {
    const job = newJob();
    await leaveOrphans(job);
    const { child, struck } = startRepair([`job:${job}`, "--apply"], "repair.mark=stop");
    await struck();
    const lines = scene.path(`${job}.stderr`);
    const stderr = openSync(lines, "w");
    const run = scene.start(["-v", "--name", job, "--", "true"], { stderr });
    closeSync(stderr);
    started.push(run);
    const about = `is in the hands of watchdog repair (pid ${child.pid}), which has not finished`;
    await waitFor(() => readFileSync(lines, "utf8").includes(about), "a line about the repair");
    const [head] = await askLines(scene, ["lease", "explain", `job:${job}`]);
    expect(head).toBe(`job:${job}  held: watchdog repair (pid ${child.pid}) is at work on it`);
    const shown = { is_repair_at_work: true, repairer_pid: child.pid };
    expect(await askJson(scene, ["lease", "show", `job:${job}`])).toMatchObject(shown);
    const dry = await repairJson(scene);
    expect(dry.interrupted).toMatchObject([{ settled: "at-work", pid: child.pid }]);
    const told = (await repair(scene)).stdout.toString();
    expect(told).toMatch(/ is at work since .* \(pid \d+\)\n/);
    expect(told).not.toContain("was interrupted");
    const other = await repair(scene, ["--apply"]);
    expect([other.status, other.stderr]).toEqual([
      75,
      `watchdog: error: another repair is at work in ${scene.stateDirectory} (pid ${child.pid})\n` +
        "watchdog: hint: watchdog repair\n",
    ]);
    child.kill("SIGCONT");
    expect((await child.ended).status).toBe(0);
    expect((await run.ended).status).toBe(0);
  });
});

describe("a lock of the wrong kind that is to be set aside", () => {
  /** A directory in the place of the lock, and what is done to it while the repair stands still. */
  async function setAside(point: string, meanwhile: (lock: string) => void) {
    const job = newJob();
    expect((await scene.run(["--name", job, "--", "true"])).status).toBe(0);
    const { lock, directory } = placeOf(scene.stateDirectory, job);
    renameSync(lock, `${lock}.good`);
    mkdirSync(lock);
    const lease = await waitForVerdict(scene, `job:${job}`, "unknowable");
    const words = [`job:${job}`, "--approve", planOf(lease, "set-aside-lock")];
    const { child, stopped } = startRepair(words, `${point}=stop`);
    await stopped();
    meanwhile(lock);
    child.kill("SIGCONT");
    const { status, stderr } = await child.ended;
    const audit = readAudit(scene, `job:${job}`).map((line) => `${line.phase} ${line.because}`);
    const kept = readdirSync(directory).filter((name) => name.includes(".kept-"));
    return { job, lock, status, stderr, audit, kept };
  }

  function putBack(lock: string): void {
    rmdirSync(lock);
    renameSync(`${lock}.good`, lock);
  }

  test.each([
    ["repair.gather#2", ["refused evidence-changed"], "has changed: nothing was done"],
    ["repair.act", [expect.any(String), "failed evidence-changed"], "has a regular lock file"],
  ] as const)("and is a good file again by %s stays where it is", async (point, audit, says) => {
    const aside = await setAside(point, putBack);
    expect([aside.status, aside.stderr]).toEqual([77, expect.stringContaining(says)]);
    expect([aside.audit, aside.kept]).toEqual([[...audit], []]);
    expect(lstatSync(aside.lock).isFile()).toBe(true);
    expect((await scene.run(["--name", aside.job, "--", "true"])).status).toBe(0);
  });

  test("and is of another kind by the next look was not approved", async () => {
    const aside = await setAside("repair.gather#2", (lock) => {
      rmdirSync(lock);
      symlinkSync("nowhere", lock);
    });
    const says = `the evidence about job:${aside.job} has changed: nothing was done`;
    expect([aside.status, aside.stderr]).toEqual([77, `watchdog: error: ${says}\n`]);
    expect([aside.audit, aside.kept]).toEqual([["refused evidence-changed"], []]);
    expect(lstatSync(aside.lock).isSymbolicLink()).toBe(true);
  });

  test("and is still the same is renamed", async () => {
    const aside = await setAside("repair.act", () => undefined);
    expect([aside.status, aside.stderr, aside.kept]).toEqual([0, "", ["lock.kept-1"]]);
  });
});

describe("a repair that has failed", () => {
  test.each(["repair.act", "repair.mark"])("at %s is tried again at once", async (point) => {
    const job = newJob();
    await leaveOrphans(job);
    const { child } = startRepair([`job:${job}`, "--apply"], `${point}=eio`);
    expect((await child.ended).status).toBe(125);
    const again = await repair(scene, [`job:${job}`, "--apply"]);
    expect([again.status, again.stderr]).toEqual([0, ""]);
    await waitForVerdict(scene, `job:${job}`, "free");
    expect(readRuns(scene, job)).toMatchObject([{ outcome: "abandoned" }]);
  });

  test.each(["repair.lock", "repair.gather"])("at %s says what the system said", async (point) => {
    const job = newJob();
    await leaveOrphans(job);
    const { child } = startRepair([`job:${job}`, "--apply"], `${point}=eio`);
    const { status, stderr } = await child.ended;
    expect(status).toBe(125);
    expect(stderr).toMatch(/^watchdog: error: /);
  });
});
