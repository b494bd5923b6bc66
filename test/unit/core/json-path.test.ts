/** Paths into a JSON document: what is one, what they find, and what fits. */
import { describe, expect, test } from "bun:test";
import {
  findInJson,
  fitsJson,
  parseJsonExpectation,
  parseJsonPath,
} from "../../../src/core/json-path.ts";

describe("a path", () => {
  test.each<[string, readonly (string | number)[]]>([
    ["$", []],
    ["status", ["status"]],
    ["$.status", ["status"]],
    ["a.b_c.d-e", ["a", "b_c", "d-e"]],
    ["checks[0].state", ["checks", 0, "state"]],
    ["[2][10]", [2, 10]],
    ["$[0].a", [0, "a"]],
    ['["a.b"].c', ["a.b", "c"]],
    ['a["x\\"]="][""]', ["a", 'x"]=', ""]],
  ])("is read: %s", (text, path) => {
    expect(parseJsonPath(text)).toEqual(path);
  });

  test.each([
    "",
    ".a",
    "a.",
    "a..b",
    "a.[0]",
    "$a",
    "$.",
    "a b",
    "a[*]",
    "a[-1]",
    "a[01]",
    "a[1",
    "a[b]",
    "a]",
    "*",
    "0",
    'a"b"',
    '["\\x"]',
    "[0]a",
    "a.".repeat(600) + "a",
  ])("is not one: %j", (text) => {
    expect(parseJsonPath(text)).toBeUndefined();
  });

  test("finds what a document holds itself, and nothing else", () => {
    const document = { ok: true, checks: [{ state: "up" }, null], "a.b": { c: 0 } };
    const find = (text: string): unknown => findInJson(document, parseJsonPath(text) ?? []);
    expect(find("ok")).toBe(true);
    expect(find("checks[0].state")).toBe("up");
    expect(find("checks[1]")).toBeNull();
    expect(find('["a.b"].c')).toBe(0);
    expect(find("$")).toBe(document);
    for (const nothing of [
      "no",
      "ok.x",
      "checks.length",
      "checks[2]",
      "[0]",
      "toString",
      "checks[1].x",
    ]) {
      expect(find(nothing)).toBeUndefined();
    }
  });

  test("tells a field that is called 0 from the first place of a list", () => {
    expect(findInJson({ 0: "x" }, [0])).toBeUndefined();
    expect(findInJson({ 0: "x" }, ["0"])).toBe("x");
    expect(findInJson(["x"], ["0"])).toBeUndefined();
  });
});

describe("an expectation", () => {
  test("is cut at the first = that is not in quotes", () => {
    expect(parseJsonExpectation("a.b=x=y")).toEqual({ path: "a.b", value: "x=y" });
    expect(parseJsonExpectation('["a=b"]=')).toEqual({ path: '["a=b"]', value: "" });
  });

  test.each(["", "a", "=x", "a b=x", '["a=b]=c'])("is none: %j", (text) => {
    expect(parseJsonExpectation(text)).toBeUndefined();
  });

  test("is met by a text itself, and by anything else as JSON writes it", () => {
    const fitting: [unknown, string][] = [
      ["up", "up"],
      ["up", '"up"'],
      ["", ""],
      [true, "true"],
      ["true", "true"],
      [null, "null"],
      [3.5, "3.5"],
      [[1, { a: 2 }], '[1,{"a":2}]'],
    ];
    for (const [found, wanted] of fitting)
      expect([found, fitsJson(found, wanted)]).toEqual([found, true]);
    for (const [found, wanted] of [
      [undefined, "undefined"],
      [false, "true"],
      [true, '"true"'],
      [3, "3.0"],
      ["up", "UP"],
    ] as const) {
      expect([found, fitsJson(found, wanted)]).toEqual([found, false]);
    }
  });
});
