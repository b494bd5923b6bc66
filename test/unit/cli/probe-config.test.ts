/**
 * Probes in the configuration: what the tables may hold, and which of all places is heard.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { configSchema } from "../../../src/cli/config-schema.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { PROBE_STARTUP_ROWS, PROBE_TABLE_ROWS } from "../../../src/cli/probe-table-keys.ts";
import { EXPECTED_PROBE } from "../../../src/cli/probe-values.ts";
import { renderFinding } from "../../../src/cli/settings.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import type { ConfigReading } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { startupOf } from "../../../src/core/probe-settings.ts";
import type { ProbeSettings } from "../../../src/core/probe-settings.ts";
import { mergeSettings } from "../../../src/core/settings.ts";
import type { Settings } from "../../../src/core/settings.ts";

function read(toml: string): ConfigReading {
  return readConfigTable(Bun.TOML.parse(toml) as Record<string, unknown>, configSchema());
}

function findingsOf(toml: string): readonly string[] {
  return read(toml).findings.map((finding) => renderFinding("f", finding));
}

/** Of files, the weakest first. */
function settingsOf(...tomls: readonly string[]): Settings {
  return mergeSettings(
    tomls.map((toml, at) => {
      const { content, findings } = read(toml);
      expect(findings).toEqual([]);
      return { path: `/c${at}`, ownerUid: 0, isChosen: false, isHeard: true, content };
    }),
  );
}

function probeOf(line: string, settings: Settings, variables: Variables = {}): ProbeSettings {
  const cut = cutCommandLine(["run", ...line.split(" "), "--", "ls"], variables, () => settings);
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  const [probe] = [...cut.options.probes, ...cut.options.readyProbes];
  if (probe === undefined) throw new Error(`no probe: ${line}`);
  return probe;
}

function refusalOf(line: string, settings: Settings): WatchdogError {
  try {
    probeOf(line, settings);
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error(`not refused: ${line}`);
}

const DB = '[probes.db]\nurl = "tcp://db:5432"\n';

describe("a table [probes.NAME]", () => {
  test("has a key for every setting, without probe_, and so has the one for the start", () => {
    for (const [place, rows] of [
      ["probes.x", PROBE_TABLE_ROWS],
      ["probes.x.startup", PROBE_STARTUP_ROWS],
    ] as const) {
      for (const [name, row] of rows) {
        expect(name).not.toStartWith("probe_");
        const value = takesValue(row) ? JSON.stringify(row.example) : "true";
        const { content, findings } = read(`[${place}]\n${name} = ${value}`);
        expect([place, name, findings]).toEqual([place, name, []]);
        const table = content.probes.get("x");
        const keys = place === "probes.x" ? table?.keys : table?.startup;
        expect(keys?.get(name)).toEqual([takesValue(row) ? row.example : "on"]);
      }
    }
    expect([...PROBE_STARTUP_ROWS.keys()]).toEqual([
      "wait",
      "timeout",
      "backoff",
      "backoff_factor",
      "max_attempts",
      "max_elapsed",
    ]);
  });

  test("takes lists, numbers and switches where they mean one thing", () => {
    const { content, findings } = read(`[probes.api]
      url = "https://h/"
      expect_status = [200, 302]
      expect_json = ["a=1", "b=2"]
      header = "Accept: text/plain"
      failure_threshold = 5
      backoff_factor = 1.5
      insecure = true`);
    expect(findings).toEqual([]);
    expect(Object.fromEntries(content.probes.get("api")?.keys ?? [])).toEqual({
      url: ["https://h/"],
      expect_status: ["200,302"],
      expect_json: ["a=1", "b=2"],
      header: ["Accept: text/plain"],
      failure_threshold: ["5"],
      backoff_factor: ["1.5"],
      insecure: ["on"],
    });
  });

  const wrong: readonly (readonly [toml: string, part: string])[] = [
    ["probes = 5", "f: probes: found 5, expected a table [probes]"],
    ['[probes]\nurl = "x"', 'f: probes.url: found "x", expected a table [probes.NAME]'],
    [
      '[probes."a b"]',
      'f: probes."a b": found a name that no probe has, expected a name of 1 to 64',
    ],
    ["[probes.x]\nperiodd = 5", "probes.x.periodd: found an unknown key"],
    ["[probes.x]\nperiodd = 5", "; the nearest is period"],
    [
      "[probes.x]\nprobe_period = 5",
      "probes.x.probe_period: found a key in the wrong place, " +
        "expected it without probe_, as period = ...",
    ],
    ["[probes.x]\nstartup_wait = 5", "expected it in the table [probes.x.startup], as wait = ..."],
    ["[probes.x]\nwait = 5", "expected it in the table [probes.x.startup], as wait = ..."],
    ["[probes.x.startup]\nperiod = 5", "expected it in the table [probes.x]"],
    [
      "[probes.x.startup]\nwate = 5",
      "probes.x.startup.wate: found an unknown key, expected one of wait, timeout",
    ],
    ["[probes.x]\nstartup = 5", "probes.x.startup: found 5, expected a table [probes.x.startup]"],
    ['[probes.x]\nurl = "db:5432"', 'probes.x.url: found "db:5432", expected http://'],
    ["[probes.x]\nurl = 5", "probes.x.url: found 5, expected a text in quotes"],
    ['[probes.x]\nperiod = "0"', 'probes.x.period: found "0", expected a span'],
    ["[probes.x]\nexpect_json = []", "found an empty list, expected a text in quotes, or a list"],
    ['[probes.x]\nexpect_json = ["a=1", "b"]', `found "b", expected ${EXPECTED_PROBE.json}`],
    ['[probes.x]\nca_file = "ca.pem"', 'found "ca.pem", expected an absolute path'],
    ['[probes.x]\ncredentials = "file:c"', 'found "file:c", expected an absolute path'],
    ['[probes.x]\nbody = "file:b"', 'found "file:b", expected an absolute path'],
    ['[probes.x]\nheader = ["A: file:h"]', 'found "A: file:h", expected an absolute path'],
    ['[run]\nprobe_ca_file = "ca.pem"', 'found "ca.pem", expected an absolute path'],
    ["[probe.x]", "f: probe: found an option that belongs to one job"],
  ];

  test.each(wrong)("with something wrong is refused: %s", (toml, part) => {
    const findings = findingsOf(toml);
    expect(findings.length).toBe(1);
    expect(findings[0]).toContain(part);
  });

  test("has no secret in what is said about it", () => {
    for (const line of [
      'url = "http://me:s3cr3t@"',
      'header = "Bad Name: s3cr3t"',
      'header = ["A: b", "s3cr3t"]',
      'credentials = "me:s3cr3t"',
    ]) {
      expect(findingsOf(`[probes.x]\n${line}`).join()).not.toContain("s3cr3t");
    }
  });
});

describe("what a run hears", () => {
  const run = "[run]\nprobe_period = 20\nprobe_method = 'HEAD'\nprobe_header = ['A: 1', 'B: 2']\n";
  const api = "[probes.api]\nurl = 'http://h/'\nperiod = 30\n";

  test("is the flag, else the variable, else the table of the probe, else [run]", () => {
    const settings = settingsOf(`${run}${api}`);
    const period = (line: string, variables = {}): number =>
      probeOf(line, settings, variables).periodMs;
    expect(period("--probe http://h/")).toBe(20_000);
    expect(period("--probe api")).toBe(30_000);
    expect(period("--probe api", { WATCHDOG_PROBE_PERIOD: "40" })).toBe(40_000);
    expect(period("--probe api --probe-period 50", { WATCHDOG_PROBE_PERIOD: "40" })).toBe(50_000);
    expect(probeOf("--probe api", settings)).toMatchObject({ name: "api", target: { host: "h" } });
  });

  test("is of headers the list of one place, not of all", () => {
    const names = (line: string, toml: string): readonly string[] =>
      probeOf(line, settingsOf(run + toml)).http.headers.map(({ name }) => name);
    expect(names("--probe api", api)).toEqual(["A", "B"]);
    expect(names("--probe api", `${api}header = "C: 3"\n`)).toEqual(["C"]);
    expect(names("--probe api --probe-header D:4", `${api}header = "C: 3"\n`)).toEqual(["D"]);
  });

  test("is the table with another URL, where NAME=URL says so", () => {
    const settings = settingsOf(`${run}${api}`);
    const probe = probeOf("--probe api=http://other/", settings);
    expect([probe.name, probe.periodMs]).toEqual(["api", 30_000]);
    expect(probe.target).toMatchObject({ host: "other" });
  });

  test("is of two files the stronger one, key by key", () => {
    const settings = settingsOf(`${api}timeout = 2\n`, "[probes.api]\nperiod = 60\n");
    expect(probeOf("--probe api", settings)).toMatchObject({ periodMs: 60_000, timeoutMs: 2_000 });
  });

  test("is of [run] what the target can use, but of its own table all", () => {
    expect(probeOf("--probe db", settingsOf(run + DB)).http.method).toBe("GET");
    const refusal = refusalOf("--probe db", settingsOf(`${DB}method = "HEAD"\n`));
    expect([refusal.code, refusal.message]).toEqual([
      "config.refused",
      "probes.db.method of /c0: found a setting of HTTP for tcp://db:5432, " +
        "expected that for http, https and unix alone",
    ]);
  });

  test("is for the start what its own table says, where neither flag nor variable does", () => {
    const start = "[probes.api.startup]\nwait = '5m'\ntimeout = 5\nbackoff = '2s..4s'\n";
    const settings = settingsOf(`${api}timeout = 2\n${start}`);
    const probe = probeOf("--probe api", settings);
    expect([probe.startupWaitMs, probe.timeoutMs, probe.backoff.capMs]).toEqual([
      300_000, 2_000, 30_000,
    ]);
    expect(startupOf(probe)).toEqual({
      timeoutMs: 5_000,
      backoff: { ...probe.backoff, initialMs: 2_000, capMs: 4_000 },
    });
    const told = probeOf("--probe api --probe-timeout 3 --probe-startup-wait 1m", settings);
    expect([told.startupWaitMs, startupOf(told).timeoutMs]).toEqual([60_000, 3_000]);
    expect(probeOf("--probe api", settingsOf(api))).not.toContainKey("startup");
    expect(probeOf("--ready-probe api", settings)).toMatchObject({
      role: "readiness",
      startupWaitMs: 60_000,
    });
  });
});

test("authorities and a certificate that nobody looks at: the stronger one is heard", () => {
  const tls = (line: string, toml: string): readonly unknown[] => {
    const { http } = probeOf(`--probe https://h/ ${line}`.trim(), settingsOf(toml));
    return [http.caFile, http.isInsecure];
  };
  expect(tls("--probe-ca-file /a", "[run]\nprobe_insecure = true")).toEqual(["/a", false]);
  expect(tls("--probe-insecure", "[run]\nprobe_ca_file = '/f'")).toEqual([undefined, true]);
  expect(tls("", "[run]\nprobe_ca_file = '/f'")).toEqual(["/f", false]);
  expect(tls("--probe-ca-file /a", "[run]\nprobe_ca_file = '/f'")).toEqual(["/a", false]);
  const both = settingsOf("[run]\nprobe_insecure = true\nprobe_ca_file = '/f'");
  expect(refusalOf("--probe https://h/", both).exitStatus).toBe(78);
});

describe("what a run is refused for", () => {
  test("stands in the file: 78 and the key; or on the line: 64", () => {
    const settings = settingsOf("[probes.api]\nurl = 'http://h/'\ntimeout = 20\n");
    const alone = refusalOf("--probe api", settings);
    expect([alone.code, alone.exitStatus, alone.hint]).toEqual([
      "config.refused",
      78,
      "watchdog config show",
    ]);
    expect(alone.message).toStartWith("probes.api.timeout of /c0: found a timeout of 20000 ms");
    const mixed = refusalOf("--probe api --probe-period 5", settings);
    expect([mixed.code, mixed.hint]).toEqual([
      "usage",
      "watchdog run --probe-timeout 5s --probe api --probe-period 5 -- ls",
    ]);
    const beaten = refusalOf("--probe api --probe-timeout 40", settings);
    expect([beaten.code, beaten.message.split(":")[0]]).toEqual(["usage", "--probe-timeout"]);
    const start = settingsOf("[probes.api]\nurl = 'http://h/'\n[probes.api.startup]\ntimeout = 90");
    expect(refusalOf("--probe api", start).message).toStartWith(
      "probes.api.startup.timeout of /c0: found a timeout of 90000 ms above a wait of 60000 ms",
    );
  });

  test("is a name that no table has, with the nearest one, or a table without a url", () => {
    const settings = settingsOf(`${DB}[probes.inference]\nperiod = 5\n`);
    const slip = refusalOf("--probe inferense --probe db", settings);
    expect(slip.message).toEndWith("of the configuration; the nearest is inference");
    const near = refusalOf("--probe=dbb", settingsOf("[probes.dba]\nurl = 'tcp://h:1'\n"));
    expect(near.hint).toBe("watchdog run --probe=dba -- ls");
    const dotted = refusalOf("--probe db.main", settingsOf('[probes."db.main"]\nperiod = 5\n'));
    expect(dotted.message).toContain('whose table [probes."db.main"] has no url');
    const bare = refusalOf("--probe inference", settings);
    expect([bare.code, bare.message]).toEqual([
      "usage",
      '--probe: found "inference", whose table [probes.inference] has no url, ' +
        "expected inference=URL",
    ]);
  });
});
