/** Records as columns, and what becomes of very long ones. */
import { describe, expect, test } from "bun:test";
import {
  LONGEST_RECORD,
  markAbandoned,
  parseLeases,
  parseRecord,
  renderRecord,
} from "../../../src/journal/rows.ts";
import { endedRecord, runningRecord } from "../../support/journal-scene.ts";

describe("a record", () => {
  test("comes back as it was", () => {
    const run = endedRecord(1);
    expect(parseRecord(renderRecord(run))).toEqual(run);
  });

  test.each([
    ["a long argument", { command: ["sh", "-c", "x".repeat(2_000_000)] }],
    ["many arguments", { command: Array.from({ length: 100_000 }, (_, n) => `file-${n}`) }],
    ["bytes", { command: ["printf"], command_bytes: ["YQ==".repeat(100_000)] }],
    ["a deep directory", { cwd: `/${"d".repeat(200_000)}` }],
    [
      "many leftovers",
      {
        leftovers: Array.from({ length: 2000 }, (_, pid) => ({
          pid,
          command: "c".repeat(200),
          ended_by: null,
        })),
      },
    ],
  ])("with %s is cut to the room it has, and can still be read", (_, changes) => {
    const text = renderRecord(endedRecord(1, changes));
    expect(text.length).toBeLessThanOrEqual(LONGEST_RECORD);
    expect(parseRecord(text)).toMatchObject({ run_id: endedRecord(1).run_id, exit_status: 3 });
  });

  test("that was cut says so", () => {
    const command = ["sh", "-c", "x".repeat(100_000)];
    expect(parseRecord(renderRecord(endedRecord(1, { command })))?.command.at(-1)).toEndWith("x…");
    const many = Array.from({ length: 20_000 }, (_, n) => `file-${n}`);
    expect(parseRecord(renderRecord(endedRecord(1, { command: many })))?.command.at(-1)).toBe("…");
  });

  test.each(["", "{", "null", "[]", "{}", '{"run_id":1}', '{"run_id":"x","job":"y"}'])(
    "is not %j",
    (text) => {
      expect(parseRecord(text)).toBeUndefined();
    },
  );

  test("of a running run is marked, one that ended already is left as it is", () => {
    expect(markAbandoned(runningRecord(1), "killed", 0)).toMatchObject({
      state: "ended",
      outcome: "abandoned",
      because: "killed",
      ended_at: "1970-01-01T00:00:00.000Z",
    });
    const run = endedRecord(1);
    expect(markAbandoned(run, "killed", 0)).toBe(run);
  });
});

test("leases that are none are left out", () => {
  const text = '[{"kind":"job","name":"a","generation":1},{"kind":"job"},7,null]';
  expect(parseLeases(text)).toEqual([{ kind: "job", name: "a", generation: 1 }]);
  expect(["{", "7", "null"].map(parseLeases)).toEqual([[], [], []]);
});
