/**
 * What the configuration adds to a line: a flag beats a variable, a variable a file.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { NO_CONTENT } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import { mergeSettings } from "../../../src/core/settings.ts";
import type { ConfigFile, Settings } from "../../../src/core/settings.ts";

type Texts = Readonly<Record<string, readonly string[]>>;

function fileOf(path: string, run: Texts, top: Texts = {}): ConfigFile {
  const content = {
    ...NO_CONTENT,
    top: new Map(Object.entries(top)),
    run: new Map(Object.entries(run)),
  };
  return { path, ownerUid: 0, isChosen: false, isHeard: true, content };
}

/** `[run]` of one file, and `[jobs.n]` of another, weaker one. */
function settingsWithJob(run: Texts, job: Texts): Settings {
  const weak = fileOf("/etc", {});
  const jobs = new Map([["n", new Map(Object.entries(job))]]);
  return mergeSettings([{ ...weak, content: { ...weak.content, jobs } }, fileOf("/home", run)]);
}

function settingsOf(run: Texts, top: Texts = {}): Settings {
  return mergeSettings([fileOf("/c", run, top)]);
}

function optionsOf(line: string, settings: Settings, variables: Variables = {}): RunOptions {
  const words = ["run", ...line.split(" ").filter((word) => word !== ""), "--", "ls"];
  const cut = cutCommandLine(words, variables, () => settings);
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  return cut.options;
}

function refusalOf(line: string, settings: Settings, variables: Variables = {}): WatchdogError {
  try {
    optionsOf(line, settings, variables);
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error(`not refused: ${line}`);
}

describe("a run", () => {
  test("hears the flag, else the variable, else the file, else the default", () => {
    const settings = settingsOf({ timeout: ["1"] }, { state_dir: ["/f"], state_group: ["ops"] });
    expect(optionsOf("", settings)).toMatchObject({
      timeoutMs: 1_000,
      stateDir: "/f",
      stateGroup: "ops",
      waitMs: undefined,
    });
    const variables = { WATCHDOG_TIMEOUT: "2", WATCHDOG_STATE_DIR: "/v", WATCHDOG_STATE_GROUP: "" };
    expect(optionsOf("", settings, variables)).toMatchObject({
      timeoutMs: 2_000,
      stateDir: "/v",
      stateGroup: "ops",
    });
    expect(optionsOf("--timeout 3 --state-dir /l", settings, variables)).toMatchObject({
      timeoutMs: 3_000,
      stateDir: "/l",
    });
  });

  test("takes --kill-after of a file or a variable as a default, which ends no clean-up", () => {
    const settings = settingsOf({ kill_after: ["1"] });
    const none = { isKillAfterOnLine: false };
    expect(optionsOf("", settings)).toMatchObject({ killAfterMs: 1_000, ...none });
    const byVariable = optionsOf("", settings, { WATCHDOG_KILL_AFTER: "2" });
    expect(byVariable).toMatchObject({ killAfterMs: 2_000, ...none });
    expect(optionsOf("", settingsOf({}))).toMatchObject({ killAfterMs: undefined, ...none });
    const byFlag = optionsOf("--kill-after 3", settings, { WATCHDOG_KILL_AFTER: "2" });
    expect(byFlag).toMatchObject({ killAfterMs: 3_000, isKillAfterOnLine: true });
  });

  test("has what a file has switched on off again by the variable", () => {
    const settings = settingsOf({ quiet: ["on"] });
    expect(optionsOf("", settings).isQuiet).toBe(true);
    expect(optionsOf("", settings, { WATCHDOG_QUIET: "off" }).isQuiet).toBe(false);
  });

  test("of two spans that follow each other one may stand in a file", () => {
    expect(optionsOf("", settingsOf({ stale_after: ["8s"] })).heartbeatIntervalMs).toBe(2_000);
    const both = settingsOf({ stale_after: ["8s"], heartbeat_interval: ["6s"] });
    const alone = refusalOf("", both);
    expect([alone.code, alone.exitStatus]).toEqual(["config.refused", 78]);
    expect(alone.message).toContain("stale_after of /c: found 8s, expected at least 12s");
    const mixed = refusalOf("--heartbeat-interval 6s", settingsOf({ stale_after: ["8s"] }));
    expect([mixed.code, mixed.hint]).toEqual([
      "usage",
      "watchdog run --stale-after 24s --heartbeat-interval 6s -- ls",
    ]);
  });

  test("without a lease: the stronger of two that contradict each other is heard", () => {
    const wait = settingsOf({ wait: ["5"] });
    const none = settingsOf({ no_lease: ["on"] });
    expect(optionsOf("--no-lease", wait)).toMatchObject({ hasLease: false, waitMs: undefined });
    expect(optionsOf("--lane a", none)).toMatchObject({ hasLease: true, lane: "a" });
    expect(optionsOf("", none, { WATCHDOG_LANE: "a" })).toMatchObject({ hasLease: true });
    expect(optionsOf("", wait, { WATCHDOG_NO_LEASE: "1" })).toMatchObject({ hasLease: false });
    const same = refusalOf("", settingsOf({ wait: ["5"], no_lease: ["on"] }));
    expect([same.code, same.message]).toEqual([
      "config.refused",
      "no_lease of /c runs without a lease, found wait of /c, which is about one",
    ]);
    const weak = fileOf("/etc/c", { no_lease: ["on"] });
    const strong = fileOf("/home/c", { wait: ["5"] });
    expect(optionsOf("", mergeSettings([weak, strong]))).toMatchObject({ hasLease: true });
    const turned = [fileOf("/etc/c", { wait: ["5"] }), fileOf("/home/c", { no_lease: ["on"] })];
    expect(optionsOf("", mergeSettings(turned))).toMatchObject({ hasLease: false });
  });
});

test("every command hears of the state directory, and asks for the file that it was given", () => {
  const settings = settingsOf({}, { state_dir: ["/f"] });
  const lines = [
    "run -- ls",
    "keep -- ls",
    "status",
    "history",
    "logs n",
    "stop n",
    "lease list",
    "lease show a:b",
    "fence -- ls",
  ];
  for (const line of lines) {
    const asked: (string | undefined)[] = [];
    const readSettings = (configFile: string | undefined): Settings => {
      asked.push(configFile);
      return settings;
    };
    const withFile = { WATCHDOG_CONFIG: "c.toml" };
    const cut = cutCommandLine(line.split(" "), withFile, readSettings);
    const place = "options" in cut ? cut.options : cut;
    expect([line, place]).toMatchObject([line, { stateDir: "/f", configFile: "c.toml" }]);
    expect(new Set(asked)).toEqual(new Set(["c.toml"]));
    const own = cutCommandLine(line.split(" "), { WATCHDOG_STATE_DIR: "/v" }, readSettings);
    expect("options" in own ? own.options : own).toMatchObject({ stateDir: "/v" });
  }
});

test("help, version and the check of the configuration do not need one", () => {
  const broken = (): Settings => {
    throw new WatchdogError("config.refused", "broken");
  };
  for (const line of ["help", "--version", "run --help", "config check", "config show"]) {
    expect(cutCommandLine(line.split(" "), {}, broken)).toBeObject();
  }
  for (const line of ["run -- ls", "status", "keep -- ls", "fence"]) {
    expect(() => cutCommandLine(line.split(" "), {}, broken)).toThrow("broken");
  }
  // A wrong line is told first, and a hint that could not be tried is not shown.
  expect(() => cutCommandLine(["run", "--timout", "5", "ls"], {}, broken)).toThrow(
    "unknown option",
  );
});

test("stop takes its span from the line, the variable, then the file", () => {
  const settings = settingsOf({ kill_after: ["2"] });
  const spanOf = (line: string, variables: Variables = {}): number | undefined => {
    const cut = cutCommandLine(line.split(" "), variables, () => settings);
    return cut.kind === "stop" ? cut.killAfterMs : -1;
  };
  expect(spanOf("stop n")).toBe(2_000);
  expect(spanOf("stop n", { WATCHDOG_KILL_AFTER: "3" })).toBe(3_000);
  expect(spanOf("stop n --kill-after 4", { WATCHDOG_KILL_AFTER: "3" })).toBe(4_000);
});

describe("within a run", () => {
  const broken = (): Settings => {
    throw new WatchdogError("config.refused", "broken");
  };
  const inRun = { WATCHDOG_RUN_ID: "r", WATCHDOG_STATE_DIR: "/v" };
  const lines = ["fence", "fence -- ls", "keep -- ls", "fence git-push", "__git-hook pre-push"];

  test("what the run needs asks for no configuration, unless one is named", () => {
    for (const line of lines) {
      const cut = cutCommandLine(line.split(" "), inRun, broken);
      expect("options" in cut ? cut.options : cut).toMatchObject({ stateDir: "/v" });
      const named = { ...inRun, WATCHDOG_CONFIG: "c.toml" };
      expect(() => cutCommandLine(line.split(" "), named, broken)).toThrow("broken");
    }
  });

  test("everything else, and whoever does not know the place, asks for it", () => {
    for (const line of ["run -- ls", "status", "stop n", "repair"]) {
      expect(() => cutCommandLine(line.split(" "), inRun, broken)).toThrow("broken");
    }
    for (const line of lines) {
      for (const missing of ["WATCHDOG_RUN_ID", "WATCHDOG_STATE_DIR"]) {
        const variables = { ...inRun, [missing]: undefined };
        expect(() => cutCommandLine(line.split(" "), variables, broken)).toThrow("broken");
      }
    }
  });
});

describe("the table of a job", () => {
  test("is heard by a run of that name alone, and beats [run] of any file, key by key", () => {
    const settings = settingsWithJob(
      { timeout: ["1"], wait: ["5"] },
      { timeout: ["2"], lock: ["lane:gpu", "a:b"], result_file: ["/r"], probe: ["tcp://h:1"] },
    );
    const named = optionsOf("--name n", settings);
    expect(named).toMatchObject({ timeoutMs: 2_000, waitMs: 5_000, resultFile: "/r", lane: "gpu" });
    expect(named.locks.map(({ kind, name }) => `${kind}:${name}`)).toEqual(["a:b", "lane:gpu"]);
    expect(named.probes.map(({ target }) => target.kind)).toEqual(["tcp"]);
    const others = ["", "--name m"].map((line) => optionsOf(line, settings));
    for (const other of others) {
      expect(other).toMatchObject({ timeoutMs: 1_000, waitMs: 5_000, locks: [], probes: [] });
      expect(other.resultFile).toBeUndefined();
    }
    expect(optionsOf("", settings, { WATCHDOG_NAME: "n" }).timeoutMs).toBe(2_000);
  });

  test("is beaten by the flag and by the variable, also where an option adds", () => {
    const settings = settingsWithJob({}, { timeout: ["2"], lock: ["a:b"], probe: ["tcp://h:1"] });
    const line = "--name n --timeout 3 --lock c:d --probe tcp://i:2";
    const options = optionsOf(line, settings);
    expect([options.timeoutMs, options.locks]).toEqual([3_000, [{ kind: "c", name: "d" }]]);
    expect(options.probes.map(({ target }) => JSON.stringify(target).includes('"i"'))).toEqual([
      true,
    ]);
    expect(optionsOf("--name n", settings, { WATCHDOG_TIMEOUT: "4" }).timeoutMs).toBe(4_000);
  });

  test("is that of the name that a run without one is given", () => {
    const settings = settingsWithJob({}, { timeout: ["2"] });
    const timeoutOf = (name: string | undefined): number | undefined => {
      const places: number[] = [];
      const cut = cutCommandLine(
        ["run", "--", "ls"],
        {},
        () => settings,
        (at) => {
          places.push(at);
          return name;
        },
      );
      expect(places).toEqual([2]);
      return cut.kind === "run" ? cut.options.timeoutMs : -1;
    };
    expect([timeoutOf("n"), timeoutOf("m"), timeoutOf(undefined)]).toEqual([
      2_000,
      undefined,
      undefined,
    ]);
  });

  test("asks for a lease where [run] wants none, and names itself in a refusal", () => {
    const settings = settingsWithJob({ no_lease: ["on"] }, { lane: ["gpu"] });
    expect(optionsOf("--name n", settings)).toMatchObject({ hasLease: true, lane: "gpu" });
    expect(optionsOf("", settings).hasLease).toBe(false);
    const broken = settingsWithJob({}, { heartbeat_interval: ["10"], stale_after: ["11"] });
    const refusal = refusalOf("--name n", broken);
    expect(refusal.message).toStartWith("jobs.n.stale_after of /etc: found 11s, expected");
    expect(refusal.exitStatus).toBe(78);
    const twice = settingsWithJob({}, { every: ["1d"], schedule: ["0 2 * * *"] });
    expect(refusalOf("--name n", twice)).toMatchObject({ code: "config.refused", exitStatus: 78 });
    expect(optionsOf("--name n --every 2d", twice)).toMatchObject({ cron: undefined });
  });

  test("says how long `watchdog stop` waits for the job", () => {
    const settings = settingsWithJob({ kill_after: ["1"] }, { kill_after: ["2"] });
    const graceOf = (name: string): unknown => {
      const cut = cutCommandLine(["stop", name], {}, () => settings);
      return cut.kind === "stop" ? cut.killAfterMs : undefined;
    };
    expect([graceOf("n"), graceOf("m")]).toEqual([2_000, 1_000]);
  });
});
