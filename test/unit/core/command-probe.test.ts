/** The words between who asks by a command and the helper that runs it. */
import { describe, expect, test } from "bun:test";
import {
  type CommandEnding,
  type CommandOutput,
  decideCommandVerdict,
  KEPT_BYTES,
  LONGEST_ANSWER_BYTES,
  parseAnswer,
  renderAnswer,
  renderOutput,
} from "../../../src/core/command-probe.ts";
import type { ProbeResult } from "../../../src/core/probe-result.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const SILENT: CommandOutput = { head: bytes(""), tail: bytes(""), droppedBytes: 0 };
const LOUD: CommandOutput = { ...SILENT, head: bytes("no\nroute\n") };

function ended(changes: Partial<Extract<CommandEnding, { kind: "ended" }>>): CommandEnding {
  return { kind: "ended", end: { kind: "exited", code: 0 }, isTimedOut: false, ...changes };
}

describe("the verdict", () => {
  const exited = (code: number) => ({ kind: "exited", code }) as const;
  const died = { kind: "signaled", signal: 11 } as const;

  test.each<[string, CommandEnding, CommandOutput, [string, string]]>([
    ["of status 0", ended({}), LOUD, ["good", "status 0"]],
    [
      "of another status",
      ended({ end: exited(3) }),
      SILENT,
      ["command-failed", "status 3, expected status 0"],
    ],
    [
      "of a signal",
      ended({ end: died }),
      LOUD,
      ["command-failed", "signal SEGV, expected status 0; it said: no route"],
    ],
    [
      "of the limit, also where it left with 0 then",
      ended({ isTimedOut: true }),
      LOUD,
      ["command-timeout", "the command had no end within 1500 ms; it said: no route"],
    ],
    [
      "of one that outlived KILL",
      ended({ end: undefined }),
      SILENT,
      ["command-timeout", "the command had no end within 1500 ms"],
    ],
    [
      "of one that was not started",
      { kind: "not-started", reason: "no descriptors" },
      LOUD,
      ["command-not-started", "no descriptors"],
    ],
  ])("%s", (_, ending, output, expected) => {
    const { because, detail } = decideCommandVerdict(ending, { timeoutMs: 1_500, output });
    expect([because, detail]).toEqual(expected);
  });
});

describe("what a command has printed", () => {
  test("is one line of printable characters", () => {
    const head = bytes("a\tb\r\n\u001b[1mc\u0007\u202e d  ");
    expect(renderOutput({ ...SILENT, head })).toBe("a b [1mc d");
  });

  test("is joined where nothing was left out, also within a letter", () => {
    const [first, second] = [bytes("ä").subarray(0, 1), bytes("ä").subarray(1)];
    expect(renderOutput({ head: first, tail: second, droppedBytes: 0 })).toBe("ä");
  });

  test("has a mark where something was, and no half letters", () => {
    const [first, second] = [bytes("xä").subarray(0, 2), bytes("äy").subarray(1)];
    expect(renderOutput({ head: first, tail: second, droppedBytes: 9 })).toBe("x … y");
  });

  test("has no half of a word beside the mark: it may be that of a secret", () => {
    const cut = (head: string, tail: string): string =>
      renderOutput({ head: bytes(head), tail: bytes(tail), droppedBytes: 9 });
    expect(cut("login tok_1a2b", "3c4d refused")).toBe("login … refused");
    expect(cut("login ", " refused")).toBe("login … refused");
    // What is longer than any secret, or all that there is, stays.
    expect(cut(`a ${"x".repeat(300)}`, "y")).toBe(`a ${"x".repeat(300)} … y`);
  });
});

describe("the answer", () => {
  const RESULT: ProbeResult = {
    isGood: false,
    because: "command-failed",
    detail: "status 1",
    stages: [{ stage: "command", ms: 12.3 }],
  };

  test("is read as it was written, one line", () => {
    const line = renderAnswer(RESULT);
    expect(line).toMatch(/^[^\n]*\n$/);
    expect(parseAnswer(line)).toEqual(RESULT);
    const good = { ...RESULT, isGood: true, because: "good" } as const;
    expect(parseAnswer(renderAnswer(good))).toEqual(good);
  });

  test("of the longest output has its place", () => {
    // Of a byte that is no text becomes one letter, and of a quote two.
    for (const byte of [0xff, 0x22, 0x5c]) {
      const part = new Uint8Array(KEPT_BYTES).fill(byte);
      const output = { head: part, tail: part, droppedBytes: 1 };
      const verdict = decideCommandVerdict(ended({ isTimedOut: true }), { timeoutMs: 1, output });
      const line = renderAnswer({ ...RESULT, ...verdict });
      expect(new TextEncoder().encode(line).length).toBeLessThan(LONGEST_ANSWER_BYTES);
    }
  });

  test.each([
    ["nothing", ""],
    ["half a line", renderAnswer(RESULT).slice(0, -2)],
    ["a line that has no end", renderAnswer(RESULT).trimEnd()],
    ["more than a line", `${renderAnswer(RESULT)}more\n`],
    ["no object", "null\n"],
    ["a list", "[1]\n"],
    ["a reason that no command has", renderAnswer({ ...RESULT, because: "refused" })],
    ["no detail", `${JSON.stringify({ ...RESULT, detail: 1 })}\n`],
    ["no stages", `${JSON.stringify({ ...RESULT, stages: {} })}\n`],
    ["a stage without a time", `${JSON.stringify({ ...RESULT, stages: [{ ms: "1" }] })}\n`],
    ["too much", `${JSON.stringify({ ...RESULT, detail: "x".repeat(LONGEST_ANSWER_BYTES) })}\n`],
  ])("is none where it is %s", (_, text) => {
    expect(parseAnswer(text)).toBeUndefined();
  });

  test("is good by its reason alone, and printable whoever has written it", () => {
    const line = `${JSON.stringify({ ...RESULT, isGood: true, detail: "a\u001bb\n" })}\n`;
    expect(parseAnswer(line)).toMatchObject({ isGood: false, detail: "ab" });
  });
});
