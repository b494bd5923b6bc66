/**
 * The README's tables are the ones that the program renders. `UPDATE_README=1` renews them.
 */

import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { findTables, README_TABLES, renewTables } from "../../src/cli/readme-tables.ts";

const README = new URL("../../README.md", import.meta.url).pathname;

/** Tables that the README must have; the others of README_TABLES may be left out. */
const NEEDED = ["run-options", "keep-options", "child-variables", "exit-statuses", "result-fields"];

test("every table of the README is the one that the program renders", () => {
  if (process.env["UPDATE_README"] === "1") {
    writeFileSync(README, renewTables(readFileSync(README, "utf8")));
  }
  const tables = findTables(readFileSync(README, "utf8"));
  const names = tables.map((each) => each.name);
  expect(NEEDED.filter((name) => !names.includes(name))).toEqual([]);
  for (const { name, table } of tables) {
    expect([name, table]).toEqual([name, README_TABLES[name]?.() ?? "no such table"]);
  }
});

test("a table that drifted is noticed", () => {
  const readme = readFileSync(README, "utf8");
  const drifted = readme.replace("| `--timeout SPAN` |", "| `--timeout TIME` |");
  expect(drifted).not.toBe(readme);
  expect(renewTables(drifted)).toBe(readme);
});
