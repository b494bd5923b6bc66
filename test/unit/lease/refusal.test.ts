/** The sentence for a refused newcomer: who has the key, where, and what settles it. */
import { describe, expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import { decideNewcomer } from "../../../src/core/newcomer.ts";
import { describeRefusal, type OtherReason } from "../../../src/lease/claim/refusal.ts";
import { placeOf } from "../../../src/lease/files/places.ts";
import { sampleView } from "../../support/lease-views.ts";

function tell(changes: Partial<LeaseEvidence>, other: Partial<OtherReason> = {}): string {
  const { key, evidence, verdict } = sampleView(changes);
  const facts = { isHeldByRunAround: false, note: evidence.note, evidence };
  const decision = decideNewcomer(verdict, { ...facts, onSurvivors: "kill" });
  const assessment = { place: placeOf("/s", key), evidence, verdict, decision };
  return describeRefusal(assessment, 0, { ...NOTHING, ...other }).text;
}

const NOTHING = { because: undefined, second: undefined, fencedBy: [] } as const;

const BELOW = { recordedPids: "below-ours", ownerAlive: "unread" } as const;
const BESIDE = { recordedPids: "incomparable", ownerAlive: "unread" } as const;
const WHERE = "in another pid namespace or container";
const SETTLES = "the kernel's lock settles it: taken while that run lives, free once it is gone";

describe("a refusal for a holder that lives", () => {
  test.each<[string, Partial<LeaseEvidence>]>([
    ["below ours", BELOW],
    ["out of our sight", { ...BESIDE, namespaceContained: "no" }],
  ])("in a pid namespace %s says so, what settles it, and how old its beat is", (_, where) => {
    for (const [beatAgeMs, age] of [
      [2_000, "2 s"],
      [90_000, "90 s"],
    ] as const) {
      const text = tell({ ...where, beatAgeMs });
      expect(text).toContain(WHERE);
      expect(text).toContain(SETTLES);
      expect(text).toEndWith(`its last heartbeat is ${age} old`);
    }
  });

  test("says so, too, where the age of its beat cannot be told", () => {
    for (const beatAgeMs of [undefined, -5_000]) {
      const text = tell({ ...BELOW, beatAgeMs });
      expect(text).toContain(WHERE);
      expect(text).toEndWith("its last heartbeat has an age that cannot be told here");
    }
  });

  test("claims no other namespace where only nothing can be compared", () => {
    for (const namespaceContained of ["yes", "unread"] as const) {
      const text = tell({ ...BESIDE, namespaceContained });
      expect(text).not.toContain(WHERE);
      expect(text).toContain("whose processes cannot be compared with those seen from here");
      expect(text).toContain(SETTLES);
    }
  });

  test("says nothing of it where its pid is counted as ours are", () => {
    expect(tell({})).toMatch(/^job:backup is held by run \S+ \(pid \d+, [^;]+\)$/);
    expect(tell({ beatAgeMs: 90_000 })).toEndWith(", whose heartbeat is 90 s old");
  });
});

describe("a refusal for an operation under the fence", () => {
  const because = "fenced-operation";
  const push = { pid: 4711, command: "git push" };

  test("names who holds it, as far as that can be told", () => {
    const free: Partial<LeaseEvidence> = { lock: { kind: "free" } };
    const says = "job:backup has an operation in progress under its fence";
    expect(tell(free, { because, fencedBy: [push] })).toBe(`${says}: 4711 git push`);
    expect(tell(free, { because })).toBe(says);
  });

  test("names some of many, and counts the rest", () => {
    const fencedBy = Array.from({ length: 7 }, (_, index) => ({ ...push, pid: index + 2 }));
    expect(tell({}, { because, fencedBy })).toEndWith("6 git push and 2 more");
  });
});
