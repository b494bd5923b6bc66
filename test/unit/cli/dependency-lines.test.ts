/**
 * The lines of `retry`, `circuit`, `probe` and `__probe-command`: right ones and wrong ones.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { Cut } from "../../../src/cli/command-line.ts";
import { configSchema } from "../../../src/cli/config-schema.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { RUN_COMMAND } from "../../../src/cli/options-table.ts";
import { EXPECTED_PROBE } from "../../../src/cli/probe-values.ts";
import { RETRY_COMMAND, RETRY_DEFAULTS } from "../../../src/cli/retry-table.ts";
import { EXPECTED } from "../../../src/cli/values.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { DEFAULT_RETRY_BACKOFF } from "../../../src/core/retry-options.ts";
import type { RetryOptions } from "../../../src/core/retry-options.ts";
import { mergeSettings, NO_SETTINGS } from "../../../src/core/settings.ts";
import type { Settings } from "../../../src/core/settings.ts";

const NOWHERE = { stateDir: undefined, configFile: undefined };

function cutOf(line: string, variables: Variables = {}, settings = NO_SETTINGS): Cut {
  return cutCommandLine(line.split(" "), variables, () => settings);
}

function refusalOf(line: string, settings: Settings = NO_SETTINGS): readonly [string, string] {
  try {
    cutOf(line, {}, settings);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect(error.exitStatus).toBe(64);
    return [error.message, (error.hint ?? "").replace(/^watchdog /, "")];
  }
  throw new Error(`not refused: ${line}`);
}

const DEFAULTS: RetryOptions = {
  ...NOWHERE,
  breaker: undefined,
  backoff: DEFAULT_RETRY_BACKOFF,
  attemptTimeoutMs: undefined,
  retryOn: undefined,
  noRetryOn: [],
  buffersStdin: false,
  resultFile: undefined,
  isVerbose: false,
};

describe("retry", () => {
  test("starts its command at the first word that is no option", () => {
    const start = { kind: "retry", options: DEFAULTS } as const;
    expect(cutOf("retry curl -v --retry-on 5")).toEqual({ ...start, commandAt: 1 });
    expect(cutOf("retry -- -x")).toEqual({ ...start, commandAt: 2 });
    expect(cutOf("retry --help")).toEqual({ kind: "help", topic: "retry" });
  });

  test("reaches every field", () => {
    const line =
      "retry --breaker api --backoff 500ms..10s --backoff-factor 1.5 --max-attempts 3 " +
      "--max-elapsed 2m --attempt-timeout 30s --retry-on 28,7 --no-retry-on 1-3 --buffer-stdin " +
      "--result-file r.json -v --state-dir /s --config c.toml -- ls";
    expect(cutOf(line)).toMatchObject({
      kind: "retry",
      options: {
        breaker: "api",
        backoff: {
          initialMs: 500,
          capMs: 10_000,
          factor: 1.5,
          maxAttempts: 3,
          maxElapsedMs: 120_000,
        },
        attemptTimeoutMs: 30_000,
        retryOn: [7, 28],
        noRetryOn: [1, 2, 3],
        buffersStdin: true,
        resultFile: "r.json",
        isVerbose: true,
        stateDir: "/s",
        configFile: "c.toml",
      },
    });
    expect(cutOf("retry --attempt-timeout 0 ls")).toMatchObject({ options: DEFAULTS });
  });

  test("has right examples, states its defaults, and has no variable of its own", () => {
    for (const row of RETRY_COMMAND.rows.filter(takesValue)) {
      expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
      const stated = row.read(row.defaultText);
      if (row.kind === "text" && row.flag !== "--backoff") continue;
      if (stated.kind === "value" && row.kind !== "path") {
        expect(RETRY_DEFAULTS).toMatchObject(stated.value);
      }
    }
    const variables = RETRY_COMMAND.rows.flatMap((row) => row.variable ?? []);
    expect(variables).toEqual(["WATCHDOG_STATE_DIR", "WATCHDOG_CONFIG"]);
    const ofRun = { WATCHDOG_RESULT_FILE: "/r", WATCHDOG_MAX_ATTEMPTS: "1", WATCHDOG_VERBOSE: "1" };
    expect(cutOf("retry ls", ofRun)).toMatchObject({ options: DEFAULTS });
    const taken = new Set(RUN_COMMAND.rows.flatMap((row) => row.variable ?? []));
    expect(taken.has("WATCHDOG_BACKOFF")).toBe(false);
  });

  test("inside of a run asks for no configuration", () => {
    const broken = (): Settings => {
      throw new WatchdogError("config.refused", "broken");
    };
    const inRun = { WATCHDOG_RUN_ID: "r", WATCHDOG_STATE_DIR: "/v" };
    expect(cutCommandLine(["retry", "ls"], inRun, broken)).toMatchObject({
      options: { stateDir: "/v" },
    });
    expect(() => cutCommandLine(["retry", "ls"], {}, broken)).toThrow("broken");
  });

  const wrong: readonly (readonly [line: string, message: string, hint: string])[] = [
    [
      "retry",
      "no command to retry was given, expected watchdog retry [options] [--] COMMAND [ARG...]",
      "help retry",
    ],
    [
      "retry --max-elapsed 500ms ls",
      "--max-elapsed: found a total time of 500 ms below a first delay of 1000 ms, " +
        "expected a total time of at least the first delay",
      "retry --max-elapsed 30s ls",
    ],
    [
      "retry --backoff 10m..20m ls",
      "--backoff: found a total time of 300000 ms below a first delay of 600000 ms, " +
        "expected a total time of at least the first delay",
      "retry --max-elapsed 20m --backoff 10m..20m ls",
    ],
    [
      "retry --retry-on 1-5 --no-retry-on 5 ls",
      "--no-retry-on: found 5, which --retry-on names too, expected each code in one of them",
      "retry --retry-on 1-5 ls",
    ],
    [
      "retry --retry-on 126,127 ls",
      "--retry-on: found 126,127, expected a code beside 126, 127, 64, which are never tried again",
      "retry ls",
    ],
    [
      "retry --retry-on 0 ls",
      `--retry-on: found "0", expected ${EXPECTED.failureCodes}`,
      "retry --retry-on 7,28 ls",
    ],
    [
      "retry --backoff 5s..1s ls",
      "--backoff: found a cap of 1s below a first delay of 5s, " +
        "expected a cap of at least the first delay, such as 1s..30s",
      "retry --backoff 500ms..10s ls",
    ],
    [
      "retry --max-atempts 3 ls",
      'unknown option "--max-atempts", expected an option of watchdog retry; ' +
        "the nearest is --max-attempts",
      "retry --max-attempts 3 ls",
    ],
  ];

  test.each(wrong)("is refused: %s", (line, message, hint) => {
    expect(refusalOf(line)).toEqual([message, hint]);
  });
});

describe("circuit", () => {
  test("lists, shows or closes", () => {
    const list = { kind: "circuit-list", isJson: false, ...NOWHERE } as const;
    expect(cutOf("circuit list")).toEqual(list);
    expect(cutOf("circuit list --json")).toEqual({ ...list, isJson: true });
    const show = { kind: "circuit-show", name: "http://h/#1", isJson: true, ...NOWHERE } as const;
    expect(cutOf("circuit show --json http://h/#1")).toEqual(show);
    const reset = { kind: "circuit-reset", name: "api", ...NOWHERE, stateDir: "/s" } as const;
    expect(cutOf("circuit reset api --state-dir /s")).toEqual(reset);
    expect(cutOf("circuit -h")).toEqual({ kind: "help", topic: "circuit" });
  });

  const expected = "expected circuit list, circuit show or circuit reset";
  const wrong: readonly (readonly [line: string, message: string, hint: string])[] = [
    ["circuit", `circuit alone asks nothing, ${expected}`, "circuit list"],
    ["circuit api", `found "api" behind circuit, ${expected}`, "circuit show api"],
    ["circuit lsit", `found "lsit" behind circuit, ${expected}`, "circuit list"],
    ["circuit --json list", `found "--json" behind circuit, ${expected}`, "circuit list --json"],
    [
      "circuit reset",
      "circuit reset was told nothing to look for, expected watchdog circuit reset [options] NAME",
      "help circuit",
    ],
    [
      "circuit show a b",
      'circuit show takes one word beside its options, found "b" too',
      "circuit show a",
    ],
    [
      "circuit list a",
      'circuit list takes no word beside its options, found "a"',
      "circuit show a",
    ],
    [
      "circuit reset --json a",
      'unknown option "--json", expected an option of watchdog circuit reset',
      "help circuit",
    ],
  ];

  test.each(wrong)("is refused: %s", (line, message, hint) => {
    expect(refusalOf(line)).toEqual([message, hint]);
  });
});

describe("probe", () => {
  const toml = "[run]\nprobe_timeout = 2\n[probes.db]\nurl = 'tcp://db:5432'\nperiod = 60\n";
  const table = Bun.TOML.parse(toml) as Record<string, unknown>;
  const { content } = readConfigTable(table, configSchema());
  const file = { path: "/c", ownerUid: 0, isChosen: false, isHeard: true, content };
  const settings = mergeSettings([file]);

  test("asks each word, as a run would, with what the configuration says", () => {
    const cut = cutOf("probe --check http://h/ --json db --probe-method HEAD", {}, settings);
    expect(cut).toMatchObject({ kind: "probe", isCheck: true, isJson: true, ...NOWHERE });
    const probes = cut.kind === "probe" ? cut.probes : [];
    expect(
      probes.map(({ name, role, target, http, timeoutMs, periodMs }) => [
        name,
        role,
        target.kind,
        http.method,
        timeoutMs,
        periodMs,
      ]),
    ).toEqual([
      [undefined, "liveness", "http", "HEAD", 2_000, 10_000],
      ["db", "liveness", "tcp", "GET", 2_000, 60_000],
    ]);
    expect(cutOf("probe http://h/")).toMatchObject({ isCheck: false, isJson: false });
  });

  test("may take longer than the period of a run, because none follows", () => {
    const cut = cutOf("probe --probe-timeout 30s http://h/");
    expect(cut).toMatchObject({ probes: [{ timeoutMs: 30_000, periodMs: 30_000 }] });
  });

  test("hears the variables of an exchange, and not what is about a run", () => {
    const variables = { WATCHDOG_PROBE_METHOD: "HEAD", WATCHDOG_CHECK: "1", WATCHDOG_PROBE: "x:y" };
    expect(cutOf("probe http://h/", variables)).toMatchObject({
      isCheck: false,
      probes: [{ http: { method: "HEAD" } }],
    });
  });

  const wrong: readonly (readonly [line: string, message: string, hint: string])[] = [
    [
      "probe",
      "probe was told nothing to ask, expected watchdog probe [options] [NAME=]URL|NAME...",
      "help probe",
    ],
    ["probe dbb", `probe: found "dbb", expected ${EXPECTED_PROBE.word}`, "help probe"],
    ["probe db:5432", `probe: found "db:5432", expected ${EXPECTED_PROBE.word}`, "help probe"],
    [
      "probe --probe-method HEAD tcp://h:1",
      "--probe-method is about HTTP, found tcp://h:1 alone, " +
        "expected a probe of http://, https:// or unix:",
      "probe tcp://h:1",
    ],
    [
      "probe --probe-body file:/b http://h/",
      "--probe-body: found a body with GET, expected POST, or another that has a body",
      "probe --probe-method POST --probe-body file:/b http://h/",
    ],
    [
      "probe --probe-period 5 http://h/",
      "--probe-period is about a run, found it with probe, which asks once",
      "probe http://h/",
    ],
    [
      "probe --on-open=pause http://h/",
      "--on-open is about a run, found it with probe, which asks once",
      "probe http://h/",
    ],
  ];

  test.each(wrong)("is refused: %s", (line, message, hint) => {
    expect(refusalOf(line)).toEqual([message, hint]);
  });

  test("of a name that is nearly one is told which", () => {
    const db = content.probes.get("db") ?? { keys: new Map(), startup: new Map() };
    const slip = mergeSettings([
      {
        ...file,
        content: { ...content, probes: new Map([["inference", db]]) },
      },
    ]);
    expect(refusalOf("probe --json inferense", slip)[1]).toBe("probe --json inference");
  });
});

describe("__probe-command and __hook", () => {
  test("are cut as a run writes them: what to do is said in memory", () => {
    expect(cutCommandLine(["__probe-command"], {})).toEqual({ kind: "probe-command" });
    expect(cutCommandLine(["__hook"], {})).toEqual({ kind: "hook" });
  });

  test("are no commands in any other form", () => {
    for (const line of ["__probe-command 5 x", "__hook x", "__hook --help"]) {
      const [message] = refusalOf(line);
      expect(message).toStartWith("unknown command");
    }
  });
});
