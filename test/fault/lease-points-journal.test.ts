/**
 * The fault points of the journal in a run that has leases, with every kind of fault: what is
 * written then, that no trouble of the journal reaches the job or the leases, and that the next one
 * finds whole rows and nothing in the spool.
 *
 * Every act can be at each of these points. One entry is for all keys of a run, so each is struck
 * once for both. Where a fault of the first time kills, it kills the guard, too, which comes to the
 * same point with its own word: then the run is in no row until the next one reads of it in the
 * records of its leases.
 */
import { describe, expect, test } from "bun:test";
import { openScene } from "../support/scene.ts";
import { FaultCase } from "./lease-fault-case.ts";
import { ACTS, type Act, FAULTS_OF_A_POINT, LONG, sweep } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

const HELD = "held 2 ours | 2:ours";
const GIVEN_BACK = "released 2 ours | 2:ours";
const FREE = "free R4 released, 3";
const DEAD = "dead R6 tree-empty, 3 from ours";
const NAMED = "75 held R2 beat-fresh";
const UNNAMED = "75 held R3 being-acquired";
const ANY = expect.any(Object);
const SCRIPT = 'echo started >>"$LIFE"; sleep 0.2; exit 7';

interface Row {
  readonly point: string;
  readonly says: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** Both keys at that moment and after a kill; rows at that moment, and before the next one. */
  readonly key: string;
  readonly rows: readonly [readonly string[], readonly string[]];
  /** What the guard leaves as evidence, where it is struck as well. */
  readonly guard?: Readonly<Record<string, unknown>>;
}

const ROWS: readonly Row[] = [
  {
    point: "journal.open",
    says: "the command runs, and there is no journal",
    state: { database: expect.stringMatching(/journal\.db$/), mode: "write" },
    key: HELD,
    rows: [[], []],
    guard: ANY,
  },
  {
    point: "migration.step",
    says: "the tables are made, and not committed",
    state: { from: 0, to: 1001 },
    key: HELD,
    rows: [[], []],
    guard: ANY,
  },
  {
    point: "journal.commit",
    says: "the start is about to be committed",
    state: { kinds: ["run-started"] },
    key: HELD,
    rows: [[], []],
    guard: { kinds: ["run-abandoned"] },
  },
  {
    point: "journal.commit#2",
    says: "the end is about to be committed, and both records are released",
    state: { kinds: ["run-ended"] },
    key: GIVEN_BACK,
    rows: [["running"], ["failed 7"]],
  },
  {
    point: "journal.commit=eio,journal.spool",
    says: "the journal has refused the start, and the spool is about to take it",
    state: { entries: ["run-started"], run: expect.any(String) },
    key: HELD,
    rows: [[], []],
    guard: { entries: ["run-abandoned"], run: expect.any(String) },
  },
];

function evidenceOf({ point, state, guard }: Row, act: Act) {
  const [last = "", first] = point.split(",").toReversed();
  const [name, nth = "1"] = last.split("#");
  const struck = (seen: unknown) => {
    const one = { point: name, nth: Number(nth), act, state: seen, thread: "main" };
    const before = { point: "journal.commit", nth: 1, act: "eio", state: ANY, thread: "main" };
    return first === undefined ? [one] : [before, one];
  };
  return [...struck(state), ...(act === "kill" && guard !== undefined ? struck(guard) : [])];
}

function expected(row: Row, act: Act) {
  const isError = ["throw", "eio", "enospc"].includes(act);
  const isKill = act === "kill";
  const isTerm = act === "term";
  const isDead = isKill && row.key === HELD;
  const newcomer = row.key === HELD ? NAMED : UNNAMED;
  const moment = { locks: ["held", "held"], keys: [row.key, row.key], rows: row.rows[0], newcomer };
  const ended = isKill ? "SIGKILL" : isTerm && row.key === HELD ? "SIGTERM" : "status 7";
  const rows = [ended === "SIGTERM" ? "stopped 143" : "failed 7"];
  return {
    evidence: evidenceOf(row, act),
    ended,
    isStarted: isTerm ? expect.any(Boolean) : true,
    isTold: isError || row.point.includes("eio"),
    keys: isKill ? [row.key, row.key] : [GIVEN_BACK, GIVEN_BACK],
    members: 0,
    next: ["status 0, started", ...(isDead ? [DEAD, DEAD] : [FREE, FREE])],
    told: isKill ? row.rows[1] : rows,
    rows: isDead ? ["abandoned"] : rows,
    spooled: 0,
    degraded: [],
    moment: act === "stop" ? { ...moment, members: expect.any(Number), helpers: 2 } : undefined,
  };
}

describe("at", () => {
  test.each(ROWS.map((row) => [row.point, row.says, row] as const))(
    "%s %s: the job ends as it ends, and so do its leases",
    async (_, __, row) => {
      const isEnd = row.key === GIVEN_BACK;
      const script = (act: Act): string => (act === "term" && !isEnd ? LONG : SCRIPT);
      const plan = { scene, past: "released", point: row.point, script, newcomer: true } as const;
      const swept = await sweep(plan);
      expect<object>(swept).toEqual(
        Object.fromEntries(ACTS.map((act) => [act, expected(row, act)])),
      );
    },
    LIMIT_MS,
  );
});

test(
  "at journal.open, asked for the number in A7, the start needs no answer of the journal",
  async () => {
    const point = "journal.open";
    const state = { database: expect.stringMatching(/journal\.db$/), mode: "write" };
    const begin = (one: FaultCase) => one.come("earlier");
    const script = (act: Act): string => (act === "term" ? LONG : SCRIPT);
    const swept = await sweep({ scene, past: "none", point, begin, script, newcomer: true });
    const before = "released 1 ours | 1:ours";
    const after = "free R4 released, 3";
    const expectedOf = (act: Act) => ({
      evidence: [{ point, nth: 1, act, state, thread: "main" }],
      ended: { kill: "SIGKILL", term: "SIGTERM" }[act as string] ?? "status 7",
      isStarted: act === "kill" ? false : act === "term" ? expect.any(Boolean) : true,
      isTold: false,
      keys: act === "kill" ? [before, before] : [GIVEN_BACK, GIVEN_BACK],
      members: 0,
      next: ["status 0, started", ...(act === "kill" ? [NEXT, NEXT] : [after, after])],
      told: ["ok 0", ...({ kill: [], term: ["stopped 143"] }[act as string] ?? ["failed 7"])],
      rows: ["ok 0", ...({ kill: [], term: ["stopped 143"] }[act as string] ?? ["failed 7"])],
      spooled: 0,
      degraded: act === "kill" ? undefined : [],
      moment: act === "stop" ? { ...AT_A7, keys: [before, before] } : undefined,
    });
    expect<object>(swept).toEqual(Object.fromEntries(ACTS.map((act) => [act, expectedOf(act)])));
  },
  LIMIT_MS,
);

const NEXT = "free R4 released, 2";
const AT_A7 = {
  locks: ["held fenced", "held fenced"],
  rows: ["ok 0"],
  members: 0,
  helpers: 1,
  newcomer: UNNAMED,
};

test("without a fault the same run is in the journal, and nothing in the spool", async () => {
  const one = await new FaultCase(scene).prepare("released");
  expect((await one.start(undefined, SCRIPT).ended).code).toBe(7);
  expect([one.evidence(), one.rows()]).toEqual([[], ["failed 7"]]);
  expect(one.stderr()).toBe("");
});

test("the sweep strikes every point of the journal", () => {
  expect((ROWS.length + 1) * FAULTS_OF_A_POINT.length).toBe(30);
  const points = ROWS.map(({ point }) => point.split(",").at(-1)?.split("#")[0]);
  expect(new Set(points)).toEqual(
    new Set(["journal.open", "migration.step", "journal.commit", "journal.spool"]),
  );
});
