/**
 * What holds for every command line: a cut or a usage error, and nothing of the command is read.
 */

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { cutCommandLine } from "../../src/cli/command-line.ts";
import { takesValue } from "../../src/cli/option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "../../src/cli/options-table.ts";
import { renderError } from "../../src/cli/render-error.ts";
import { WatchdogError } from "../../src/core/errors.ts";

const RUNS = { numRuns: 2_000 };

const flags = [...RUN_COMMAND.rows, ...KEEP_COMMAND.rows].map((row): string => row.flag);
const pieces = [
  ...flags,
  "run",
  "keep",
  "help",
  "--",
  "-",
  "-v",
  "=",
  "5",
  "2h",
  "--lock",
  "status",
];
const word = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...pieces) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(...flags).map((flag) => `${flag}=5`) },
  { weight: 1, arbitrary: fc.constantFrom(...flags).map((flag) => flag.replace(/.$/, "")) },
);
const rightOption = fc
  .constantFrom(...RUN_COMMAND.rows.filter(takesValue))
  .chain((row) => fc.constantFrom([row.flag, row.example], [`${row.flag}=${row.example}`]));
const rightLine = fc
  .tuple(fc.array(rightOption, { maxLength: 4 }), fc.array(word, { maxLength: 4 }))
  .map(([options, tail]) => ["run", ...options.flat(), "--", "x", ...tail]);
const line = fc.oneof(
  rightLine,
  fc.array(word, { maxLength: 8 }),
  fc.array(word, { maxLength: 8 }).map((words) => ["run", ...words]),
);
const variables = fc.dictionary(
  fc.constantFrom("WATCHDOG_TIMEOUT", "WATCHDOG_QUIET", "WATCHDOG_LOCK", "WATCHDOG_NAME"),
  fc.oneof(fc.constantFrom("", "1", "5m", "off"), fc.string({ unit: "binary", maxLength: 6 })),
);

/** Splits a line as a shell does, with words plain or in single quotes. */
function shellSplit(text: string): readonly string[] {
  const words: string[] = [];
  let current: string | undefined;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (isQuoted && letter !== "'") current = (current ?? "") + letter;
    else if (letter === "'") {
      isQuoted = !isQuoted;
      current ??= "";
    } else if (letter === "\\") {
      at += 1;
      current = (current ?? "") + (text[at] ?? "");
    } else if (letter === " ") {
      if (current !== undefined) words.push(current);
      current = undefined;
    } else current = (current ?? "") + letter;
  }
  return current === undefined ? words : [...words, current];
}

test("any words give a cut or a usage error whose hint, pasted, gives a cut", () => {
  const seen = { cuts: 0, refusals: 0 };
  fc.assert(
    fc.property(line, variables, (words, environment) => {
      try {
        const cut = cutCommandLine(words, environment);
        seen.cuts += 1;
        if ("commandAt" in cut) expect(words[cut.commandAt]).toBeString();
      } catch (error) {
        if (!(error instanceof WatchdogError) || error.hint === undefined) throw error;
        seen.refusals += 1;
        expect(error.code).toBe("usage");
        expect(renderError(error)).toMatch(/^watchdog: error: [^\n]+\nwatchdog: hint: [^\n]+\n$/);
        const pasted = shellSplit(error.hint);
        const start = pasted.indexOf("watchdog");
        const settings = pasted
          .slice(0, start)
          .map((each) => each.split("=", 2) as [string, string]);
        const pastedIn = { ...environment, ...Object.fromEntries(settings) };
        cutCommandLine(pasted.slice(start + 1), pastedIn);
      }
    }),
    RUNS,
  );
  expect(seen.cuts).toBeGreaterThan(100);
  expect(seen.refusals).toBeGreaterThan(100);
});

test("what follows the first word of the command changes nothing", () => {
  let count = 0;
  fc.assert(
    fc.property(line, fc.array(word), fc.array(word), (words, left, right) => {
      const head = [
        "run",
        ...words.filter((each) => each !== "--help" && each !== "-h"),
        "--",
        "x",
      ];
      const cutOf = (tail: readonly string[]): unknown => {
        try {
          return cutCommandLine([...head, ...tail], {});
        } catch (error) {
          return error instanceof WatchdogError ? error.message : error;
        }
      };
      count += typeof cutOf(left) === "string" ? 0 : 1;
      expect(cutOf(left)).toEqual(cutOf(right));
    }),
    RUNS,
  );
  expect(count).toBeGreaterThan(100);
});
