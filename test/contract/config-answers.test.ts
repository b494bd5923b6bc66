/** `config show` and `config check` about probes, with a real file. */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerConfigCheck, answerConfigShow } from "../../src/cli/answer-config.ts";
import { makeReadSettings } from "../../src/cli/settings.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-config-answers-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;

function write(text: string): string {
  count += 1;
  const path = join(directory, `${count}.toml`);
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

interface Shown {
  readonly key: string;
  readonly option: string;
  readonly values: readonly string[];
  readonly from: string | null;
}

function show(
  toml: string,
  variables: Record<string, string> = {},
): { readonly settings: readonly Shown[]; readonly troubles: readonly string[]; text: string } {
  const configFile = write(toml);
  const cut = { kind: "config-show", stateDir: undefined, configFile, isJson: true } as const;
  const readSettings = makeReadSettings(() => []);
  const { text = "" } = answerConfigShow(cut, { variables, readSettings });
  return { ...JSON.parse(text), text };
}

function check(toml: string): readonly string[] {
  const configFile = write(toml);
  const cut = { kind: "config-check", stateDir: undefined, configFile, isJson: false } as const;
  const { text = "", code } = answerConfigCheck(cut);
  const lines = text.trimEnd().split("\n");
  expect(code).toBe(lines[0]?.includes("nothing found") === true ? 0 : 1);
  return lines.map((line) => line.replaceAll(configFile, "FILE"));
}

const API = "[probes.api]\nurl = 'https://me:s3cr3t@h/?k=s3cr3t'\nperiod = 20\n";

describe("config show", () => {
  test("tells each setting of a probe with its origin, and no secret of it", () => {
    const run = '[run]\nprobe_header = ["X: s3cr3t", "Y: file:/y"]\n';
    const toml = `${run}${API}[probes.api.startup]\nwait = 90\n`;
    const { settings, troubles, text } = show(toml, { WATCHDOG_PROBE_PERIOD: "30" });
    const ofProbes = settings.filter(({ key }) => key.startsWith("probes."));
    expect(ofProbes.map(({ key, option, values }) => [key, option, values])).toEqual([
      ["probes.api.url", "--probe", ["https://***@h/?***"]],
      ["probes.api.period", "--probe-period", ["30"]],
      ["probes.api.startup.wait", "--probe-startup-wait", ["90"]],
    ]);
    expect(ofProbes.map(({ from }) => from?.endsWith(".toml") === true || from)).toEqual([
      true,
      "WATCHDOG_PROBE_PERIOD",
      true,
    ]);
    const header = settings.find(({ key }) => key === "run.probe_header");
    expect(header?.values).toEqual(["X: ***", "Y: file:/y"]);
    expect([troubles, text.includes("s3cr3t")]).toEqual([[], false]);
    const variable = show("", { WATCHDOG_PROBE: "http://me:s3cr3t@h/" });
    expect(variable.text).not.toContain("s3cr3t");
  });

  test("names a table as it would have to be written", () => {
    const table = '[probes."db.main"]\nurl = "tcp://h:1"\n';
    const toml = `${table}[probes."db.main".startup]\nwait = 9\n`;
    const keys = show(toml).settings.map(({ key }) => key);
    expect(keys.filter((key) => key.startsWith("probes."))).toEqual([
      'probes."db.main".url',
      'probes."db.main".startup.wait',
    ]);
  });

  test("tells which probe every run would be refused for", () => {
    const { troubles } = show(API, { WATCHDOG_PROBE_TIMEOUT: "25" });
    expect(troubles[0]).toContain("WATCHDOG_PROBE_TIMEOUT: found a timeout of 25000 ms above");
  });
});

describe("config check", () => {
  test("finds nothing in tables that can be used", () => {
    expect(check(API)).toEqual(["1 file checked, nothing found"]);
    expect(check("[probes.a]\nca_file = '/c'\n[probes.b]\nurl = 'cmd:true'\n")).toEqual([
      "1 file checked, nothing found",
    ]);
  });

  test("tries each table as a run would have it, and [run] with any probe", () => {
    expect(check(`${API}timeout = 25\n`)).toEqual([
      "probes.api.timeout of FILE: found a timeout of 25000 ms above a period of 20000 ms, " +
        "expected a timeout of at most the period: probes follow one another",
    ]);
    expect(check("[probes.a]\nurl = 'tcp://h:1'\nmethod = 'HEAD'\n")[0]).toStartWith(
      "probes.a.method of FILE: found a setting of HTTP for tcp://h:1",
    );
    expect(check("[probes.a]\ninsecure = true\nca_file = '/c'\n")[0]).toStartWith(
      "probes.a.insecure of FILE: found a CA file for a certificate that nobody looks at",
    );
    const start =
      "[probes.a]\nurl = 'tcp://h:1'\ntimeout = 0.4\n[probes.a.startup]\ntimeout = 90\n";
    expect(check(start)).toEqual([
      "probes.a.startup.timeout of FILE: found a timeout of 90000 ms above a wait of 60000 ms " +
        "for the start, expected a timeout of at most that wait",
    ]);
    expect(check(`${start}wait = '2m'\n`)).toEqual(["1 file checked, nothing found"]);
    expect(check("[run]\nprobe_timeout = 25\n")[0]).toStartWith(
      "probe_timeout of FILE: found a timeout of 25000 ms above a period of 10000 ms",
    );
  });
});
