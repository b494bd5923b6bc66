/** Who cannot be read: a suspect where it may be of the run, nobody where something says not. */
import { describe, expect, test } from "bun:test";
import { UNREAD_CGROUP } from "../../../src/core/survivors.ts";
import type { SeenProcess } from "../../../src/core/survivors-view.ts";
import { bear, see, tell } from "../../support/seen-processes.ts";

describe("who cannot be read and may be of the run is a suspect", () => {
  const USERS = [1000, 1000, 1000, 1000];
  const run = { ownerUid: 1000, unlistedFrom: 550 };
  const hide = (pid: number, ppid: number, more: Partial<SeenProcess> = {}) =>
    see(pid, ppid, { runPath: "unread", userIds: USERS, ...more });

  test("where it was left to one who adopts orphans of the run", () => {
    expect(tell([hide(60, 1)], run)).toBe(" | 60");
    expect(tell([hide(60, 30)], run)).toBe(" | 60");
    expect(tell([see(50, 1, { state: "Z" }), hide(60, 50)], run)).toBe(" | 60");
    expect(tell([hide(60, 77)], run)).toBe(" | 60"); // whose parent has ended meanwhile
  });

  test("and so is what cannot be read below it, and below a bearer that is not proven", () => {
    expect(tell([hide(60, 1), hide(61, 60), hide(62, 61)], run)).toBe(" | 60 61 62");
    expect(tell([bear(60, 7), see(7, 1), hide(61, 60)], run)).toBe(" | 60 61");
  });

  test("with one of four users the owner's, unknown ones, or an owner who can be anybody", () => {
    expect(tell([hide(60, 1, { userIds: [1000, 0, 0, 0] })], run)).toBe(" | 60");
    const root = [0, 0, 0, 0];
    expect(tell([hide(60, 1, { userIds: root })], run)).toBe(" | ");
    expect(tell([hide(60, 1, { userIds: root })], { ...run, ownerUid: 0 })).toBe(" | 60");
    expect(tell([hide(60, 1, { userIds: root })], { unlistedFrom: 550 })).toBe(" | 60");
    expect(tell([see(60, 1, { runPath: "unread" })], run)).toBe(" | 60");
  });

  test("in the cgroup of the run, below it, or where one of the two is not known", () => {
    expect(tell([hide(60, 1, { cgroup: "/user/cron/a" })], run)).toBe(" | 60");
    expect(tell([hide(60, 1, { cgroup: undefined })], run)).toBe(" | 60");
    const elsewhere = hide(60, 1, { cgroup: "/else" });
    expect(tell([elsewhere], run)).toBe(" | ");
    for (const cgroup of [null, "/", UNREAD_CGROUP]) {
      expect(tell([elsewhere], { ...run, cgroup })).toBe(" | 60");
    }
  });

  test.each([
    ["was there before the last beat", [hide(60, 1, { startTicks: 549 })]],
    ["is below one who was there before", [see(40, 1), hide(60, 40)]],
    ["is below one who can be read and carries nothing", [see(60, 1), hide(61, 60)]],
    ["is below one of another run", [see(60, 1, { runPath: ["y"] }), hide(61, 60)]],
    ["is below one of another user", [hide(60, 1, { userIds: [0, 0, 0, 0] }), hide(61, 60)]],
    ["has come in from outside", [hide(60, 0)]],
    ["is dead", [hide(60, 1, { state: "Z" })]],
    ["is a guard", [hide(60, 1, { isGuard: true }), hide(61, 60)]],
    ["is a kernel thread", [hide(60, 1, { isKernelThread: true })]],
    ["is below the one who looks", [hide(91, 90)]],
    ["can be read", [see(60, 1, { userIds: USERS })]],
  ])("but nobody who %s", (_, processes) => {
    expect(tell(processes, run)).toBe(" | ");
  });

  test("and no ancestor of the one who looks, which has inherited nothing of the run", () => {
    const looker = (more: Partial<SeenProcess>) => ({
      processes: [see(1, 0), hide(60, 1), see(91, 60, more)],
      self: 91,
      ancestors: new Set([1, 60]),
    });
    expect(tell([], run, looker({}))).toBe(" | ");
    expect(tell([], run, looker({ runPath: ["x"] }))).toBe(" | 60");
    expect(tell([], run, looker({ runPath: "unread" }))).toBe(" | 60");
  });

  test("of a run in a pid namespace below ours: left to its process 1, not to ours", () => {
    const below = { ...run, isBelowOurs: true as const };
    const init = see(40, 1, { isNamespaceInit: true });
    expect(tell([init, hide(60, 40), hide(61, 1)], below)).toBe(" | 60");
    expect(tell([init, hide(60, 40), hide(61, 1)], run)).toBe(" | 61");
  });
});
