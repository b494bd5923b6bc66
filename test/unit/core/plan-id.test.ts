/** What belongs to the name of a plan, and what may change without changing it. */
import { describe, expect, test } from "bun:test";
import { planIdOf, renderCanonical } from "../../../src/core/plan-id.ts";
import type { RepairView } from "../../../src/core/repair-plan.ts";
import { sampleRecord, sampleSlot } from "../../support/lease-samples.ts";
import { sampleView } from "../../support/lease-views.ts";
import { deserted, found, stalled, STOPPED, viewOf } from "../../support/repair-views.ts";

const idOf = (view: RepairView): string => planIdOf(view, "end-owner");

describe("the id of a plan", () => {
  test("is ten hex digits, the same each time", () => {
    expect(idOf(stalled())).toMatch(/^[0-9a-f]{10}$/);
    expect(idOf(stalled())).toBe(idOf(stalled()));
  });

  test("does not change with what grows older by itself", () => {
    const before = idOf(stalled());
    expect(idOf(stalled({}, { beatAgeMs: 91_234 }))).toBe(before);
    const view = stalled();
    const reworded = { ...view, evidence: { ...view.evidence, staleAfterMs: 41_000 } };
    expect(idOf(reworded)).toBe(before);
  });

  test("does not change with the order in which processes were seen, or with their words", () => {
    const one = deserted({ members: [found(7), found(8)], suspects: [] });
    const other = deserted({ members: [found(8, { command: "x" }), found(7)], suspects: [] });
    expect(idOf(other)).toBe(idOf(one));
  });

  test("does not change when whoever looks under the lock has made its missing files", () => {
    const missing = deserted({ members: [], suspects: [] }, { fenceFile: "missing" });
    const made = deserted({ members: [], suspects: [] }, { lockInode: "1:3" });
    expect(idOf(made)).toBe(idOf(missing));
  });

  test.each<[string, RepairView]>([
    ["another owner", stalled({}, { record: sampleRecord({ pid: 4712 }) })],
    ["another start", stalled({}, { record: sampleRecord({ pid_start_time: 5 }) })],
    ["another boot", stalled({}, { record: sampleRecord({ boot_id: "x" }) })],
    ["a stopped owner", stalled({ owner: STOPPED })],
    ["one beat more", stalled({}, { slot: sampleSlot({ head: { sequence: 4 } }) })],
    ["another lock file", stalled({ lockInode: "1:3" })],
    ["another boot of ours", stalled({ bootId: "y" })],
    ["another note", stalled({}, { note: "old" })],
    ["another record file", stalled({ recordFile: "none" })],
    ["a fence of another kind", stalled({ fenceFile: "fifo" })],
    ["another verdict", stalled({}, { beatAgeMs: 1 })],
    ["another key", stalled({}, { key: { kind: "job", name: "other" } })],
    [
      "another generation",
      stalled(
        {},
        {
          source: {
            kind: "read",
            from: "record",
            generation: 8,
            isReleased: false,
            runId: "run-7",
          },
        },
      ),
    ],
    [
      "another run",
      stalled(
        {},
        {
          source: {
            kind: "read",
            from: "record",
            generation: 7,
            isReleased: false,
            runId: "run-8",
          },
        },
      ),
    ],
  ])("changes with %s", (_, changed) => {
    expect(idOf(changed)).not.toBe(idOf(stalled()));
  });

  test("changes with each member and each suspect, and with who is which", () => {
    const trees = [
      { members: [found(7)], suspects: [] },
      { members: [found(7), found(8)], suspects: [] },
      { members: [found(7, { start_time: 9 })], suspects: [] },
      { members: [], suspects: [found(7)] },
      { members: [], suspects: [] },
      "unread",
    ] as const;
    const ids = trees.map((tree) => idOf(deserted(tree)));
    expect(new Set(ids).size).toBe(trees.length);
  });

  test("counts the beats of a lock that is taken alone", () => {
    const free = { lock: { kind: "free" }, sameLockInode: "no" } as const;
    const beaten = { ...free, slot: sampleSlot({ head: { sequence: 4 } }) };
    const [before, after] = [free, beaten].map((one) => idOf(viewOf(sampleView(one).evidence)));
    expect(after).toBe(String(before));
  });

  test("belongs to one action, and to one number", () => {
    const view = stalled();
    const ids = [
      planIdOf(view, "end-owner"),
      planIdOf(view, "continue-owner"),
      planIdOf(view, "set-generation", 7),
      planIdOf(view, "set-generation", 8),
    ];
    expect(new Set(ids).size).toBe(4);
  });

  test("does not depend on the order of fields", () => {
    expect(renderCanonical({ b: [1, { d: null, c: "x" }], a: undefined })).toBe(
      '{"b":[1,{"c":"x","d":null}]}',
    );
  });
});
