/**
 * The fault points of ending a dead run's tree, with every kind of fault: in the guard (bury.begin,
 * bury.kill, bury.record), in the newcomer (A5), and at each signal of either (tree.survivor): the
 * state that the fault saw, who lives on, and that the next one ends them before its own command.
 *
 * Every act can be at each of these points. A guard works by run id and knows of no keys, so its
 * points are struck once; in the newcomer the dead run has both keys, or the second one alone.
 */
import { describe, expect, test } from "bun:test";
import { openScene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { FaultCase } from "./lease-fault-case.ts";
import { ACTS, type Act, FAULTS_OF_A_POINT, LONG, sweep } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

const HELD = "held 2 ours | 2:ours";
const DEAD = "dead R6 tree-empty, 3 from ours";
const RUN = expect.stringMatching(/^[0-9a-f-]{36}$/);
const PID = expect.any(Number);
const [SIGKILL, SIGSTOP] = [9, 19];
const isError = (act: Act): boolean => ["throw", "eio", "enospc"].includes(act);

/** The watchdog is killed from outside. @returns its guard */
async function killOwner(one: FaultCase, run: Started): Promise<number> {
  await one.waitForCommand();
  const [guard] = one.look().helpers.filter((pid) => pid !== run.pid);
  run.kill("SIGKILL");
  if (guard === undefined) throw new Error("the run has no guard");
  return guard;
}

interface GuardRow {
  readonly point: string;
  readonly says: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** Of the command, at that moment, after a kill and after an error. */
  readonly members: readonly [number, number, number];
  readonly degraded: readonly string[];
}

const IN_THE_GUARD: readonly GuardRow[] = [
  {
    point: "bury.begin",
    says: "the owner is dead, and its tree lives",
    state: { runId: RUN, hasNotes: true },
    members: [1, 1, 0],
    degraded: ["guard-bug"],
  },
  {
    point: "bury.kill",
    says: "it is decided that the tree ends, and nobody was signalled",
    state: { runId: RUN, kind: "end", because: "nobody-watches" },
    members: [1, 1, 1],
    degraded: ["guard-tree-not-ended"],
  },
  {
    point: "tree.survivor",
    says: "the first signal, which holds the command still, is about to be sent",
    state: { pid: PID, start: PID, signal: SIGSTOP },
    // One signal that fails is sent again; what went wrong is told when all is done.
    members: [1, 1, 0],
    degraded: ["guard-bug"],
  },
  {
    point: "bury.record",
    says: "the tree is ended, and no word of it is written",
    state: {
      runId: RUN,
      leftovers: [{ pid: PID, command: "sleep 94110", ended_by: "KILL" }],
    },
    members: [0, 0, 0],
    degraded: [],
  },
];

function buried(row: GuardRow, act: Act) {
  const { point, state } = row;
  const [atMoment, afterKill, afterError] = row.members;
  const moment = { locks: ["free", "free"], keys: [HELD, HELD], rows: ["running"], helpers: 1 };
  return {
    evidence: [{ point, nth: 1, act, state, thread: "main" }],
    ended: "SIGKILL",
    isStarted: true,
    isTold: false, // a guard has nobody to tell
    keys: [HELD, HELD],
    members: act === "kill" ? afterKill : isError(act) ? afterError : 0,
    next: ["status 0, started", DEAD, DEAD],
    told: [act === "kill" ? "running" : "abandoned"],
    rows: ["abandoned"],
    spooled: 0,
    degraded: isError(act) ? row.degraded : [],
    moment: act === "stop" ? { ...moment, members: atMoment } : undefined,
  };
}

describe("in the guard, at", () => {
  test.each(IN_THE_GUARD.map((row) => [row.point, row.says, row] as const))(
    "%s %s: whoever lives on is ended by the next one",
    async (_, __, row) => {
      const swept = await sweep({ scene, point: row.point, script: LONG, provoke: killOwner });
      expect<object>(swept).toEqual(Object.fromEntries(ACTS.map((act) => [act, buried(row, act)])));
    },
    LIMIT_MS,
  );
});

interface NewcomerRow {
  readonly point: string;
  readonly says: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** Of the command and its child, when the newcomer is gone. */
  readonly members: number;
  /** The dead run has the second key alone. */
  readonly isSecond?: boolean;
}

const IN_THE_NEWCOMER: readonly NewcomerRow[] = [
  {
    point: "acquire.A5",
    says: "survivors of both keys are found, and nobody was signalled",
    state: { key: "job:night", isLocked: true, pids: [PID, PID] },
    members: 2,
  },
  {
    point: "acquire.A5",
    says: "the same, for the second key alone",
    state: { key: "lane:server", isLocked: true, pids: [PID, PID] },
    members: 2,
    isSecond: true,
  },
  {
    point: "tree.survivor",
    says: "the first of them is about to be held still",
    state: { pid: PID, start: PID, signal: SIGSTOP },
    members: 2,
  },
  {
    point: "tree.survivor#2",
    says: "one stands still, the second is about to",
    state: { pid: PID, start: PID, signal: SIGSTOP },
    members: 2,
  },
  {
    point: "tree.survivor#3",
    says: "both stand still, and the first is about to be killed",
    state: { pid: PID, start: PID, signal: SIGKILL },
    members: 2,
  },
  {
    point: "tree.survivor#4",
    says: "one is dead, and the second is about to be killed",
    state: { pid: PID, start: PID, signal: SIGKILL },
    members: 1,
  },
];

/** The locks of both keys and their fences are held while survivors are ended. */
const LOCKS = ["held fenced", "held fenced"];

/** What becomes of the newcomer itself, in the journal. */
function ownRows(act: Act, isRunning: boolean): string[] {
  if (isRunning) return ["failed 7"];
  if (act === "term") return ["stopped 143"];
  return act === "eio" || act === "enospc" ? ["wrapper_error 125"] : [];
}

/** Keys before and after the newcomer, and what the one after that finds. */
function aroundIt(keys: readonly string[], next: readonly string[], numbers: readonly number[]) {
  const ours = numbers.map((number) => `released ${number} ours | ${number}:ours`);
  const after = numbers.map((number) => `free R4 released, ${number + 1}`);
  return { keys, ours, next, after };
}

const BOTH = aroundIt([HELD, HELD], [DEAD, DEAD], [3, 3]);
const GIVEN_BACK = "released 1 before | 1:before";
const SECOND = aroundIt([GIVEN_BACK, HELD], ["free R4 released, 2", DEAD], [2, 3]);

function cameUpon({ point, state, members, isSecond = false }: NewcomerRow, act: Act) {
  const [name, nth = "1"] = point.split("#");
  const isStop = act === "stop";
  // One signal that fails is sent again: that is told, and costs the job nothing.
  const isRunning = isStop || (isError(act) && name === "tree.survivor");
  const { keys, ours, next, after } = isSecond ? SECOND : BOTH;
  const own = ownRows(act, isRunning);
  const moment = { locks: LOCKS, keys, rows: ["running"], members, helpers: 1 };
  const left = act === "term" ? expect.any(Number) : members;
  return {
    evidence: [{ point: name, nth: Number(nth), act, state, thread: "main" }],
    isStarted: isRunning,
    isTold: isError(act),
    rows: ["abandoned", ...own],
    spooled: 0,
    moment: isStop ? moment : undefined,
    ...(isRunning
      ? { ended: "status 7", keys: ours, members: 0, told: ["abandoned", ...own] }
      : { ended: endOf(act), keys, members: left, told: ["running", ...own] }),
    next: ["status 0, started", ...(isRunning ? after : next)],
    degraded: isRunning && isError(act) ? ["bug"] : [],
  };
}

/** Of one that does not get to its command. */
function endOf(act: Act): string {
  return { kill: "SIGKILL", term: "SIGTERM" }[act as string] ?? "status 125";
}

describe("in the newcomer, at", () => {
  test.each(IN_THE_NEWCOMER.map((row) => [row.point, row.says, row] as const))(
    "%s %s: nothing is started beside who is left, and the next one ends them",
    async (_, __, row) => {
      const begin = (one: FaultCase) => one.orphan(row.isSecond === true ? "other" : "night");
      const past = row.isSecond === true ? "released" : "used";
      const swept = await sweep({ scene, past, point: row.point, begin });
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, cameUpon(row, act)])),
      );
    },
    LIMIT_MS,
  );
});

test("a guard that hangs is waited for, two seconds, and then does no harm", async () => {
  const one = await new FaultCase(scene).prepare("used");
  const run = one.start("bury.kill=stop", LONG);
  const guard = await killOwner(one, run);
  await one.waitForStop(guard);
  const next = await one.come("next");
  expect([next.status, one.look().members, one.rows()]).toEqual([0, [], ["abandoned", "ok 0"]]);
  const before = one.keys();
  process.kill(guard, "SIGCONT");
  await one.waitForHelpers();
  expect([one.keys(), one.rows()]).toEqual([before, ["abandoned", "ok 0"]]);
}, 180_000);

test("a guard that has ended the tree may write its words after the next one", async () => {
  const one = await new FaultCase(scene).prepare("used");
  const guard = await killOwner(one, one.start("bury.record=stop", LONG));
  await one.waitForStop(guard);
  expect((await one.come("next")).status).toBe(0);
  const before = one.keys();
  process.kill(guard, "SIGCONT");
  await one.waitForHelpers();
  expect([one.keys(), one.rows()]).toEqual([before, ["abandoned", "ok 0"]]);
  await waitFor(() => one.json("result")?.["outcome"] === "abandoned", "the corrected result");
}, 180_000);

test("the sweep strikes guard and newcomer at every step of an ending", () => {
  const points = [...IN_THE_GUARD, ...IN_THE_NEWCOMER].map(({ point }) => point);
  expect(points.length * FAULTS_OF_A_POINT.length).toBe(50);
  expect(new Set(points.map((point) => point.split("#")[0])).size).toBe(5);
});
