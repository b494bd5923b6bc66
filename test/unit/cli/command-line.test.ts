/**
 * The cut of correct command lines: which command, which options, and where the wrapped one begins.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine, DEFAULT_RUN_OPTIONS } from "../../../src/cli/command-line.ts";
import { reasonOfLaterFlag } from "../../../src/cli/later-names.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { RUN_COMMAND } from "../../../src/cli/options-table.ts";
import {
  CHILD_VARIABLES,
  isOptionVariable,
  listOptionVariables,
} from "../../../src/cli/variables-table.ts";
import { DEFAULT_KILL_AFTER_MS } from "../../../src/core/run-options.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";

function expectRun(
  words: readonly string[],
  changed: Partial<RunOptions>,
  commandAt: number,
  variables: Variables = {},
): void {
  expect(cutCommandLine(words, variables)).toEqual({
    kind: "run",
    options: { ...DEFAULT_RUN_OPTIONS, ...changed },
    commandAt,
  });
}

describe("the options of run", () => {
  test("end at -- or at the first word that is no option", () => {
    expectRun(["run", "ls"], {}, 1);
    expectRun(["run", "./x", "--help"], {}, 1);
    expectRun(["run", "--", "--help"], {}, 2);
    expectRun(["run", "--", "--", "ls"], {}, 2);
    expectRun(["run", "-", "x"], {}, 1);
    expectRun(["run", "-v", "ls", "-v", "--quiet"], { isVerbose: true }, 2);
    expectRun(["run", "run", "--timeout", "x"], {}, 1);
  });

  test("take a value from the next word or behind an equals sign", () => {
    expectRun(["run", "--timeout", "5", "ls"], { timeoutMs: 5_000 }, 3);
    expectRun(["run", "--timeout=5", "ls"], { timeoutMs: 5_000 }, 2);
    expectRun(["run", "--name=--quiet", "ls"], { name: "--quiet" }, 2);
    expectRun(["run", "--name=a=b", "ls"], { name: "a=b" }, 2);
    expectRun(["run", "--name", "-x", "ls"], { name: "-x" }, 3);
    expectRun(["run", "--name", "-", "ls"], { name: "-" }, 3);
  });

  test("reach every field", () => {
    const words = `run --timeout 2h --idle-timeout 30m --idle-cpu 0.5% --idle-io 1MiB
      --not-after 06:00 --signal INT --kill-after 0 --leftovers wait --log on --log-max 1MiB
      --log-keep 2MiB --quiet --verbose --name n --result-file r.json --success-exit-codes 24
      --lock db:orders --lane gpu --task T42 --worktree /w --wait 10m --conflict-exit-code 0
      --heartbeat-interval 1s --stale-after 3s --guard-grace 5s --assume-local-state
      --on-survivors wait --strict-worktree --repair-cooldown 1m --state-group backup
      --expect-output --min-duration 1m --strict
      --max-fail-rate 20% --max-consecutive-fails 5
      --remind-every 1h --notify-timeout 10s
      --state-dir /s --config c.toml --every 24h -- ls`.split(/\s+/);
    const options: RunOptions = {
      timeoutMs: 7_200_000,
      idleTimeoutMs: 1_800_000,
      idleCpuPercent: 0.5,
      idleIoBytes: 2 ** 20,
      notAfter: { hour: 6, minute: 0, second: 0 },
      signal: 2,
      killAfterMs: 0,
      isKillAfterOnLine: true,
      leftovers: "wait",
      log: "on",
      logMaxBytes: 2 ** 20,
      logKeepBytes: 2 ** 21,
      isQuiet: true,
      isVerbose: true,
      name: "n",
      resultFile: "r.json",
      successExitCodes: [0, 24],
      stateDir: "/s",
      locks: [
        { kind: "db", name: "orders" },
        { kind: "lane", name: "gpu" },
        { kind: "task", name: "T42" },
      ],
      lane: "gpu",
      task: "T42",
      worktree: "/w",
      waitMs: 600_000,
      hasLease: true,
      conflictExitCode: 0,
      heartbeatIntervalMs: 1_000,
      staleAfterMs: 3_000,
      guardGraceMs: 5_000,
      assumesLocalState: true,
      onSurvivors: "wait",
      isStrictWorktree: true,
      repairCooldownMs: 60_000,
      stateGroup: "backup",
      configFile: "c.toml",
      // All about these is in probe-options.test.ts.
      probes: [],
      readyProbes: [],
      countsPaused: false,
      // All about these is in check-options.test.ts.
      expectFiles: [],
      expectsOutput: true,
      expectMatches: [],
      failMatches: [],
      minDurationMs: 60_000,
      isStrict: true,
      maxFailRate: 20,
      maxConsecutiveFails: 5,
      everyMs: 86_400_000,
      cron: undefined,
      timeZone: undefined,
      sinks: [],
      masks: [],
      remindEveryMs: 3_600_000,
      notifyTimeoutMs: 10_000,
    };
    expectRun(words, options, words.length - 1);
    expect(Object.keys(options).toSorted()).toEqual(Object.keys(DEFAULT_RUN_OPTIONS).toSorted());
    expectRun(["run", "--no-lease", "ls"], { hasLease: false }, 2);
  });

  test("given twice: the last wins, so that a script can append the overriding one", () => {
    expectRun(["run", "--timeout", "5", "--timeout=7", "ls"], { timeoutMs: 7_000 }, 4);
    expectRun(["run", "--timeout", "5", "--timeout", "0", "ls"], { timeoutMs: undefined }, 5);
  });

  test("0 is no limit, but KILL at once for --kill-after", () => {
    expectRun(["run", "--timeout", "0", "--idle-timeout", "0", "ls"], {}, 5);
    expectRun(["run", "--kill-after", "0", "ls"], { killAfterMs: 0, isKillAfterOnLine: true }, 3);
  });
});

describe("variables", () => {
  test("stand for flags, and the flag beats its variable", () => {
    const variables = { WATCHDOG_TIMEOUT: "5", WATCHDOG_STATE_DIR: "/s" };
    expectRun(["run", "ls"], { timeoutMs: 5_000, stateDir: "/s" }, 1, variables);
    expectRun(["run", "--timeout", "7", "ls"], { timeoutMs: 7_000, stateDir: "/s" }, 3, variables);
    expectRun(["run", "--timeout=7", "ls"], { timeoutMs: 7_000 }, 2, { WATCHDOG_TIMEOUT: "5x" });
  });

  test("of switches are on or off, and empty ones are not set", () => {
    for (const on of ["1", "true", "yes", "on"]) {
      expectRun(["run", "ls"], { isQuiet: true }, 1, { WATCHDOG_QUIET: on });
    }
    for (const off of ["0", "false", "no", "off", ""]) {
      expectRun(["run", "ls"], {}, 1, { WATCHDOG_QUIET: off });
    }
    expectRun(["run", "--quiet", "ls"], { isQuiet: true }, 2, { WATCHDOG_QUIET: "0" });
    expectRun(["run", "ls"], {}, 1, { WATCHDOG_TIMEOUT: "", WATCHDOG_STORE: "" });
  });

  test("of systemd and of the run around this one are not options", () => {
    const foreign = { WATCHDOG_USEC: "1", WATCHDOG_PID: "x", WATCHDOG_RUN_ID: "x" };
    expectRun(["run", "ls"], {}, 1, { ...foreign, WATCHDOG_LEASE: "x", WATCHDOG_JOB: "j" });
  });
});

test("keep takes its own options and starts the command behind them", () => {
  expect(cutCommandLine(["keep", "--output", "o.log", "--", "redis-server", "--x"], {})).toEqual({
    kind: "keep",
    options: { outputPath: "o.log", stateDir: undefined, configFile: undefined },
    commandAt: 4,
  });
  expect(
    cutCommandLine(["keep", "ls"], { WATCHDOG_STATE_DIR: "/s", WATCHDOG_TIMEOUT: "x" }),
  ).toEqual({
    kind: "keep",
    options: { outputPath: undefined, stateDir: "/s", configFile: undefined },
    commandAt: 1,
  });
});

test("help and version are asked for in every usual way", () => {
  for (const words of [["--help"], ["-h"], ["help"], ["help", "help"], ["help", "--help"]]) {
    expect(cutCommandLine(words, {})).toEqual({ kind: "help", topic: "watchdog" });
  }
  for (const words of [
    ["help", "run"],
    ["--help", "run"],
    ["run", "-v", "--help"],
    ["run", "-h"],
  ]) {
    expect(cutCommandLine(words, {})).toEqual({ kind: "help", topic: "run" });
  }
  expect(cutCommandLine(["keep", "--help", "x"], {})).toEqual({ kind: "help", topic: "keep" });
  expect(cutCommandLine(["--version"], {})).toEqual({ kind: "version" });
});

test("never looks at a word of the command", () => {
  const seen = new Set<number>();
  const words = ["run", "--timeout", "5", "-v", "--", "sh", "--store", "--nosuch", "-h"];
  const watched = new Proxy(words, {
    get(target, key, receiver) {
      if (typeof key === "string" && /^\d+$/.test(key)) seen.add(Number(key));
      return Reflect.get(target, key, receiver);
    },
  });
  expectRunAt(cutCommandLine(watched, {}), 5);
  expect([...seen].toSorted((left, right) => left - right)).toEqual([0, 1, 2, 3, 4, 5]);
});

function expectRunAt(cut: ReturnType<typeof cutCommandLine>, commandAt: number): void {
  expect(cut).toMatchObject({ kind: "run", commandAt });
}

describe("the table of options", () => {
  test("states the defaults that are in force", () => {
    const isRead = new Set<string>();
    for (const row of RUN_COMMAND.rows) {
      const parsed = row.read(row.defaultText);
      if (!takesValue(row) || parsed.kind === "refused" || row.kind === "text") continue;
      if (row.kind === "path" || row.kind === "texts") continue;
      if ("probing" in parsed.value) continue; // in probe-options.test.ts
      if ("sinks" in parsed.value || "masks" in parsed.value) continue; // in sink-options.test.ts
      isRead.add(row.flag);
      const wanted = row.flag === "--kill-after" ? { killAfterMs: DEFAULT_KILL_AFTER_MS } : {};
      expect({ ...DEFAULT_RUN_OPTIONS, ...wanted }).toMatchObject(parsed.value);
    }
    expect([...isRead].toSorted()).toEqual([
      "--conflict-exit-code",
      "--guard-grace",
      "--heartbeat-interval",
      "--idle-cpu",
      "--idle-io",
      "--kill-after",
      "--leftovers",
      "--log",
      "--log-keep",
      "--log-max",
      "--notify-timeout",
      "--on-survivors",
      "--remind-every",
      "--repair-cooldown",
      "--signal",
      "--stale-after",
      "--success-exit-codes",
    ]);
  });

  test("has an example that its own reader accepts for each option with a value", () => {
    const rows = RUN_COMMAND.rows.filter((row) => takesValue(row));
    expect(rows.length).toBe(69);
    for (const row of rows)
      expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
  });

  test("gives no option the variable of a command; WATCHDOG_STATE_DIR alone is both", () => {
    const taken = [...CHILD_VARIABLES.map((row) => row.name), "WATCHDOG_USEC", "WATCHDOG_PID"];
    expect(taken.length).toBe(12);
    const names = listOptionVariables();
    expect(names.filter((name) => taken.includes(name))).toEqual([]);
    expect(taken.filter((name) => isOptionVariable(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
    for (const name of ["PATH", "TIMEOUT", "WATCHDOG_", "WATCHDOG_timeout", "WATCHDOG_store"]) {
      expect([name, isOptionVariable(name)]).toEqual([name, false]);
    }
    expect(names).toContain("WATCHDOG_TIMEOUT");
    expect(names).toContain("WATCHDOG_ON_FAILURE");
    expect(names).not.toContain("WATCHDOG_STATE_DIR");
  });

  test("shares no flag with the names of later versions", () => {
    expect(RUN_COMMAND.rows.filter((row) => reasonOfLaterFlag(row.flag) !== undefined)).toEqual([]);
  });
});
