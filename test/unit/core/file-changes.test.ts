/** What becomes of one `--expect-file`: a table of what was there before and after. */
import { describe, expect, test } from "bun:test";
import type { FileExpectation } from "../../../src/core/expectations.ts";
import {
  decideFile,
  type FileFacts,
  type FileSight,
  listResults,
  sumBytes,
} from "../../../src/core/file-changes.ts";

/** `name identity bytes`, several with commas; `?`: unread. */
function sight(text: string): FileSight {
  if (text === "?") return { kind: "unread", reason: "EACCES: permission denied" };
  const files = text
    .split(",")
    .filter((one) => one.trim() !== "")
    .map((one) => {
      const [name = "", identity = "", bytes = ""] = one.trim().split(" ");
      return [`/w/${name}`, { identity, bytes: Number(bytes), changedAt: 1_000 }] as const;
    });
  return { kind: "seen", files: new Map(files) };
}

const OUT: FileExpectation = {
  target: "out",
  minBytes: 1,
  isAnyAge: false,
  minRatio: undefined,
};

function facts(before: string, after: string, more: Partial<FileFacts> = {}): FileFacts {
  return {
    expectation: OUT,
    isDirectory: false,
    before: sight(before),
    after: sight(after),
    startedAt: 2_000,
    lastGoodBytes: undefined,
    ...more,
  };
}

const expecting = (one: Partial<FileExpectation>) => ({ expectation: { ...OUT, ...one } });

describe("an expected file", () => {
  test.each([
    ["", "", {}, "file-missing"],
    ["out a 3", "", {}, "file-missing"],
    ["", "out a 3", {}, null],
    ["out a 3", "out a 3", {}, "file-unchanged"],
    ["out a 3", "out b 3", {}, null],
    ["out a 3", "out a 4", {}, null],
    ["out a 3", "out b 0", {}, "file-empty"],
    ["out a 0", "out a 0", {}, "file-unchanged"],
    ["?", "out a 3", {}, "file-unread"],
    ["", "?", {}, "file-unread"],
    ["out a 3", "out b 0", expecting({ minBytes: 0 }), null],
    ["out a 3", "out b 9", expecting({ minBytes: 10 }), "file-too-small"],
    ["out a 3", "out b 10", expecting({ minBytes: 10 }), null],
    ["out a 3", "out a 3", expecting({ isAnyAge: true }), null],
    ["?", "out a 3", expecting({ isAnyAge: true }), null],
    ["", "", expecting({ isAnyAge: true }), "file-missing"],
    ["", "out a 0", expecting({ isAnyAge: true }), "file-empty"],
    // Of a pattern each that has changed counts, and one must have.
    ["o1 a 3,o2 b 3", "o1 a 3,o2 b 3", {}, "file-unchanged"],
    ["o1 a 3,o2 b 3", "o1 a 3,o2 c 3", {}, null],
    ["o1 a 0,o2 b 3", "o1 a 0,o2 c 3", {}, null],
    ["o1 a 0,o2 b 3", "o1 a 0,o2 c 3", expecting({ isAnyAge: true }), "file-empty"],
    ["o1 a 3,o2 b 3", "o1 c 0,o2 c 3", {}, "file-empty"],
    ["o1 a 3", "o1 a 3,o2 c 2", expecting({ minBytes: 3 }), "file-too-small"],
    ["o1 a 3,o2 b 3", "o1 a 3", {}, "file-unchanged"],
    // A directory is one result.
    ["", "", { isDirectory: true }, "file-empty"],
    ["x a 3,y b 0", "x a 3,y b 0", { isDirectory: true }, "file-unchanged"],
    ["x a 3,y b 0", "x a 3,y c 0", { isDirectory: true }, null],
    ["x a 3", "x a 3,y c 0", { isDirectory: true }, null],
    ["", "x a 0,y c 0", { isDirectory: true }, "file-empty"],
    ["x a 3,y b 3", "x a 3", { isDirectory: true }, "file-unchanged"],
  ] as const)("before %j, after %j, %j: %p", (before, after, more, because) => {
    const result = decideFile(facts(before, after, more));
    expect([result.because, result.passed]).toEqual([because, because === null]);
    expect([result.check, result.target]).toEqual(["expect-file", "out"]);
  });

  test.each([
    [100, 0.5, 50, null],
    [100, 0.5, 49, "file-shrunk"],
    [100, undefined, 1, null],
    [undefined, 0.5, 1, null],
    ["unread", 0.5, 1, null],
    [0, 0.5, 1, null],
  ] as const)(
    "after %p bytes of the last good run, ratio %p, %p now",
    (last, ratio, now, because) => {
      const more = { ...expecting({ minRatio: ratio }), lastGoodBytes: last };
      const result = decideFile(facts("out a 3", `out b ${now}`, more));
      expect(result.because).toBe(because);
      // A comparison that could not be made is told.
      const isTold = ratio !== undefined && typeof last !== "number";
      expect(result.found.includes("not compared")).toBe(isTold);
    },
  );

  test("that is unchanged shows both times", () => {
    const { found } = decideFile(facts("out a 3", "out a 3"));
    expect(found).toContain("1970-01-01T00:00:01.000Z");
    expect(found).toContain("1970-01-01T00:00:02.000Z");
  });

  test("counts with what has changed alone, a directory with all that is in it", () => {
    const before = "o1 a 3,o2 b 5";
    const after = "o1 a 3,o2 c 6,o3 d 7";
    expect(sumBytes(listResults(facts(before, after)))).toBe(13);
    expect(sumBytes(listResults(facts(before, after, { isDirectory: true })))).toBe(16);
    expect(sumBytes(listResults(facts(before, after, expecting({ isAnyAge: true }))))).toBe(16);
  });
});
