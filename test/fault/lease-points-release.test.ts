/**
 * Every fault point from the start of the command to the release of its leases (the rest of A10, R0
 * to R5), with every kind of fault: the state that the fault saw and that lies on the disk at that
 * moment, against design 3; what watchdog and its guard do; what the next one finds and gets.
 *
 * Every act can be at each of these points. R2 and R5 are passed once for the run and once for each
 * key; the others are passed once, because their act is one for all keys.
 */
import { describe, expect, test } from "bun:test";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { FaultCase } from "./lease-fault-case.ts";
import { ACTS, type Act, FAULTS_OF_A_POINT, LONG, SHORT, sweep } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

const HELD = "held 2 ours | 2:ours";
const GIVEN_BACK = "released 2 ours | 2:ours";
const NAMES = [
  { kind: "job", name: "night" },
  { kind: "lane", name: "server" },
];
const GRANTS = NAMES.map((key) => ({ ...key, generation: 2 }));
const job = { key: "job:night", generation: 2 };
const lane = { key: "lane:server", generation: 2 };
const RUN = expect.stringMatching(/^[0-9a-f-]{36}$/);
const FREE = "free R4 released, 3";
const FREE_BY_JOURNAL = "free R4 released-by-journal, 3";
const DEAD = "dead R6 tree-empty, 3 from ours";
/** The owner lives, and its record names it. */
const NAMED = "75 held R2 beat-fresh";
/** The lock is held, and the record names nobody any more. */
const UNNAMED = "75 held R3 being-acquired";

interface Found {
  readonly keys: readonly [string, string];
  readonly next: readonly [string, string];
}

interface Row extends Found {
  readonly point: string;
  readonly says: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly newcomer: string;
  /** Of the journal, at that moment, and after a kill. */
  readonly rows: readonly [string, string];
  readonly helpers: number;
  readonly afterError: Found & { readonly degraded: readonly string[] };
}

const ALL_GIVEN_BACK: Found = { keys: [GIVEN_BACK, GIVEN_BACK], next: [FREE, FREE] };
const ALL_HELD: Found = { keys: [HELD, HELD], next: [DEAD, DEAD] };
const UNRELEASED = { ...ALL_HELD, newcomer: NAMED, helpers: 2 } as const;
const RELEASED = { ...ALL_GIVEN_BACK, newcomer: UNNAMED } as const;
/** Trouble of watchdog's own: told, and nothing else. */
const TOLD = { ...ALL_GIVEN_BACK, degraded: ["bug"] };
/** The same after the result file was written. */
const TOLD_LATE = { ...ALL_GIVEN_BACK, degraded: [] };

const ROWS: readonly Row[] = [
  {
    point: "release.R0",
    says: "the tree is empty, and the heartbeat goes on",
    state: { leases: GRANTS, end: { kind: "exited", code: 7 } },
    rows: ["running", "abandoned"],
    afterError: TOLD,
    ...UNRELEASED,
  },
  {
    point: "release.R1",
    says: "the heartbeat has stopped, and the tree is empty",
    state: { runId: RUN, isTreeEmpty: true },
    rows: ["running", "abandoned"],
    afterError: TOLD,
    ...UNRELEASED,
  },
  {
    point: "release.R2",
    says: "the outcome is known, and both records say held",
    state: { leases: GRANTS, isTreeEmpty: true },
    rows: ["running", "failed 7"],
    afterError: { keys: [HELD, HELD], next: [FREE_BY_JOURNAL, FREE_BY_JOURNAL], degraded: ["bug"] },
    ...UNRELEASED,
    next: [FREE_BY_JOURNAL, FREE_BY_JOURNAL],
  },
  {
    point: "release.R2#2",
    says: "the first record is about to be released",
    state: { ...job, isReleased: false },
    rows: ["running", "failed 7"],
    afterError: {
      keys: [HELD, GIVEN_BACK],
      next: [FREE_BY_JOURNAL, FREE],
      degraded: ["release-unwritten"],
    },
    ...UNRELEASED,
    next: [FREE_BY_JOURNAL, FREE_BY_JOURNAL],
  },
  {
    point: "release.R2#3",
    says: "the first record is released, the second is held",
    state: { ...lane, isReleased: false },
    rows: ["running", "failed 7"],
    afterError: {
      keys: [GIVEN_BACK, HELD],
      next: [FREE, FREE_BY_JOURNAL],
      degraded: ["release-unwritten"],
    },
    newcomer: UNNAMED,
    helpers: 2,
    keys: [GIVEN_BACK, HELD],
    next: [FREE, FREE_BY_JOURNAL],
  },
  {
    point: "release.R3",
    says: "both records are released, and the journal says running",
    state: { runId: RUN, outcome: "failed" },
    rows: ["running", "failed 7"],
    afterError: TOLD,
    helpers: 2,
    ...RELEASED,
  },
  {
    point: "release.R4",
    says: "record and journal say the end, and the guard stands by",
    state: { runId: RUN, guard: expect.any(Number) },
    rows: ["failed 7", "failed 7"],
    afterError: TOLD_LATE,
    helpers: 2,
    ...RELEASED,
  },
  ...[{ leases: GRANTS }, { ...job, isLocked: true }, { ...lane, isLocked: true }].map(
    (state, index) => ({
      point: `release.R5#${index + 1}`,
      says: "the guard has left, and both locks are held",
      state,
      rows: ["failed 7", "failed 7"] as const,
      afterError: TOLD_LATE,
      helpers: 1,
      ...RELEASED,
    }),
  ),
];

function evidenceOf({ point, state }: Pick<Row, "point" | "state">, act: Act) {
  const [name, nth = "1"] = point.split("#");
  return [{ point: name, nth: Number(nth), act, state, thread: "main" }];
}

/** The command has ended before each of these points, so a TERM finds nobody any more. */
function expected(row: Row, act: Act) {
  const isError = ["throw", "eio", "enospc"].includes(act);
  const isKill = act === "kill";
  const { locks, ...during } = { locks: ["held", "held"], keys: row.keys, members: 0 };
  const moment = { locks, ...during, rows: [row.rows[0]], helpers: row.helpers };
  const { keys, next } = isKill ? row : isError ? row.afterError : ALL_GIVEN_BACK;
  return {
    evidence: evidenceOf(row, act),
    ended: isKill ? "SIGKILL" : "status 7",
    isStarted: true,
    isTold: isError,
    keys,
    members: 0,
    next: ["status 0, started", ...next],
    told: [isKill ? row.rows[1] : "failed 7"],
    rows: [isKill ? row.rows[1] : "failed 7"],
    spooled: 0,
    degraded: isError ? row.afterError.degraded : [],
    moment: act === "stop" ? { ...moment, newcomer: row.newcomer } : undefined,
  };
}

describe("at", () => {
  test.each(ROWS.map((row) => [row.point, row.says, row] as const))(
    "%s %s: the status stays, and the next one has both keys",
    async (_, __, row) => {
      const swept = await sweep({ scene, point: row.point, newcomer: true });
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, expected(row, act)])),
      );
    },
    LIMIT_MS,
  );

  test(
    "acquire.A10, the second time, the command runs and no slot names it: it has no beats",
    async () => {
      const swept = await sweep({
        scene,
        point: "acquire.A10#2",
        script: LONG,
        newcomer: true,
        showsBeats: true,
        provoke: async (one, _, act) => {
          if (isLivedThrough(act)) await waitFor(() => one.lives().length > 0, "its first line");
        },
        finish: async (_, run, act) => {
          if (isLivedThrough(act)) run.kill("SIGTERM");
        },
      });
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, expectedAtA10(act)])),
      );
    },
    LIMIT_MS,
  );
});

const SOME_PROCESS = { pid: expect.any(Number), start_time: expect.any(Number) };
const A10: Pick<Row, "point" | "state"> = {
  point: "acquire.A10#2",
  state: { leases: GRANTS, child: expect.objectContaining(SOME_PROCESS) },
};
const UNNAMED_CHILD = ["held 2 ours | 2:ours@1", "held 2 ours | 2:ours@1"];

/** A trouble of our own costs the beats, and not the job: it is ended by the test. */
function isLivedThrough(act: Act): boolean {
  return ["stop", "throw", "eio", "enospc"].includes(act);
}

function expectedAtA10(act: Act) {
  const isError = ["throw", "eio", "enospc"].includes(act);
  const isStopped = act !== "kill";
  const moment = { locks: ["held", "held"], keys: UNNAMED_CHILD, rows: [], newcomer: NAMED };
  return {
    evidence: evidenceOf(A10, act),
    ended: act === "kill" ? "SIGKILL" : "SIGTERM",
    isStarted: isLivedThrough(act) ? true : expect.any(Boolean),
    isTold: isError,
    keys: isStopped ? ALL_GIVEN_BACK.keys : UNNAMED_CHILD,
    members: 0,
    next: ["status 0, started", ...(isStopped ? ALL_GIVEN_BACK.next : ALL_HELD.next)],
    told: [isStopped ? "stopped 143" : "abandoned"],
    rows: [isStopped ? "stopped 143" : "abandoned"],
    spooled: 0,
    degraded: isError ? ["bug"] : [],
    moment: act === "stop" ? { ...moment, members: 1, helpers: 2 } : undefined,
  };
}

test("a heartbeat that goes on while R0 fails does not take the release back", async () => {
  const one = await new FaultCase(scene).prepare("used");
  const plan = "release.R0=throw,release.R3=delay:400";
  const options = ["--heartbeat-interval=100ms"];
  await one.start(plan, 'echo started >>"$LIFE"; sleep 0.3; exit 7', options).ended;
  await one.waitForHelpers();
  expect(one.evidence()).toMatchObject([{ act: "throw" }, { act: "delay:400" }]);
  expect(one.keys()).toEqual([
    expect.stringMatching(/^released 2 ours /),
    expect.stringMatching(/^released 2 ours /),
  ]);
}, 180_000);

test("where neither record nor journal nor spool takes the release, the run is dead", async () => {
  const tries = "journal.commit#2=eio,journal.commit#3=eio,journal.spool=eio,journal.spool#2=eio";
  const one = await new FaultCase(scene).prepare("released");
  expect((await one.start(`release.R2=eio,${tries}`, SHORT).ended).code).toBe(7);
  await one.waitForHelpers();
  const twice = ["journal.commit", "journal.spool", "journal.commit", "journal.spool"];
  expect(one.evidence().map(({ point }) => point)).toEqual(["release.R2", ...twice]);
  expect([one.keys().map(withoutBeats), one.rows()]).toEqual([[HELD, HELD], ["running"]]);
  const next = await one.come("next");
  expect([next.status, one.rows()]).toEqual([0, ["abandoned", "ok 0"]]);
  expect(next.stderr).toContain("job:night was dead (R6 tree-empty)");
}, 180_000);

function withoutBeats(key: string): string {
  return key.replace(/@\d+(\+child)?/g, "");
}

test("the sweep strikes every step from the command's start to R5", () => {
  const points = [...ROWS.map(({ point }) => point), A10.point];
  expect(points.length * FAULTS_OF_A_POINT.length).toBe(55);
  expect(new Set(points.map((point) => point.split("#")[0])).size).toBe(7);
});
