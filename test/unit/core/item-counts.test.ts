/** What a line of a progress file says, what is counted, and when too many items have failed. */
import { describe, expect, test } from "bun:test";
import {
  countItems,
  decideItems,
  FEWEST_JUDGED_ITEMS,
  hasReported,
  type ItemCounts,
  type ItemLimits,
  LONGEST_CHECKPOINT,
  LONGEST_MESSAGE,
  NO_ITEMS,
  parseProgressLine,
} from "../../../src/core/item-counts.ts";
import { recordItems } from "../../../src/core/recorded-items.ts";

describe("a line", () => {
  test.each([
    ["ok", { kind: "ok", count: 1, message: undefined }],
    ["fail", { kind: "fail", count: 1, message: undefined }],
    ["ok 10", { kind: "ok", count: 10, message: undefined }],
    ["fail 3", { kind: "fail", count: 3, message: undefined }],
    ["fail 3 no answer", { kind: "fail", count: 3, message: "no answer" }],
    ["fail no answer", { kind: "fail", count: 1, message: "no answer" }],
    ["ok 2 late", { kind: "ok", count: 2, message: "late" }],
    ["fail 0", { kind: "fail", count: 0, message: undefined }],
    ["total 1800", { kind: "total", count: 1_800 }],
    ["total 1000000000", { kind: "total", count: 1_000_000_000 }],
    ["checkpoint tables copied", { kind: "checkpoint", text: "tables copied" }],
    ["message 3 left", { kind: "message", text: "3 left" }],
    ["  ok \t 7 \r", { kind: "ok", count: 7, message: undefined }],
    ["", { kind: "blank" }],
    [" \t\r", { kind: "blank" }],
  ] as const)("%j is read", (line, wanted) => {
    expect(parseProgressLine(line)).toEqual(wanted);
  });

  test.each([
    "OK",
    "okay",
    "ok -1",
    "ok +3",
    "ok 1.5",
    "ok .5",
    "fail 1e3",
    "ok 1000000001",
    "ok 99999999999999999999",
    "total",
    "total many",
    "total -1",
    "total 5 items",
    "checkpoint",
    "message",
    "done 3",
    "{}",
    "\0",
    "ok\u{1f600}",
  ])("%j says nothing", (line) => {
    expect(parseProgressLine(line)).toEqual({ kind: "unknown" });
  });
});

function count(lines: string): ItemCounts {
  return lines.split("\n").map(parseProgressLine).reduce(countItems, NO_ITEMS);
}

describe("counting", () => {
  test("adds items up, and keeps the last of what is said once", () => {
    expect(
      count("total 9\nok\nok 3\nfail 2 a\ncheckpoint x\nnonsense\ntotal 10\n\nok 1 b"),
    ).toEqual({
      ok: 5,
      failed: 2,
      total: 10,
      checkpoint: "x",
      failedInRow: 0,
      ignored: 1,
      lastMessage: "b",
    });
  });

  test("of failures in a row: an item that went well ends it, none of them does not", () => {
    expect(count("fail\nfail 2").failedInRow).toBe(3);
    expect(count("fail\nok 0\nfail").failedInRow).toBe(2);
    expect(count("fail\nok\nfail").failedInRow).toBe(1);
    expect(count("fail\ntotal 3\ncheckpoint x\n?\n\nfail").failedInRow).toBe(2);
  });

  test("never goes beyond what a number holds exactly", () => {
    const much = { ...NO_ITEMS, ok: Number.MAX_SAFE_INTEGER - 1 };
    expect(countItems(much, { kind: "ok", count: 9, message: undefined }).ok).toBe(
      Number.MAX_SAFE_INTEGER,
    );
  });

  test("is recorded cut at a letter, and only after the secrets are out of it", () => {
    const smiles = "\u{1f600}".repeat(LONGEST_MESSAGE);
    const secret = `${"s3cret".repeat(40)}`;
    const mask = (text: string): string => text.replaceAll(secret, "***");
    const facts = { elapsedMs: 60_000, mask };
    const cut = recordItems(count(`fail ${smiles}\ncheckpoint ${"x".repeat(500)}`), facts);
    expect(cut?.last_message?.endsWith("\u{1f600}…")).toBe(true);
    expect(cut?.last_message?.length).toBeLessThanOrEqual(LONGEST_MESSAGE);
    expect(cut?.checkpoint?.length).toBe(LONGEST_CHECKPOINT);
    const masked = recordItems(count(`fail 3 no ${secret} here\ncheckpoint ${secret}`), facts);
    expect(masked).toEqual({
      ok: 0,
      failed: 3,
      total: null,
      checkpoint: "***",
      ignored: 0,
      rate_per_minute: 3,
      last_message: "no *** here",
    });
    expect(recordItems(NO_ITEMS, facts)).toBeNull();
  });

  test("knows whether anything was reported", () => {
    expect(hasReported(NO_ITEMS)).toBe(false);
    expect(hasReported(count("nonsense\nok 0"))).toBe(false);
    for (const line of ["ok", "fail", "total 0", "checkpoint x", "message x", "fail 0 x"]) {
      expect([line, hasReported(count(line))]).toEqual([line, true]);
    }
  });
});

const NO_LIMITS: ItemLimits = { maxFailRate: undefined, maxConsecutiveFails: undefined };

interface Judged {
  readonly failed: number;
  readonly ok: number;
  readonly rate: number;
  readonly isAtEnd: boolean;
}

/** The rule once more, in whole numbers and the other way round. */
function wanted({ failed, ok, rate, isAtEnd }: Judged): boolean {
  const done = failed + ok;
  const isJudged = isAtEnd ? done > 0 : done >= 20;
  return isJudged && failed / done > rate / 100;
}

describe("the bound on the rate of failures", () => {
  test("holds from the 20th item on and at the end, and is passed only above it", () => {
    expect(FEWEST_JUDGED_ITEMS).toBe(20);
    const counts = Array.from({ length: 31 * 31 }, (_, index) => [
      index % 31,
      Math.floor(index / 31),
    ]);
    const cases = [0, 5, 20, 50, 99, 100].flatMap((rate) =>
      counts.flatMap(([failed = 0, ok = 0]) =>
        [true, false].map((isAtEnd) => ({ rate, failed, ok, isAtEnd })),
      ),
    );
    const wrong = cases.filter(({ rate, failed, ok, isAtEnd }) => {
      const limits = { ...NO_LIMITS, maxFailRate: rate };
      const found = decideItems({ ...NO_ITEMS, ok, failed }, limits, isAtEnd);
      return (found.kind === "failed") !== wanted({ failed, ok, rate, isAtEnd });
    });
    expect(wrong).toEqual([]);
    expect(cases.length).toBe(6 * 31 * 31 * 2);
  });

  test("tells with what it was passed", () => {
    const counts = { ...NO_ITEMS, ok: 15, failed: 5, failedInRow: 2 };
    expect(decideItems(counts, { ...NO_LIMITS, maxFailRate: 20 }, false)).toEqual({
      kind: "failed",
      failure: { because: "too-many-failed", failed: 5, done: 20, failedInRow: 2 },
    });
  });
});

describe("the bound on failures in a row", () => {
  test.each([1, 2, 5])("is passed at the %ith, however many items there were", (most) => {
    const limits = { ...NO_LIMITS, maxConsecutiveFails: most };
    for (let inRow = 0; inRow <= 8; inRow += 1) {
      const counts = { ...NO_ITEMS, ok: 1_000, failed: inRow, failedInRow: inRow };
      const decided = decideItems(counts, limits, false);
      expect([inRow, decided.kind]).toEqual([inRow, inRow >= most ? "failed" : "fine"]);
      if (decided.kind === "failed") expect(decided.failure.because).toBe("too-many-failed-in-row");
    }
  });
});

test("without bounds nothing is ever too much", () => {
  const counts = { ...NO_ITEMS, failed: 1_800, failedInRow: 1_800 };
  for (const isAtEnd of [true, false]) {
    expect(decideItems(counts, NO_LIMITS, isAtEnd)).toEqual({ kind: "fine" });
  }
});
