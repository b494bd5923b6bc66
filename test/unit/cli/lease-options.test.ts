/**
 * The options of run about leases: how keys add up, how two spans follow each other, and what
 * cannot stand together.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine, DEFAULT_RUN_OPTIONS } from "../../../src/cli/command-line.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { isOptionVariable } from "../../../src/cli/variables-table.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { renderKey } from "../../../src/core/lease-key.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";

function optionsOf(line: string, variables: Variables = {}): RunOptions {
  const words = ["run", ...line.split(" ").filter((word) => word !== ""), "--", "ls"];
  const cut = cutCommandLine(words, variables);
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  return cut.options;
}

function keysOf(line: string, variables: Variables = {}): string[] {
  return optionsOf(line, variables).locks.map(renderKey);
}

function refusalOf(line: string, variables: Variables = {}): string {
  try {
    optionsOf(line, variables);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect(error.exitStatus).toBe(64);
    return renderError(error);
  }
  throw new Error(`not refused: ${line}`);
}

describe("keys", () => {
  test("add up, each once and in their one order, however they are given", () => {
    expect(keysOf("--lock lane:b --lock db:x --lock=lane:a --lock db:x")).toEqual([
      "db:x",
      "lane:a",
      "lane:b",
    ]);
    expect(keysOf("--task T42 --lane gpu --lock lane:cpu")).toEqual([
      "lane:cpu",
      "lane:gpu",
      "task:T42",
    ]);
    expect(keysOf("--lane gpu --lock lane:gpu")).toEqual(["lane:gpu"]);
    expect(keysOf("")).toEqual([]);
  });

  test("of a flag take the place of the variable's, and the last short form wins", () => {
    expect(keysOf("", { WATCHDOG_LOCK: "db:x", WATCHDOG_LANE: "gpu" })).toEqual([
      "db:x",
      "lane:gpu",
    ]);
    expect(keysOf("--lock db:y", { WATCHDOG_LOCK: "db:x", WATCHDOG_LANE: "gpu" })).toEqual([
      "db:y",
      "lane:gpu",
    ]);
    expect(keysOf("--lane a --lane b", { WATCHDOG_LANE: "gpu" })).toEqual(["lane:b"]);
  });

  test("of a lane or a task say the same in both forms", () => {
    for (const line of ["--lane gpu --task T42", "--lock lane:gpu --lock task:T42"]) {
      expect(optionsOf(line)).toMatchObject({ lane: "gpu", task: "T42" });
    }
    expect(optionsOf("--lock lane:a --lane b")).toMatchObject({ lane: "b" });
    expect(optionsOf("--lock db:x")).toMatchObject({ lane: undefined, task: undefined });
  });

  test("of a worktree stay a path, because only the run can say which directory it is", () => {
    for (const line of ["--worktree ./w", "--lock worktree:./w", "--worktree ./w --lock=db:x"]) {
      expect(optionsOf(line).worktree).toBe("./w");
      expect(keysOf(line).filter((key) => key.startsWith("worktree:"))).toEqual([]);
    }
    expect(optionsOf("--worktree /a --lock worktree:/a").worktree).toBe("/a");
    expect(optionsOf("--worktree /a --worktree /b").worktree).toBe("/b");
    expect(refusalOf("--worktree /a --lock worktree:/b")).toBe(
      'watchdog: error: a run takes the lease of one worktree, found "/b" and "/a"\n' +
        "watchdog: hint: watchdog help run\n",
    );
  });
});

test("no time to wait is no waiting, and sets aside what a variable says", () => {
  expect(optionsOf("--wait 10m").waitMs).toBe(600_000);
  expect(optionsOf("--wait 0").waitMs).toBeUndefined();
  expect(optionsOf("--wait 0", { WATCHDOG_WAIT: "10m" }).waitMs).toBeUndefined();
  expect(optionsOf("", { WATCHDOG_WAIT: "10m" }).waitMs).toBe(600_000);
});

describe("the interval of beats and the span of silence", () => {
  test("follow each other where only one is given: four intervals, or a quarter", () => {
    const pairs: readonly [string, number, number][] = [
      ["", 10_000, 40_000],
      ["--heartbeat-interval 1s", 1_000, 4_000],
      ["--heartbeat-interval 100ms", 100, 400],
      ["--heartbeat-interval 12h", 43_200_000, 86_400_000],
      ["--stale-after 20s", 5_000, 20_000],
      ["--stale-after 200ms", 100, 200],
      ["--stale-after 1d", 21_600_000, 86_400_000],
      ["--heartbeat-interval 1s --stale-after 2s", 1_000, 2_000],
      ["--stale-after 1d --heartbeat-interval 100ms", 100, 86_400_000],
    ];
    for (const [line, heartbeatIntervalMs, staleAfterMs] of pairs) {
      expect([line, optionsOf(line)]).toEqual([
        line,
        { ...DEFAULT_RUN_OPTIONS, heartbeatIntervalMs, staleAfterMs },
      ]);
    }
    const follows = optionsOf("", { WATCHDOG_HEARTBEAT_INTERVAL: "2s" });
    expect(follows).toMatchObject({ heartbeatIntervalMs: 2_000, staleAfterMs: 8_000 });
  });

  test("hold at least two beats, whoever says which of them", () => {
    expect(refusalOf("--heartbeat-interval 10s --stale-after 19999ms")).toBe(
      "watchdog: error: --stale-after: found 19999ms, expected at least 20s: two intervals of " +
        "--heartbeat-interval\n" +
        "watchdog: hint: watchdog run --heartbeat-interval 10s --stale-after 40s -- ls\n",
    );
    expect(refusalOf("--heartbeat-interval=1m", { WATCHDOG_STALE_AFTER: "30s" })).toBe(
      "watchdog: error: WATCHDOG_STALE_AFTER: found 30s, expected at least 120s: two intervals " +
        "of --heartbeat-interval\n" +
        "watchdog: hint: WATCHDOG_STALE_AFTER=240s watchdog run --heartbeat-interval=1m -- ls\n",
    );
    expect(refusalOf("--stale-after 1s", { WATCHDOG_HEARTBEAT_INTERVAL: "12h" })).toBe(
      "watchdog: error: --stale-after: found 1s, expected at least 86400s: two intervals of " +
        "WATCHDOG_HEARTBEAT_INTERVAL\n" +
        "watchdog: hint: watchdog run --stale-after 86400s -- ls\n",
    );
  });
});

describe("a run without a lease", () => {
  test("asks for none: what is about leases is refused beside it, and the hint drops it", () => {
    for (const line of [
      "--lock db:x",
      "--lock worktree:/w",
      "--lane gpu",
      "--task T42",
      "--worktree /w",
      "--wait 10m",
    ]) {
      const [flag] = line.split(" ");
      const error = `--no-lease runs without a lease, found ${flag}, which is about one`;
      const hint = `watchdog run ${line} -- ls`;
      const shown = `watchdog: error: ${error}\nwatchdog: hint: ${hint}\n`;
      expect(refusalOf(`--no-lease ${line}`)).toBe(shown);
      expect(refusalOf(`${line} --no-lease`)).toBe(shown);
    }
  });

  test("follows the flag where a variable is at odds with it", () => {
    const without = optionsOf("--no-lease", { WATCHDOG_LANE: "gpu", WATCHDOG_WAIT: "5" });
    expect([without.hasLease, without.locks, without.lane, without.waitMs]).toEqual([
      false,
      [],
      undefined,
      undefined,
    ]);
    expect(optionsOf("--lane gpu", { WATCHDOG_NO_LEASE: "yes" }).hasLease).toBe(true);
  });

  test("is refused by the names of two variables that are at odds", () => {
    expect(refusalOf("", { WATCHDOG_LANE: "gpu", WATCHDOG_NO_LEASE: "yes" })).toBe(
      "watchdog: error: WATCHDOG_NO_LEASE runs without a lease, found WATCHDOG_LANE, which is " +
        "about one\nwatchdog: hint: WATCHDOG_NO_LEASE=off watchdog run -- ls\n",
    );
  });

  test("may stand beside what asks for nothing", () => {
    expect(optionsOf("--no-lease --wait 0").hasLease).toBe(false);
    expect(optionsOf("--no-lease --stale-after 20s --conflict-exit-code 0").hasLease).toBe(false);
    expect(optionsOf("--lane gpu", { WATCHDOG_NO_LEASE: "no" }).hasLease).toBe(true);
    expect(optionsOf("--no-lease", { WATCHDOG_LANE: "" }).hasLease).toBe(false);
  });
});

test("the variables of these options are taken away from the command, not those of its run", () => {
  for (const name of ["LOCK", "LANE", "TASK", "WORKTREE", "NO_LEASE", "WAIT", "STALE_AFTER"]) {
    expect([name, isOptionVariable(`WATCHDOG_${name}`)]).toEqual([name, true]);
  }
  for (const name of ["LEASE", "GENERATION"]) {
    expect([name, isOptionVariable(`WATCHDOG_${name}`)]).toEqual([name, false]);
  }
});
