/**
 * The lines of repair, doctor and config.
 */

import { describe, expect, test } from "bun:test";
import { CARE_COMMANDS, CARE_DEFAULTS } from "../../../src/cli/care-table.ts";
import { EXPECTED_CARE, MAX_REPAIRS_LIMIT } from "../../../src/cli/care-values.ts";
import { cutConfig, cutDoctor, cutRepair } from "../../../src/cli/cut-care.ts";
import type { Problem } from "../../../src/cli/cut-options.ts";
import type { Cut } from "../../../src/cli/cut.ts";
import { takesValue } from "../../../src/cli/option-row.ts";

const LOOKING = { stateDir: undefined, configFile: undefined, isJson: false };
const REPAIR = { kind: "repair", keys: [], ...CARE_DEFAULTS } as const;
const GPU = { kind: "lane", name: "gpu" };
/** None of them may say that something is to be changed. */
const VARIABLES = {
  WATCHDOG_APPLY: "on",
  WATCHDOG_APPROVE: "0a1b2c3d4e",
  WATCHDOG_SET_GENERATION: "7",
  WATCHDOG_MAX_REPAIRS: "x",
  WATCHDOG_UNINSTALL: "on",
};

function repairOf(line: string): Cut | Problem {
  return cutRepair(line.split(" "), VARIABLES);
}

function messageOf(cut: Cut | Problem): string {
  if (cut.kind !== "problem") throw new Error(`not refused: ${cut.kind}`);
  return cut.message;
}

describe("repair", () => {
  test("is a dry run of all leases unless the line says otherwise", () => {
    expect(repairOf("repair")).toEqual(REPAIR);
    expect(repairOf("repair job:x lane:gpu job:x --json")).toEqual({
      ...REPAIR,
      keys: [{ kind: "job", name: "x" }, GPU],
      isJson: true,
    });
  });

  test("takes what it may do and how often", () => {
    expect(
      repairOf("repair --apply lane:gpu --repair-interval 5m --max-repairs 1 --state-dir /s"),
    ).toEqual({
      ...REPAIR,
      keys: [GPU],
      isApplying: true,
      repairIntervalMs: 300_000,
      maxRepairs: 1,
      stateDir: "/s",
    });
    expect(repairOf("repair --approve 0a1b2c3d4e lane:gpu --config c")).toEqual({
      ...REPAIR,
      keys: [GPU],
      approve: "0a1b2c3d4e",
      configFile: "c",
    });
    expect(repairOf("repair --set-generation 42 lane:gpu")).toEqual({
      ...REPAIR,
      keys: [GPU],
      setGeneration: 42,
    });
  });

  test("refuses what is no key, no plan, no number, and a generation of none or several", () => {
    const table: readonly (readonly [string, string])[] = [
      ["repair nightly", 'repair: found "nightly", expected a key such as lane:gpu'],
      ["repair --approve 0A1B2C3D4E", EXPECTED_CARE.planId],
      ["repair --approve 0a1b2c3d4", EXPECTED_CARE.planId],
      ["repair --set-generation 0 a:b", EXPECTED_CARE.generation],
      ["repair --set-generation 9007199254740993 a:b", EXPECTED_CARE.generation],
      // The last numbers of all would leave none for the runs to come.
      ["repair --set-generation 9007199254740991 a:b", EXPECTED_CARE.generation],
      ["repair --set-generation 1000000000000001 a:b", EXPECTED_CARE.generation],
      [`repair --max-repairs ${MAX_REPAIRS_LIMIT + 1}`, EXPECTED_CARE.maxRepairs],
      ["repair --max-repairs 0", EXPECTED_CARE.maxRepairs],
      ["repair --set-generation 5", "about one key, found none"],
      ["repair --set-generation 5 a:b a:c", "about one key, found 2"],
      ["repair --set-generation 5 a:b --apply", "stands without --apply"],
      ["repair --set-generation 5 a:b --approve 0a1b2c3d4e", "stands without --approve"],
    ];
    for (const [line, part] of table) expect(messageOf(repairOf(line))).toContain(part);
  });
});

test("doctor and config are asked alone", () => {
  expect(cutDoctor(["doctor", "--json"], {})).toEqual({
    kind: "doctor",
    stateGroup: undefined,
    ...LOOKING,
    isJson: true,
  });
  // A wrong variable is for the check-up itself to find.
  expect(
    cutDoctor(["doctor", "--state-group", "ops"], { WATCHDOG_STATE_GROUP: "\n" }),
  ).toMatchObject({ stateGroup: "ops" });
  expect(messageOf(cutDoctor(["doctor", "x"], {}))).toContain("takes no word beside its options");
  expect(cutConfig(["config", "show"], {})).toEqual({ kind: "config-show", ...LOOKING });
  expect(cutConfig(["config", "check", "--config", "c"], { WATCHDOG_STATE_DIR: "/v" })).toEqual({
    kind: "config-check",
    ...LOOKING,
    configFile: "c",
    stateDir: "/v",
  });
  expect(cutConfig(["config", "check"], { WATCHDOG_CONFIG: "v.toml" })).toMatchObject({
    configFile: "v.toml",
  });
  expect(cutConfig(["config", "-h"], {})).toEqual({ kind: "help", topic: "config" });
  for (const words of [["config"], ["config", "shwo"], ["config", "--json", "show"]]) {
    const cut = cutConfig(words, {});
    expect(messageOf(cut)).toContain("expected config show or config check");
    const [repair] = cut.kind === "problem" ? cut.repairs : [];
    expect(repair?.words.slice(0, 2)).toEqual(["config", "show"]);
  }
});

test("each row has an example that its reader accepts, and states the default in force", () => {
  const isRead = new Set<string>();
  for (const row of CARE_COMMANDS.flatMap((command) => command.rows).filter(takesValue)) {
    expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
    const parsed = row.read(row.defaultText);
    if (parsed.kind === "refused" || row.kind === "path" || row.kind === "text") continue;
    isRead.add(row.flag);
    expect(CARE_DEFAULTS).toMatchObject(parsed.value);
  }
  expect([...isRead]).toEqual(["--repair-interval", "--max-repairs"]);
});
