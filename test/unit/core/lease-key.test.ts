/** Keys of leases as words on a command line, in order, and in the environment. */
import { describe, expect, test } from "bun:test";
import {
  decodeKeys,
  encodeKeys,
  isKind,
  type LeaseKey,
  LONGEST_KEY_NAME,
  orderKeys,
  parseKey,
  renderKey,
} from "../../../src/core/lease-key.ts";

describe("a key", () => {
  test.each<[string, LeaseKey]>([
    ["lane:server", { kind: "lane", name: "server" }],
    ["worktree:/srv/a b:c", { kind: "worktree", name: "/srv/a b:c" }],
    ["x-1:ü", { kind: "x-1", name: "ü" }],
    [`a:${"n".repeat(LONGEST_KEY_NAME)}`, { kind: "a", name: "n".repeat(LONGEST_KEY_NAME) }],
  ])("is read from %j and written back alike", (text, key) => {
    expect(parseKey(text)).toEqual(key);
    expect(renderKey(key)).toBe(text);
  });

  test.each([
    "",
    "lane",
    "lane:",
    ":server",
    "Lane:server",
    "1lane:server",
    "la ne:server",
    "lane/../x:server",
    "lane:a\0b",
    `${"k".repeat(33)}:server`,
    `a:${"n".repeat(LONGEST_KEY_NAME + 1)}`,
  ])("is not %j", (text) => {
    expect(parseKey(text)).toBeUndefined();
  });

  test("has a kind of small letters, digits and dashes", () => {
    expect(["job", "a", "a-9", "k".repeat(32)].filter((kind) => !isKind(kind))).toEqual([]);
    expect(["", "-a", "a_b", "job\n"].filter(isKind)).toEqual([]);
  });
});

test("keys are taken in one order, each once, however they were asked for", () => {
  const keys = ["task:b", "job:z", "task:a", "job:z", "lane:ä"].flatMap(
    (text) => parseKey(text) ?? [],
  );
  const ordered = ["job:z", "lane:ä", "task:a", "task:b"];
  expect(orderKeys(keys).map(renderKey)).toEqual(ordered);
  expect(orderKeys(keys.toReversed()).map(renderKey)).toEqual(ordered);
  expect(orderKeys([])).toEqual([]);
});

describe("in the environment", () => {
  test("keys come back as they were, whatever is in their names", () => {
    const keys = ["job:a b", "lane:50% \n", "task:ü:x", "worktree:/srv/x"].map((text) => {
      const [kind = "", ...rest] = text.split(":");
      return { kind, name: rest.join(":") };
    });
    expect(decodeKeys(encodeKeys(keys))).toEqual(keys);
    expect(encodeKeys(keys)).not.toMatch(/[\n%] /);
    expect(encodeKeys(keys).split(" ").length).toBe(keys.length);
  });

  test("a name with half a surrogate pair is no reason to fail", () => {
    expect(encodeKeys([{ kind: "job", name: "\ud800" }])).toBe("job%3A%EF%BF%BD");
  });

  test("words that are no keys are left out", () => {
    expect(decodeKeys("job%3Aa %E0%A4%A nonsense  lane%3Ab")).toEqual([
      { kind: "job", name: "a" },
      { kind: "lane", name: "b" },
    ]);
    expect(decodeKeys("")).toEqual([]);
  });
});
