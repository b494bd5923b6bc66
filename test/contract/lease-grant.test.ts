/**
 * Steps A7 to A9 with real files: the number, the record, the first beat; and what remains when one
 * of them fails.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import type { JournalLease } from "../../src/core/evidence.ts";
import type { WatchdogError } from "../../src/core/errors.ts";
import { raiseFloor } from "../../src/lease/files/floors.ts";
import { type LeasePlace, listSlots, makePlace, slotPath } from "../../src/lease/files/places.ts";
import { readRecord } from "../../src/lease/files/record-file.ts";
import { readSlot } from "../../src/lease/files/slot-file.ts";
import { claim, grant, isFree, machine, openClaimScene, ownerOf } from "../support/claim-scene.ts";
import { countOpen } from "../support/open-files.ts";

const scene = openClaimScene();

function recordAt(path: string): Record<string, unknown> {
  const reading = readRecord(path);
  if (reading.kind !== "read") throw new Error(`${path}: ${reading.kind}`);
  return { ...reading.record };
}

function failureOf(work: () => unknown): WatchdogError {
  try {
    work();
  } catch (error) {
    return error as WatchdogError;
  }
  throw new Error("no failure");
}

describe("a grant", () => {
  test("writes the record, the first beat, and lets go of the fence alone", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    const owner = ownerOf({ run_id: "run-a", stale_after_ms: 5000 });
    const held = grant(await claim(scene.request([key])), owner);
    expect(recordAt(place.record)).toMatchObject({
      ...owner,
      kind: key.kind,
      name: key.name,
      generation: 1,
      state: "held",
      lock_inode: `${statSync(place.lock).dev}:${statSync(place.lock).ino}`,
      released_at: null,
      previous: null,
    });
    const slot = readSlot(slotPath(place, 1));
    expect(slot).toMatchObject({
      head: { generation: 1, sequence: 1, bootId: machine.bootId, staleAfterMs: 5000 },
      body: { runId: "run-a", owner: { pid: process.pid }, mainChild: null, memberCount: 0 },
    });
    expect([isFree(place.lock), isFree(place.fence)]).toEqual([false, true]);
    expect([held.firstBeat, held.leases[0]?.generation]).toEqual([1, 1]);
    held.close();
  });

  test("lets go of the fences when all records name it and all slots have a beat", async () => {
    const keys = [scene.key("aa"), scene.key("bb")];
    const claimed = await claim(scene.request(keys));
    const seen: unknown[] = [];
    const releaseFences = (): void => {
      for (const place of keys.map(scene.placeOf)) {
        const { run_id: runId, state } = recordAt(place.record);
        const slot = readSlot(slotPath(place, 1));
        seen.push([isFree(place.fence), runId, state, typeof slot === "object"]);
      }
      claimed.releaseFences();
    };
    const held = grant({ ...claimed, releaseFences }, ownerOf({ run_id: "run-late" }));
    const fenced = [false, "run-late", "held", true];
    expect(seen).toEqual([fenced, fenced]);
    expect(keys.map((key) => isFree(scene.placeOf(key).fence))).toEqual([true, true]);
    held.close();
  });

  test("counts on by one, and removes the slots before it", async () => {
    const key = scene.key();
    for (const generation of [1, 2, 3]) {
      const held = await scene.hold([key]);
      expect([held.leases[0]?.generation, listSlots(scene.placeOf(key))]).toEqual([
        generation,
        [generation],
      ]);
      held.markReleased();
      held.close();
    }
  });

  test("gives each key a number of its own", async () => {
    const [old, fresh] = [scene.key("aa"), scene.key("bb")];
    const first = await scene.hold([old]);
    first.markReleased();
    first.close();
    const held = await scene.hold([old, fresh]);
    expect(held.leases.map(({ generation }) => generation)).toEqual([2, 1]);
    held.close();
  });

  test("makes private files whatever the umask", async () => {
    const key = scene.key();
    const before = process.umask(0o777);
    const held = await scene.hold([key]).finally(() => process.umask(before));
    const { directory } = scene.placeOf(key);
    for (const name of readdirSync(directory)) {
      expect([name, statSync(`${directory}/${name}`).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    held.close();
  });

  test("hands the locks over: letting go of the claim afterwards does nothing", async () => {
    const key = scene.key();
    const claimed = await claim(scene.request([key]));
    const held = grant(claimed);
    claimed.release();
    claimed.release();
    expect(isFree(scene.placeOf(key).lock)).toBe(false);
    held.close();
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
  });
});

describe("the number is larger than any that is known", () => {
  async function generationOf(
    key: ReturnType<typeof scene.key>,
    journal: JournalLease | undefined | "unread" = undefined,
  ): Promise<number | undefined> {
    const looker = { stateDirectory: scene.directory, machine, journal: () => journal };
    const held = grant(await claim(scene.request([key], { looker })));
    held.markReleased();
    held.close();
    return held.leases[0]?.generation;
  }

  test("of a slot that an acquirer took before it died", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    writeFileSync(slotPath(scene.placeOf(key), 8), "");
    expect(await generationOf(key)).toBe(9);
  });

  test("of a directory that was removed", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    raiseFloor(scene.placeOf(key), 41);
    expect(await generationOf(key)).toBe(42);
  });

  test("of the journal, also where the record is good", async () => {
    const key = scene.key();
    const known = { generation: 99, runId: "old", isReleased: true };
    expect(await generationOf(key)).toBe(1);
    expect(await generationOf(key, known)).toBe(100);
    expect(await generationOf(key, "unread")).toBe(101);
  });

  test("of the slot where the record is gone or zeroed", async () => {
    const key = scene.key();
    const { record } = scene.placeOf(key);
    expect(await generationOf(key)).toBe(1);
    unlinkSync(record);
    expect(await generationOf(key)).toBe(2);
    truncateSync(record, 0);
    writeFileSync(record, "\0".repeat(4096));
    expect(await generationOf(key)).toBe(3);
  });
});

test("a record that cannot be read is kept beside the new one", async () => {
  const key = scene.key();
  await scene.leaveDead(key);
  const place = scene.placeOf(key);
  writeFileSync(place.record, "{ torn");
  const held = grant(await claim(scene.request([key])));
  const aside = held.leases[0]?.setAside ?? "";
  expect(aside).toBe(`${place.record}.broken-2`);
  expect([readFileSync(aside, "utf8"), readRecord(place.record).kind]).toEqual(["{ torn", "read"]);
  held.close();
});

/** A directory in the place of the record, which cannot be set aside either. */
function blockRecord(place: LeasePlace, generation: number): void {
  mkdirSync(place.record);
  mkdirSync(`${place.record}.broken-${generation}/in-the-way`, { recursive: true });
}

describe("a grant that fails", () => {
  test("at the number holds nothing and leaves the record as it was", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    const claimed = await claim(scene.request([key]));
    const before = countOpen();
    renameSync(place.directory, `${place.directory}.away`);
    symlinkSync("/proc/self/fdinfo", place.directory);
    const failure = failureOf(() => grant(claimed));
    expect([failure.code, failure.exitStatus]).toEqual(["lease.unusable", 125]);
    unlinkSync(place.directory);
    renameSync(`${place.directory}.away`, place.directory);
    expect([isFree(place.lock), isFree(place.fence), readRecord(place.record).kind]).toEqual([
      true,
      true,
      "none",
    ]);
    expect(countOpen()).toBe(before - 2);
  });

  test("at the second record puts the first one back, and gives the numbers back", async () => {
    const [one, two] = [scene.key("aa"), scene.key("bb")];
    await scene.leaveDead(one, { run_id: "dead-before" });
    const [first, second] = [scene.placeOf(one), scene.placeOf(two)];
    const was = readFileSync(first.record, "utf8");
    const before = countOpen();
    const claimed = await claim(scene.request([one, two]));
    blockRecord(second, 1);
    const failure = failureOf(() => grant(claimed, { run_id: "never-ran" }));
    expect(countOpen()).toBe(before);
    expect([failure.code, failure.exitStatus]).toEqual(["lease.unusable", 125]);
    expect([readFileSync(first.record, "utf8"), listSlots(first)]).toEqual([was, [1]]);
    expect([first.lock, first.fence, second.lock, second.fence].map(isFree)).toEqual(
      Array(4).fill(true),
    );
    rmSync(second.record, { recursive: true });
    const again = await claim(scene.request([one, two]));
    expect(again.keys.map(({ abandoned }) => abandoned?.runId)).toEqual(["dead-before", undefined]);
    const held = grant(again);
    expect(held.leases.map(({ generation }) => generation)).toEqual([2, 1]);
    held.close();
  });

  test("at the second key says released where the first had no record before", async () => {
    const [one, two] = [scene.key("aa"), scene.key("bb")];
    const claimed = await claim(scene.request([one, two]));
    blockRecord(scene.placeOf(two), 1);
    failureOf(() => grant(claimed));
    expect(recordAt(scene.placeOf(one).record)).toMatchObject({ generation: 1, state: "released" });
    expect(existsSync(slotPath(scene.placeOf(two), 1))).toBe(false);
    const next = await claim(scene.request([one]));
    expect(next.keys[0]?.verdict.name).toBe("free");
    next.release();
  });

  test("because the numbers are used up needs a person", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    writeFileSync(slotPath(scene.placeOf(key), Number.MAX_SAFE_INTEGER), "");
    const claimed = await claim(scene.request([key]));
    const failure = failureOf(() => grant(claimed));
    expect([failure.code, failure.exitStatus]).toEqual(["lease.refused", 78]);
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
  });
});
