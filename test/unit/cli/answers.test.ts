/**
 * The cut of the commands that wrap no other: what they are asked about, wherever it stands.
 */

import { describe, expect, test } from "bun:test";
import { ANSWER_COMMANDS } from "../../../src/cli/answers-table.ts";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { Cut } from "../../../src/cli/command-line.ts";
import { TOPICS } from "../../../src/cli/first-word.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { DEFAULT_HISTORY_LIMIT, DEFAULT_SINCE_MS } from "../../../src/cli/cut.ts";
import { EXPECTED_LEASE } from "../../../src/cli/lease-values.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { DEFAULT_KILL_AFTER_MS } from "../../../src/core/run-options.ts";

const RUN_ID = "01930000-0000-7000-8000-00000000000a";
const NOWHERE = { stateDir: undefined, configFile: undefined };

function expectCuts(table: readonly (readonly [string, Cut])[], variables: Variables = {}): void {
  for (const [line, cut] of table) {
    expect([line, cutCommandLine(line.split(" "), variables)]).toEqual([line, cut]);
  }
}

function refusalOf(line: string, variables: Variables = {}): string {
  try {
    cutCommandLine(line.split(" "), variables);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect(error.exitStatus).toBe(64);
    return renderError(error);
  }
  throw new Error(`not refused: ${line}`);
}

function expectRefusals(table: readonly (readonly [string, string, string])[]): void {
  for (const [line, error, hint] of table) {
    const shown = `watchdog: error: ${error}\nwatchdog: hint: watchdog ${hint}\n`;
    expect([line, refusalOf(line)]).toEqual([line, shown]);
  }
}

test("status and history ask about all jobs or about one", () => {
  const all = { name: undefined, isJson: false, ...NOWHERE } as const;
  const status = { ...all, kind: "status", isWatching: false } as const;
  const history = { ...all, kind: "history", limit: DEFAULT_HISTORY_LIMIT } as const;
  expectCuts([
    ["status", status],
    ["status --json", { ...status, isJson: true }],
    ["status --watch nightly", { ...status, name: "nightly", isWatching: true }],
    ["status nightly", { ...status, name: "nightly" }],
    ["status status", { ...status, name: "status" }],
    ["history", history],
    ["history nightly --limit 5", { ...history, name: "nightly", limit: 5 }],
    ["history --json --limit=5", { ...history, isJson: true, limit: 5 }],
  ]);
});

test("report asks about a span, and why about one job", () => {
  const page = { htmlFile: undefined, isJson: false } as const;
  const report = { kind: "report", sinceMs: 86_400_000, ...page, ...NOWHERE } as const;
  const why = { kind: "why", target: "nightly", isJson: false, ...NOWHERE } as const;
  expectCuts([
    ["report", report],
    ["report --since 12h --json", { ...report, sinceMs: 43_200_000, isJson: true }],
    ["report --html=p.html", { ...report, htmlFile: "p.html" }],
    ["why nightly", why],
    ["why --json nightly", { ...why, isJson: true }],
  ]);
  expect(refusalOf("report nightly")).toStartWith("watchdog: error: report takes no word");
  expect(refusalOf("report --since yesterday")).toStartWith("watchdog: error: --since: found");
  expect(refusalOf("why")).toStartWith("watchdog: error: why was told nothing to look for");
});

test("the word that is asked about may stand anywhere, and behind -- look like an option", () => {
  const asked = { name: "n", isJson: true, isWatching: false } as const;
  const cut = { kind: "status", ...asked, ...NOWHERE, stateDir: "/s" } as const;
  expectCuts([
    ["status n --json --state-dir /s", cut],
    ["status --json n --state-dir /s", cut],
    ["status --json --state-dir /s n", cut],
    ["status --json --state-dir=/s -- n", cut],
    ["status n --json --state-dir /s --", cut],
    ["status --json --state-dir /s -- --json", { ...cut, name: "--json" }],
    ["status --json --state-dir /s -", { ...cut, name: "-" }],
  ]);
});

test("logs and stop ask about one run, by its name or its id", () => {
  const stop = { kind: "stop", killAfterMs: undefined, ...NOWHERE } as const;
  expectCuts([
    ["logs nightly", { kind: "logs", target: "nightly", ...NOWHERE }],
    [`logs ${RUN_ID} --state-dir /s`, { kind: "logs", target: RUN_ID, ...NOWHERE, stateDir: "/s" }],
    ["stop nightly", { ...stop, target: "nightly" }],
    ["stop nightly --kill-after 0", { ...stop, target: "nightly", killAfterMs: 0 }],
    [`stop --kill-after=1m ${RUN_ID}`, { ...stop, target: RUN_ID, killAfterMs: 60_000 }],
  ]);
});

test("lease lists all keys or shows one", () => {
  const list = { kind: "lease-list", isJson: false, ...NOWHERE } as const;
  const key = { kind: "lane", name: "a:b" };
  const show = { kind: "lease-show", key, isJson: false, ...NOWHERE } as const;
  expectCuts([
    ["lease list", list],
    ["lease list --json --state-dir /s", { ...list, isJson: true, stateDir: "/s" }],
    ["lease show lane:a:b", show],
    ["lease show lane:a:b --json", { ...show, isJson: true }],
    ["lease show --state-dir /s lane:a:b", { ...show, stateDir: "/s" }],
  ]);
});

test("variables say where to look and when to kill, and nothing about the answer", () => {
  const variables = {
    WATCHDOG_STATE_DIR: "/v",
    WATCHDOG_KILL_AFTER: "3",
    WATCHDOG_JSON: "on",
    WATCHDOG_LIMIT: "1",
    WATCHDOG_TIMEOUT: "x",
    WATCHDOG_STORE: "x",
  };
  const history = {
    ...NOWHERE,
    kind: "history",
    name: "n",
    isJson: false,
    limit: DEFAULT_HISTORY_LIMIT,
  } as const;
  const stop = { ...NOWHERE, kind: "stop", target: "n", stateDir: "/v" } as const;
  expectCuts(
    [
      ["history n", { ...history, kind: "history", stateDir: "/v" }],
      ["history n --state-dir /s", { ...history, kind: "history", stateDir: "/s" }],
      ["stop n", { ...stop, killAfterMs: 3_000 }],
      ["stop n --kill-after 4", { ...stop, killAfterMs: 4_000 }],
    ],
    variables,
  );
  expect(refusalOf("stop n", { WATCHDOG_KILL_AFTER: "soon" })).toEndWith(
    "watchdog: hint: WATCHDOG_KILL_AFTER=30s watchdog stop n\n",
  );
});

test("each has its help, with --help anywhere among its options", () => {
  expectCuts([
    ["help status", { kind: "help", topic: "status" }],
    ["--help lease", { kind: "help", topic: "lease" }],
    ["status n --help", { kind: "help", topic: "status" }],
    ["history -h", { kind: "help", topic: "history" }],
    ["logs --help", { kind: "help", topic: "logs" }],
    ["lease --help", { kind: "help", topic: "lease" }],
    ["lease -h", { kind: "help", topic: "lease" }],
    ["lease list --help", { kind: "help", topic: "lease" }],
    ["lease show --help", { kind: "help", topic: "lease" }],
    ["stop --kill-after 5 --help", { kind: "help", topic: "stop" }],
  ]);
});

describe("a wrong line", () => {
  test("with too little or too much is told what is asked about", () => {
    expectRefusals([
      [
        "logs",
        "logs was told nothing to look for, expected watchdog logs [options] JOB|KEY|RUN_ID",
        "help logs",
      ],
      [
        "stop --kill-after 5",
        "stop was told nothing to look for, expected watchdog stop [options] JOB|KEY|RUN_ID",
        "help stop",
      ],
      [
        "status a b --json",
        'status takes one word beside its options, found "b" too',
        "status a --json",
      ],
      [
        "lease list lane:gpu",
        'lease list takes no word beside its options, found "lane:gpu"',
        "lease show lane:gpu",
      ],
      ["lease list gpu", 'lease list takes no word beside its options, found "gpu"', "lease list"],
    ]);
    expectRefusals([
      [
        "status -- a --json",
        'status takes one word beside its options, found "--json" too',
        "status -- a",
      ],
    ]);
    expect(refusalOf("status ")).toContain('status: found "", expected the name of a job');
    expect(refusalOf("logs \uFFFD")).toContain(
      "expected the name of a job, a key such as lane:gpu, or the id of a run",
    );
  });

  test("of lease is put right as far as it can be", () => {
    const expected = "expected lease list, lease show or lease explain";
    expectRefusals([
      ["lease", `lease alone asks nothing, ${expected}`, "lease list"],
      ["lease lst", `found "lst" behind lease, ${expected}`, "lease list"],
      ["lease shwo lane:gpu", `found "shwo" behind lease, ${expected}`, "lease show lane:gpu"],
      ["lease job:x --json", `found "job:x" behind lease, ${expected}`, "lease show job:x --json"],
      ["lease --json list", `found "--json" behind lease, ${expected}`, "lease list --json"],
      ["lease explian job:x", `found "explian" behind lease, ${expected}`, "lease explain job:x"],
      [
        "lease explain nightly",
        `lease explain: found "nightly", expected ${EXPECTED_LEASE.key}`,
        "lease explain job:nightly",
      ],
      [
        "lease show nightly --json",
        `lease show: found "nightly", expected ${EXPECTED_LEASE.key}`,
        "lease show job:nightly --json",
      ],
      [
        "lease show --json 01900000-0000-7000-8000-000000000000",
        `lease show: found the id of a run, expected ${EXPECTED_LEASE.key}`,
        "status --json 01900000-0000-7000-8000-000000000000",
      ],
      [
        "lease show",
        "lease show was told nothing to look for, expected watchdog lease show [options] KEY",
        "help lease",
      ],
    ]);
  });

  test("with an option that is another's, or too early, is told whose it is", () => {
    const commands = `expected a command of watchdog: ${[...TOPICS, "help"].join(", ")}`;
    expectRefusals([
      [
        "status --limit 5",
        'unknown option "--limit", expected an option of watchdog status',
        "help status",
      ],
      [
        "lease list --jsn",
        'unknown option "--jsn", expected an option of watchdog lease list; the nearest is --json',
        "lease list --json",
      ],
      [
        "logs n --json",
        'unknown option "--json", expected an option of watchdog logs',
        "help logs",
      ],
      [
        "status --store x",
        "--store is not available in this version: " +
          "leases of more than one machine come with a later version",
        "help status",
      ],
      ["--json history n", `"--json" is an option of a command, ${commands}`, "history --json n"],
      ["--json", `"--json" is an option of a command, ${commands}`, "status --json"],
      [
        "--state-dir /s lease list",
        `"--state-dir" is an option of a command, ${commands}`,
        "lease list --state-dir /s",
      ],
      ["statsu n", `unknown command "statsu", ${commands}; the nearest is status`, "status n"],
      [
        "history --limit 0",
        `--limit: found "0", expected ${EXPECTED_LEASE.limit}`,
        "history --limit 5",
      ],
    ]);
  });
});

describe("__bury", () => {
  test("is cut as the guard writes it", () => {
    const cut = { kind: "bury", runId: RUN_ID, stateDir: "/s" } as const;
    expectCuts([[`__bury ${RUN_ID} /s`, cut]], { WATCHDOG_STATE_DIR: "/v", WATCHDOG_TIMEOUT: "x" });
  });

  test("is refused in any other form, because it kills", () => {
    for (const rest of ["", ` ${RUN_ID}`, ` ${RUN_ID} s`, ` nightly /s`, ` ${RUN_ID} /s /t`]) {
      expect(refusalOf(`__bury${rest}`)).toBe(
        "watchdog: error: __bury is for the guard of a run, expected its id and a directory\n" +
          "watchdog: hint: watchdog --help\n",
      );
    }
    expect(refusalOf("__bury --help")).toContain("is for the guard");
    expect(refusalOf("_bury")).not.toContain("the nearest");
  });
});

test("the table has an example that its own reader accepts, and states the defaults", () => {
  expect(ANSWER_COMMANDS.length).toBe(12);
  const defaults = {
    limit: DEFAULT_HISTORY_LIMIT,
    killAfterMs: DEFAULT_KILL_AFTER_MS,
    sinceMs: DEFAULT_SINCE_MS,
  };
  const isRead = new Set<string>();
  for (const row of ANSWER_COMMANDS.flatMap((command) => command.rows).filter(takesValue)) {
    expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
    const parsed = row.read(row.defaultText);
    if (parsed.kind === "refused" || row.kind === "path") continue;
    isRead.add(row.flag);
    expect(defaults).toMatchObject(parsed.value);
  }
  expect([...isRead]).toEqual(["--limit", "--since", "--kill-after"]);
});
