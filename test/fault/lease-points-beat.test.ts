/**
 * The fault points of the heartbeat, in the thread that beats and, for the first beat that names
 * the command, in main, with every kind of fault, for the first of two keys and for the second: the
 * state that the fault saw and that the slots have, what becomes of the run, what the next one
 * finds. Every act can be at each of these points.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, openSync, unlinkSync } from "node:fs";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { FaultCase } from "./lease-fault-case.ts";
import { ACTS, type Act, FAULTS_OF_A_POINT, LONG, sweep, type SweptActs } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

const OPTIONS = ["--heartbeat-interval=100ms", "--stale-after=1m"];
/** Ends by itself when so many faults have struck, and a beat of the first key came after them. */
const untilStruck = (count: number): string => `echo started >>"$LIFE"; at=\${LIFE%/life}
  until [ "$(ls "$at/faults" 2>/dev/null | wc -l)" -ge ${count} ]; do sleep 0.02; done
  beat() { cksum <"$at/state/leases/job/night/beat.2"; }
  last=$(beat); while [ "$last" = "$(beat)" ]; do sleep 0.02; done; exit 7`;
const GIVEN_BACK = "released 2 ours | 2:ours";
const HELD = "held 2 ours | 2:ours";
const FREE = "free R4 released, 3";
const DEAD = "dead R6 tree-empty, 3 from ours";
const RUN = expect.stringMatching(/^[0-9a-f-]{36}$/);
const job = { key: "job:night", generation: 2, run_id: RUN };
const lane = { key: "lane:server", generation: 2, run_id: RUN };
const LOCKS = ["held", "held"];

interface Row {
  readonly point: string;
  readonly says: string;
  /** `sequence`: the last beat for a look, the beat that is to be written for a write. */
  readonly state: Readonly<Record<string, unknown>>;
  readonly thread: "main" | "worker";
  /** The beats of both slots at that moment. */
  readonly slots: readonly [string, string];
}

const ROWS: readonly Row[] = [
  {
    point: "beat.check",
    says: "main has named the command in both slots, and its thread has not beaten yet",
    state: { ...job, sequence: 2 },
    thread: "worker",
    slots: ["ours@2+child", "ours@2+child"],
  },
  {
    point: "beat.check#2",
    says: "the first beat of the thread is written for the first key alone",
    state: { ...lane, sequence: 2 },
    thread: "worker",
    slots: ["ours@3+child", "ours@2+child"],
  },
  {
    point: "beat.write",
    says: "main is about to name the command in the first slot",
    state: { ...job, sequence: 2 },
    thread: "main",
    slots: ["ours@1", "ours@1"],
  },
  {
    point: "beat.write#2",
    says: "main has named it in the first slot, and not in the second",
    state: { ...lane, sequence: 2 },
    thread: "main",
    slots: ["ours@2+child", "ours@1"],
  },
  {
    point: "beat.write#3",
    says: "the second beat of the thread is about to be written",
    state: { ...job, sequence: 4 },
    thread: "worker",
    slots: ["ours@3+child", "ours@3+child"],
  },
  {
    point: "beat.write#4",
    says: "the second beat of the thread is written for the first key alone",
    state: { ...lane, sequence: 4 },
    thread: "worker",
    slots: ["ours@4+child", "ours@3+child"],
  },
];

/** A fault of main strikes once more: its thread counts for itself. */
function scriptOf({ thread }: Row, act: Act): string {
  return act === "term" ? LONG : untilStruck(thread === "main" ? 2 : 1);
}

function evidenceOf(row: Row, act: Act) {
  const [point, nth = "1"] = row.point.split("#");
  const one = { point, nth: Number(nth), act, state: row.state, thread: row.thread };
  if (row.thread === "worker" || act === "kill") return [one];
  // The thread counts for itself, and passes the same point with its own first beat.
  const state = { ...row.state, sequence: expect.any(Number) };
  const again = { ...one, state, thread: "worker" };
  return act === "term" ? expect.arrayContaining([one]) : [one, again];
}

/** A beat that fails is missed, and the run goes on. */
function expected(row: Row, act: Act) {
  const keys = row.slots.map((slot) => `held 2 ours | 2:${slot}`);
  const ended = { kill: "SIGKILL", term: "SIGTERM" }[act as string] ?? "status 7";
  const isError = ["throw", "eio", "enospc"].includes(act);
  const [isKill, isStop] = [act === "kill", act === "stop"];
  return {
    evidence: evidenceOf(row, act),
    ended,
    isStarted: isStop || isError ? true : expect.any(Boolean),
    isTold: false,
    keys: isKill ? keys : [GIVEN_BACK, GIVEN_BACK],
    members: 0,
    next: ["status 0, started", ...(isKill ? [DEAD, DEAD] : [FREE, FREE])],
    told: [{ kill: "abandoned", term: "stopped 143" }[act as string] ?? "failed 7"],
    rows: [{ kill: "abandoned", term: "stopped 143" }[act as string] ?? "failed 7"],
    spooled: 0,
    degraded: isError ? ["beat-missed"] : [],
    moment: isStop ? momentOf(row, keys) : undefined,
  };
}

/**
 * SIGSTOP is taken by main: the thread that has sent it stands still a moment later, perhaps with
 * its beat written. SIGKILL lets no thread return from the call (signal(7)).
 */
function momentOf({ thread }: Row, slots: readonly string[]) {
  const keys = thread === "main" ? slots : expect.any(Array);
  const newcomer = "75 held R2 beat-fresh";
  const rows = thread === "main" ? [] : expect.any(Array); // written by main at the same time
  return { locks: LOCKS, keys, newcomer, rows, members: expect.any(Number), helpers: 2 };
}

describe("at", () => {
  test.each(ROWS.map((row) => [row.point, row.says, row] as const))(
    "%s %s: a beat is missed, or the run is dead",
    async (_, __, row) => {
      const script = (act: Act): string => scriptOf(row, act);
      const plan = { scene, point: row.point, script, options: OPTIONS };
      const swept = await sweep({ ...plan, showsBeats: true, newcomer: true });
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, expected(row, act)])),
      );
    },
    LIMIT_MS,
  );
});

/** The lock file of one key goes away after the third beat. */
async function restore(index: 0 | 1): Promise<SweptActs> {
  // As long as it is open nobody is given its inode number again: the next file is another one.
  const removed: number[] = [];
  try {
    return await sweepRestore(index, removed);
  } finally {
    removed.forEach(closeSync);
  }
}

function sweepRestore(index: 0 | 1, removed: number[]): Promise<SweptActs> {
  const name = index === 0 ? "job/night" : "lane/server";
  const lockOf = (one: FaultCase): string => `${one.state}/leases/${name}/lock`;
  return sweep({
    scene,
    point: "beat.restore",
    script: LONG,
    options: OPTIONS,
    provoke: async (one) => {
      await waitFor(() => /ours@[3-9]/.test(one.keys()[1] ?? ""), "beats", { stepMs: 8 });
      await one.waitForCommand();
      removed.push(openSync(lockOf(one), "r"));
      unlinkSync(lockOf(one));
    },
    finish: async (one, run, act) => {
      if (act === "kill" || act === "term") return;
      await waitFor(() => one.locks().join() === LOCKS.join(), "the lock to be restored");
      // The record comes after the lock, with the beat after it at the latest.
      const seen = beatsOf(one);
      await waitFor(() => beatsOf(one) > seen + 1, "two more beats of each key");
      run.kill("SIGTERM");
    },
    newcomer: index === 0 ? ["--name", "night"] : ["--name", "other", "--lane", "server"],
    holdsThread: true,
  });
}

/** Of the key that has fewer. */
function beatsOf(one: FaultCase): number {
  return Math.min(...one.keys().map((key) => Number(/ours@(\d+)/.exec(key)?.[1] ?? 0)));
}

function restored(key: typeof job | typeof lane, index: 0 | 1, act: Act) {
  const state = { ...key, sequence: expect.any(Number) };
  const isError = ["throw", "eio", "enospc"].includes(act);
  const isKill = act === "kill";
  const free = act === "term" ? expect.stringMatching(/^free R4 released.*, 3$/) : FREE;
  const dead = [DEAD, DEAD].with(index, "dead R7 tree-empty, 3 from ours");
  const locks = LOCKS.with(index, "missing");
  // Who wants this key alone has the lock of the new file, and finds the owner alive.
  const newcomer = "75 unknowable R7 lock-replaced";
  const moment = { locks, keys: [HELD, HELD], rows: ["running"], members: 1, helpers: 2, newcomer };
  const word = act === "stop" ? "hold" : act;
  return {
    evidence: [{ point: "beat.restore", nth: 1, act: word, state, thread: "worker" }],
    ended: isKill ? "SIGKILL" : "SIGTERM",
    isStarted: true,
    isTold: false,
    keys: isKill ? [HELD, HELD] : act === "term" ? expect.any(Array) : [GIVEN_BACK, GIVEN_BACK],
    members: 0,
    next: ["status 0, started", ...(isKill ? dead : [free, free])],
    told: [isKill ? "abandoned" : "stopped 143"],
    rows: [isKill ? "abandoned" : "stopped 143"],
    spooled: 0,
    degraded: degradedOf(act, isError),
    moment: act === "stop" ? moment : undefined,
  };
}

function degradedOf(act: Act, isError: boolean) {
  if (act === "kill") return [];
  if (act === "term") return expect.any(Array); // restored in time, or not
  return [...(isError ? ["beat-missed"] : []), "lock-restored", "rewritten"];
}

test(
  "at beat.restore the lock file of the first key is gone: nobody gets it, and it comes back",
  async () => {
    const swept = await restore(0);
    expect<object>(swept).toEqual(
      Object.fromEntries(ACTS.map((act) => [act, restored(job, 0, act)])),
    );
  },
  LIMIT_MS,
);

test(
  "at beat.restore the lock file of the second key is gone: the same",
  async () => {
    const swept = await restore(1);
    expect<object>(swept).toEqual(
      Object.fromEntries(ACTS.map((act) => [act, restored(lane, 1, act)])),
    );
  },
  LIMIT_MS,
);

test.each(["beat.write", "beat.check"])(
  "the third failure of %s in a row is told, and the recovery is noted",
  async (point) => {
    const one = await new FaultCase(scene).prepare("used");
    const plan = [3, 5, 7].map((nth) => `${point}#${nth}=eio`).join();
    expect((await one.start(plan, untilStruck(3), OPTIONS).ended).code).toBe(7);
    await one.waitForHelpers();
    expect(one.evidence()).toHaveLength(3);
    expect(one.json("result")?.["degraded"]).toEqual(["beat-missed", "beat-failing", "recovered"]);
    const line = `heartbeats of job:night cannot be written: EIO: fault injected at ${point}`;
    expect(one.stderr()).toContain(line);
  },
  LIMIT_MS,
);

test("the sweep strikes each point of the heartbeat for both keys", () => {
  expect((ROWS.length + 2) * FAULTS_OF_A_POINT.length).toBe(40);
  expect(new Set(ROWS.map(({ point }) => point.split("#")[0]))).toEqual(
    new Set(["beat.check", "beat.write"]),
  );
});
