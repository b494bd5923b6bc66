/**
 * What a repair says beside a grant whose owner is to be ended: it counts for that grant alone, and
 * only where the owner was asked, or may be asked at this moment.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import {
  type EndingContent,
  endingPath,
  findOwnerEnding,
  writeEnding,
} from "../../src/lease/files/owner-ending.ts";
import { readRecord } from "../../src/lease/files/record-file.ts";
import { monotonicNow } from "../../src/os/clock.ts";
import { readProcessIdentity } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { claim, grant, machine, openClaimScene, refusalOf } from "../support/claim-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openClaimScene();
const DEAD: ProcessIdentity = { pid: 2 ** 22 + 1, start_time: 1 };
const started: Bun.Subprocess[] = [];

afterAll(async () => {
  for (const child of started) {
    child.kill("SIGKILL");
    await child.exited;
  }
});

/** Another process that lives. */
function startRepairer(): Bun.Subprocess {
  const child = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
  started.push(child);
  return child;
}

function identityOf({ pid }: Bun.Subprocess): ProcessIdentity {
  const identity = readProcessIdentity(pid);
  if (identity === undefined) throw new Error("it has ended");
  return identity;
}

async function leaveReleased(): Promise<LeaseKey> {
  const key = scene.key();
  const held = await scene.hold([key]);
  held.markReleased();
  held.close();
  return key;
}

function grantOf(key: LeaseKey): { generation: number; runId: string } {
  const reading = readRecord(scene.placeOf(key).record);
  if (reading.kind !== "read") throw new Error(`found ${reading.kind}`);
  return { generation: reading.record.generation, runId: reading.record.run_id };
}

function say(key: LeaseKey, changes: Partial<EndingContent> = {}, generation?: number): void {
  const now = grantOf(key);
  writeEnding(scene.placeOf(key), generation ?? now.generation, {
    runId: now.runId,
    state: "asked",
    mark: {
      plan_id: "0a1b2c3d4e",
      action: "ended-owner",
      at: "2030-01-02T03:04:05.000Z",
      boot_id: machine.bootId,
      time_namespace: machine.timeNamespace,
      monotonic_ms: monotonicNow(),
      by: "ops@nightly",
    },
    by: DEAD,
    pidNamespace: machine.pidNamespace,
    ...changes,
  });
}

describe("an owner that was asked to end", () => {
  test("holds its key for the cooldown, and the next record names the repair", async () => {
    const key = await leaveReleased();
    say(key);
    expect(await refusalOf(scene.request([key]))).toMatchObject({ because: "repair-cooldown" });
    const secondLook = { repairCooldownMs: 0, usersOf: async () => [] };
    const claimed = await claim(scene.request([key], { secondLook }));
    expect(claimed.keys[0]?.previous?.evidence).toBe(
      "R4 released, repair 0a1b2c3d4e ended-owner by ops@nightly",
    );
    const held = grant(claimed);
    expect(readdirSync(scene.placeOf(key).directory).toSorted()).toEqual([
      "beat.2",
      "fence",
      "lease.json",
      "lock",
    ]);
    held.markReleased();
    held.close();
    const reading = readRecord(scene.placeOf(key).record);
    expect(reading).toMatchObject({ kind: "read", record: { generation: 2 } });
    expect(reading.kind === "read" && "repair" in reading.record).toBe(false);
  });

  test.each<[string, Partial<EndingContent>, number | undefined]>([
    ["another run", { runId: "another" }, undefined],
    ["an earlier generation", {}, 0],
    ["a later generation", {}, 2],
  ])("says nothing about the grant of %s", async (_, changes, by) => {
    const key = await leaveReleased();
    say(key, changes, by);
    (await claim(scene.request([key]))).release();
  });

  test.each(["", "{", "[]", "null", '{"format":2}', '{"format":1,"generation":1}'])(
    "is nobody's word where the file holds %j",
    async (text) => {
      const key = await leaveReleased();
      writeFileSync(endingPath(scene.placeOf(key), 1), text);
      (await claim(scene.request([key]))).release();
    },
  );

  test("written late, for a grant that is over, touches nothing of the next one", async () => {
    const key = await leaveReleased();
    const before = grantOf(key);
    const held = await scene.hold([key]);
    const record = readFileSync(scene.placeOf(key).record, "utf8");
    say(key, { runId: before.runId }, before.generation);
    expect(held.check()).toEqual({ kind: "ours" });
    expect(readFileSync(scene.placeOf(key).record, "utf8")).toBe(record);
    held.markReleased();
    held.close();
    const next = await scene.hold([key]);
    expect(existsSync(endingPath(scene.placeOf(key), before.generation))).toBe(false);
    next.close();
  });
});

describe("an owner that was only going to be asked", () => {
  test("is no reason to wait for a repair that is dead, stopped or out of sight", async () => {
    const key = await leaveReleased();
    const { generation, runId } = grantOf(key);
    const find = () => findOwnerEnding(scene.placeOf(key), { generation, runId, machine });
    say(key, { state: "intended" });
    expect(find()).toBeUndefined();
    const child = startRepairer();
    const by = identityOf(child);
    say(key, { state: "intended", by });
    expect(find()).toMatchObject({ repairer: child.pid });
    say(key, { state: "intended", by, pidNamespace: "pid:[1]" });
    expect(find()).toBeUndefined();
    say(key, { state: "intended", by: { ...by, start_time: by.start_time + 1 } });
    expect(find()).toBeUndefined();
    say(key, { state: "intended", by });
    child.kill("SIGSTOP");
    await waitFor(() => readStat(child.pid)?.state === "T", "a stopped one");
    expect(find()).toBeUndefined();
  });

  test("is waited for while that repair lives, and then had", async () => {
    const key = await leaveReleased();
    const child = startRepairer();
    say(key, { state: "intended", by: identityOf(child) });
    const refused = await refusalOf(scene.request([key], { repairWaitMs: 150 }));
    expect(refused).toMatchObject({ because: "repair-at-work", status: "locked" });
    expect(refused.text).toContain(`watchdog repair (pid ${child.pid})`);
    const request = scene.request([key]);
    const claiming = claim(request);
    await waitFor(() => request.asked.waits.length > 0, "a wait");
    child.kill("SIGKILL");
    (await claiming).release();
    expect(request.asked.waits.map(({ because }) => because)).toEqual(["repair-at-work"]);
  });
});
