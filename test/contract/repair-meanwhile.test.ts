/**
 * What others change while a repair is at work on a key: its lock file is replaced under the lock
 * that the repair has taken, or somebody takes the key between the death of its owner and the
 * repair. What they have written stays as it is.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import { openLock } from "../../src/lease/files/lock-file.ts";
import { slotPath } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import type { RepairOptions } from "../../src/repair/repair-command.ts";
import { holdFile, isFree } from "../support/claim-scene.ts";
import { planOf, recordOf, repair, scene, startOwner } from "../support/repair-owner.ts";
import { waitFor } from "../support/wait-for.ts";

/** A record of which the owner is out of sight: its time is noted. */
async function leaveElsewhere(): Promise<LeaseKey> {
  const key = scene.key();
  await scene.leaveDead(key);
  const boot_id = "11111111-2222-3333-4444-555555555555";
  writeRecord(scene.placeOf(key).record, { ...recordOf(key), boot_id, host: "otherhost" });
  return key;
}

/** A key of which nothing tells the generation but the name of a file. */
async function leaveNumberless(): Promise<LeaseKey> {
  const key = scene.key();
  await scene.leaveDead(key);
  writeFileSync(scene.placeOf(key).record, "{ torn");
  writeFileSync(slotPath(scene.placeOf(key), 1), "no slot");
  return key;
}

function replaceLock(path: string): void {
  renameSync(path, `${path}.gone`);
  const made = openLock(path, "create");
  if (made.kind === "open") closeSync(made.fd);
}

/** While the repair has the lock and still waits for the fence. */
async function repairMeanwhile(key: LeaseKey, options: Partial<RepairOptions>, act: () => void) {
  const { lock, fence } = scene.placeOf(key);
  const release = holdFile(fence, "shared");
  const repairing = repair({ keys: [key], ...options });
  await waitFor(() => !isFree(lock), "the repair to have the lock");
  act();
  release?.();
  return repairing;
}

describe.each([
  ["a note of the time", leaveElsewhere, { isApplying: true }, "noted"],
  ["a generation", leaveNumberless, { setGeneration: 41 }, "generation-set"],
] as const)("%s", (_, leave, options, because) => {
  test("is not written where the lock file is another one by then", async () => {
    const key = await leave();
    const { lock, record, directory } = scene.placeOf(key);
    const before = readFileSync(record, "utf8");
    const { code, report } = await repairMeanwhile(key, options, () => replaceLock(lock));
    expect([code, report?.acts.map((act) => [act.end, act.because])]).toEqual([
      77,
      [["refused", "evidence-changed"]],
    ]);
    expect(readFileSync(record, "utf8")).toBe(before);
    expect(existsSync(`${directory}/seen.json`)).toBe(false);
    expect(existsSync(slotPath(scene.placeOf(key), 41))).toBe(false);
  });

  test("is written where it is the same one", async () => {
    const key = await leave();
    const { code, report } = await repairMeanwhile(key, options, () => undefined);
    expect([code, report?.acts.map((act) => act.because)]).toEqual([0, [because]]);
  });
});

/** As a newcomer that waited in the kernel's queue: the lock, the next generation, its end. */
function passThrough(key: LeaseKey, changes: Partial<LeaseRecord>): string {
  const { lock, record } = scene.placeOf(key);
  let release = holdFile(lock);
  while (release === undefined) release = holdFile(lock);
  const run = { run_id: "newcomer", run_path: "newcomer", generation: 8 };
  writeRecord(record, { ...recordOf(key), ...run, ...changes });
  release();
  return readFileSync(record, "utf8");
}

test.each([
  ["has given it back", { state: "released", released_at: "2026-01-01T00:00:00.000Z" }],
  ["was killed", { state: "held" }],
] as const)(
  "a newcomer that follows an ended owner and %s keeps its record",
  async (_, changes) => {
    const key = scene.key();
    const { child } = await startOwner([key], 0);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    let written = "";
    // The owner has been asked once, and is about to be asked again.
    const onStep = () => {
      if (written !== "") return;
      child.kill("SIGKILL");
      written = passThrough(key, changes);
    };
    const done = await repair({ keys: [key], approve: id }, { ownerGraceMs: 200, onStep });
    expect(done.report?.acts).toMatchObject([{ end: "done", because: "taken-by-another" }]);
    expect(written).toContain("newcomer");
    expect(readFileSync(scene.placeOf(key).record, "utf8")).toBe(written);
    expect(existsSync(`${scene.placeOf(key).record}.kept-1`)).toBe(false);
    await child.exited;
  },
);
