/**
 * Values that are refused as a whole: the sentence names what is wrong between their parts, on the
 * line, in the environment and in a file.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { configSchema } from "../../../src/cli/config-schema.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { renderFinding } from "../../../src/cli/settings.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";

function refusalOf(line: string, variables: Variables = {}): WatchdogError {
  try {
    cutCommandLine(line.split(" "), variables);
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
  throw new Error(`not refused: ${line}`);
}

describe("two waits of a backoff that do not fit", () => {
  const table = [
    ["30s..1s", "a cap of 1s below a first delay of 30s, expected a cap of at least the first"],
    ["90..1m", "a cap of 1m below a first delay of 90s, expected a cap of at least"],
    ["0s..1s", "a first delay of 0s, expected more than 0"],
    ["1s..0s", "a cap of 0s below a first delay of 1s, expected a cap of at least the first"],
    ["0..0", "a first delay of 0s, expected more than 0"],
  ] as const;

  test.each(table)("are told as the relation that is broken: %s", (text, clause) => {
    const run = refusalOf(`run --probe tcp://a:1 --probe-backoff ${text} -- ls`);
    expect(run.message).toStartWith(`--probe-backoff: found ${clause}`);
    expect(run.message).toEndWith(", such as 1s..30s");
    expect(run.exitStatus).toBe(64);
    expect(run.hint).toContain("--probe-backoff 2s..1m");
    const variables = { WATCHDOG_PROBE_BACKOFF: text };
    expect(refusalOf("run --probe tcp://a:1 -- ls", variables).message).toStartWith(
      `WATCHDOG_PROBE_BACKOFF: found ${clause}`,
    );
    const retry = refusalOf(`retry --backoff ${text} ls`);
    expect([retry.exitStatus, retry.message.split(", expected")[0]]).toEqual([
      64,
      `--backoff: found ${clause.split(", expected")[0]}`,
    ]);
  });

  test.each(table)("are told so in a file, too: %s", (text, clause) => {
    const paths = ["run.probe_backoff", "probes.db.backoff", "probes.db.startup.backoff"];
    for (const path of paths) {
      const [place, key] = [path.slice(0, path.lastIndexOf(".")), path.split(".").at(-1)];
      const parsed = Bun.TOML.parse(`[${place}]\n${key} = "${text}"\n`) as Record<string, unknown>;
      const { findings } = readConfigTable(parsed, configSchema());
      expect(findings.length).toBe(1);
      expect(renderFinding("f", findings[0] as never)).toStartWith(`f: ${path}: found ${clause}`);
    }
  });

  test("are told as they were written where they are no two spans", () => {
    for (const text of ["1s", "1s..", "1s..2s..3s", "x..1s", "1s..4000d"]) {
      const { message } = refusalOf(`run --probe tcp://a:1 --probe-backoff ${text} -- ls`);
      expect(message).toStartWith(`--probe-backoff: found "${text}", expected the first wait and`);
    }
  });
});

test("a method of a file is one in capitals, too", () => {
  const table = { probes: { db: { method: "get" } } };
  const { findings } = readConfigTable(table, configSchema());
  expect(findings.map((finding) => renderFinding("f", finding))).toEqual([
    'f: probes.db.method: found "get", expected a method of HTTP in capitals, such as POST',
  ]);
});
