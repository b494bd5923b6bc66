/**
 * Wrong command lines: the exact lines on stderr, status 64, and hints that work when pasted.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine, MAX_HINT_LENGTH } from "../../../src/cli/command-line.ts";
import { TOPICS } from "../../../src/cli/first-word.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { listLaterCommands, listLaterFlags } from "../../../src/cli/later-names.ts";
import { EXPECTED_LEASE } from "../../../src/cli/lease-values.ts";
import { variableOf } from "../../../src/cli/option-row.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { EXPECTED } from "../../../src/cli/values.ts";
import { WatchdogError } from "../../../src/core/errors.ts";

function refusalOf(words: readonly string[], variables: Variables = {}): WatchdogError {
  try {
    cutCommandLine(words, variables);
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error(`not refused: ${JSON.stringify(words)}`);
}

interface Line {
  readonly words: readonly string[];
  readonly variables?: Variables;
  readonly error: string;
  readonly hint: string;
}

function expectLines(lines: readonly Line[]): void {
  for (const { words, variables, error, hint } of lines) {
    const refusal = refusalOf(words, variables);
    expect(renderError(refusal)).toBe(`watchdog: error: ${error}\nwatchdog: hint: ${hint}\n`);
    expect(refusal.exitStatus).toBe(64);
  }
}

const LIST = [...TOPICS, "help"].join(", ");
const COMMANDS = `expected a command of watchdog: ${LIST}`;

describe("a wrong first word", () => {
  test("is answered with the nearest command, or with run in front of it", () => {
    const plain: readonly [string[], string, string][] = [
      [[], "no command was given", "watchdog --help"],
      [["ls", "-l"], 'unknown command "ls"', "watchdog run -- ls -l"],
      [["rm", "x"], 'unknown command "rm"', "watchdog run -- rm x"],
      [["--", "ls"], 'found "--"', "watchdog run -- ls"],
      [["-v"], 'found "-v"', "watchdog --version"],
      [["version"], 'found "version"', "watchdog --version"],
      [["--foo"], 'unknown option "--foo"', "watchdog --help"],
      [["", "x"], 'unknown command ""', "watchdog --help"],
    ];
    for (const [words, start, hint] of plain) {
      expectLines([{ words, error: `${start}, ${COMMANDS}`, hint }]);
    }
    expectLines([
      {
        words: ["runn", "--", "ls"],
        error: `unknown command "runn", ${COMMANDS}; the nearest is run`,
        hint: "watchdog run -- ls",
      },
      {
        words: ["hepl"],
        error: `unknown command "hepl", ${COMMANDS}; the nearest is help`,
        hint: "watchdog help",
      },
      {
        words: ["--verison"],
        error: `unknown option "--verison", ${COMMANDS}; the nearest option is --version`,
        hint: "watchdog --version",
      },
    ]);
  });

  test("that is an option of a command is moved behind the command", () => {
    const error = `"--timeout" is an option of a command, ${COMMANDS}`;
    const quiet = `"--quiet" is an option of a command, ${COMMANDS}`;
    expectLines([
      { words: ["--timeout", "5", "ls"], error, hint: "watchdog run --timeout 5 ls" },
      { words: ["--timeout=5", "run", "ls"], error, hint: "watchdog run --timeout=5 ls" },
      { words: ["--timeout", "5", "--", "run"], error, hint: "watchdog run --timeout 5 -- run" },
      { words: ["--quiet", "--", "run", "x"], error: quiet, hint: "watchdog run --quiet -- run x" },
    ]);
  });

  test("after help and --version is refused by name", () => {
    expectLines([
      {
        words: ["help", "rum"],
        error: `help knows no command "rum", expected one of ${LIST}`,
        hint: "watchdog help run",
      },
      {
        words: ["help", "run", "keep"],
        error: 'help tells of one command, found "keep" after it',
        hint: "watchdog help run",
      },
      {
        words: ["--version", "x"],
        error: '--version stands alone, found "x" after it',
        hint: "watchdog --version",
      },
    ]);
  });
});

describe("a wrong option", () => {
  const unknown = "expected an option of watchdog run";

  test("that is a slip is answered with the nearest real one and the whole line put right", () => {
    const slips: readonly [string[], string, string, string][] = [
      [["--timout", "5", "ls"], "--timout", "--timeout", "--timeout 5 ls"],
      [["--timout=5", "ls"], "--timout", "--timeout", "--timeout=5 ls"],
      [["--Timeout", "5", "ls"], "--Timeout", "--timeout", "--timeout 5 ls"],
      [["-timeout", "5", "ls"], "-timeout", "--timeout", "--timeout 5 ls"],
      [["--idle_timeout", "5", "ls"], "--idle_timeout", "--idle-timeout", "--idle-timeout 5 ls"],
      [["--success", "2", "ls"], "--success", "--success-exit-codes", "--success-exit-codes 2 ls"],
      [["--quite", "it's", "$HOME"], "--quite", "--quiet", "--quiet 'it'\\''s' '$HOME'"],
    ];
    for (const [words, typed, near, hint] of slips) {
      const error = `unknown option "${typed}", ${unknown}; the nearest is ${near}`;
      expectLines([{ words: ["run", ...words], error, hint: `watchdog run ${hint}` }]);
    }
  });

  test("that is near nothing gets no guess", () => {
    const hint = "watchdog help run";
    for (const word of ["--foo", "-x", "-vh", "---", "--=5", "-5"]) {
      const error = `unknown option "${word.replace("=5", "")}", ${unknown}`;
      expectLines([{ words: ["run", word, "ls"], error, hint }]);
    }
    const later = "the nearest is --store, which is not available in this version";
    const error = `unknown option "--stroe", ${unknown}; ${later}`;
    expectLines([{ words: ["run", "--stroe", "a:b", "ls"], error, hint }]);
  });

  test("of keep is one that only run has", () => {
    const error = 'unknown option "--timeout", expected an option of watchdog keep';
    expectLines([{ words: ["keep", "--timeout", "5", "ls"], error, hint: "watchdog help keep" }]);
  });

  test("says what its value must be, with a line that works", () => {
    const values: readonly [string, string, string, string][] = [
      ["--timeout", "5x", EXPECTED.span, "2h"],
      ["--timeout", "-5", EXPECTED.span, "2h"],
      ["--idle-cpu", "0", EXPECTED.percent, "0.5"],
      ["--idle-io", "0", `${EXPECTED.size}, and above 0`, "1MiB"],
      ["--log-max", "10M", EXPECTED.size, "1MiB"],
      ["--not-after", "24:00", EXPECTED.timeOfDay, "06:00"],
      ["--signal", "TREM", EXPECTED.signal, "INT"],
      ["--leftovers", "keep", "one of kill, wait, leave", "wait"],
      ["--log", "yes", "one of auto, on, off", "on"],
      ["--success-exit-codes", "256", EXPECTED.exitCodes, "0,24"],
      ["--lock", "gpu", EXPECTED_LEASE.key, "db:orders"],
      ["--lane", "", EXPECTED_LEASE.keyName, "gpu"],
      ["--wait", "soon", EXPECTED.span, "10m"],
      ["--conflict-exit-code", "256", EXPECTED_LEASE.exitCode, "0"],
      ["--heartbeat-interval", "13h", EXPECTED_LEASE.interval, "5s"],
      ["--stale-after", "0", EXPECTED_LEASE.staleAfter, "1m"],
      ["--name", "", EXPECTED.name, "nightly-backup"],
      ["--state-dir", "", EXPECTED.path, "/var/lib/watchdog"],
    ];
    for (const [flag, found, expected, example] of values) {
      const error = `${flag}: found "${found}", expected ${expected}`;
      const hint = `watchdog run ${flag} ${example} ls`;
      expectLines([{ words: ["run", flag, found, "ls"], error, hint }]);
      expectLines([{ words: ["run", `${flag}=${found}`, "ls"], error, hint }]);
    }
  });

  test("without its value, or with one that it does not take, is told how it is written", () => {
    const start = 'needs a value, found "--quiet"; a value that starts with -- is written';
    expectLines([
      {
        words: ["run", "--name", "--quiet", "ls"],
        error: `--name ${start} --name=--quiet`,
        hint: "watchdog run --name=--quiet ls",
      },
      {
        words: ["run", "--timeout", "--quiet", "ls"],
        error: `--timeout ${start} --timeout=--quiet`,
        hint: "watchdog run --timeout 2h --quiet ls",
      },
      {
        words: ["run", "--timeout"],
        error: "--timeout needs a value, found the end of the line, expected SPAN",
        hint: "watchdog help run",
      },
      {
        words: ["run", "--quiet=yes", "ls"],
        error: '--quiet takes no value, found "yes", expected --quiet alone',
        hint: "watchdog run --quiet ls",
      },
      {
        words: ["run", "--quiet=no", "ls"],
        error: '--quiet takes no value, found "no", expected --quiet alone',
        hint: "watchdog run ls",
      },
    ]);
  });
});

test("a missing or empty command is told with the usage", () => {
  const error =
    "no command to run was given, expected watchdog run [options] [--] COMMAND [ARG...]";
  for (const words of [["run"], ["run", "--"], ["run", "--quiet"], ["run", "-v", "--"]]) {
    expectLines([{ words, error, hint: "watchdog help run" }]);
  }
  expectLines([
    {
      words: ["keep"],
      error: "no command to keep was given, expected watchdog keep [options] [--] COMMAND [ARG...]",
      hint: "watchdog help keep",
    },
    {
      words: ["run", "--", "", "x"],
      error: 'the command is empty, found "", expected the name or path of a program',
      hint: "watchdog help run",
    },
  ]);
});

test("a wrong variable is named, and the hint sets it right for this line", () => {
  expectLines([
    {
      words: ["run", "--quiet", "--", "ls"],
      variables: { WATCHDOG_TIMEOUT: "5x" },
      error: `WATCHDOG_TIMEOUT: found "5x", expected ${EXPECTED.span}`,
      hint: "WATCHDOG_TIMEOUT=2h watchdog run --quiet -- ls",
    },
    {
      words: ["run", "ls"],
      variables: { WATCHDOG_QUIET: "maybe" },
      error: `WATCHDOG_QUIET: found "maybe", expected ${EXPECTED.isSwitch}`,
      hint: "WATCHDOG_QUIET=on watchdog run ls",
    },
  ]);
});

test("names of later versions are known, and refused instead of ignored", () => {
  expectLines([
    {
      words: ["run", "--store", "etcd://x/", "ls"],
      error:
        "--store is not available in this version: " +
        "leases of more than one machine come with a later version",
      hint: "watchdog help run",
    },
    {
      words: ["run", "ls"],
      variables: { WATCHDOG_STORE: "etcd://x" },
      error:
        "WATCHDOG_STORE (--store) is not available in this version: " +
        "leases of more than one machine come with a later version",
      hint: "watchdog help run",
    },
  ]);
  expect(listLaterFlags()).toContain("--store");
  for (const flag of listLaterFlags()) {
    for (const words of [
      ["run", flag, "x", "ls"],
      ["run", `${flag}=x`, "ls"],
      [flag, "x"],
    ]) {
      expect(refusalOf(words).message).toStartWith(`${flag} is not available in this version: `);
    }
  }
  for (const flag of listLaterFlags()) {
    const variable = variableOf(flag);
    const message = refusalOf(["run", "ls"], { [variable]: "x" }).message;
    expect(message).toStartWith(`${variable} (${flag}) is not available in this version: `);
  }
  for (const command of listLaterCommands()) {
    for (const words of [[command], ["help", command]]) {
      expect(refusalOf(words).message).toStartWith(`${command} is not available in this version: `);
    }
  }
});

test("A-82 no control character reaches the terminal, in no line of an error", () => {
  const nasty = "a\u001b[31m\n\u202eb\u0007";
  const refusal = refusalOf(["run", "--name", nasty, "ls"]);
  expect(renderError(refusal)).toBe(
    `watchdog: error: --name: found "a\\x1b[31m\\n\\u{202e}b\\x07", expected ${EXPECTED.name}\n` +
      "watchdog: hint: watchdog run --name nightly-backup ls\n",
  );
  expect(refusalOf(["run", "--timout", "5", nasty]).hint).toBe("watchdog help run");
  expect(refusalOf(["run", "--timout", "5", "\uFFFD"]).hint).toBe("watchdog help run");
  const long = "x".repeat(MAX_HINT_LENGTH);
  expect(refusalOf(["run", "--timout", "5", long]).hint).toBe("watchdog help run");
  expect(refusalOf([long]).message).toContain("x…");
});
