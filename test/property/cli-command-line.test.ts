/**
 * What holds for every command line: a cut or a usage error, and nothing of the command is read.
 */

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { cutCommandLine } from "../../src/cli/command-line.ts";
import {
  ANSWER_COMMANDS,
  LEASE_EXPLAIN_COMMAND,
  LEASE_SHOW_COMMAND,
  STOP_COMMAND,
} from "../../src/cli/answers-table.ts";
import { CARE_COMMANDS } from "../../src/cli/care-table.ts";
import { FENCE_COMMANDS } from "../../src/cli/fence-table.ts";
import { takesValue } from "../../src/cli/option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "../../src/cli/options-table.ts";
import { PROBE_COMMAND } from "../../src/cli/probe-table.ts";
import { RETRY_COMMAND } from "../../src/cli/retry-table.ts";
import { renderError } from "../../src/cli/render-error.ts";
import { WatchdogError } from "../../src/core/errors.ts";
import { checkProbeSettings } from "../../src/core/probe-check.ts";
import { circuitNameOf } from "../../src/core/probe-settings.ts";
import type { RunOptions } from "../../src/core/run-options.ts";

const RUNS = { numRuns: 2_000 };

const tables = [
  RUN_COMMAND,
  KEEP_COMMAND,
  RETRY_COMMAND,
  PROBE_COMMAND,
  ...ANSWER_COMMANDS,
  ...FENCE_COMMANDS,
  ...CARE_COMMANDS,
];
const flags = tables.flatMap((table) => table.rows.map((row): string => row.flag));
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
  "200ms",
  "lane:gpu",
  "--store",
  "status",
  "history",
  "logs",
  "lease",
  "list",
  "show",
  "stop",
  "explain",
  "fence",
  "git-push",
  "install-git-hooks",
  "__git-hook",
  "repair",
  "config",
  "check",
  "doctor",
  "patrol",
  "probe",
  "retry",
  "circuit",
  "reset",
  "tcp://db:5432",
  "api=http://h/",
  "1s..30s",
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
  fc
    .tuple(
      fc.constantFrom(
        RETRY_COMMAND,
        PROBE_COMMAND,
        ...ANSWER_COMMANDS,
        ...FENCE_COMMANDS,
        ...CARE_COMMANDS,
      ),
      fc.array(word, { maxLength: 4 }),
    )
    .map(([command, words]) => [...command.name.split(" "), ...words]),
);
const variables = fc.dictionary(
  fc.constantFrom(
    "WATCHDOG_TIMEOUT",
    "WATCHDOG_QUIET",
    "WATCHDOG_LOCK",
    "WATCHDOG_NAME",
    "WATCHDOG_NO_LEASE",
    "WATCHDOG_STALE_AFTER",
    "WATCHDOG_STORE",
    "WATCHDOG_PROBE",
    "WATCHDOG_PROBE_PERIOD",
    "WATCHDOG_PROBE_HEADER",
  ),
  fc.oneof(
    fc.constantFrom("", "1", "5m", "off", "lane:gpu"),
    fc.string({ unit: "binary", maxLength: 6 }),
  ),
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

/** What no other option may undo. */
function expectSound(options: RunOptions): void {
  const { heartbeatIntervalMs, staleAfterMs, locks, lane, task } = options;
  expect(heartbeatIntervalMs).toBeWithin(100, 43_200_001);
  expect(staleAfterMs).toBeWithin(heartbeatIntervalMs * 2, 86_400_001);
  const texts = locks.map((key) => `${key.kind}:${key.name}`);
  expect(texts).toEqual([...new Set(texts)].toSorted());
  expect(texts.filter((text) => text.startsWith("worktree:"))).toEqual([]);
  if (lane !== undefined) expect(texts).toContain(`lane:${lane}`);
  if (task !== undefined) expect(texts).toContain(`task:${task}`);
  for (const probes of [options.probes, options.readyProbes]) {
    expect(probes.flatMap(checkProbeSettings)).toEqual([]);
    expect(new Set(probes.map(circuitNameOf)).size).toBe(probes.length);
  }
  if (options.hasLease) return;
  expect([texts, options.worktree, options.waitMs]).toEqual([[], undefined, undefined]);
}

test("any words give a cut or a usage error whose hint, pasted, gives a cut", () => {
  const seen = { cuts: 0, refusals: 0 };
  fc.assert(
    fc.property(line, variables, (words, environment) => {
      try {
        const cut = cutCommandLine(words, environment);
        seen.cuts += 1;
        if ("commandAt" in cut && cut.commandAt !== undefined) {
          expect(words[cut.commandAt]).toBeString();
        }
        if (cut.kind === "run") expectSound(cut.options);
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

const SECRET = "s3cr3t";
const secretWords = fc.constantFrom(
  ["--probe", `http://me:${SECRET}@h/`],
  ["--probe", `api=http://h/?k=${SECRET}`],
  [`--probe=http://me:${SECRET}@`],
  ["--ready-probe", `ftp://me:${SECRET}@h`],
  ["--probe-header", `X: ${SECRET}`],
  [`--probe-header=Bad Name: ${SECRET}`],
  ["--probe-credentials", `me:${SECRET}`],
  ["--probe-body", SECRET],
);
const ofProbes = fc.constantFrom(
  ...RUN_COMMAND.rows.flatMap(({ flag, example }) => [[flag, example], [flag], [`${flag}x`]]),
);

test("no refusal of a line with probes shows a secret of it", () => {
  let count = 0;
  const options = fc.array(fc.oneof(secretWords, ofProbes), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(options, (given) => {
      try {
        cutCommandLine(["run", ...given.flat(), "--", "x"], {});
      } catch (error) {
        if (!(error instanceof WatchdogError)) throw error;
        if (given.flat().some((each) => each.includes(SECRET))) count += 1;
        expect(renderError(error)).not.toContain(SECRET);
      }
    }),
    RUNS,
  );
  expect(count).toBeGreaterThan(500);
});

/** Commands whose word is a key and nothing else. */
const TAKES_KEYS = [LEASE_SHOW_COMMAND, LEASE_EXPLAIN_COMMAND];

test("the word that an answer is about is the same wherever it stands between the options", () => {
  const commands = ANSWER_COMMANDS.filter((command) => command.operand !== undefined);
  expect(commands.length).toBe(9);
  expect(commands).toContain(STOP_COMMAND);
  const asked = fc.constantFrom(...commands).chain((command) => {
    const rows = command.rows.filter((row) => row.kind !== "request");
    const one = fc
      .constantFrom(...rows)
      .map((row) => (takesValue(row) ? [row.flag, row.example] : [row.flag]));
    const options = fc.array(one, { maxLength: 3 });
    const operand = fc.string({ unit: "grapheme", minLength: 1, maxLength: 5 });
    return fc.tuple(fc.constant(command), options, operand, fc.nat({ max: 3 }));
  });
  let count = 0;
  fc.assert(
    fc.property(asked, ([command, options, text, at]) => {
      if (/^-|[\0\uFFFD]/u.test(text)) return;
      const flags = options.map(([flag]) => flag);
      // A picture is drawn, or JSON is written: not both.
      if (flags.includes("--watch") && flags.includes("--json")) return;
      const operand = TAKES_KEYS.includes(command) ? `db:${text}` : text;
      const start = command.name.split(" ");
      const before = options.slice(0, at).flat();
      const after = options.slice(at).flat();
      const between = cutCommandLine([...start, ...before, operand, ...after], {});
      const behind = cutCommandLine([...start, ...options.flat(), "--", operand], {});
      expect(between).toEqual(behind);
      expect(JSON.stringify(between)).toContain(JSON.stringify(text).slice(1, -1));
      count += 1;
    }),
    RUNS,
  );
  expect(count).toBeGreaterThan(1_000);
});
