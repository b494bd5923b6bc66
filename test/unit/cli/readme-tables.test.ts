/**
 * The README's tables: well-formed markdown, found and renewed between their markers only.
 */

import { expect, test } from "bun:test";
import { findTables, README_TABLES, renewTables } from "../../../src/cli/readme-tables.ts";

test("every table has the same number of cells in every row", () => {
  expect(Object.keys(README_TABLES).length).toBe(15);
  for (const [name, render] of Object.entries(README_TABLES)) {
    const lines = render().trimEnd().split("\n");
    const widths = new Set(lines.map((line) => line.replaceAll("\\|", "").split("|").length));
    expect([name, widths.size]).toEqual([name, 1]);
    expect(lines.length).toBeGreaterThan(2);
    expect(lines[1]).toMatch(/^\| ---( \| ---)* \|$/);
  }
});

test("a bar in a cell is escaped", () => {
  expect(README_TABLES["run-options"]?.()).toContain("`--leftovers kill\\|wait\\|leave`");
});

test("reasons are explained, those of a run and those of an attempt", () => {
  expect(README_TABLES["result-reasons"]?.()).toContain("| `exited` | the command exited |");
  expect(README_TABLES["retry-reasons"]?.()).toContain("| `succeeded` | ");
});

test("tables are renewed between their markers, and nothing else is touched", () => {
  const open = "<!-- table:exit-statuses -->\n";
  const end = "<!-- /table -->\n";
  const readme = `a $1 $&\n${open}old\n${end}b\n<!-- table:nosuch -->\nc\n${end}`;
  const renewed = renewTables(readme);
  const table = README_TABLES["exit-statuses"]?.() ?? "";
  expect(table).toContain("| 124 | `timeout` |");
  expect(renewed).toBe(readme.replace("old\n", () => table));
  expect(findTables(renewed)).toEqual([
    { name: "exit-statuses", table },
    { name: "nosuch", table: "c\n" },
  ]);
  expect(renewTables(renewed)).toBe(renewed);
});
