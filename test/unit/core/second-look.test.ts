/** What the second look says, and how long a repair that has ended a living owner holds a key. */
import { describe, expect, test } from "bun:test";
import type { RepairMark } from "../../../src/core/lease-record.ts";
import { decideSecondLook, remainingCooldown } from "../../../src/core/second-look.ts";
import type { WorktreeUser } from "../../../src/core/worktree-users.ts";

const MARK: RepairMark = {
  plan_id: "0123456789",
  action: "ended-owner",
  at: "2026-01-01T00:00:00.000Z",
  boot_id: "this boot",
  time_namespace: "ours",
  monotonic_ms: 5_000,
  by: "ops@nightly",
};
const NOW = { bootId: "this boot", timeNamespace: "ours", monotonicMs: 6_000 };
const USER: WorktreeUser = {
  pid: 7,
  start_time: 9,
  command: "vi",
  by: "cwd",
  path: "/srv/repo",
  runId: "other",
};

describe("the cooldown of a repair", () => {
  test("lasts from its mark on, to the millisecond", () => {
    const remaining = (monotonicMs: number) =>
      remainingCooldown(MARK, 10_000, { ...NOW, monotonicMs });
    expect([5_000, 6_000, 14_999, 15_000, 90_000].map(remaining)).toEqual([10_000, 9_000, 1, 0, 0]);
  });

  test.each<[string, RepairMark | undefined, number]>([
    ["no repair", undefined, 10_000],
    ["an owner that was dead already", { ...MARK, action: "marked" }, 10_000],
    ["another boot", { ...MARK, boot_id: "another" }, 10_000],
    ["another time namespace", { ...MARK, time_namespace: "theirs" }, 10_000],
    ["a time namespace where there was none", { ...MARK, time_namespace: null }, 10_000],
    ["a mark of the future", { ...MARK, monotonic_ms: 6_001 }, 10_000],
    ["a mark that is no number", { ...MARK, monotonic_ms: Number.NaN }, 10_000],
    ["a cooldown of nothing", MARK, 0],
  ])("is over with %s", (_, repair, cooldownMs) => {
    expect(remainingCooldown(repair, cooldownMs, NOW)).toBe(0);
  });

  test("counts where the kernel has no time namespaces", () => {
    const now = { ...NOW, timeNamespace: null };
    expect(remainingCooldown({ ...MARK, time_namespace: null }, 10_000, now)).toBe(9_000);
  });
});

describe("the second look", () => {
  const facts = { repair: undefined, cooldownMs: 10_000, now: NOW, users: undefined } as const;

  test("leaves the key to a repair that may be about to end its owner", () => {
    const ownerEnding = { mark: MARK, repairer: 4711 };
    const atWork = { kind: "refuse", because: "repair-at-work", pid: 4711 } as const;
    expect(decideSecondLook({ ...facts, ownerEnding })).toEqual(atWork);
    const asked = { mark: MARK, repairer: undefined };
    expect(decideSecondLook({ ...facts, ownerEnding: asked })).toEqual({ kind: "clear" });
  });

  test("is clear where nobody works in the checkout and no repair holds the key", () => {
    expect(decideSecondLook(facts)).toEqual({ kind: "clear" });
    expect(decideSecondLook({ ...facts, users: [] })).toEqual({ kind: "clear" });
    expect(decideSecondLook({ ...facts, repair: MARK, cooldownMs: 1_000 }).kind).toBe("clear");
  });

  test("refuses because of others in the checkout, and because that is not known", () => {
    const found = decideSecondLook({ ...facts, users: [USER] });
    expect(found).toEqual({ kind: "refuse", because: "worktree-in-use", users: [USER] });
    const unread = decideSecondLook({ ...facts, users: "unread" });
    expect(unread).toEqual({ kind: "refuse", because: "worktree-unread" });
  });

  test.each([[undefined], ["unread" as const], [[USER]]])(
    "tells of a cooldown first, whoever works there (%j)",
    (users) => {
      expect(decideSecondLook({ ...facts, repair: MARK, users })).toEqual({
        kind: "refuse",
        because: "repair-cooldown",
        remainingMs: 9_000,
        repair: MARK,
      });
    },
  );
});
