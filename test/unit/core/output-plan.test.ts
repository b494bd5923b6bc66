/**
 * Which of the command's output goes through a pipe: the whole table by hand. A line is `log quiet
 * idle checked`, then what is copied for each kind of place, in the order of PLACES.
 */
import { expect, test } from "bun:test";
import { decideOutputPlan, type OutputFacts } from "../../../src/core/output-plan.ts";
import type { LogMode } from "../../../src/core/run-options.ts";

/** What descriptors 1 and 2 are: t = terminal, f = something else; `=` for one open file. */
const PLACES = {
  "t t": [true, true, false],
  "t=t": [true, true, true],
  "f f": [false, false, false],
  "f=f": [false, false, true],
  "f t": [false, true, false],
  "t f": [true, false, false],
} as const;

/** 1, 2: copied alone. 12: copied as one. -: inherited. A star: a log is kept. */
const TABLE = `
  mode  quiet idle check   t t    t=t    f f    f=f    f t    t f
  auto  no    no    no       -      -      1,2*   12*    1*     -
  auto  no    yes   no       -      -      1,2*   12*    1*     2
  auto  yes   no    no       1,2*   12*    1,2*   12*    1,2*   1,2*
  auto  yes   yes   no       1,2*   12*    1,2*   12*    1,2*   1,2*
  on    no    no    no       1,2*   12*    1,2*   12*    1,2*   1,2*
  on    no    yes   no       1,2*   12*    1,2*   12*    1,2*   1,2*
  on    yes   no    no       1,2*   12*    1,2*   12*    1,2*   1,2*
  on    yes   yes   no       1,2*   12*    1,2*   12*    1,2*   1,2*
  off   no    no    no       -      -      -      -      -      -
  off   no    yes   no       -      -      1,2    12     1      2
  off   yes   no    no       1,2    12     1,2    12     1,2    1,2
  off   yes   yes   no       1,2    12     1,2    12     1,2    1,2
  auto  no    no    yes      1,2    12     1,2*   12*    1,2*   1,2
  auto  no    yes   yes      1,2    12     1,2*   12*    1,2*   1,2
  auto  yes   no    yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  auto  yes   yes   yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  on    no    no    yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  on    no    yes   yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  on    yes   no    yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  on    yes   yes   yes      1,2*   12*    1,2*   12*    1,2*   1,2*
  off   no    no    yes      1,2    12     1,2    12     1,2    1,2
  off   no    yes   yes      1,2    12     1,2    12     1,2    1,2
  off   yes   no    yes      1,2    12     1,2    12     1,2    1,2
  off   yes   yes   yes      1,2    12     1,2    12     1,2    1,2
`;

interface Row {
  readonly facts: OutputFacts;
  readonly wanted: string;
}

function readTable(): Row[] {
  const [, ...lines] = TABLE.trim().split("\n");
  return lines.flatMap((line) => {
    const [log, quiet, idle, check, ...cells] = line.trim().split(/\s+/);
    return Object.values(PLACES).map(([isStdoutTerminal, isStderrTerminal, isOneFile], index) => ({
      facts: {
        log: log as LogMode,
        isQuiet: quiet === "yes",
        watchesIdle: idle === "yes",
        isChecked: check === "yes",
        isStdoutTerminal,
        isStderrTerminal,
        isOneFile,
      },
      wanted: String(cells[index]),
    }));
  });
}

function tell(facts: OutputFacts): string {
  const { copied, keepsLog } = decideOutputPlan(facts);
  const streams = copied.map(({ descriptors }) => descriptors.join(""));
  return `${streams.join(",") || "-"}${keepsLog ? "*" : ""}`;
}

const rows = readTable();

test("the table has every combination that can be", () => {
  const facts = new Set(rows.map((row) => JSON.stringify(row.facts)));
  // Three modes, three switches, and six places: one open file cannot be a terminal and not one.
  expect(facts.size).toBe(3 * 2 * 2 * 2 * 6);
});

test.each(rows.map((row) => [JSON.stringify(row.facts), row.wanted, row.facts] as const))(
  "%s: %s",
  (_, wanted, facts) => {
    expect(tell(facts)).toBe(wanted);
  },
);

test("names the streams by the descriptors that they stand for", () => {
  const names = { stdout: [1], stderr: [2], both: [1, 2] };
  for (const { facts } of rows) {
    for (const { name, descriptors } of decideOutputPlan(facts).copied) {
      expect(descriptors).toEqual(names[name]);
    }
  }
});
