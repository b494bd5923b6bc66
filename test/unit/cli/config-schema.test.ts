/**
 * What stands in a configuration file: every option by its own reader, and nothing passed over.
 */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  CONFIGURABLE_ROWS,
  configNameOf,
  configSchema,
  JOB_ROWS,
} from "../../../src/cli/config-schema.ts";
import { listLaterFlags } from "../../../src/cli/later-names.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { RUN_COMMAND } from "../../../src/cli/options-table.ts";
import { renderFinding } from "../../../src/cli/settings.ts";
import { EXPECTED } from "../../../src/cli/values.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import type { ConfigReading } from "../../../src/core/config.ts";
import { POLICY_ENTRY_FORMS } from "../../../src/core/policy.ts";

function read(toml: string): ConfigReading {
  return readConfigTable(Bun.TOML.parse(toml) as Record<string, unknown>, configSchema());
}

function findingsOf(toml: string): readonly string[] {
  return read(toml).findings.map((finding) => renderFinding("f", finding));
}

describe("the table [run]", () => {
  test("has every option of run but those of a place and those of one job", () => {
    const missing = RUN_COMMAND.rows.filter((row) => !CONFIGURABLE_ROWS.includes(row));
    expect(missing.map((row) => row.flag).toSorted()).toEqual([
      "--config",
      "--every",
      "--expect-file",
      "--expect-match",
      "--help",
      "--lane",
      "--lock",
      "--name",
      "--ping",
      "--probe",
      "--ready-probe",
      "--result-file",
      "--schedule",
      "--state-dir",
      "--state-group",
      "--task",
      "--time-zone",
      "--worktree",
    ]);
    for (const row of CONFIGURABLE_ROWS) {
      const value = takesValue(row) ? JSON.stringify(row.example) : "true";
      const reading = read(`[run]\n${configNameOf(row.flag)} = ${value}`);
      expect([row.flag, reading.findings]).toEqual([row.flag, []]);
      const expected = takesValue(row) ? row.example : "on";
      expect(reading.content.run.get(configNameOf(row.flag))).toEqual([expected]);
    }
  });

  test("takes numbers, switches and lists where they mean one thing", () => {
    const reading = read(`[run]
      timeout = 5
      idle_cpu = 0.5
      signal = 15
      quiet = false
      conflict_exit_code = 0
      success_exit_codes = [0, 24]`);
    expect(reading.findings).toEqual([]);
    expect(Object.fromEntries(reading.content.run)).toEqual({
      timeout: ["5"],
      idle_cpu: ["0.5"],
      signal: ["15"],
      quiet: ["off"],
      conflict_exit_code: ["0"],
      success_exit_codes: ["0,24"],
    });
  });

  test("refuses every other kind of value and every value that the line would refuse", () => {
    const table: readonly (readonly [string, string])[] = [
      ["timeout = true", "run.timeout: found true, expected a number or a text in quotes"],
      ["timeout = inf", `run.timeout: found Infinity, expected ${EXPECTED.span}`],
      ["timeout = -5", `run.timeout: found -5, expected ${EXPECTED.span}`],
      ['timeout = "5x"', `run.timeout: found "5x", expected ${EXPECTED.span}`],
      ['quiet = "on"', 'run.quiet: found "on", expected true or false'],
      ["quiet = 1", "run.quiet: found 1, expected true or false"],
      ["log = 5", "run.log: found 5, expected a text in quotes"],
      ["not_after = 06:00:00", "found a date or a time without quotes, expected a text in quotes"],
      ['timeout = ["5"]', "run.timeout: found a list, expected a number or a text in quotes"],
      ["success_exit_codes = []", "found an empty list, expected a number"],
      ["success_exit_codes = [0, 256]", `found a list, expected ${EXPECTED.exitCodes}`],
      ["run = {}", "run.run: found an unknown key"],
    ];
    for (const [line, part] of table) {
      const findings = findingsOf(`[run]\n${line}`);
      expect([line, findings.length]).toEqual([line, 1]);
      expect(findings[0]).toContain(part);
    }
  });
});

describe("a table [jobs.NAME]", () => {
  test("has every option of run but those of a place and the name, which is its own", () => {
    const missing = RUN_COMMAND.rows.filter((row) => !JOB_ROWS.includes(row));
    expect(missing.map((row) => row.flag).toSorted()).toEqual([
      "--config",
      "--help",
      "--name",
      "--state-dir",
      "--state-group",
    ]);
    for (const row of JOB_ROWS) {
      const example = row.flag === "--worktree" ? "/srv/repo" : row.example;
      const text = row.flag === "--result-file" ? "/r.json" : example;
      const value = takesValue(row) ? JSON.stringify(text) : "true";
      const reading = read(`[jobs."a b"]\n${configNameOf(row.flag)} = ${value}`);
      expect([row.flag, reading.findings]).toEqual([row.flag, []]);
      const expected = takesValue(row) ? text : "on";
      expect(reading.content.jobs.get("a b")?.get(configNameOf(row.flag))).toEqual([expected]);
    }
  });

  test("refuses what is no job, no option or no absolute path", () => {
    const table: readonly (readonly [string, string])[] = [
      ["jobs = 5", "f: jobs: found 5, expected a table [jobs]"],
      ["[jobs]\nx = 5", "f: jobs.x: found 5, expected a table [jobs.NAME]"],
      ['[jobs."a\\nb"]', 'f: jobs."a\nb": found a name that no job has, expected '],
      ["[jobs.x]\ntiemout = 5", "f: jobs.x.tiemout: found an unknown key"],
      ["[jobs.x]\ntiemout = 5", "; the nearest is timeout"],
      ['[jobs."x.y"]\nname = "z"', 'f: jobs."x.y".name: found a key in the wrong place'],
      ["[jobs.x]\ntimeout = true", "f: jobs.x.timeout: found true, expected a number or a text"],
      ['[jobs.x]\nstore = "x"', "f: jobs.x.store: found a key that is not available in this"],
      ['[jobs.x]\nresult_file = "r"', 'jobs.x.result_file: found "r", expected an absolute path'],
      ['[jobs.x]\nworktree = "."', 'jobs.x.worktree: found ".", expected an absolute path'],
      [
        '[jobs.x]\nlock = ["worktree:."]',
        'jobs.x.lock: found "worktree:.", expected an absolute path',
      ],
      ["[jobs.x.y]\nz = 1", "f: jobs.x.y: found an unknown key"],
    ];
    for (const [toml, part] of table) {
      const findings = findingsOf(toml);
      expect([toml, findings.length]).toEqual([toml, 1]);
      expect(findings[0]).toContain(part);
    }
  });
});

test("what belongs to one job is refused wherever it stands, and nothing is taken of it", () => {
  const names = "name result_file lock lane task worktree probe ready_probe".split(" ");
  for (const name of names) {
    for (const toml of [`[run]\n${name} = "a:b"`, `${name} = ["a:b"]`]) {
      const { content, findings } = read(toml);
      expect([toml, findings.length, content.run.size]).toEqual([toml, 1, 0]);
      expect(findings[0]?.because).toBe("key-of-one-job");
    }
  }
  expect(findingsOf('[run]\nlane = "gpu"')).toEqual([
    "f: run.lane: found an option that belongs to one job, expected it in a table [jobs.NAME], " +
      "or on the line of that job: [run] is for all",
  ]);
});

test("an unknown, a later and a misplaced key are told apart, with the nearest real one", () => {
  const table: readonly (readonly [string, string])[] = [
    ["[run]\ntiemout = 5", "f: run.tiemout: found an unknown key, expected the name of an option"],
    ["[run]\ntiemout = 5", "; the nearest is timeout"],
    ["[run]\nidle-timeout = 5", "; the nearest is idle_timeout"],
    ['[run]\nstore = "x"', "run.store: found a key that is not available in this version"],
    ["[job.x]", "job: found a key that is not available in this version"],
    ['[run]\nstate_dir = "/s"', "expected it at the top of the file, above all tables"],
    ["timeout = 5", "timeout: found a key in the wrong place, expected it in the table [run]"],
    [
      "stat_dir = 5",
      "one of state_dir, state_group, run, jobs, probes, sinks, policy; the nearest is state_dir",
    ],
    ["run = 5", "run: found 5, expected a table [run]"],
    ["[[run]]", "run: found a list, expected a table [run]"],
    ['state_dir = "relative"', 'state_dir: found "relative", expected an absolute path'],
    ['"a b" = 1', 'f: "a b": found an unknown key'],
    ["[__proto__]\nx = 1", "__proto__: found an unknown key"],
    ["[run]\n__proto__ = 1", "run.__proto__: found an unknown key"],
    ["constructor = 1", "constructor: found an unknown key"],
  ];
  for (const [toml, part] of table) {
    const findings = findingsOf(toml);
    expect([toml, findings.length]).toEqual([toml, 1]);
    expect(findings[0]).toContain(part);
  }
  for (const flag of listLaterFlags()) {
    expect(findingsOf(`[run]\n${configNameOf(flag)} = "x"`)[0]).toContain("not available");
  }
});

test("the example of the README is a right one", () => {
  const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  const [, toml = ""] = /```toml\n([\s\S]*?)```/.exec(readme) ?? [];
  const { content, findings } = read(toml);
  expect(findings).toEqual([]);
  expect([content.run.size, Object.keys(content.policy ?? {}).length]).toEqual([5, 3]);
  expect([...content.jobs.keys()]).toEqual(["nightly-backup"]);
});

test("all findings of a file are listed, in its order", () => {
  const toml = "x = 1\n[run]\ny = 1\ntimeout = true\n[probes.a]\nu = 1\n[nosuch]\n[policy]\nz = 1";
  const paths = read(toml).findings.map(({ path }) => path);
  expect(paths).toEqual(["x", "run.y", "run.timeout", "probes.a.u", "nosuch", "policy.z"]);
});

test("the policy is lists of users, uids and groups", () => {
  const reading = read('[policy]\nrun = ["alice", "uid:7", "@ops"]\napprove = []');
  expect(reading.findings).toEqual([]);
  expect(reading.content.policy).toEqual({
    run: [
      { kind: "user", name: "alice" },
      { kind: "uid", uid: 7 },
      { kind: "group", name: "ops" },
    ],
    approve: [],
  });
  expect(read("").content.policy).toBeUndefined();
  expect(findingsOf('[policy]\nrun = ["7"]')[0]).toContain(
    `found "7", expected ${POLICY_ENTRY_FORMS}`,
  );
  expect(findingsOf('[policy]\nrun = "alice"')[0]).toContain("expected a list of a user name");
  expect(findingsOf("[policy]\nrepiar = []")[0]).toContain("the nearest is repair");
});
