/**
 * All probes of a line together: one set of options for each, what cannot stand together, and
 * options that nobody could use.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { EXPECTED_PROBE } from "../../../src/cli/probe-values.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { circuitNameOf } from "../../../src/core/probe-settings.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";

function optionsOf(line: string, variables: Variables = {}): RunOptions {
  const words = ["run", ...line.split(" ").filter((word) => word !== ""), "--", "ls"];
  const cut = cutCommandLine(words, variables);
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  return cut.options;
}

function refusalOf(line: string, variables: Variables = {}): readonly [string, string] {
  try {
    optionsOf(line, variables);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect(error.code).toBe("usage");
    return [error.message, error.hint ?? ""];
  }
  throw new Error(`not refused: ${line}`);
}

const HTTP = "http://h/";
const TCP = "tcp://db:5432";

describe("one set of options", () => {
  test("holds for each probe, as far as it can use it", () => {
    const line = `--probe ${HTTP} --probe db=${TCP} --probe https://s/ --ready-probe unix:/x.sock`;
    const settings = "--probe-period 20s --probe-method HEAD --probe-ca-file /c --probe-proxy";
    const { probes, readyProbes } = optionsOf(`${line} ${settings} --on-open pause`);
    const seen = [...probes, ...readyProbes].map(({ role, target, periodMs, onOpen, http }) => [
      role,
      target.kind,
      periodMs,
      onOpen,
      http.method,
      http.caFile,
      http.usesProxy,
    ]);
    expect(seen).toEqual([
      ["liveness", "http", 20_000, "pause", "HEAD", undefined, true],
      ["liveness", "tcp", 20_000, "pause", "GET", undefined, false],
      ["liveness", "https", 20_000, "pause", "HEAD", "/c", true],
      ["readiness", "unix", 20_000, "stop", "HEAD", undefined, false],
    ]);
    expect(probes.map(({ name }) => name)).toEqual([undefined, "db", undefined]);
  });

  test("is of the flag, else of the variable; a probe may come from a variable too", () => {
    const variables = { WATCHDOG_PROBE: HTTP, WATCHDOG_PROBE_PERIOD: "20s" };
    expect(optionsOf("", variables).probes[0]?.periodMs).toBe(20_000);
    expect(optionsOf("--probe-period 30s", variables).probes[0]?.periodMs).toBe(30_000);
    const own = optionsOf(`--probe ${TCP}`, variables).probes;
    expect(own.map(({ target }) => target.kind)).toEqual(["tcp"]);
  });

  test("of headers and expectations adds up, of anything else the last one counts", () => {
    const line = `--probe ${HTTP} --probe-header A:1 --probe-header B:2 --probe-method HEAD`;
    const [probe] = optionsOf(`${line} --probe-method GET`, {
      WATCHDOG_PROBE_HEADER: "C: 3",
    }).probes;
    expect(probe?.http.headers.map(({ name }) => name)).toEqual(["A", "B"]);
    expect(probe?.http.method).toBe("GET");
  });
});

describe("an option that nobody could use", () => {
  const table: readonly (readonly [line: string, message: string, hint: string])[] = [
    [
      "--probe-timeout 2s",
      "--probe-timeout is about probes, found none, expected --probe or --ready-probe with it",
      "--probe http://localhost:8080/health --probe-timeout 2s",
    ],
    [
      "--on-open pause",
      "--on-open is about --probe, found none, expected --probe with it",
      "--probe http://localhost:8080/health --on-open pause",
    ],
    [
      "--on-unready pause",
      "--on-unready is about --ready-probe, found none, expected --ready-probe with it",
      "--ready-probe http://localhost:8080/ready --on-unready pause",
    ],
    [
      `--probe ${TCP} --probe-expect-status 200`,
      `--probe-expect-status is about HTTP, found --probe ${TCP} alone, ` +
        "expected a probe of http://, https:// or unix:",
      `--probe ${TCP}`,
    ],
    [
      `--probe ${HTTP} --probe ${TCP} --probe-insecure`,
      `--probe-insecure is about TLS, found --probe ${HTTP} and others, ` +
        "expected a probe of https://",
      `--probe ${HTTP} --probe ${TCP}`,
    ],
    [
      "--probe unix:/x.sock --probe-proxy",
      "--probe-proxy is about a proxy, found --probe unix:/x.sock alone, " +
        "expected a probe of http:// or https://",
      "--probe unix:/x.sock",
    ],
    [
      `--ready-probe ${HTTP} --probe-backoff 1s..2s`,
      `--probe-backoff is about --probe, found --ready-probe ${HTTP} alone, ` +
        "expected --probe with it",
      `--ready-probe ${HTTP}`,
    ],
    [
      `--probe ${HTTP} --on-unready notify`,
      `--on-unready is about --ready-probe, found --probe ${HTTP} alone, ` +
        "expected --ready-probe with it",
      `--probe ${HTTP}`,
    ],
    [
      `--probe ${HTTP} --count-paused`,
      "--count-paused is about a tree that is paused, found no probe that pauses one, " +
        "expected --on-open pause or --on-unready pause",
      `--probe ${HTTP}`,
    ],
    [
      "--count-paused",
      "--count-paused is about probes, found none, expected --probe or --ready-probe with it",
      "help run",
    ],
  ];

  test.each(table)("is refused on the line: %s", (line, message, hint) => {
    const shown = hint === "help run" ? "watchdog help run" : `watchdog run ${hint} -- ls`;
    expect(refusalOf(line)).toEqual([message, shown]);
  });

  test("is passed over where a variable says it, which is for many lines", () => {
    const variables = {
      WATCHDOG_PROBE_TIMEOUT: "2s",
      WATCHDOG_PROBE_EXPECT_STATUS: "200",
      WATCHDOG_ON_UNREADY: "notify",
      WATCHDOG_COUNT_PAUSED: "on",
    };
    expect(optionsOf("", variables)).toMatchObject({ probes: [], countsPaused: true });
    expect(optionsOf(`--probe ${TCP}`, variables).probes[0]?.timeoutMs).toBe(2_000);
  });

  test("is none where one probe can use it", () => {
    for (const line of [
      `--probe ${TCP} --ready-probe ${HTTP} --probe-expect-status 200`,
      `--probe ${TCP} --probe https://h/ --probe-insecure`,
      `--ready-probe ${HTTP} --count-paused`,
      `--probe ${HTTP} --on-open pause --count-paused`,
    ]) {
      expect(optionsOf(line)).toBeObject();
    }
  });
});

describe("a relation that does not hold", () => {
  const table: readonly (readonly [line: string, message: string, hint: string])[] = [
    [
      `--probe ${HTTP} --probe-timeout 15s`,
      "--probe-timeout: found a timeout of 15000 ms above a period of 10000 ms, " +
        "expected a timeout of at most the period: probes follow one another",
      `--probe ${HTTP} --probe-timeout 10s`,
    ],
    [
      `--probe ${HTTP} --probe-period 500ms`,
      "--probe-period: found a timeout of 1000 ms above a period of 500 ms, " +
        "expected a timeout of at most the period: probes follow one another",
      `--probe-timeout 500ms --probe ${HTTP} --probe-period 500ms`,
    ],
    [
      `--probe ${HTTP} --probe-max-elapsed 500ms`,
      "--probe-max-elapsed: found a total time of 500 ms below a first delay of 1000 ms, " +
        "expected a total time of at least the first delay",
      `--probe ${HTTP} --probe-max-elapsed 30s`,
    ],
    [
      "--probe https://h/ --probe-ca-file /c --probe-insecure",
      "--probe-insecure: found a CA file for a certificate that nobody looks at, " +
        "expected one of both",
      "--probe https://h/ --probe-ca-file /c",
    ],
    [
      `--probe ${HTTP} --probe-credentials file:/c --probe-header Authorization:file:/a`,
      "--probe-credentials: found credentials by a file and a header, expected one of them",
      `--probe ${HTTP} --probe-header Authorization:file:/a`,
    ],
    [
      `--probe ${HTTP} --probe-body file:/b`,
      "--probe-body: found a body with GET, expected POST, or another that has a body",
      `--probe-method POST --probe ${HTTP} --probe-body file:/b`,
    ],
    [
      `--probe ${HTTP} --probe-method HEAD --probe-expect-body ok`,
      "--probe-expect-body: found an expected body with HEAD, " +
        "expected a method that is answered by one",
      `--probe ${HTTP} --probe-method GET --probe-expect-body ok`,
    ],
    [
      `--probe ${HTTP} --probe-header A:file:/1 --probe-header a:file:/2`,
      "--probe-header: found a twice, expected each header once",
      `--probe ${HTTP} --probe-header A:file:/1`,
    ],
  ];

  test.each(table)("is refused: %s", (line, message, hint) => {
    expect(refusalOf(line)).toEqual([message, `watchdog run ${hint} -- ls`]);
  });

  test("of one of more probes is told with its target", () => {
    const [message] = refusalOf(
      `--probe ${TCP} --probe http://h/x?y --probe-method HEAD --probe-expect-body ok`,
    );
    expect(message).toEndWith("expected a method that is answered by one (http://h/x)");
  });

  test("may come from a variable, which the hint sets right", () => {
    const [message, hint] = refusalOf(`--probe ${HTTP}`, { WATCHDOG_PROBE_TIMEOUT: "15s" });
    expect(message).toStartWith("WATCHDOG_PROBE_TIMEOUT: found a timeout of 15000 ms");
    expect(hint).toBe(`WATCHDOG_PROBE_TIMEOUT=10s watchdog run --probe ${HTTP} -- ls`);
  });
});

describe("two probes", () => {
  test("of one circuit are refused, by URL or by name", () => {
    const [message, hint] = refusalOf(`--probe ${HTTP} --probe ${HTTP}`);
    const [probe] = optionsOf(`--probe ${HTTP}`).probes;
    expect(message).toBe(
      `--probe: found two with the name "${probe === undefined ? "" : circuitNameOf(probe)}", ` +
        "expected each once, or with a name of its own as NAME=URL",
    );
    expect(hint).toBe(`watchdog run --probe ${HTTP} -- ls`);
    expect(refusalOf(`--probe a=${HTTP} --probe a=${TCP}`)[0]).toContain('two with the name "a"');
    expect(refusalOf(`--ready-probe ${HTTP} --ready-probe ${HTTP}`)[0]).toContain("two with");
  });

  test("with names of their own, and one of each role, are no twins", () => {
    expect(optionsOf(`--probe a=${HTTP} --probe b=${HTTP}`).probes.length).toBe(2);
    expect(optionsOf(`--probe a=${HTTP} --ready-probe a=${HTTP}`)).toBeObject();
  });
});

test("a bare name is one of the configuration, or it is refused", () => {
  const [message, hint] = refusalOf("--probe db");
  expect(message).toBe(`--probe: found "db", expected ${EXPECTED_PROBE.word}`);
  expect(hint).toBe("watchdog help run");
  expect(refusalOf("", { WATCHDOG_READY_PROBE: "db" })[0]).toStartWith(
    'WATCHDOG_READY_PROBE: found "db"',
  );
});
