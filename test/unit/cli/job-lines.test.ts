/** The lines of watchdog job, and what a job is as a run when its name is known. */

import { describe, expect, test } from "bun:test";
import { NOTHING_ASKED } from "../../../src/core/job-asked.ts";
import type { AskedOfJob } from "../../../src/core/job-asked.ts";
import { NO_CONTENT } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import { mergeSettings, NO_SETTINGS } from "../../../src/core/settings.ts";
import type { Settings } from "../../../src/core/settings.ts";
import { cutJob } from "../../../src/cli/cut-job.ts";
import type { Problem } from "../../../src/cli/cut-options.ts";
import type { Cut } from "../../../src/cli/cut.ts";
import { checkAskedOf, finishJobRun } from "../../../src/cli/finish-job.ts";
import { DEFAULT_RUN_OPTIONS } from "../../../src/cli/finish-run-options.ts";
import { HELP_TEXT } from "../../../src/cli/help-text.ts";
import { flagText, HELP_WIDTH, renderHelp } from "../../../src/cli/help.ts";
import { JOB_COMMANDS, OWN_JOB_ROWS, WHOLE_JOB_ROWS } from "../../../src/cli/job-table.ts";
import { readJobText } from "../../../src/cli/load-job.ts";
import { RUN_COMMAND } from "../../../src/cli/options-table.ts";

const PLACE = { file: "n.yaml", stateDir: undefined, configFile: undefined };

function cutOf(line: string, variables = {}): Cut | Problem {
  return cutJob(["job", ...line.split(" ").filter((word) => word !== "")], variables);
}

function messageOf(line: string): string {
  const cut = cutOf(line);
  if (cut.kind !== "problem") throw new Error(`not refused: ${cut.kind}`);
  return cut.message;
}

/** The lines that are offered instead. */
function repairsOf(line: string): string[] {
  const cut = cutOf(line);
  return cut.kind === "problem" ? cut.repairs.map(({ words }) => words.join(" ")) : [];
}

function askedOf(line: string): AskedOfJob {
  const cut = cutOf(line);
  if (cut.kind === "job-run" || cut.kind === "job-plan") return cut.asked;
  throw new Error(cut.kind === "problem" ? cut.message : cut.kind);
}

function optionsOf(line: string, settings: Settings = NO_SETTINGS, variables = {}): RunOptions {
  const cut = cutOf(line, variables);
  if (cut.kind !== "job-run") throw new Error(cut.kind === "problem" ? cut.message : cut.kind);
  return finishJobRun(cut, "nightly", () => settings);
}

function settingsOf(run: Record<string, string[]>, job: Record<string, string[]>): Settings {
  const jobs = new Map([["nightly", new Map(Object.entries(job))]]);
  const content = { ...NO_CONTENT, run: new Map(Object.entries(run)), jobs };
  return mergeSettings([{ path: "/c", ownerUid: 0, isChosen: false, isHeard: true, content }]);
}

function failureOf(act: () => unknown): WatchdogError {
  try {
    act();
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error("not refused");
}

describe("a line of watchdog job", () => {
  test("is about one file, wherever it stands among the options", () => {
    for (const line of ["run n.yaml", "run -- n.yaml", "run n.yaml --timeout 5"]) {
      expect(cutOf(line)).toMatchObject({ kind: "job-run", ...PLACE, asked: NOTHING_ASKED });
    }
    expect(cutOf("resume n.yaml")).toMatchObject({
      kind: "job-run",
      asked: { ...NOTHING_ASKED, verb: "resume" },
      maxParallel: undefined,
    });
    expect(cutOf("status n.yaml --json")).toEqual({
      kind: "job-status",
      ...PLACE,
      isJson: true,
      isWatching: false,
    });
    expect(cutOf("status --watch n.yaml")).toMatchObject({ isWatching: true });
    expect(cutOf("verify --state-dir /s n.yaml")).toEqual({
      kind: "job-verify",
      ...PLACE,
      stateDir: "/s",
      isJson: false,
    });
    expect(cutOf("schema")).toEqual({ kind: "job-schema" });
    expect(cutOf("--help")).toEqual({ kind: "help", topic: "job" });
    expect(cutOf("plan --help")).toEqual({ kind: "help", topic: "job" });
  });

  test("says which steps run again and what is decided about others", () => {
    expect(askedOf("run --fresh n.yaml").isFresh).toBe(true);
    expect(askedOf("resume --from pack n.yaml").from).toBe("pack");
    expect(askedOf("run --only pack --only=pack n.yaml").only).toBe("pack");
    expect(askedOf("run --redo a --redo b --redo a n.yaml").redo).toEqual(["a", "b"]);
    const decided = askedOf("run --accept-unknown a=done --accept-unknown=b=retry n.yaml");
    expect([...decided.accepted]).toEqual([
      ["a", "done"],
      ["b", "retry"],
    ]);
    const twice = askedOf("run --accept-unknown a=done --accept-unknown a=done n.yaml");
    expect([...twice.accepted]).toEqual([["a", "done"]]);
    expect(cutOf("run --max-parallel 4 n.yaml")).toMatchObject({ maxParallel: 4 });
  });

  test("that says two things about a step is refused, and none of them is offered", () => {
    const lines = [
      ["resume --accept-unknown pay=done --accept-unknown pay=fail", "found done and fail"],
      ["run --only u --only v", 'found "u" and "v"'],
      ["plan --from u --from=v", 'found "u" and "v"'],
    ] as const;
    for (const [line, found] of lines) {
      expect(messageOf(`${line} n.yaml`)).toContain(found);
      expect(repairsOf(`${line} n.yaml`)).toEqual([]);
    }
  });

  test("with --dry-run is one of job plan", () => {
    const plan = { kind: "job-plan", ...PLACE, asked: { ...NOTHING_ASKED, redo: ["a"] } };
    expect(cutOf("plan --redo a n.yaml")).toMatchObject({ ...plan, isJson: false });
    expect(cutOf("run --dry-run --json --redo a n.yaml")).toMatchObject({ ...plan, isJson: true });
    expect(cutOf("resume --dry-run n.yaml")).toMatchObject({
      kind: "job-plan",
      asked: { verb: "resume" },
    });
  });

  test("is not changed by the environment in what is asked of the job", () => {
    const variables = Object.fromEntries(
      OWN_JOB_ROWS.map(({ flag }) => [
        `WATCHDOG_${flag.slice(2).toUpperCase().replaceAll("-", "_")}`,
        "on",
      ]),
    );
    expect(cutOf("run n.yaml", variables)).toEqual(cutOf("run n.yaml"));
  });

  test.each([
    ["", "job alone asks nothing, expected job run, job resume", "help job"],
    ["rnu n.yaml", 'found "rnu" behind job', "job run n.yaml"],
    ["n.yaml", 'found "n.yaml" behind job', "job run n.yaml"],
    ["--json status n.yaml", 'found "--json" behind job', "job status --json n.yaml"],
    ["run", "job run was given no file, expected watchdog job run", undefined],
    ["run a.yaml b.yaml", 'job run is about one file, found "b.yaml" too', "job run a.yaml"],
    ["schema n.yaml", 'job schema takes no word beside its options, found "n.yaml"', "job schema"],
    ["status --fresh n.yaml", 'unknown option "--fresh"', undefined],
    ["resume --fresh n.yaml", 'unknown option "--fresh"', undefined],
    ["run --no-lease n.yaml", 'unknown option "--no-lease"', undefined],
    ["run --probe tcp://h:1 n.yaml", 'unknown option "--probe"', undefined],
    [
      "resume --json n.yaml",
      "and --json is for --dry-run alone: found no --dry-run",
      "job resume --dry-run --json n.yaml",
    ],
    ["run --json n.yaml", "passes on what its steps print", "job run --dry-run --json n.yaml"],
    ["srv/nightly", 'found "srv/nightly" behind job', "job run srv/nightly"],
    [
      "status --json --watch n.yaml",
      "--watch draws a picture, found --json",
      "job status --json n.yaml",
    ],
    ["run --max-parallel 0 n.yaml", 'found "0", expected a number from 1 to 256', undefined],
    ["run --max-parallel 257 n.yaml", 'found "257", expected a number from 1', undefined],
    ["run --accept-unknown a n.yaml", 'found "a", expected a step and retry', undefined],
    ["run --accept-unknown a=yes n.yaml", 'found "a=yes", expected a step and', undefined],
    ["run --accept-unknown =done n.yaml", 'found "=done", expected a step and', undefined],
    ["run --from a --only b n.yaml", "found --only beside it", "job run --only b n.yaml"],
    [
      "run --fresh --accept-unknown a=done n.yaml",
      "found --fresh, which begins anew",
      "job run --accept-unknown a=done n.yaml",
    ],
    [
      "run --redo a --accept-unknown a=done n.yaml",
      'both decide about "a"',
      "job run --accept-unknown a=done n.yaml",
    ],
  ])("that nobody can mean is refused: job %s", (line, message, repair) => {
    expect(messageOf(line)).toContain(message);
    if (repair === undefined) return;
    expect(repairsOf(line)).toContain(repair);
    if (repair.startsWith("job ")) expect(cutOf(repair.slice(4)).kind).not.toBe("problem");
  });

  test.each([
    ["run --accept-unknown mail=rety n.yaml", "expected a step and retry, fail or done, with ="],
    ["run --accept-unknown n.yaml", "expected a step and retry, fail or done"],
    ["run --from --json n.yaml", "--from needs a value"],
    ["run --fres n.yaml", "the nearest is --fresh"],
  ])("is offered no step, and no decision, that nobody has typed: job %s", (line, message) => {
    expect(messageOf(line)).toContain(message);
    const typed = line.split(" ");
    const offered = repairsOf(line).flatMap((repair) => repair.split(" "));
    const added = offered.filter((word) => word !== "job" && !typed.includes(word));
    expect(added).toEqual(line.includes("--from") ? ["--from=--json"] : []);
  });

  test("with a bare word in the place of a command offers to run nothing", () => {
    for (const word of ["list", "ls", "nightly"]) expect(repairsOf(word)).toEqual([]);
  });

  test("has an example for each option", () => {
    for (const { name, rows } of JOB_COMMANDS) {
      const file = name === "job schema" ? [] : ["n.yaml"];
      for (const row of rows) {
        if (row.kind === "request" || row.flag === "--time-zone") continue;
        const value = row.kind === "switch" ? [] : [row.example];
        const alone = row.flag === "--json" && /run|resume/.test(name) ? ["--dry-run"] : [];
        const words = [...name.split(" "), row.flag, ...value, ...alone, ...file];
        expect([row.flag, cutJob(words, {}).kind]).not.toEqual([row.flag, "problem"]);
      }
    }
  });
});

describe("a job as a run", () => {
  test("is called by its file, has the lease of its name, and the defaults of a run", () => {
    expect(optionsOf("run n.yaml")).toEqual({ ...DEFAULT_RUN_OPTIONS, name: "nightly" });
  });

  test("hears the flag, else the variable, else its own table, else that of all", () => {
    const settings = settingsOf({ timeout: ["1"], log: ["on"] }, { timeout: ["2"] });
    const variables = { WATCHDOG_TIMEOUT: "3" };
    expect(optionsOf("run --timeout 4 n.yaml", settings, variables).timeoutMs).toBe(4_000);
    expect(optionsOf("run n.yaml", settings, variables).timeoutMs).toBe(3_000);
    expect(optionsOf("run n.yaml", settings)).toMatchObject({ timeoutMs: 2_000, log: "on" });
    expect(optionsOf("run n.yaml", settingsOf({ timeout: ["1"] }, {})).timeoutMs).toBe(1_000);
  });

  test("has more leases where it is asked for them, and who is told", () => {
    const options = optionsOf("run --lane gpu --wait 5m --every 24h --on failure=./tell n.yaml");
    expect(options).toMatchObject({
      locks: [{ kind: "lane", name: "gpu" }],
      waitMs: 300_000,
      everyMs: 86_400_000,
    });
    expect(options.sinks).toHaveLength(1);
  });

  test("never runs without a lease, whatever a file says of all runs", () => {
    const settings = settingsOf({ no_lease: ["on"], leftovers: ["leave"] }, {});
    expect(optionsOf("run n.yaml", settings)).toMatchObject({
      hasLease: true,
      leftovers: "kill",
    });
  });

  test("is refused what only its steps can have, where its own table asks for it", () => {
    const settings = settingsOf({}, { probe: ["tcp://h:1"] });
    const error = failureOf(() => optionsOf("run n.yaml", settings));
    expect(error.code).toBe("config.refused");
    expect(error.message).toBe(
      "/c: jobs.nightly.probe: found an option that a job of many steps has not as a whole, " +
        "expected it in a step of the job file",
    );
  });

  test("is refused what contradicts itself, as a run is", () => {
    const line = "run --heartbeat-interval 10s --stale-after 5s n.yaml";
    const error = failureOf(() => optionsOf(line));
    expect([error.code, error.message]).toEqual([
      "usage",
      expect.stringContaining("two intervals"),
    ]);
  });

  test("has options of watchdog run, row by row, that are looked over one by one", () => {
    for (const row of WHOLE_JOB_ROWS) expect(RUN_COMMAND.rows).toContain(row);
    const known = new Set(WHOLE_JOB_ROWS.map(({ flag }): string => flag));
    const others = RUN_COMMAND.rows
      .map(({ flag }): string => flag)
      .filter((flag) => !known.has(flag));
    expect(others.filter((flag) => !flag.startsWith("--probe-"))).toEqual([
      "--no-lease",
      "--leftovers",
      "--probe",
      "--ready-probe",
      "--on-open",
      "--on-unready",
      "--count-paused",
      "--expect-file",
      "--expect-output",
      "--expect-match",
      "--fail-match",
      "--min-duration",
      "--strict",
      "--max-fail-rate",
      "--max-consecutive-fails",
      "--name",
      "--success-exit-codes",
      "--state-dir",
      "--config",
      "--help",
    ]);
  });
});

test("a step that is named on the line must be one of the job", () => {
  const text = "name: j\nsteps: { pack: { command: x, side_effects: none } }\n";
  const reading = readJobText(text, "/n.yaml");
  if (reading.kind !== "job") throw new Error("refused");
  const check = (line: string) => () => checkAskedOf(reading.spec, askedOf(line));
  expect(check("run --only pack --redo pack n.yaml")).not.toThrow();
  const error = failureOf(check("run --redo pakc n.yaml"));
  expect(error.exitStatus).toBe(64);
  expect(error.message).toBe(
    '--redo: found "pakc", expected the name of a step; the nearest is pack',
  );
  const gone = failureOf(check("run --accept-unknown pay=done n.yaml"));
  expect([gone.message, gone.hint]).toEqual([
    '--accept-unknown: found "pay", expected the name of a step; one that was taken out of the ' +
      "file must be put back first",
    "watchdog job status /n.yaml",
  ]);
});

test("the help of job fits its width and tells each option once; its examples are cut", () => {
  const text = renderHelp("job", []);
  expect(text.split("\n").filter((line) => line.length > HELP_WIDTH)).toEqual([]);
  const flags = new Set(JOB_COMMANDS.flatMap(({ rows }) => rows.map(flagText)));
  for (const flag of flags) expect([flag, text.split(`\n  ${flag}\n`).length]).toEqual([flag, 2]);
  for (const example of HELP_TEXT.job.examples) {
    const [program, ...words] = example.split(" ");
    expect([program, cutJob(words, {}).kind]).not.toEqual(["watchdog", "problem"]);
  }
});
