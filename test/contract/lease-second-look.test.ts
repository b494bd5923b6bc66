/**
 * The second look of a claim and its policies for survivors, with real files and locks: what makes
 * it refuse a key that is to be had, that nobody is ended then, and that a wait holds nothing.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync } from "node:fs";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import type { RepairMark } from "../../src/core/lease-record.ts";
import type { Spared, WorktreeUser } from "../../src/core/worktree-users.ts";
import { readRecord, writeRecord } from "../../src/lease/files/record-file.ts";
import { monotonicNow } from "../../src/os/clock.ts";
import { countOpen } from "../support/open-files.ts";
import { identityOf } from "../support/survivor-scene.ts";
import {
  claim,
  EMPTY,
  found,
  grant,
  isFree,
  machine,
  openClaimScene,
  refusalOf,
} from "../support/claim-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openClaimScene();
const COOLDOWN_MS = 600_000;
/** A machine may have been up for less than COOLDOWN_MS. */
const SHORT_COOLDOWN_MS = 500;
const LONG = 60_000;

const USER: WorktreeUser = {
  pid: 4711,
  start_time: 9,
  command: "vi notes",
  by: "cwd",
  path: "/srv/repo/deep",
  runId: "another-run",
};

/** Answers in this order, the last one again and again, and remembers what it was asked. */
function looksThatFind(...answers: readonly (readonly WorktreeUser[] | "unread")[]) {
  const asked: { key: LeaseKey; spared: Spared }[] = [];
  const usersOf = async (key: LeaseKey, spared: Spared) => {
    asked.push({ key, spared });
    return answers[Math.min(asked.length, answers.length) - 1] ?? [];
  };
  return { asked, secondLook: { repairCooldownMs: COOLDOWN_MS, usersOf } };
}

/** A key that was released, with the mark of a repair in its record. */
async function leaveRepaired(changes: Partial<RepairMark> = {}, kind = "job"): Promise<LeaseKey> {
  const key = scene.key(kind);
  const held = await scene.hold([key]);
  held.markReleased();
  held.close();
  const { record: path } = scene.placeOf(key);
  const reading = readRecord(path);
  if (reading.kind !== "read") throw new Error(`no record: ${reading.kind}`);
  const repair: RepairMark = {
    plan_id: "0a1b2c3d4e",
    action: "ended-owner",
    at: "2030-01-02T03:04:05.000Z",
    boot_id: machine.bootId,
    time_namespace: machine.timeNamespace,
    monotonic_ms: monotonicNow(),
    by: "ops@nightly",
    ...changes,
  };
  writeRecord(path, { ...reading.record, repair });
  return key;
}

/** Names and contents of the files of a key. */
function contentsOf(key: LeaseKey): Record<string, string> {
  const { directory } = scene.placeOf(key);
  const names = readdirSync(directory).toSorted();
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(`${directory}/${name}`, "latin1")]),
  );
}

describe("a key whose living owner was ended by a repair", () => {
  test("is refused for the rest of the cooldown, and keeps everything as it is", async () => {
    const key = await leaveRepaired({ monotonic_ms: monotonicNow() - 1_000 });
    const [before, open] = [contentsOf(key), countOpen()];
    const refusal = await refusalOf(scene.request([key]));
    expect(refusal).toMatchObject({ because: "repair-cooldown", status: "locked", users: [] });
    expect(refusal.text).toMatch(
      /^job:night \d+ is granted to nobody for 59\d s more: repair 0a1b2c3d4e by ops@nightly has /,
    );
    expect([contentsOf(key), countOpen()]).toEqual([before, open]);
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
  });

  test.each<[string, Partial<RepairMark>]>([
    ["it was dead already", { action: "marked" }],
    ["the cooldown is over", { monotonic_ms: monotonicNow() - SHORT_COOLDOWN_MS }],
    ["it was in another boot", { boot_id: "11111111-2222-3333-4444-555555555555" }],
  ])("is granted where %s, and its record names the repair", async (_, changes) => {
    const key = await leaveRepaired(changes);
    const isOver = changes.monotonic_ms !== undefined;
    const repairCooldownMs = isOver ? SHORT_COOLDOWN_MS : COOLDOWN_MS;
    const secondLook = { repairCooldownMs, usersOf: async () => [] };
    const claimed = await claim(scene.request([key], { secondLook }));
    const { action = "ended-owner" } = changes;
    expect(claimed.keys[0]?.previous).toMatchObject({
      how_it_ended: "repaired",
      evidence: `R4 released, repair 0a1b2c3d4e ${action} by ops@nightly`,
    });
    const held = grant(claimed);
    expect(held.leases[0]?.record).not.toHaveProperty("repair");
    held.markReleased();
    held.close();
  });

  test("is had by a wait as soon as the cooldown is over", async () => {
    const key = await leaveRepaired();
    const secondLook = { repairCooldownMs: 300, usersOf: async () => [] };
    const request = scene.request([key], { waitMs: LONG, secondLook });
    const claimed = await claim(request);
    expect(request.asked.waits.map(({ because }) => because)).toEqual(["repair-cooldown"]);
    expect(claimed.waitedMs).toBeGreaterThan(250);
    claimed.release();
  });

  test("stays so for others after a run that does not heed it, in this boot", async () => {
    const key = await leaveRepaired();
    const secondLook = { repairCooldownMs: 0, usersOf: async () => [] };
    for (let round = 0; round < 2; round += 1) {
      const held = grant(await claim(scene.request([key], { secondLook })));
      expect(held.leases[0]?.record.previous?.repair).toMatchObject({ plan_id: "0a1b2c3d4e" });
      held.markReleased();
      held.close();
    }
    expect((await refusalOf(scene.request([key]))).because).toBe("repair-cooldown");
    const { record: path } = scene.placeOf(key);
    const reading = readRecord(path);
    if (reading.kind !== "read") throw new Error(reading.kind);
    const boot_id = "11111111-2222-3333-4444-555555555555";
    writeRecord(path, { ...reading.record, boot_id });
    const next = await claim(scene.request([key]));
    expect(next.keys[0]?.previous).not.toHaveProperty("repair");
    next.release();
  });

  test.each([
    ["before", "aa", "bb"],
    ["behind", "bb", "aa"],
  ])("keeps survivors of another key %s it from being ended", async (_, kind, coolingKind) => {
    const [cooling, orphaned] = [await leaveRepaired({}, coolingKind), scene.key(kind)];
    await scene.leaveDead(orphaned);
    const trees = [{ members: [found(4711)], suspects: [] }];
    const request = scene.request([orphaned, cooling], { trees });
    expect((await refusalOf(request)).because).toBe("repair-cooldown");
    expect([request.asked.ended, request.asked.endings]).toEqual([[], []]);
    // The twin: alone it is ended.
    const alone = scene.request([orphaned], { trees: [...trees, EMPTY] });
    (await claim(alone)).release();
    expect(alone.asked.ended).toHaveLength(1);
  });
});

describe("a checkout", () => {
  test("in which others work is refused, with who and where, and can be waited for", async () => {
    const key = scene.key("worktree");
    const { secondLook } = looksThatFind([USER, { ...USER, pid: 4712, runId: null, by: "file" }]);
    const refusal = await refusalOf(scene.request([key], { secondLook }));
    expect(refusal).toMatchObject({ because: "worktree-in-use", status: "locked" });
    expect(refusal.users.map(({ pid }) => pid)).toEqual([4711, 4712]);
    expect(refusal.text).toBe(
      `worktree:${key.name} is worked in by others: 4711 vi notes (run another-run, in ` +
        "/srv/repo/deep), 4712 vi notes (writes /srv/repo/deep)",
    );
    const later = looksThatFind([USER], []);
    const request = scene.request([key], { secondLook: later.secondLook, waitMs: LONG });
    (await claim(request)).release();
    expect(request.asked.waits.map(({ because }) => because)).toEqual(["worktree-in-use"]);
  });

  test("names five of those in it and counts the rest", async () => {
    const users = [1, 2, 3, 4, 5, 6, 7].map((pid) => ({ ...USER, pid }));
    const { secondLook } = looksThatFind(users);
    const { text } = await refusalOf(scene.request([scene.key("worktree")], { secondLook }));
    expect([text.includes("5 vi notes"), text.includes("6 vi notes")]).toEqual([true, false]);
    expect(text).toEndWith(" and 2 more");
  });

  test("that could not be looked at is refused", async () => {
    const { secondLook } = looksThatFind("unread");
    const refusal = await refusalOf(scene.request([scene.key("worktree")], { secondLook }));
    expect([refusal.because, refusal.status]).toEqual(["worktree-unread", "locked"]);
  });

  test("is looked at each for itself: a clear one says nothing for the next", async () => {
    const keys = [scene.key("worktree"), scene.key("worktree")];
    for (const inUse of keys) {
      const usersOf = async ({ name }: LeaseKey) => (name === inUse.name ? [USER] : []);
      const secondLook = { repairCooldownMs: COOLDOWN_MS, usersOf };
      const refusal = await refusalOf(scene.request(keys, { secondLook }));
      expect([refusal.because, refusal.key.name]).toEqual(["worktree-in-use", inUse.name]);
    }
  });

  test("is asked for by no other key, and by none that somebody holds", async () => {
    const { asked, secondLook } = looksThatFind([USER]);
    (await claim(scene.request([scene.key(), scene.key("lane")], { secondLook }))).release();
    const [key, other] = [scene.key("worktree"), scene.key("worktree")];
    const held = await scene.hold([key]);
    expect((await refusalOf(scene.request([key, other], { secondLook }))).because).toBe(
      "beat-fresh",
    );
    expect(asked).toEqual([]);
    held.close();
  });

  test("is held by nobody while it is waited for", async () => {
    const key = scene.key("worktree");
    const { asked, secondLook } = looksThatFind([USER], [USER], []);
    const waiting = claim(scene.request([key], { secondLook, waitMs: LONG }));
    await waitFor(() => asked.length === 1 && isFree(scene.placeOf(key).lock), "a free lock");
    (await waiting).release();
    expect(asked.length).toBeGreaterThanOrEqual(3);
  });

  test("with survivors is asked for twice: those that are to be ended are spared", async () => {
    const key = scene.key("worktree");
    await scene.leaveDead(key, { run_id: "dead-run" });
    const { asked, secondLook } = looksThatFind([]);
    const member = found(4711);
    const trees = [{ members: [member], suspects: [] }, EMPTY];
    (await claim(scene.request([key], { trees, secondLook }))).release();
    expect(asked.map(({ spared }) => spared)).toEqual([
      { runIds: ["dead-run"], members: [member] },
      { runIds: [], members: [] },
    ]);
  });

  test("in which others work keeps survivors of another key from being ended", async () => {
    const [key, orphaned] = [scene.key("worktree"), scene.key()];
    await scene.leaveDead(orphaned);
    const { secondLook } = looksThatFind([USER]);
    const trees = [{ members: [found(4711)], suspects: [] }];
    const request = scene.request([key, orphaned], { trees, secondLook });
    expect((await refusalOf(request)).because).toBe("worktree-in-use");
    expect(request.asked.ended).toEqual([]);
  });

  test("is asked for again where the lock file was replaced meanwhile", async () => {
    const key = scene.key("worktree");
    const { lock } = scene.placeOf(key);
    let looks = 0;
    const usersOf = async (): Promise<WorktreeUser[]> => {
      looks += 1;
      if (looks === 1) renameSync(lock, `${lock}.moved`);
      return [];
    };
    const secondLook = { repairCooldownMs: COOLDOWN_MS, usersOf };
    const claimed = await claim(scene.request([key], { secondLook }));
    expect([looks, isFree(lock), isFree(`${lock}.moved`)]).toEqual([2, false, true]);
    claimed.release();
  });
});

describe("survivors that are not to be ended", () => {
  const member = (pid: number) => ({ ...found(pid), ...identityOf(pid) });
  const trees = (pid: number) => [{ members: [member(pid)], suspects: [] }, EMPTY];

  test.each(["refuse", "wait"] as const)("are named, with %s and no time left", async (policy) => {
    const key = scene.key();
    await scene.leaveDead(key, { run_id: "dead-run" });
    const more = { trees: trees(process.pid), onSurvivors: policy, waitMs: 0 };
    const request = scene.request([key], more);
    const refusal = await refusalOf(request);
    expect(refusal.because).toBe("survivors-alive");
    expect(refusal.text).toContain("run dead-run");
    expect(refusal.text).toEndWith(`as --on-survivors says: ${process.pid} work ${process.pid}`);
    expect(request.asked.ended).toEqual([]);
  });

  test("are waited for without an end, and for nobody else", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const child = Bun.spawn(["sleep", "600"], { stdout: "ignore", stderr: "ignore" });
    afterAll(() => child.kill("SIGKILL"));
    const request = scene.request([key], {
      trees: trees(child.pid),
      onSurvivors: "wait",
      survivorWaitMs: Number.POSITIVE_INFINITY,
    });
    const waiting = claim(request);
    await waitFor(() => request.asked.waits.length === 1, "a wait");
    expect([request.asked.looked.length, isFree(scene.placeOf(key).lock)]).toEqual([1, true]);
    child.kill("SIGKILL");
    await child.exited;
    const claimed = await waiting;
    expect([claimed.keys[0]?.verdict.name, request.asked.ended]).toEqual(["dead", []]);
    expect(claimed.waitedMs).toBeGreaterThan(0);
    const other = scene.request([key], {
      onSurvivors: "wait",
      survivorWaitMs: Number.POSITIVE_INFINITY,
    });
    const held = grant(claimed);
    expect((await refusalOf(other)).because).toBe("beat-fresh");
    held.close();
  });

  test("are waited for as long as a wait lasts, and no longer", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const more = { trees: trees(process.pid).slice(0, 1), onSurvivors: "refuse", waitMs: 200 };
    const refusal = await refusalOf(scene.request([key], { ...more, onSurvivors: "refuse" }));
    expect(refusal.because).toBe("survivors-alive");
    expect(refusal.waitedMs).toBeGreaterThanOrEqual(200);
    expect(refusal.waitedMs).toBeLessThan(5_000);
  });
});
