/**
 * The readers of values, each against a table written by hand: what is read, and what is refused.
 */

import { describe, expect, test } from "bun:test";
import {
  EXPECTED,
  MAX_NAME_BYTES,
  MAX_PATH_BYTES,
  MAX_SIZE_BYTES,
  MAX_SPAN_MS,
  parseChoice,
  parseExitCodes,
  parseFailureCodes,
  parseName,
  parsePath,
  parsePercent,
  parsePositiveSize,
  parsePositiveSpan,
  parseSignal,
  parseSize,
  parseSpan,
  parseSwitch,
  parseTimeOfDay,
} from "../../../src/cli/values.ts";
import type { Parsed } from "../../../src/cli/values.ts";

/** Words that no reader of an amount may take for one. */
const NO_AMOUNTS = [
  "",
  " ",
  "NaN",
  "Infinity",
  "inf",
  "1e9",
  "0x10",
  "-5",
  "+5",
  " 5",
  "5 ",
  "5\n",
  "1_000",
  "٥",
  "５",
  "1,5",
  "1.",
  ".",
  "..5",
  "1..5",
  "1.5.5",
  "--",
  "5\0",
  "9".repeat(65),
  "constructor",
  "__proto__",
  "9".repeat(40),
];

function expectTable<T>(read: (text: string) => Parsed<T>, table: readonly [string, T][]): void {
  for (const [text, value] of table) {
    expect({ text, parsed: read(text) }).toEqual({ text, parsed: { kind: "value", value } });
  }
}

function expectRefusals(
  read: (text: string) => Parsed<unknown>,
  words: readonly string[],
  expected: string,
): void {
  for (const text of words) {
    expect({ text, parsed: read(text) }).toEqual({ text, parsed: { kind: "refused", expected } });
  }
}

describe("spans", () => {
  test("are read with units, fractions, and as seconds without a unit", () => {
    expectTable(parseSpan, [
      ["500ms", 500],
      ["5s", 5_000],
      ["5", 5_000],
      ["2m", 120_000],
      ["1h30m", 5_400_000],
      ["1d", 86_400_000],
      ["30d", 2_592_000_000],
      ["1d2h3m4s5ms", 93_784_005],
      ["0.5", 500],
      [".5", 500],
      ["1.5h", 5_400_000],
      ["1.1s", 1_100],
      ["136335394.409", 136_335_394_409],
      ["0.001s", 1],
      ["0", 0],
      ["0s", 0],
      ["00005", 5_000],
      ["1m5ms", 60_005],
    ]);
  });

  test("never become 0 by rounding, because 0 is no limit", () => {
    expectTable(parseSpan, [
      ["0.0001", 1],
      ["0.1ms", 1],
      ["0.00000000001ms", 1],
    ]);
  });

  test("end at ten years", () => {
    expectTable(parseSpan, [["3650d", MAX_SPAN_MS]]);
    expectRefusals(parseSpan, ["3651d", "3650d1ms", "315360001", "99999999999999d"], EXPECTED.span);
  });

  test("are refused where a unit is missing, unknown, repeated or out of order", () => {
    const wrong = ["5x", "1h30", "30m1h", "1m1m", "5S", "5 s", "ms", "1ms1s", "1w", "h1", "5sec"];
    expectRefusals(parseSpan, [...NO_AMOUNTS, ...wrong], EXPECTED.span);
  });
});

describe("sizes", () => {
  test("are read with binary and decimal units", () => {
    expectTable(parseSize, [
      ["4096", 4096],
      ["0", 0],
      ["1B", 1],
      ["1kB", 1_000],
      ["1KB", 1_000],
      ["64KiB", 65_536],
      ["10MiB", 10_485_760],
      ["1MB", 1_000_000],
      ["1GB", 1_000_000_000],
      ["1GiB", 1_073_741_824],
      ["1.5KiB", 1_536],
      ["0.1B", 1],
      ["1024TiB", MAX_SIZE_BYTES],
    ]);
  });

  test("are refused with a unit that means two things, or beyond the bound", () => {
    const wrong = ["10M", "1K", "1G", "1kib", "1mib", "1 MiB", "1025TiB", "1PiB", "MiB", "1MiB2"];
    expectRefusals(parseSize, [...NO_AMOUNTS, ...wrong], EXPECTED.size);
  });

  test("of 0 are refused only where 0 would mean nothing", () => {
    expect(parsePositiveSize("0").kind).toBe("refused");
    expect(parsePositiveSize("0KiB").kind).toBe("refused");
    expect(parsePositiveSize("1")).toEqual({ kind: "value", value: 1 });
  });
});

test("percents are read with and without their sign, and 0 is refused", () => {
  expectTable(parsePercent, [
    ["1", 1],
    ["1%", 1],
    ["0.5", 0.5],
    [".5%", 0.5],
    ["250", 250],
    ["102400", 102_400],
  ]);
  const wrong = ["0", "0%", "0.0", "102401", "1%%", "%", "%1", "1 %"];
  expectRefusals(parsePercent, [...NO_AMOUNTS, ...wrong], EXPECTED.percent);
});

test("times of the day are read with and without seconds, and end before 24:00", () => {
  expectTable(parseTimeOfDay, [
    ["06:00", { hour: 6, minute: 0, second: 0 }],
    ["6:00", { hour: 6, minute: 0, second: 0 }],
    ["00:00", { hour: 0, minute: 0, second: 0 }],
    ["23:59:59", { hour: 23, minute: 59, second: 59 }],
  ]);
  const wrong = ["24:00", "12:60", "12:00:60", "6", "6:0", "06:00:", "06:00pm", "-6:00", "٠٦:٠٠"];
  expectRefusals(
    parseTimeOfDay,
    [...NO_AMOUNTS, ...wrong, "006:00", "06:00\n"],
    EXPECTED.timeOfDay,
  );
});

test("signals are read by name, number and real-time step, without those of the C library", () => {
  expectTable(parseSignal, [
    ["TERM", 15],
    ["SIGTERM", 15],
    ["term", 15],
    ["sigint", 2],
    ["9", 9],
    ["KILL", 9],
    ["IOT", 6],
    ["CLD", 17],
    ["POLL", 29],
    ["RTMIN", 34],
    ["RTMIN+1", 35],
    ["SIGRTMIN+30", 64],
    ["RTMAX", 64],
    ["RTMAX-1", 63],
    ["64", 64],
  ]);
  const wrong = ["0", "32", "33", "65", "RTMIN+31", "RTMAX-31", "RTMAX+1", "TERMX", "SIG", "ſYS"];
  const others = ["constructor", "TERM ", " TERM", "", "-15", "1.5", "15s", "__proto__", "🦊"];
  expectRefusals(parseSignal, [...wrong, ...others], EXPECTED.signal);
});

test("exit codes are read with ranges, sorted, each once, and 0 is always among them", () => {
  expectTable(parseExitCodes, [
    ["0", [0]],
    ["24", [0, 24]],
    ["24,0,24", [0, 24]],
    ["0-3,24", [0, 1, 2, 3, 24]],
    ["255", [0, 255]],
    ["3-3", [0, 3]],
  ]);
  const wrong = ["", ",", "1,", ",1", "256", "3-1", "1-", "-1", "1 ,2", "0-256", "a", "1;2", "0x1"];
  expectRefusals(
    parseExitCodes,
    [...wrong, "1--2", "1-2-3", "٣", "1e1", "0001"],
    EXPECTED.exitCodes,
  );
});

test("exit codes of failures are read in the same way, and 0 is none of them", () => {
  expectTable(parseFailureCodes, [
    ["24", [24]],
    ["28,7,7", [7, 28]],
    ["1-3,255", [1, 2, 3, 255]],
  ]);
  expectRefusals(parseFailureCodes, ["0", "0-3", "1,0", "", "256", "3-1"], EXPECTED.failureCodes);
});

test("a span that must be more than nothing is read as any other", () => {
  expect(parsePositiveSpan("1m")).toEqual({ kind: "value", value: 60_000 });
  expectRefusals(parsePositiveSpan, ["0", "0s", "0.0"], `${EXPECTED.span}, and above 0`);
  expectRefusals(parsePositiveSpan, ["x", ""], EXPECTED.span);
});

test("switches are read from the words for on and off only", () => {
  for (const word of ["1", "true", "yes", "on"]) {
    expect(parseSwitch(word)).toEqual({ kind: "value", value: true });
  }
  for (const word of ["", "0", "false", "no", "off"]) {
    expect(parseSwitch(word)).toEqual({ kind: "value", value: false });
  }
  expectRefusals(parseSwitch, ["2", "TRUE", "y", "maybe", " on"], EXPECTED.isSwitch);
});

test("a choice is one of its words, whole", () => {
  expect(parseChoice("kill", ["kill", "wait"])).toEqual({ kind: "value", value: "kill" });
  expectRefusals(
    (text) => parseChoice(text, ["kill", "wait"]),
    ["", "Kill", "kil", "kill|wait", "toString"],
    "one of kill, wait",
  );
});

test("A-82 names may look like paths or options; control characters and length are refused", () => {
  const fine = ["a/b", "../../evil", "/tmp/wd_evil", "a b", ".", "..", "-x", "☃".repeat(66)];
  expectTable(
    parseName,
    [...fine, "n".repeat(MAX_NAME_BYTES)].map((name): [string, string] => [name, name]),
  );
  const wrong = ["", "new\nline", "esc\u001b[31m", "n".repeat(300), "☃".repeat(67), "\u009b31m"];
  expectRefusals(parseName, [...wrong, "\u2028", "bad\uFFFDbyte", "\0", "\u007f"], EXPECTED.name);
});

test("paths are refused when empty, too long for the system, or of bytes that were lost", () => {
  const longest = "p".repeat(MAX_PATH_BYTES);
  expectTable(parsePath, [
    ["a", "a"],
    ["/x y\n", "/x y\n"],
    [longest, longest],
  ]);
  expectRefusals(parsePath, ["", `${longest}p`, "a\0b", "bad\uFFFDbyte"], EXPECTED.path);
});
