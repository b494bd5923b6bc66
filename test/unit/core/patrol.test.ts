/** What of a patrol's findings is news, and when patrols have stopped. */
import { describe, expect, test } from "bun:test";
import {
  decideNews,
  decidePatrolStanding,
  type FindingKind,
  type KnownFinding,
  learnPeriod,
  type PatrolFinding,
  type PatrolRow,
} from "../../../src/core/patrol.ts";

function finding(subject: string, changes: Partial<PatrolFinding> = {}): PatrolFinding {
  const about = { because: "beat-old", runId: "r1", job: null, key: null };
  return { kind: "lease", subject, state: "stalled", ...about, ...changes };
}

function known(one: PatrolFinding, toldAt: number | null = 0): KnownFinding {
  return { ...one, since: 0, toldAt };
}

interface Given {
  readonly known?: readonly KnownFinding[];
  readonly found?: readonly PatrolFinding[];
  readonly looked?: readonly FindingKind[];
}

function news(given: Given) {
  const facts = { known: [], found: [], looked: ["lease", "circuit"] as const, ...given };
  const decided = decideNews(facts);
  const names = (all: readonly PatrolFinding[]): string[] => all.map(({ subject }) => subject);
  return {
    opened: names(decided.opened),
    lasting: names(decided.lasting),
    closed: names(decided.closed),
  };
}

const NONE = { opened: [], lasting: [], closed: [] };

describe("a finding", () => {
  test("is news once", () => {
    const one = finding("job:a");
    expect(news({ found: [one] })).toEqual({ ...NONE, opened: ["job:a"] });
    expect(news({ found: [one], known: [known(one)] })).toEqual({ ...NONE, lasting: ["job:a"] });
  });

  test("is closed when it is gone, unless nobody has looked", () => {
    const before = [known(finding("job:a"))];
    expect(news({ known: before })).toEqual({ ...NONE, closed: ["job:a"] });
    expect(news({ known: before, looked: ["circuit"] })).toEqual({ ...NONE, lasting: ["job:a"] });
  });

  test("of another run or of another state is another one", () => {
    const before = [known(finding("job:a"))];
    const both = { ...NONE, opened: ["job:a"], closed: ["job:a"] };
    expect(news({ known: before, found: [finding("job:a", { runId: "r2" })] })).toEqual(both);
    expect(news({ known: before, found: [finding("job:a", { state: "dead" })] })).toEqual(both);
    const because = finding("job:a", { because: "other" });
    expect(news({ known: before, found: [because] })).toEqual({ ...NONE, lasting: ["job:a"] });
  });
});

const ROW: PatrolRow = {
  at: 1_000_000,
  pid: 7,
  bootId: "boot",
  monotonicMs: 500_000,
  periodMs: 300_000,
  isExpected: true,
  earlier: [],
};

function standing(row: PatrolRow | undefined, ageMs: number, changes = {}) {
  const moment = { now: ROW.at + ageMs, bootId: "boot", monotonicMs: ROW.monotonicMs + ageMs };
  return decidePatrolStanding(row, { ...moment, ...changes });
}

describe("patrols", () => {
  test("have stopped when two periods and a minute have passed", () => {
    expect(standing(ROW, 660_000).kind).toBe("on-time");
    expect(standing(ROW, 660_001)).toEqual({
      kind: "stopped",
      periodMs: 300_000,
      ageMs: 660_001,
    });
  });

  test("are not watched where none was, none is expected, or nobody knows how often", () => {
    expect(standing(undefined, 1e9).kind).toBe("unwatched");
    expect(standing({ ...ROW, isExpected: false }, 1e9).kind).toBe("unwatched");
    expect(standing({ ...ROW, periodMs: null }, 1e9).kind).toBe("unwatched");
  });

  test("have not stopped while the machine slept, or the wall clock went wrong", () => {
    const slept = { monotonicMs: ROW.monotonicMs + 60_000 };
    expect(standing(ROW, 8 * 3_600_000, slept).kind).toBe("on-time");
    expect(standing(ROW, -1e9, { monotonicMs: ROW.monotonicMs + 700_000 }).kind).toBe("stopped");
  });

  test("have time after a start of the machine", () => {
    const reborn = { bootId: "next", monotonicMs: 60_000 };
    expect(standing(ROW, 8 * 3_600_000, reborn).kind).toBe("on-time");
    expect(standing(ROW, 8 * 3_600_000, { ...reborn, monotonicMs: 700_000 }).kind).toBe("stopped");
  });
});

describe("how often patrols come", () => {
  const MINUTE = 60_000;

  test("is learned from five in a row, and one by hand between them does not matter", () => {
    expect(learnPeriod([0, 5, 10, 15].map((at) => at * MINUTE))).toBeUndefined();
    expect(learnPeriod([0, 5, 10, 15, 20].map((at) => at * MINUTE))).toBe(5 * MINUTE);
    const byHand = [0, 5, 10, 15, 20, 25, 26, 30, 35, 40].map((at) => at * MINUTE);
    expect(learnPeriod(byHand)).toBe(5 * MINUTE);
  });

  test("is not learned from a person at the keyboard", () => {
    expect(learnPeriod([0, 1, 2, 3, 4, 5].map((at) => at * 1_000))).toBeUndefined();
    expect(learnPeriod([0, 1, 9, 30, 31, 90].map((at) => at * MINUTE))).toBeUndefined();
    expect(learnPeriod([])).toBeUndefined();
  });

  test("is what was said, whatever was learned", () => {
    const earlier = [0, 1, 2, 3, 4].map((at) => ROW.at - (5 - at) * MINUTE);
    expect(standing({ ...ROW, earlier }, 600_000).kind).toBe("on-time");
    expect(standing({ ...ROW, periodMs: null, earlier }, 600_000).kind).toBe("stopped");
  });
});
