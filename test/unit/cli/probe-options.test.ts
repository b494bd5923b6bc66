/**
 * The options about probes, one by one: what their values may be, what holds without them, and that
 * no secret in them is shown.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { PROBE_ROWS } from "../../../src/cli/probe-options.ts";
import { EXCHANGE_ROWS, PROBE_SETTING_ROWS } from "../../../src/cli/probe-setting-rows.ts";
import type { ProbeSaid } from "../../../src/cli/probe-setting.ts";
import { EXPECTED_PROBE } from "../../../src/cli/probe-values.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { EXPECTED } from "../../../src/cli/values.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { DEFAULT_HTTP, defaultProbeSettings } from "../../../src/core/probe-settings.ts";
import type { ProbeSettings } from "../../../src/core/probe-settings.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";

const URL_WORDS = ["--probe", "https://h/"];

function optionsOf(words: readonly string[]): RunOptions {
  const cut = cutCommandLine(["run", ...words, "--", "ls"], {});
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  return cut.options;
}

function probeOf(words: readonly string[]): ProbeSettings {
  const [probe] = optionsOf([...URL_WORDS, ...words]).probes;
  if (probe === undefined) throw new Error("no probe");
  return probe;
}

function refusalOf(words: readonly string[], variables = {}): string {
  try {
    cutCommandLine(words, variables);
  } catch (error) {
    if (error instanceof WatchdogError && error.code === "usage") return renderError(error);
    throw error;
  }
  throw new Error(`not refused: ${words.join(" ")}`);
}

/** All on one level, as options say it. */
function flat(settings: ProbeSettings): Partial<ProbeSaid> {
  return { ...settings, ...settings.backoff, ...settings.http };
}

describe("the table", () => {
  test("has an example that its own reader accepts for each option with a value", () => {
    const rows = PROBE_ROWS.filter(takesValue);
    expect(rows.length).toBe(24);
    for (const row of rows) {
      expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
    }
    expect(EXCHANGE_ROWS.every((row) => PROBE_SETTING_ROWS.includes(row))).toBe(true);
  });

  test("states the defaults that are in force", () => {
    const { target } = probeOf([]);
    const defaults = flat(defaultProbeSettings("liveness", target));
    const without = new Map<string, Partial<ProbeSaid>>([
      ["--probe-failure-window", { failureWindow: undefined }],
      ["--probe-expect-body", { expectBody: undefined }],
      ["--probe-expect-json", { expectJson: [] }],
      ["--probe-header", { headers: [] }],
      ["--probe-body", { body: undefined, bodyFile: undefined }],
      ["--probe-credentials", { credentialsFile: undefined }],
      ["--probe-ca-file", { caFile: undefined }],
    ]);
    for (const row of PROBE_SETTING_ROWS) {
      const parsed = row.read(row.defaultText);
      const stated =
        without.get(row.flag) ??
        (parsed.kind === "value" ? parsed.value.probing.said.fields : undefined);
      expect([row.flag, stated]).not.toEqual([row.flag, undefined]);
      expect(defaults).toMatchObject(stated ?? {});
    }
    expect(optionsOf([])).toMatchObject({ probes: [], readyProbes: [], countsPaused: false });
  });

  test("names a variable for each option, and a key of [run] for all but the two that ask", () => {
    for (const row of PROBE_ROWS) {
      expect(row.variable).toBe(`WATCHDOG_${row.flag.slice(2).replaceAll("-", "_").toUpperCase()}`);
    }
  });
});

test("every option reaches its field", () => {
  const words = `--on-open pause --probe-startup-wait 2m --probe-period 20s --probe-timeout 3s
    --probe-initial-delay 1m --probe-failure-threshold 5 --probe-failure-window 5/20
    --probe-success-threshold 2 --probe-backoff 2s..1m --probe-backoff-factor 1.5
    --probe-max-attempts 10 --probe-max-elapsed 30m --probe-expect-status 200,302
    --probe-expect-body ^ok --probe-expect-json a.b=1 --probe-expect-json c=x=y
    --probe-max-bytes 64KiB --probe-method POST --probe-body {} --probe-credentials file:login
    --probe-ca-file ca.pem --probe-proxy --count-paused`.split(/\s+/);
  const headers = ["--probe-header", "Accept:  text/plain ", "--probe-header", "X-Key: file:/k"];
  const all = [...URL_WORDS, ...words, ...headers];
  const options = optionsOf(all);
  expect(options.countsPaused).toBe(true);
  expect(options.probes).toEqual([
    {
      ...defaultProbeSettings("liveness", probeOf([]).target),
      onOpen: "pause",
      startupWaitMs: 120_000,
      periodMs: 20_000,
      timeoutMs: 3_000,
      initialDelayMs: 60_000,
      failureThreshold: 5,
      failureWindow: { failures: 5, size: 20 },
      successThreshold: 2,
      backoff: {
        initialMs: 2_000,
        capMs: 60_000,
        factor: 1.5,
        maxAttempts: 10,
        maxElapsedMs: 1_800_000,
      },
      http: {
        ...DEFAULT_HTTP,
        expectStatus: [
          { from: 200, to: 200 },
          { from: 302, to: 302 },
        ],
        expectBody: "^ok",
        expectJson: [
          { path: "a.b", value: "1" },
          { path: "c", value: "x=y" },
        ],
        maxBytes: 65_536,
        method: "POST",
        body: "{}",
        credentialsFile: "login",
        caFile: "ca.pem",
        usesProxy: true,
        headers: [
          { name: "Accept", value: "text/plain" },
          { name: "X-Key", value: "", file: "/k" },
        ],
      },
    },
  ]);
  expect(probeOf(["--probe-insecure"]).http.isInsecure).toBe(true);
  const body = probeOf(["--probe-method", "PUT", "--probe-body", "file:b.json"]).http;
  expect([body.body, body.bodyFile]).toEqual([undefined, "b.json"]);
  const [ready] = optionsOf(["--ready-probe", "tcp://h:1", "--on-unready", "notify"]).readyProbes;
  expect(ready).toMatchObject({ role: "readiness", onUnready: "notify" });
});

test("a wrong value is refused with what is expected, and a line that works", () => {
  const long = "9".repeat(70);
  const table: readonly (readonly [flag: string, texts: readonly string[], expected: string])[] = [
    ["--probe", ["ftp://h/", "http://", "db:5432", "tcp://h"], "expected "],
    ["--probe-period", ["0", "5x"], EXPECTED.span],
    ["--probe-failure-threshold", ["0", "1001", "1.5", long], EXPECTED_PROBE.threshold],
    ["--probe-failure-window", ["5", "6/5", "0/1", "1/2/3", "1/1001"], EXPECTED_PROBE.window],
    ["--probe-backoff", ["1s", "1s..", "1s..2s..3s"], EXPECTED_PROBE.spans],
    ["--probe-backoff-factor", ["0.9", "1001", "x", "1.", "-1"], EXPECTED_PROBE.factor],
    ["--probe-max-attempts", ["0", "1000001", "1e3"], EXPECTED_PROBE.attempts],
    ["--probe-expect-status", ["199", "600", "300-200", "2xx", ""], EXPECTED_PROBE.status],
    ["--probe-expect-body", ["(", ""], EXPECTED_PROBE.pattern],
    ["--probe-expect-json", ["a", "=b", "a..b=1"], EXPECTED_PROBE.json],
    ["--probe-method", ["get", "CONNECT", "TRACE", "A B", ""], EXPECTED_PROBE.method],
    ["--probe-header", ["X", ": v", "a b: v", "X: a\nb", "Te: x"], EXPECTED_PROBE.header],
    ["--probe-header", ["X: file:", "Content-Length: 1"], EXPECTED_PROBE.header],
    ["--probe-body", ["file:", ""], EXPECTED_PROBE.body],
    ["--probe-credentials", ["me:secret", "file:", ""], EXPECTED_PROBE.file],
    ["--probe-max-bytes", ["0", "65MiB"], EXPECTED_PROBE.maxBytes],
    ["--on-open", ["freeze"], "one of stop, pause, notify"],
    ["--on-unready", ["stop"], "one of pause, notify"],
  ];
  for (const [flag, texts, expected] of table) {
    for (const text of texts) {
      const said = refusalOf(["run", `${flag}=${text}`, "ls"]);
      expect(said).toStartWith(`watchdog: error: ${flag}: found "`);
      expect(said).toContain(expected);
    }
  }
});

describe("a secret", () => {
  const SECRET = "s3cr3t";
  const lines: readonly (readonly string[])[] = [
    ["run", "--probe", `http://me:${SECRET}@`, "ls"],
    ["run", "--probe", `api=ftp://h/?token=${SECRET}`, "ls"],
    ["run", "--probe", `cmd:`, "--probe-header", `X: ${SECRET}`, "ls"],
    ["run", "--probe-header", SECRET, "ls"],
    ["run", "--probe-header", `Bad Name: ${SECRET}`, "ls"],
    ["run", "--probe-header", `X: ${SECRET}\n`, "ls"],
    ["run", `--probe-credentials=me:${SECRET}`, "ls"],
    ["run", "--probe-headr", `X: ${SECRET}`, "ls"],
    ["run", `--probe-headr=X: ${SECRET}`, "ls"],
    ["run", "--timout", "5", "--probe", `http://h/?k=${SECRET}`, "ls"],
    ["run", "--timeout", "5x", "--probe", `http://h/?k=${SECRET}`, "ls"],
    ["run", "--probe", `http://h/?k=${SECRET}`, "--probe-period", "500ms", "ls"],
    ["run", "--probe", `http://h/?k=${SECRET}`, "--probe", `http://h/?k=${SECRET}`, "ls"],
    ["run", "--probe", `http://me:${SECRET}@h/`, "--probe-credentials", "file:/c", "ls"],
    ["run", "--probe-header", `X: ${SECRET}`, "ls"],
    ["run", "--probe", "tcp://h:1", "--probe-body", SECRET, "ls"],
    ["run", "--probe", "http://h/", "--probe-body", SECRET, "ls"],
    ["--probe", `http://me:${SECRET}@h/`, "run", "ls"],
    ["prob", `http://me:${SECRET}@h/`],
    ["probee", `http://h/?k=${SECRET}`],
    ["probe", `http://me:${SECRET}@`],
    ["probe", "--jsn", `http://me:${SECRET}@h/`],
    ["probe", `api=http://h/?k=${SECRET}`, "--probe-timeout", "0"],
  ];

  test.each(lines.map((words) => [words.join(" "), words] as const))(
    "is in no word of the refusal of %s",
    (_, words) => {
      expect(refusalOf(words)).not.toContain(SECRET);
    },
  );

  test("of a variable is not shown either", () => {
    const variables = { WATCHDOG_PROBE_HEADER: SECRET, WATCHDOG_PROBE: "http://h/" };
    expect(refusalOf(["run", "ls"], variables)).not.toContain(SECRET);
    const address = { WATCHDOG_PROBE: `http://me:${SECRET}@` };
    expect(refusalOf(["run", "ls"], address)).not.toContain(SECRET);
  });

  test("is what hides a hint, and nothing else is", () => {
    const words = ["run", "--timout", "5", "--probe", "http://h/", "--probe-header"];
    expect(refusalOf([...words, "X: file:/k", "ls"])).toContain("hint: watchdog run --timeout 5");
    expect(refusalOf([...words, "X: y", "ls"])).toContain("hint: watchdog help run");
  });
});
