/**
 * Every fault point of acquiring (A0 to A10), with every kind of fault: the state that the fault
 * saw and that lies on the disk at that moment, against design 3; what watchdog does; what the next
 * one finds and gets. A row counts only with the evidence that the fault itself has written.
 *
 * Every act can be at each of these points. All but A0 and A10, which are passed for the whole run,
 * are struck for the first of two keys and for the second.
 */
import { describe, expect, test } from "bun:test";
import { openScene } from "../support/scene.ts";
import { FaultCase } from "./lease-fault-case.ts";
import { ACTS, type Act, FAULTS_OF_A_POINT, LONG, SHORT, sweep } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

const BEFORE = "released 1 before | 1:before";
const DEAD = "held 1 dead | 1:dead";
const BOTH_HELD = ["held 2 ours | 1:before 2:ours", "held 2 ours | 1:dead 2:ours"] as const;
const GIVEN_BACK = "released 2 ours | 2:ours";
const job = { key: "job:night" };
const lane = { key: "lane:server" };
const GRANTS = [
  { kind: "job", name: "night", generation: 2 },
  { kind: "lane", name: "server", generation: 2 },
];
const RUN = expect.stringMatching(/^[0-9a-f-]{36}$/);

const free = (generation: number): string => `free R4 released, ${generation}`;
const dead = (generation: number, from: "dead" | "ours"): string =>
  `dead R6 tree-empty, ${generation} from ${from}`;

interface Found {
  readonly keys: readonly [string, string];
  /** Verdict, and the number that the next one gets. */
  readonly next: readonly [string, string];
}

interface Row extends Found {
  /** Point, and the how manieth time it is passed. */
  readonly point: string;
  readonly says: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** While the run is held there. */
  readonly locks: readonly [string, string];
  /** Who comes meanwhile; undefined: the first key is to be had. */
  readonly newcomer?: string;
}

const UNTOUCHED: Found = { keys: [BEFORE, DEAD], next: [free(2), dead(2, "dead")] };
const NOBODY = { locks: ["free", "free"], ...UNTOUCHED } as const;
const ACQUIRING = "75 held R3 being-acquired";
const FIRST_LOCKED = { locks: ["held", "free"], newcomer: ACQUIRING, ...UNTOUCHED } as const;
const LOCKED = { locks: ["held", "held"], newcomer: ACQUIRING, ...UNTOUCHED } as const;
const FENCED = { ...LOCKED, locks: ["held fenced", "held fenced"] } as const;
const HELD = { ...FENCED, newcomer: "75 held R2 beat-fresh" } as const;
const isFree = { isLocked: false };
const isLocked = { isLocked: true };
const NUMBERS_TAKEN = { keys: [`${BEFORE} 2:empty`, `${DEAD} 2:empty`] } as const;

const ROWS: readonly Row[] = [
  {
    point: "acquire.A0",
    says: "nothing was looked at",
    state: { path: expect.stringMatching(/\/state$/) },
    ...NOBODY,
  },
  { point: "acquire.A1", says: "nothing is open", state: { ...job, ...isFree }, ...NOBODY },
  {
    point: "acquire.A1#2",
    says: "the first key is locked, the second is not open",
    state: { ...lane, ...isFree },
    ...FIRST_LOCKED,
  },
  {
    point: "acquire.A2",
    says: "the first lock file is open, and not locked",
    state: { ...job, ...isFree },
    ...NOBODY,
  },
  {
    point: "acquire.A2#2",
    says: "the first key is locked, the second is open",
    state: { ...lane, ...isFree },
    ...FIRST_LOCKED,
  },
  {
    point: "acquire.A3",
    says: "the first key is locked, and its path was not looked at again",
    state: { ...job, ...isLocked },
    ...FIRST_LOCKED,
  },
  { point: "acquire.A3#2", says: "both are locked", state: { ...lane, ...isLocked }, ...LOCKED },
  {
    point: "acquire.A4",
    says: "both are locked, and nothing was read",
    state: { ...job, ...isLocked },
    ...LOCKED,
  },
  {
    point: "acquire.A4#2",
    says: "the first one's files were read",
    state: { ...lane, ...isLocked },
    ...LOCKED,
  },
  {
    point: "acquire.A6",
    says: "both were found free or dead, and no fence is held",
    state: { ...job, ...isLocked, endings: 0 },
    ...LOCKED,
  },
  {
    point: "acquire.A6#2",
    says: "the same, told for the second key",
    state: { ...lane, ...isLocked, endings: 0 },
    ...LOCKED,
  },
  {
    point: "acquire.A6#3",
    says: "the first fence is about to be had",
    state: { ...job, ...isLocked, isFenced: false },
    ...LOCKED,
  },
  {
    point: "acquire.A6#4",
    says: "the first fence is held, the second is about to be had",
    state: { ...lane, ...isLocked, isFenced: false },
    ...LOCKED,
    locks: ["held fenced", "held"],
  },
  {
    point: "acquire.A7",
    says: "both are fenced, and there is no slot of the new number",
    state: { ...job, generation: 2, isTaken: false },
    ...FENCED,
  },
  {
    point: "acquire.A7#2",
    says: "the first number is taken by an empty slot, the second is not",
    state: { ...lane, generation: 2, isTaken: false },
    ...FENCED,
    keys: [`${BEFORE} 2:empty`, DEAD],
    next: [free(3), dead(2, "dead")],
  },
  {
    point: "acquire.A8",
    says: "both numbers are taken by empty slots, and the old records stand",
    state: { ...job, generation: 2, run: RUN, isTaken: true },
    ...FENCED,
    ...NUMBERS_TAKEN,
    next: [free(3), dead(3, "dead")],
  },
  {
    point: "acquire.A8#2",
    says: "the first record is ours and has its beat, the second is the old one",
    state: { ...lane, generation: 2, run: RUN, isTaken: true },
    ...HELD,
    keys: [BOTH_HELD[0], `${DEAD} 2:empty`],
    next: [dead(3, "ours"), dead(3, "dead")],
  },
  ...[job, lane].map((key, index) => ({
    point: `acquire.A9#${index + 1}`,
    says: "both records are ours, and both fences are still held",
    state: { ...key, generation: 2, isRecorded: true },
    ...HELD,
    keys: BOTH_HELD,
    next: [dead(3, "ours"), dead(3, "ours")] as const,
  })),
  {
    point: "acquire.A10",
    says: "both are held, and neither guard nor command was started",
    state: { leases: GRANTS, child: null },
    ...HELD,
    locks: ["held", "held"],
    keys: ["held 2 ours | 2:ours", "held 2 ours | 2:ours"],
    next: [dead(3, "ours"), dead(3, "ours")],
  },
];

/** Nobody of ours runs in between from A6 to the start: a TERM is kept for the command. */
const keepsTerm = (point: string): boolean => /A(?:6|7|8|9|10)/.test(point);

/** Granted, and given back before anything was started. */
const RELEASED = { keys: [GIVEN_BACK, GIVEN_BACK], next: [free(3), free(3)] };

/** What a run is that goes on as if nothing had been. */
const GONE_ON = {
  keys: [GIVEN_BACK, GIVEN_BACK],
  members: 0,
  next: ["status 0, started", free(3), free(3)],
  degraded: [],
  isTold: false,
  spooled: 0,
};

function evidenceOf({ point, state }: Row) {
  const [name, nth = "1"] = point.split("#");
  return (act: Act) => [{ point: name, nth: Number(nth), act, state, thread: "main" }];
}

function expected(row: Row, act: Act) {
  const evidence = evidenceOf(row)(act);
  if (act === "stop") {
    const { locks, keys, newcomer } = row;
    const moment = { locks, keys, newcomer, rows: [], members: 0, helpers: 1 };
    const rows = { told: ["failed 7"], rows: ["failed 7"] };
    return { ...GONE_ON, evidence, ended: "status 7", isStarted: true, ...rows, moment };
  }
  if (act === "term" && keepsTerm(row.point)) {
    const isStarted = expect.any(Boolean); // the shell may have had no time for a line
    const rows = { told: ["stopped 143"], rows: ["stopped 143"] };
    return { ...GONE_ON, evidence, ended: "SIGTERM", isStarted, ...rows, moment: undefined };
  }
  const isError = !["kill", "term"].includes(act);
  const isGranted = row.point === "acquire.A10";
  // Before A10 an error gives everything back: records, and numbers that nobody was granted.
  const { keys, next } = isError ? (isGranted ? RELEASED : UNTOUCHED) : row;
  const ended = { kill: "SIGKILL", term: "SIGTERM" }[act as string] ?? "status 125";
  const after = { keys, members: 0, next: ["status 0, started", ...next] };
  // Who is asked to end while survivors are looked for, writes that down and leaves.
  const isStopped = act === "term" && row.point !== "acquire.A0";
  // So is a lease that the system did not let be had; a bug of ours is only told.
  const isUnusable = ["eio", "enospc"].includes(act) && !isGranted && row.point !== "acquire.A0";
  const isNoted = isStopped || isUnusable;
  const told = isStopped ? ["stopped 143"] : isUnusable ? ["wrapper_error 125"] : [];
  // A run without a row of its own is known by its lease.
  const rows = next.some((one) => one.endsWith("from ours")) ? ["abandoned"] : told;
  const nothing = { isStarted: false, spooled: 0, moment: undefined };
  const written = { told, rows, degraded: isNoted ? [] : undefined };
  return { evidence, ended, isTold: isError, ...after, ...nothing, ...written };
}

describe("at", () => {
  test.each(ROWS.map((row) => [row.point, row.says, row] as const))(
    "%s %s: nothing is started before A9 by who fails, and the next one has both keys",
    async (_, __, row) => {
      const newcomer = row.newcomer !== undefined;
      const script = (act: Act): string => (act === "term" ? LONG : SHORT);
      const swept = await sweep({ scene, point: row.point, newcomer, script });
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, expected(row, act)])),
      );
    },
    LIMIT_MS,
  );
});

test("without a fault the same run leaves no evidence, and gives both keys back", async () => {
  const one = await new FaultCase(scene).prepare("used");
  expect((await one.start(undefined, SHORT).ended).code).toBe(7);
  await one.waitForHelpers();
  expect([one.evidence(), one.lives(), one.rows()]).toEqual([[], ["started"], ["failed 7"]]);
  expect(one.stderr()).not.toContain("fault");
});

test("the sweep strikes every step from A0 to A10, and every one of the keys twice", () => {
  expect(ROWS.length * FAULTS_OF_A_POINT.length).toBe(100);
  const steps = new Set(ROWS.map(({ point }) => point.split("#")[0]));
  expect(steps.size).toBe(10);
});
