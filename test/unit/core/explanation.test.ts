import { describe, expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import { type Explanation, explainLease, type Here } from "../../../src/core/explanation.ts";
import { decideVerdict } from "../../../src/core/lease-verdict.ts";
import { planIdOf } from "../../../src/core/plan-id.ts";
import type { RepairFacts } from "../../../src/core/repair-plan.ts";
import { BOOT, OTHER_BOOT, sampleMachine, sampleRecord } from "../../support/lease-samples.ts";
import { deadView, sampleView, releasedView } from "../../support/lease-views.ts";

const FACTS: RepairFacts = {
  bootId: BOOT,
  lockFile: "regular",
  lockInode: "1:2",
  fenceFile: "regular",
  recordFile: "read",
  owner: { state: "running", signal: "allowed" },
};
const HERE: Here = { ...sampleMachine(), monotonicMs: 1_000_000, runsAround: [] };

function explain(changes: Partial<LeaseEvidence> = {}, here: Partial<Here> = {}): Explanation {
  const { evidence } = sampleView(changes);
  return explainLease({ evidence, facts: FACTS, here: { ...HERE, ...here } });
}

function signalsOf({ signals }: Explanation): Record<string, string> {
  return Object.fromEntries(signals.map(({ name, says }) => [name, says]));
}

function rawOf({ signals }: Explanation, name: string): string | undefined {
  return signals.find((signal) => signal.name === name)?.raw;
}

describe("the signals", () => {
  test("of a healthy holder are told in order, each with what was read", () => {
    expect(explain().signals.map(({ name, says, raw }) => `${name} ${says}: ${raw}`)).toEqual([
      "lock-taken yes: the kernel refuses it: somebody has it (regular 1:2)",
      "fence-taken unread: not asked",
      "generation-known yes: 7 of run run-7, from the record",
      "released no: record says held",
      "released-by-journal unread: not asked, or no answer in time",
      "used-before yes: something of an earlier grant is there",
      `same-boot yes: recorded ${BOOT}, here ${BOOT}`,
      "same-machine yes: recorded 0123456789abcdef0123456789abcdef nightly, " +
        "here 0123456789abcdef0123456789abcdef nightly",
      "same-lock-file yes: recorded 1:2, here 1:2",
      "owner-alive yes: pid 4711 started at 123456, state running",
      "namespace-contained yes: recorded 4026531836, here 4026531836",
      "pids-comparable yes: counted as here; time namespace recorded 4026531834, here 4026531834",
      "beat-fresh yes: beat 3 is 2000 ms old, stale after 40000 ms",
      "tree-empty unread: not needed, or not to be read",
      "note-old no: no newcomer has left a note",
    ]);
  });

  test("are those of the slot where there is no record", () => {
    const told = explain({ record: undefined });
    expect(rawOf(told, "owner-alive")).toBe("pid 4711 started at 123456, state running");
    expect(rawOf(told, "same-lock-file")).toBe("recorded 1:2, here 1:2");
    const none = explain({ record: undefined, slot: undefined });
    expect(rawOf(none, "owner-alive")).toBe("nobody is recorded, state running");
    expect(rawOf(none, "same-boot")).toBe(`recorded nothing, here ${BOOT}`);
  });

  test("that could not be read are never a no", () => {
    const lock = { kind: "unaskable", reason: "ENOLCK" } as const;
    const source = { kind: "unreadable", reason: "no JSON" } as const;
    const unread = { beatAgeMs: undefined, note: "unread", tree: "unread" } as const;
    expect(signalsOf(explain({ lock, source, ...unread }))).toMatchObject({
      "lock-taken": "unread",
      "generation-known": "unread",
      released: "unread",
      "beat-fresh": "unread",
      "note-old": "unread",
      "tree-empty": "unread",
    });
    const blind = { members: [], suspects: [], isBlind: true } as const;
    expect(signalsOf(explain({ tree: blind }))["tree-empty"]).toBe("unread");
    expect(signalsOf(explain({ beatAgeMs: -1 }))["beat-fresh"]).toBe("unread");
    expect(signalsOf(explain({ beatAgeMs: 40_001 }))["beat-fresh"]).toBe("no");
    expect(signalsOf(explain({ recordedPids: "incomparable" }))["pids-comparable"]).toBe("no");
  });
});

test("a fence that somebody has is told by name, and so is what a newcomer gets for it", () => {
  const by = [{ pid: 9, command: "sleep 60" }];
  const free = { ...releasedView().evidence, fence: { isTaken: "yes", by } } as const;
  const told = explainLease({ evidence: free, facts: FACTS, here: HERE });
  expect([signalsOf(told)["fence-taken"], rawOf(told, "fence-taken")]).toEqual([
    "yes",
    "9 sleep 60",
  ]);
  expect(told.verdict.name).toBe("free");
  expect(Object.values(told.newcomer)).toEqual(
    Array.from({ length: 3 }, () => expect.objectContaining({ because: "fenced-operation" })),
  );
  expect(told.options).toEqual([
    { action: "none", needs: "nothing", because: "fenced-operation", planId: null },
  ]);
  for (const [fence, says, raw] of [
    [{ isTaken: "yes", by: [] }, "yes", "somebody has it, not seen from here"],
    [{ isTaken: "no", by: [] }, "no", "nobody has it"],
    [{ isTaken: "unread", by: [], reason: "EACCES" }, "unread", "EACCES"],
  ] as const) {
    const other = explainLease({ evidence: { ...free, fence }, facts: FACTS, here: HERE });
    expect([signalsOf(other)["fence-taken"], rawOf(other, "fence-taken")]).toEqual([says, raw]);
    const because = says === "yes" ? "fenced-operation" : "released";
    expect(other.newcomer.kill).toMatchObject({ because });
    expect(other.options).toMatchObject([{ action: "none", because }]);
  }
});

test("what a newcomer does is told for each policy", () => {
  const found = { pid: 5, start_time: 6, command: "x", isSignalable: true, isAncestor: false };
  const { evidence } = deadView({ members: [found], suspects: [] });
  const { newcomer } = explainLease({ evidence, facts: FACTS, here: HERE });
  expect([newcomer.kill.kind, newcomer.wait.kind, newcomer.refuse.kind]).toEqual([
    "end-survivors",
    "refuse",
    "refuse",
  ]);
});

test("a newcomer below the holder cannot wait for it", () => {
  const { newcomer } = explain({}, { runsAround: ["run-1", "run-7"] });
  expect(newcomer.kill).toMatchObject({ because: "held-by-run-around", canWait: false });
  expect(explain({}, { runsAround: ["run-1"] }).newcomer.kill).toMatchObject({ canWait: true });
});

test("plans have the ids of the repair, and none without a number or an act", () => {
  const { evidence } = deadView({ members: [], suspects: [] });
  const view = { evidence, verdict: decideVerdict(evidence), facts: FACTS };
  expect(explainLease({ evidence, facts: FACTS, here: HERE }).options).toEqual([
    { action: "mark", needs: "apply", because: "tree-empty", planId: planIdOf(view, "mark") },
  ]);
  expect(explain().options).toMatchObject([{ action: "none", planId: null }]);
  const lost = explain({ lock: { kind: "free" }, source: { kind: "none" }, hasHistory: "yes" });
  expect(lost.options).toMatchObject([{ action: "set-generation", planId: null }]);
});

test("the rest of a cooldown is told, and none of another boot", () => {
  const repair = {
    plan_id: "0a1b2c3d4e",
    action: "ended-owner",
    at: "2026-01-01T00:00:00.000Z",
    boot_id: BOOT,
    time_namespace: "4026531834",
    monotonic_ms: 940_000,
    by: "ops@nightly",
  } as const;
  expect(explain({ record: sampleRecord({ repair }) }).cooldownMs).toBe(540_000);
  const other = sampleRecord({ repair: { ...repair, boot_id: OTHER_BOOT } });
  expect(explain({ record: other }).cooldownMs).toBe(0);
  expect(explain().cooldownMs).toBe(0);
});
