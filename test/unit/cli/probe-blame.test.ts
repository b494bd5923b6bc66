/**
 * Settings of a probe that contradict each other: the refusal names what the user has written, by
 * the place that is heard, and its hint is about the same files.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { configSchema } from "../../../src/cli/config-schema.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { configNameOf, takesValue, variableOf } from "../../../src/cli/option-row.ts";
import { ANSWER_ROWS, REQUEST_ROWS } from "../../../src/cli/probe-http-rows.ts";
import { PROBE_STARTUP_ROWS, PROBE_TABLE_ROWS } from "../../../src/cli/probe-table-keys.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { mergeSettings } from "../../../src/core/settings.ts";
import type { Settings } from "../../../src/core/settings.ts";

function settingsOf(toml: string): Settings {
  const table = Bun.TOML.parse(toml) as Record<string, unknown>;
  const { content, findings } = readConfigTable(table, configSchema());
  expect(findings).toEqual([]);
  const place = { path: "f.toml", ownerUid: 0, isChosen: true, isHeard: true };
  return mergeSettings([{ ...place, content }]);
}

function refusalOf(line: string, toml: string, variables: Variables = {}): WatchdogError {
  const words = line.split(" ").filter((word) => word !== "");
  const settings = settingsOf(toml);
  try {
    cutCommandLine(words, variables, () => settings);
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error(`not refused: ${line} with ${toml}`);
}

type Place = "line" | "variable" | "[run]" | "table" | "startup";

/** Weakest first. */
const PLACES: readonly Place[] = ["[run]", "table", "startup", "variable", "line"];

type Said = readonly (readonly [flag: string, value: string])[];

/** What stands where, for the probe `db`. */
class Scene {
  readonly variables: Record<string, string> = {};
  #line = "--probe db";
  readonly #tables = { "[run]": "", table: "", startup: "" };
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** @returns how a message calls what was said first; undefined: it cannot be said there */
  say(place: Place, said: Said): string | undefined {
    const names = said.map(([flag, value]) => this.#sayOne(place, flag, value));
    return names.includes(undefined) ? undefined : names[0];
  }

  refusal(): WatchdogError {
    const tables = [
      `[run]\n${this.#tables["[run]"]}`,
      `[probes.db]\nurl = "${this.#url}"\n${this.#tables.table}`,
      `[probes.db.startup]\n${this.#tables.startup}`,
    ];
    return refusalOf(`run ${this.#line} -- ls`, tables.join("\n"), this.variables);
  }

  #sayOne(place: Place, flag: string, value: string): string | undefined {
    if (place === "line") {
      this.#line += value === "on" ? ` ${flag}` : ` ${flag} ${value}`;
      return flag;
    }
    if (place === "variable") {
      this.variables[variableOf(flag)] = value;
      return variableOf(flag);
    }
    const key = place === "[run]" ? configNameOf(flag) : keyIn(place, flag);
    if (key === undefined) return undefined;
    this.#tables[place] += `${key} = ${value === "on" ? "true" : JSON.stringify(value)}\n`;
    const start = { "[run]": "", table: "probes.db.", startup: "probes.db.startup." }[place];
    return `${start}${key} of f.toml`;
  }
}

function keyIn(place: "table" | "startup", flag: string): string | undefined {
  const rows = place === "table" ? PROBE_TABLE_ROWS : PROBE_STARTUP_ROWS;
  return [...rows].find(([, row]) => row.flag === flag)?.[0];
}

interface Case {
  readonly url?: string;
  /** What makes the relation break, the one that is to be named first. */
  readonly said: Said;
  /** What breaks nothing in a weaker place, where it is not heard. */
  readonly decoy: Said;
  readonly found: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "timeout-above-period": {
    said: [["--probe-timeout", "20s"]],
    decoy: [["--probe-timeout", "400ms"]],
    found: "a timeout of 20000 ms above a period of 10000 ms",
  },
  "timeout-above-period, by the period": {
    said: [["--probe-period", "500ms"]],
    decoy: [["--probe-period", "1m"]],
    found: "a timeout of 1000 ms above a period of 500 ms",
  },
  "timeout-above-startup-wait": {
    said: [
      ["--probe-timeout", "5s"],
      ["--probe-startup-wait", "3s"],
    ],
    decoy: [["--probe-timeout", "400ms"]],
    found: "a timeout of 5000 ms above a wait of 3000 ms for the start",
  },
  "timeout-above-startup-wait, by the wait": {
    said: [["--probe-startup-wait", "900ms"]],
    decoy: [["--probe-startup-wait", "2m"]],
    found: "a timeout of 1000 ms above a wait of 900 ms for the start",
  },
  "timeout-above-startup-wait, of the default": {
    said: [
      ["--probe-timeout", "90s"],
      ["--probe-period", "90s"],
    ],
    decoy: [["--probe-timeout", "400ms"]],
    found: "a timeout of 90000 ms above a wait of 60000 ms for the start",
  },
  "elapsed-below-initial": {
    said: [["--probe-max-elapsed", "500ms"]],
    decoy: [["--probe-max-elapsed", "1h"]],
    found: "a total time of 500 ms below a first delay of 1000 ms",
  },
  "elapsed-below-initial, by the delay": {
    said: [["--probe-backoff", "10m..20m"]],
    decoy: [["--probe-backoff", "1s..2s"]],
    found: "a total time of 300000 ms below a first delay of 600000 ms",
  },
  "insecure-with-ca": {
    url: "https://h/",
    said: [
      ["--probe-insecure", "on"],
      ["--probe-ca-file", "/c"],
    ],
    decoy: [["--probe-ca-file", "/d"]],
    found: "a CA file for a certificate that nobody looks at",
  },
  "two-credentials": {
    url: "http://me:pw@h/",
    said: [["--probe-credentials", "file:/c"]],
    decoy: [["--probe-credentials", "file:/d"]],
    found: "credentials by the address and a file",
  },
  "two-credentials, by a header": {
    url: "http://me:pw@h/",
    said: [["--probe-header", "Authorization:file:/a"]],
    decoy: [["--probe-header", "Accept:file:/a"]],
    found: "credentials by the address and a header",
  },
  "body-without-method": {
    url: "http://h/",
    said: [["--probe-body", "file:/b"]],
    decoy: [["--probe-body", "file:/d"]],
    found: "a body with GET",
  },
  "no-body-to-look-at": {
    url: "http://h/",
    said: [
      ["--probe-expect-body", "ok"],
      ["--probe-method", "HEAD"],
    ],
    decoy: [["--probe-method", "GET"]],
    found: "an expected body with HEAD",
  },
  "no-body-to-look-at, by JSON": {
    url: "http://h/",
    said: [
      ["--probe-expect-json", "a=1"],
      ["--probe-method", "HEAD"],
    ],
    decoy: [["--probe-expect-json", "b=1"]],
    found: "an expected body with HEAD",
  },
};

/** Those that a start can break alone. */
const OF_START = [
  "timeout-above-startup-wait",
  "timeout-above-startup-wait, by the wait",
  "elapsed-below-initial",
  "elapsed-below-initial, by the delay",
];

describe("a broken relation", () => {
  const table = Object.entries(CASES).flatMap(([name, each]) =>
    PLACES.filter((place) => place !== "startup" || OF_START.includes(name)).map(
      (place) => [name, place, each] as const,
    ),
  );
  const isWait = ([flag]: readonly [string, string]): boolean => flag === "--probe-startup-wait";

  test.each(table)("%s is told by what stands in the place that is heard: %s", (_, place, each) => {
    const { url = "tcp://db:5432", said, decoy, found } = each;
    const scene = new Scene(url);
    const name = scene.say(place, said);
    // The table itself has no key for the wait.
    expect(name === undefined).toBe(place === "table" && said.some(isWait));
    if (name === undefined) return;
    for (const weaker of PLACES.slice(0, PLACES.indexOf(place))) scene.say(weaker, decoy);
    const refusal = scene.refusal();
    expect(refusal.message).toStartWith(`${name}: found ${found}, expected `);
    const isOfFile = place !== "line" && place !== "variable";
    expect(refusal.exitStatus).toBe(isOfFile ? 78 : 64);
  });

  test("between the places is told by the one that is heard first: it stands on the line", () => {
    const toml = "[run]\nprobe_timeout = 8\n[probes.db]\nurl = 'tcp://db:1'\nperiod = 9\n";
    const period = refusalOf("run --probe db --probe-period 5 -- ls", toml);
    expect(period.message).toStartWith("--probe-period: found a timeout of 8000 ms above");
    expect(period.hint).toBe("watchdog run --probe-timeout 5s --probe db --probe-period 5 -- ls");
    const wait = refusalOf("run --probe db --probe-startup-wait 7 -- ls", toml);
    expect(wait.message).toStartWith("--probe-startup-wait: found a timeout of 8000 ms above");
    expect(wait.hint).toBe("watchdog run --probe db --probe-startup-wait 8s -- ls");
    const variable = refusalOf("run --probe db -- ls", toml, { WATCHDOG_PROBE_PERIOD: "5" });
    expect(variable.message).toStartWith("WATCHDOG_PROBE_PERIOD: found");
  });

  test("is none of what another probe hears", () => {
    const toml = "[probes.db]\nurl = 'http://db/'\ninsecure = true\n";
    const line = "run --probe https://h/ --probe-ca-file /c --probe db -- ls";
    expect(refusalOf(line, toml).message).toStartWith(
      "probes.db.insecure of f.toml: found a setting of TLS for http://db/",
    );
  });

  test("is of the run, where the start has another value of the same option", () => {
    const start = "[probes.db.startup]\ntimeout = 2\nmax_elapsed = '1m'\n";
    const toml = `[probes.db]\nurl = 'tcp://db:1'\ntimeout = 20\n${start}`;
    expect(refusalOf("run --probe db -- ls", toml).message).toStartWith(
      "probes.db.timeout of f.toml: found a timeout of 20000 ms above a period",
    );
  });
});

describe("a detail of HTTP for what does not speak it", () => {
  const rows = [...ANSWER_ROWS, ...REQUEST_ROWS];
  /** The one that is the default would say nothing. */
  const valueOf = (flag: string, example: string): string =>
    flag === "--probe-expect-status" ? "200" : example;
  const details = rows.map((row) => {
    const value = takesValue(row) ? JSON.stringify(valueOf(row.flag, row.example)) : "true";
    return [row.flag, `${keyIn("table", row.flag)} = ${value}`] as const;
  });

  test.each(details)("is told by its own key: %s", (flag, line) => {
    const toml = `[probes.db]\nperiod = 20\n${line}\n`;
    for (const target of ["tcp://a:1", "cmd:true"]) {
      const refusal = refusalOf(`run --probe db=${target} -- ls`, toml);
      expect([refusal.exitStatus, refusal.message]).toEqual([
        78,
        `probes.db.${keyIn("table", flag)} of f.toml: found a setting of HTTP for ${target}, ` +
          "expected that for http, https and unix alone",
      ]);
      expect(refusalOf(`probe db=${target}`, toml).message).toBe(refusal.message);
    }
  });

  test.each(rows)("is told by its flag on the line: $flag", ({ flag, example, kind }) => {
    const option = kind === "switch" ? [flag] : [flag, example];
    const words = ["run", "--probe", "tcp://a:1", ...option, "--", "ls"];
    expect(() => cutCommandLine(words, {})).toThrow(`${flag} is about `);
  });

  test("of all that are wrong is the first, and a proxy for a socket is told the same way", () => {
    const both = "[probes.db]\nexpect_body = 'ok'\nmethod = 'HEAD'\n";
    expect(refusalOf("run --probe db=tcp://a:1 -- ls", both).message).toStartWith(
      "probes.db.method of f.toml: found a setting of HTTP",
    );
    expect(
      refusalOf("run --probe db=unix:/s -- ls", "[probes.db]\nproxy = true\n").message,
    ).toStartWith("probes.db.proxy of f.toml: found a proxy for a unix socket");
  });

  test("stands in a table that another line may use for HTTP", () => {
    const toml = "[probes.db]\nurl = 'tcp://a:1'\nexpect_status = '200'\n";
    const settings = settingsOf(toml);
    const cut = cutCommandLine(["run", "--probe", "db=http://a/", "ls"], {}, () => settings);
    expect(cut.kind).toBe("run");
    expect(refusalOf("run --probe db -- ls", toml).message).toStartWith(
      "probes.db.expect_status of f.toml: found",
    );
  });
});

describe("one rule for the timeout and the wait of a start", () => {
  const toml = "[probes.db]\nurl = 'tcp://db:1'\n[probes.db.startup]\nwait = 2\ntimeout = 3\n";

  test("wherever they stand, and for the default of either", () => {
    const clause = "expected a timeout of at most that wait";
    expect(refusalOf("run --probe db -- ls", toml).message).toEndWith(clause);
    const table = [
      ["--probe-startup-wait 2 --probe-timeout 3", "--probe-startup-wait 3s --probe-timeout 3"],
      ["--probe-startup-wait 500ms", "--probe-startup-wait 1s"],
      [
        "--probe-timeout 90s --probe-period 90s",
        "--probe-startup-wait 90s --probe tcp://db:1 --probe-timeout 90s --probe-period 90s",
      ],
    ] as const;
    for (const [options, repaired] of table) {
      const refusal = refusalOf(`run --probe tcp://db:1 ${options} -- ls`, "");
      expect([refusal.exitStatus, refusal.message.endsWith(clause)]).toEqual([64, true]);
      const hint = repaired.includes("--probe ") ? repaired : `--probe tcp://db:1 ${repaired}`;
      expect(refusal.hint).toBe(`watchdog run ${hint} -- ls`);
    }
  });

  test("holds at its edge, and not for what no start asks", () => {
    const accepted = (line: string): void => {
      const settings = settingsOf(toml);
      expect(cutCommandLine(line.split(" "), {}, () => settings)).toBeObject();
    };
    accepted("run --probe tcp://db:1 --probe-startup-wait 3 --probe-timeout 3 -- ls");
    accepted("run --ready-probe tcp://db:1 --probe-timeout 90s --probe-period 90s -- ls");
    accepted("run --ready-probe db -- ls");
    accepted("probe --probe-timeout 90s tcp://db:1");
    accepted("probe db");
  });
});

describe("the hint of a refusal of the configuration", () => {
  const broken = "[probes.db]\nurl = 'tcp://db:1'\ntimeout = 20\nbody = 'x'\n";

  test("shows the same files", () => {
    const show = "watchdog config show";
    const other = "[run]\nstale_after = '1s'\nheartbeat_interval = '1s'\n";
    const table: readonly (readonly [line: string, toml: string, hint: string])[] = [
      ["run --probe db -- ls", broken, show],
      ["run --config f.toml --probe db -- ls", broken, `${show} --config f.toml`],
      ["run --config=f.toml -- ls", other, `${show} --config f.toml`],
      ["probe --config f.toml db", broken, `${show} --config f.toml`],
      ["probe db", broken, show],
    ];
    for (const [line, toml, hint] of table) {
      expect([line, refusalOf(line, toml).hint]).toEqual([line, hint]);
    }
  });

  test("names the file that a variable has named, and quotes it", () => {
    const variables = { WATCHDOG_CONFIG: "my f.toml" };
    expect(refusalOf("run --probe db -- ls", broken, variables).hint).toBe(
      "watchdog config show --config 'my f.toml'",
    );
  });
});
