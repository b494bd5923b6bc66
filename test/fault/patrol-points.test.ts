/**
 * A patrol that is killed at each of its points, or whose disk fails there: the next one finishes
 * what is left, and each change is told once, whatever the first had come to. Each fault has left
 * its evidence, with the state of that moment.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { endAll } from "../support/guarded-scene.ts";
import { GONE_LIMIT_MS, waitUntilNoGuard } from "../support/killing.ts";
import { ageJob, eventsOf, HOUR_MS, patrol, patrolJson } from "../support/patrol-scene.ts";
import { findByCommand } from "../support/processes.ts";
import * as scenery from "../support/repair-scene.ts";
import { readAudit, readRuns } from "../support/repair-scene.ts";
import { inState } from "../support/own-state.ts";
import { FAULTS, openScene, type Scene } from "../support/scene.ts";
import { readEvidence } from "./fault-scene.ts";

const base = openScene(import.meta.file);
const LINE = "sleep 98602";
let scene: Scene = base;
let count = 0;

beforeEach(renew);

/** A state directory of its own. */
function renew(): void {
  count += 1;
  scene = inState(base, `state-${count}`);
}
afterAll(async () => {
  await endAll(base, findByCommand(base, LINE));
  await waitUntilNoGuard(base);
}, GONE_LIMIT_MS * 2);

/** A job that is overdue, a dead owner, and one whose command lives on. */
async function leaveThree(): Promise<void> {
  const declared = ["--name", "nightly", "--every", "24h", "--log", "off"];
  expect((await scene.run([...declared, "--", "true"])).status).toBe(0);
  await scenery.leaveDead(scene, "gone", LINE);
  await scenery.leaveOrphans(scene, "orphan", LINE);
  // From here on every other command tells of it.
  ageJob(scene, "nightly", 26 * HOUR_MS);
}

async function strike(fault: string | undefined) {
  const directory = scene.path(`faults-${count}`);
  const env = {
    WATCHDOG_STATE_DIR: scene.stateDirectory,
    WATCHDOG_FAULT: fault,
    WATCHDOG_FAULT_DIR: directory,
  };
  const ended = await patrol(scene, ["--json"], { binary: FAULTS, env });
  return { ended, evidence: readEvidence(directory) };
}

/** All that was to be told has been, once. */
async function expectToldOnce(): Promise<void> {
  expect(eventsOf(scene, "overdue")).toMatchObject([{ job: "nightly", because: "not-started" }]);
  expect(readRuns(scene, "gone")).toMatchObject([{ state: "ended", outcome: "abandoned" }]);
  expect(readRuns(scene, "orphan")).toMatchObject([{ state: "ended", outcome: "abandoned" }]);
  expect(readAudit(scene, "job:gone").at(-1)?.phase).toBe("done");
  expect(findByCommand(base, LINE)).toHaveLength(1);
  const { findings, jobs } = await patrolJson(scene);
  expect(findings).toMatchObject([{ subject: "job:orphan", state: "orphaned" }]);
  expect(jobs).toMatchObject([{ job: "nightly", state: "overdue" }]);
}

/** The fault, and what stands where it strikes. */
const POINTS = [
  ["patrol.lock", {}],
  ["patrol.look", {}],
  ["patrol.mark", { dead: ["job:gone"] }],
  ["repair.intend", {}],
  ["repair.mark", { key: "job:gone" }],
  ["repair.record", { end: "done" }],
  ["patrol.record", { findings: 1 }],
  ["patrol.flush", {}],
  ["patrol.ping", {}],
] as const;

async function endSurvivor(): Promise<void> {
  await endAll(base, findByCommand(base, LINE));
}

test.each(POINTS)(
  "killed at %s, the next one tells the rest, and each change once",
  async (point, state) => {
    await leaveThree();
    const { ended, evidence } = await strike(`${point}=kill`);
    expect(ended.signal).toBe("SIGKILL");
    expect(evidence).toMatchObject([{ point, state }]);
    for (const _ of [1, 2]) expect((await patrol(scene)).status).toBe(0);
    await expectToldOnce();
    await endSurvivor();
  },
  180_000,
);

/** Of more than so many a patrol writes none. */
const MOST_COMMITS = 20;

test("killed before each of its commits in turn, it has lost nothing", async () => {
  const kinds: string[][] = [];
  for (let nth = 1; nth <= MOST_COMMITS; nth += 1) {
    renew();
    await leaveThree();
    const { evidence } = await strike(`journal.commit#${nth}=kill`);
    for (const _ of [1, 2]) expect((await patrol(scene)).status).toBe(0);
    await expectToldOnce();
    await endSurvivor();
    const [found] = evidence;
    if (found === undefined) break;
    kinds.push(found.state["kinds"] as string[]);
  }
  expect(kinds.flat()).toContain("patrolled");
  expect(kinds.flat()).toContain("audit");
  expect(kinds.length).toBeLessThan(MOST_COMMITS);
}, 600_000);

test("without a fault it tells all of it at once", async () => {
  await leaveThree();
  const { ended, evidence } = await strike(undefined);
  expect([ended.status, evidence]).toEqual([0, []]);
  const report = JSON.parse(ended.stdout.toString());
  expect(report.marked).toEqual(["job:gone"]);
  expect(report.newly_overdue).toEqual(["nightly"]);
  await expectToldOnce();
  await endSurvivor();
}, 180_000);
