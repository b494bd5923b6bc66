/**
 * The table of outcomes agrees with the statuses that the program uses.
 */

import { expect, test } from "bun:test";
import { EXIT } from "../../../src/core/errors.ts";
import { OUTCOME_TABLE } from "../../../src/core/outcome-table.ts";

test("gives each name of a status the number that watchdog exits with", () => {
  const named = Object.entries(EXIT).filter(([name]) => name !== "ok");
  expect(named.length).toBeGreaterThan(5);
  for (const [name, status] of named) {
    const row = OUTCOME_TABLE.find((each) => each.outcome === name);
    expect([name, row?.status]).toEqual([name, status]);
  }
});

test("has each outcome once, with a status a process can have", () => {
  const words = OUTCOME_TABLE.map((row) => row.outcome);
  expect(new Set(words).size).toBe(words.length);
  for (const row of OUTCOME_TABLE) {
    const isNumber = typeof row.status === "number";
    expect(isNumber ? row.status > 0 && row.status < 128 : row.status.length > 0).toBe(true);
    expect(row.meaning).toMatch(/^\S.*[^.\s]$/);
  }
});
