/** A list of names as the value of a variable: what was joined comes back, garbage gives none. */
import { describe, expect, test } from "bun:test";
import { joinNames, splitNames } from "../../../src/core/environment-names.ts";

const NAMES = [
  "server",
  "a b",
  " ",
  "  two  blanks ",
  "%",
  "%20",
  "%2520",
  "100%",
  "a=b",
  "http://x:8080/health?a=1&b=2#c 1a2b3c4d",
  "unix:/run/x.sock",
  "tab\there",
  "line\nbreak",
  "nul\u0000byte",
  "näme☃",
  "\u{1d11e}",
  "\ufeffmark",
  "+",
  "'\"\\$`!*()~",
];

describe("a list of names", () => {
  test("comes back as it was joined, in its order, with those that stand twice", () => {
    const lists = [[], ...NAMES.map((name) => [name]), NAMES, NAMES.toReversed(), ["a", "b", "a"]];
    for (const list of lists) expect(splitNames(joinNames(list))).toEqual(list);
    for (const first of NAMES) {
      for (const second of NAMES) {
        expect(splitNames(joinNames([first, second]))).toEqual([first, second]);
      }
    }
  });

  test("is printable ASCII, as a person finds it in the environment", () => {
    expect(joinNames(["a b", "c"])).toBe("a%20b c");
    expect(joinNames(["http://x?y"])).toBe("http%3A%2F%2Fx%3Fy");
    expect(joinNames(NAMES)).toMatch(/^[!-~]+( [!-~]+)*$/);
    expect(joinNames([])).toBe("");
  });

  test("takes half a character for one that is not known, and does not throw", () => {
    for (const half of ["\ud834", "\udd1e", "a\ud834", "\udd1e\ud834"]) {
      const [name] = splitNames(joinNames([half]));
      expect(name).toBe(half.toWellFormed());
      expect(name).toContain("\ufffd");
    }
    expect(splitNames(joinNames(["\ud834", "b"]))).toEqual(["\ufffd", "b"]);
  });

  test("is none where there is no variable, or nothing in it", () => {
    for (const text of [undefined, "", " ", "   "]) expect(splitNames(text)).toEqual([]);
  });

  test("is read whatever number of blanks is between", () => {
    expect(splitNames("  a   b%20c ")).toEqual(["a", "b c"]);
  });

  test("is none where one of the words is no such name", () => {
    for (const word of ["%", "%zz", "%2", "%ff", "%c3", "%c3%28", "%ed%a0%80", "a%", "%u0041"]) {
      expect([word, splitNames(word)]).toEqual([word, []]);
      expect([word, splitNames(`good ${word} good`)]).toEqual([word, []]);
    }
  });
});
