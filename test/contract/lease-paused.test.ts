/**
 * A key of a dead owner that had made its tree stand still: a newcomer that waits for survivors
 * lets them go on, because nobody else would, and the wait would never end. Who goes on then, of
 * real processes.
 */
import { describe, expect, spyOn, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import type { TreeFinding } from "../../src/core/evidence.ts";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import type { SlotRunState } from "../../src/core/lease-record.ts";
import type { Continued } from "../../src/lease/claim/request.ts";
import { slotPath } from "../../src/lease/files/places.ts";
import { readSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { readStat } from "../../src/os/proc.ts";
import { sys } from "../../src/os/sys.ts";
import { scanProcesses } from "../../src/tree/scan.ts";
import { continueFrozen } from "../../src/tree/survivors.ts";
import { claim, EMPTY, found, openClaimScene, refusalOf } from "../support/claim-scene.ts";
import { DeadRunScene, identityOf, NOBODY_KEPT, stateOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openClaimScene();
const dead = new DeadRunScene(import.meta.file);
const MEMBERS: TreeFinding = { members: [found(4711)], suspects: [] };
const WAITING = { onSurvivors: "wait", waitMs: 60_000 } as const;

/** A dead owner whose last beat says where its run stood. */
async function leaveDeadIn(key: LeaseKey, runId: string, runState: SlotRunState): Promise<void> {
  await scene.leaveDead(key, { run_id: runId });
  const path = slotPath(scene.placeOf(key), 1);
  const slot = readSlot(path);
  if (typeof slot === "string" || slot.body === undefined) throw new Error(`slot: ${slot}`);
  const fd = openSync(path, "r+");
  writeSlot(fd, { head: { ...slot.head, runState }, body: slot.body });
  closeSync(fd);
}

describe("survivors of a paused run", () => {
  test("are continued once by a newcomer that waits for them, however often it looks", async () => {
    const key = scene.key();
    await leaveDeadIn(key, "paused", "paused");
    const told: Continued[] = [];
    const request = scene.request([key], {
      ...WAITING,
      trees: [MEMBERS, MEMBERS, MEMBERS, EMPTY],
      onContinued: (continued) => told.push(continued),
    });
    (await claim(request)).release();
    expect([request.asked.continued, request.asked.ended]).toEqual([["paused"], []]);
    expect(request.asked.looked.length).toBe(4);
    expect(told.map(({ run, count }) => [run.runId, count])).toEqual([["paused", 1]]);
  }, 60_000);

  test("are continued later where its guard lives, or nobody could be seen", async () => {
    const key = scene.key();
    await leaveDeadIn(key, "guarded", "paused");
    const request = scene.request([key], {
      ...WAITING,
      trees: [MEMBERS, MEMBERS, MEMBERS, MEMBERS, EMPTY],
    });
    const answers = ["guarded", "unread", 2] as const;
    let asked = 0;
    const survivors = {
      ...request.survivors,
      continueFrozen: async () => answers[(asked += 1) - 1] ?? 0,
    };
    (await claim({ ...request, survivors })).release();
    expect(asked).toBe(3);
  }, 60_000);

  test.each([
    ["would not wait at all", "paused", { onSurvivors: "wait" }],
    ["refuses", "paused", { onSurvivors: "refuse", waitMs: 1 }],
    ["waits, and the run was not paused", "running", { onSurvivors: "wait", waitMs: 1 }],
    ["waits, and the run was being ended", "stopping", { onSurvivors: "wait", waitMs: 1 }],
  ] as const)("are left alone by a newcomer that %s", async (_, runState, changes) => {
    const key = scene.key();
    await leaveDeadIn(key, "left", runState);
    const request = scene.request([key], { ...changes, trees: [MEMBERS] });
    const refusal = await refusalOf(request);
    expect([refusal.verdict.name, refusal.because]).toEqual(["orphaned", "survivors-alive"]);
    expect([request.asked.continued, request.asked.ended]).toEqual([[], []]);
  });

  test("are ended where that is asked for, and continued by nobody", async () => {
    const key = scene.key();
    await leaveDeadIn(key, "ended", "paused");
    const request = scene.request([key], { waitMs: 60_000, trees: [MEMBERS, EMPTY] });
    (await claim(request)).release();
    expect([request.asked.continued, request.asked.ended]).toEqual([[], ["ended"]]);
  });

  test("that may be of the run and are not proven are continued by nobody", async () => {
    const key = scene.key();
    await leaveDeadIn(key, "suspects", "paused");
    const suspects: TreeFinding = { members: [], suspects: [found(4711)] };
    const request = scene.request([key], { ...WAITING, waitMs: 1, trees: [suspects] });
    await refusalOf(request);
    expect(request.asked.continued).toEqual([]);
  });
});

async function stop(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await waitFor(() => pids.every((pid) => stateOf(pid) === "T"), "all of them stopped");
}

const ANY = { scan: scanProcesses, isFrozen: ({ state }: { state: string }) => state === "T" };

describe("CONT to a dead run's tree", () => {
  test("lets proven members go on, children before their parents, and nobody else", async () => {
    const run = dead.another();
    const path = run.makePath();
    const script = 'sleep 60 & echo "$$ $!" >$0.new; mv $0.new $0; wait';
    const parent = await run.startOrphan(["sh", "-c", script, path]);
    const [, child = 0] = await run.readPids(path);
    const stranger = await run.startOrphan(["sleep", "60"], {});
    await stop(parent, child, stranger);
    const opens = spyOn(sys, "pidfdOpen");
    try {
      const tally = await continueFrozen(run.describe([parent]), NOBODY_KEPT, ANY);
      if (typeof tally === "string") throw new Error(tally);
      expect(tally.sent.map(({ pid }) => pid)).toEqual([child, parent]);
      expect(opens.mock.calls.map(([pid]) => pid)).toEqual([child, parent]);
    } finally {
      opens.mockRestore();
    }
    expect([parent, child, stranger].map(stateOf)).toEqual(["S", "S", "T"]);
  });

  test("goes to those alone that were frozen", async () => {
    const run = dead.another();
    const [frozen, other] = [
      await run.startOrphan(["sleep", "60"]),
      await run.startOrphan(["sleep", "60"]),
    ];
    await stop(frozen, other);
    const isFrozen = ({ pid }: { pid: number }): boolean => pid === frozen;
    await continueFrozen(run.describe([frozen]), NOBODY_KEPT, { ...ANY, isFrozen });
    expect([frozen, other].map(stateOf)).toEqual(["S", "T"]);
  });

  test("waits for the guard of the run, which decides first", async () => {
    const run = dead.another();
    const [member, guard] = [
      await run.startOrphan(["sleep", "60"]),
      run.startChild(["sleep", "60"], {}),
    ];
    await stop(member);
    const described = run.describe([member], { guard: identityOf(guard) });
    expect(await continueFrozen(described, NOBODY_KEPT, ANY)).toBe("guarded");
    expect(stateOf(member)).toBe("T");
    process.kill(guard, "SIGKILL");
    await waitFor(() => "ZX".includes(readStat(guard)?.state ?? "X"), "the end of the guard");
    await continueFrozen(described, NOBODY_KEPT, ANY);
    expect(stateOf(member)).toBe("S");
  });

  test("is sent to nobody where the processes cannot be seen", async () => {
    const run = dead.another();
    const member = await run.startOrphan(["sleep", "60"]);
    await stop(member);
    const unread = { ...ANY, scan: () => "unread" as const };
    expect(await continueFrozen(run.describe([member]), NOBODY_KEPT, unread)).toBe("unread");
    expect(stateOf(member)).toBe("T");
  });
});
