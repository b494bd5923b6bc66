/**
 * A repair that is killed at each of its points, or whose disk fails there: nothing is lost, the
 * next repair tells what was begun, and finishes it or gives it up. Each fault has left its
 * evidence, with the state of that moment.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { endAll } from "../support/guarded-scene.ts";
import { placeOf, readLease, waitForBeat } from "../support/lease-seen.ts";
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
import { type Ended, FAULTS, openScene, type Started } from "../support/scene.ts";
import { waitForStopped } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LINE = "sleep 97501";
const started: Started[] = [];
let count = 0;

afterEach(async () => {
  for (const run of started.splice(0)) {
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
  }
  await endAll(scene, findByCommand(scene, LINE));
});

function newJob(): string {
  count += 1;
  return `point-${count}`;
}

const leaveOrphans = (job: string) => scenery.leaveOrphans(scene, job, LINE);
const leaveDead = (job: string) => scenery.leaveDead(scene, job, LINE);

async function startStalled(job: string): Promise<Started> {
  const { run } = await scenery.startStalled(scene, job, LINE.split(" "));
  started.push(run);
  return run;
}

interface Struck {
  readonly ended: Ended;
  readonly evidence: readonly { point: string; state: Record<string, unknown> }[];
}

async function strike(job: string, words: readonly string[], fault?: string): Promise<Struck> {
  const directory = scene.path(`faults-${job}-${(count += 1)}`);
  const env = { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory };
  const ended = await repair(scene, [`job:${job}`, ...words], { binary: FAULTS, env });
  const names = existsSync(directory) ? readdirSync(directory) : [];
  const read = (name: string) => JSON.parse(readFileSync(`${directory}/${name}`, "utf8"));
  return { ended, evidence: names.map(read) };
}

/** The same, until it stands still at the point; `slow` is its end. */
async function strikeAndStop(job: string, words: readonly string[], fault: string) {
  const directory = scene.path(`faults-${job}-${count + 1}`);
  const slow = strike(job, words, fault);
  return { slow, pid: await waitForStopped(directory) };
}

/** A point, which time it is reached, the state there, and whether an act was begun by then. */
const POINTS = [
  ["repair.lock", 1, { isLocked: false }, false],
  ["repair.gather", 1, { isLocked: false }, false],
  ["repair.gather", 2, { isLocked: true }, false],
  ["repair.intend", 1, {}, false],
  ["repair.act", 1, {}, true],
  ["repair.gather", 3, { isLocked: true }, true],
  ["repair.mark", 1, { isLocked: true, generation: 1 }, true],
  ["repair.record", 1, { end: "done" }, true],
] as const;

describe("a repair that is killed", () => {
  for (const [what, leave] of [
    ["a dead owner", leaveDead],
    ["survivors", leaveOrphans],
  ] as const) {
    test.each(POINTS)(`over ${what} at %s#%d is finished by the next one`, async (...row) => {
      const [point, nth, state, isBegun] = row;
      const job = newJob();
      await leave(job);
      const struck = await strike(job, ["--apply"], `${point}#${nth}=kill`);
      expect(struck.ended.signal).toBe("SIGKILL");
      expect(struck.evidence).toMatchObject([{ point, state }]);
      const before = readAudit(scene, `job:${job}`).map(({ phase }) => phase);
      expect(before).toEqual(isBegun ? ["intended"] : []);
      const dry = await repairJson(scene, [`job:${job}`]);
      expect(dry.interrupted.map((one: { settled: string }) => one.settled)).toEqual(
        isBegun ? ["open"] : [],
      );
      const next = await repair(scene, [`job:${job}`, "--apply"]);
      expect([next.status, next.stderr]).toEqual([0, ""]);
      expect(next.stdout.toString().includes("was interrupted at")).toBe(isBegun);
      await waitForVerdict(scene, `job:${job}`, "free");
      expect(findByCommand(scene, LINE)).toEqual([]);
      expect(readRuns(scene, job)).toMatchObject([{ state: "ended", outcome: "abandoned" }]);
      expect(readLease(placeOf(scene.stateDirectory, job))).toMatchObject({
        state: "released",
        generation: 1,
      });
      const audit = readAudit(scene, `job:${job}`);
      const isComplete = point === "repair.record";
      if (isBegun) {
        expect(audit[1]).toMatchObject(
          isComplete
            ? { phase: "done", because: "finished-later" }
            : { phase: "failed", because: "interrupted" },
        );
      }
      expect(audit.at(-1)?.phase).toBe("done");
      expect(audit.filter(({ phase }) => phase === "intended")).toHaveLength(
        isBegun && !isComplete ? 2 : 1,
      );
      expect((await repairJson(scene)).interrupted).toEqual([]);
      const run = await scene.run(["--name", job, "--", "true"]);
      expect([run.status, run.stderr]).toEqual([0, ""]);
    });
  }

  test.each([
    ["repair.gather", 3, false],
    ["repair.intend", 1, false],
    ["repair.act", 1, true],
    ["repair.mark", 1, true],
    ["repair.record", 1, true],
  ] as const)(
    "over a stalled owner at %s#%d leaves it alive or dead, and says so",
    async (...row) => {
      const [point, nth, isBegun] = row;
      const job = newJob();
      const run = await startStalled(job);
      const [lease] = (await repairJson(scene, [`job:${job}`])).leases;
      const words = ["--approve", planOf(lease, "end-owner")];
      const struck = await strike(job, words, `${point}#${nth}=kill`);
      expect(struck.ended.signal).toBe("SIGKILL");
      expect(struck.evidence).toMatchObject([{ point }]);
      const isAlive = ["repair.gather", "repair.intend", "repair.act"].includes(point);
      const { leases, interrupted } = await repairJson(scene, [`job:${job}`]);
      expect(interrupted).toHaveLength(isBegun ? 1 : 0);
      expect(leases[0].verdict).toBe(isAlive ? "stalled" : "free");
      if (isAlive) {
        const again = await repair(scene, ["--approve", planOf(leases[0], "end-owner")]);
        expect([again.status, again.stderr]).toEqual([0, ""]);
      } else {
        expect((await repair(scene, [`job:${job}`, "--apply"])).status).toBe(0);
      }
      await run.ended;
      const [shown] = (await repairJson(scene, [`job:${job}`])).leases;
      expect(shown).toMatchObject({ state: "released", repair: { action: "ended-owner" } });
      const next = await scene.run(["--name", job, "--", "true"]);
      expect([next.status, next.stderr]).toEqual([75, expect.stringContaining("has ended its")]);
      expect(findByCommand(scene, LINE)).toEqual([]);
      expect((await repairJson(scene)).interrupted).toEqual([]);
    },
  );
});

describe("a repair whose disk fails", () => {
  test.each([
    ["repair.intend", "enospc", []],
    ["repair.act", "eio", ["intended", "failed"]],
    ["repair.mark", "enospc", ["intended", "failed"]],
  ] as const)("at %s by %s says so, and an approval does it later", async (point, act, phases) => {
    const job = newJob();
    await leaveDead(job);
    const struck = await strike(job, ["--apply"], `${point}=${act}`);
    expect(struck.ended.status).toBe(125);
    expect(struck.ended.stderr).toContain(`job:${job} could not be repaired`);
    expect(struck.evidence).toMatchObject([{ point }]);
    expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual([...phases]);
    const lease = await waitForVerdict(scene, `job:${job}`, "dead");
    expect((await repair(scene, ["--approve", planOf(lease, "mark")])).status).toBe(0);
    await waitForVerdict(scene, `job:${job}`, "free");
  });
});

test("an owner that beats again between the look and the act is not touched", async () => {
  const job = newJob();
  const run = await startStalled(job);
  const [lease] = (await repairJson(scene, [`job:${job}`])).leases;
  const words = ["--approve", planOf(lease, "end-owner")];
  const { slow, pid } = await strikeAndStop(job, words, "repair.gather#3=stop");
  run.kill("SIGCONT");
  await waitForBeat(placeOf(scene.stateDirectory, job), lease.heartbeat_seq + 2);
  process.kill(pid, "SIGCONT");
  const { ended, evidence } = await slow;
  expect(evidence).toMatchObject([{ point: "repair.gather", state: { isLocked: false } }]);
  expect([ended.status, ended.stderr]).toEqual([
    77,
    `watchdog: error: the evidence about job:${job} has changed: nothing was done\n`,
  ]);
  expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual(["refused"]);
  await waitForVerdict(scene, `job:${job}`, "held");
});

test("while one repair acts another is told, and only looks", async () => {
  const job = newJob();
  await leaveDead(job);
  const { slow, pid } = await strikeAndStop(job, ["--apply"], "repair.act=stop");
  expect((await repairJson(scene, [`job:${job}`])).is_busy).toBe(true);
  const other = await repair(scene, [`job:${job}`, "--apply"]);
  expect([other.status, other.stdout.toString()]).toEqual([75, ""]);
  expect(other.stderr).toContain("another repair is at work");
  process.kill(pid, "SIGCONT");
  const { ended, evidence } = await slow;
  expect([ended.status, evidence.length]).toEqual([0, 1]);
  expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual(["intended", "done"]);
});

test("without a fault none of this is seen", async () => {
  const job = newJob();
  await leaveDead(job);
  const { ended, evidence } = await strike(job, ["--apply"]);
  expect([ended.status, ended.stderr, evidence]).toEqual([0, "", []]);
  expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual(["intended", "done"]);
});
