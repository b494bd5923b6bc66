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

test("the README has its parts in order, and no place that is still to be filled", () => {
  const readme = readFileSync(README, "utf8");
  expect(findPlaceholders(readme)).toEqual([]);
  const parts = [...readme.matchAll(/^## (.*)$/gm)].map((match) => match[1]);
  expect(parts).toEqual([
    "Why `timeout`, `flock` or cron alone are not enough",
    "Install",
    "Five uses",
    "Exit statuses",
    "What it does not guarantee",
    "Reference",
    "Measured",
    "Build",
    "Licence",
  ]);
});

test("a placeholder is noticed", () => {
  expect(findPlaceholders("text\n\nBENCHMARK\n\nTODO: more")).toEqual(["BENCHMARK", "TODO"]);
});

test("every test that the README names exists", () => {
  const named = [
    ...readFileSync(README, "utf8").matchAll(/`((?:test\/\w+\/)?[\w*-]+\.test\.ts)`/g),
  ];
  const paths = named.map((match) => match[1] ?? "");
  expect(paths.length).toBeGreaterThan(10);
  const missing = paths.filter((path) => {
    const pattern = path.startsWith("test/") ? path : `test/e2e/${path}`;
    return (
      [...new Bun.Glob(pattern).scanSync(new URL("../../", import.meta.url).pathname)].length === 0
    );
  });
  expect(missing).toEqual([]);
});

function findPlaceholders(readme: string): string[] {
  return [...readme.matchAll(/^[A-Z]{4,}$|\b(?:TODO|FIXME|TBD)\b/gm)].map((match) => match[0]);
}
