/**
 * `--wait`: the kernel's queue in a Worker, and polling where the lock is free and the verdict
 * refuses. Who waits holds nothing, and a wait that was given up keeps nothing.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, statSync, unlinkSync } from "node:fs";
import { claimLeases } from "../../src/lease/claim/claim.ts";
import { makePlace } from "../../src/lease/files/places.ts";
import {
  claim,
  countLooks,
  EMPTY,
  FEW_LOOKS,
  found,
  grant,
  holdFile,
  holdPlace,
  isFree,
  openClaimScene,
  refusalOf,
} from "../support/claim-scene.ts";
import { openTargets } from "../support/open-files.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openClaimScene();
const LONG = 60_000;

/** How many of this process wait in the kernel's queue for a file (proc(5), /proc/locks: `->`). */
function countWaiting(path: string): number {
  const { ino } = statSync(path);
  return readFileSync("/proc/locks", "utf8")
    .split("\n")
    .filter((line) => line.includes("-> FLOCK") && line.includes(`:${ino} `)).length;
}

/** Whether this process has the file open: what was locked and not closed is still locked. */
function isOpen(path: string): boolean {
  return openTargets().includes(path);
}

function waitsFor(path: string, count = 1): Promise<unknown> {
  return waitFor(() => countWaiting(path) >= count, `${count} to wait for ${path}`);
}

describe("a wait", () => {
  test("begins at once, says for whom, and ends with the lock", async () => {
    const key = scene.key();
    const { lock } = scene.placeOf(key);
    const held = await scene.hold([key], { run_id: "first" });
    const request = scene.request([key], { waitMs: LONG });
    const waiting = claim(request);
    await waitsFor(lock);
    expect(request.asked.waits.map(({ because }) => because)).toEqual(["beat-fresh"]);
    held.markReleased();
    held.close();
    const claimed = await waiting;
    expect([claimed.keys[0]?.previous?.run_id, claimed.waitedMs > 0]).toEqual(["first", true]);
    expect(isFree(lock)).toBe(false);
    claimed.release();
    expect(isFree(lock)).toBe(true);
  });

  test("is served in the order of asking", async () => {
    const key = scene.key();
    const { lock } = scene.placeOf(key);
    const release = holdPlace(scene.placeOf(key));
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    const serve = async (number: number): Promise<void> => {
      const held = grant(await claim(scene.request([key], { waitMs: LONG })));
      served.push(number);
      held.markReleased();
      held.close();
    };
    for (let number = 1; number <= 6; number += 1) {
      waiting.push(serve(number));
      await waitsFor(lock, number);
    }
    release();
    await Promise.all(waiting);
    expect(served).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("for a lock that no living owner explains is in the queue as well", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const release = holdPlace(scene.placeOf(key));
    const request = scene.request([key], { waitMs: LONG });
    const looks = countLooks(request);
    const waiting = claim(request);
    await waitsFor(scene.placeOf(key).lock);
    expect(looks()).toBeLessThan(FEW_LOOKS);
    release();
    (await waiting).release();
  });

  test("holds none of the other keys meanwhile", async () => {
    const [one, two, three] = [scene.key("aa"), scene.key("bb"), scene.key("cc")];
    const release = holdPlace(scene.placeOf(two));
    const waiting = claim(scene.request([one, two, three], { waitMs: LONG }));
    await waitsFor(scene.placeOf(two).lock);
    (await claim(scene.request([one, three]))).release();
    // The second key comes free while the third is taken: it is let go again, and that is queued.
    const releaseThree = holdPlace(scene.placeOf(three));
    release();
    await waitsFor(scene.placeOf(three).lock);
    (await claim(scene.request([one, two]))).release();
    releaseThree?.();
    const claimed = await waiting;
    expect(claimed.keys.map(({ place }) => isFree(place.lock))).toEqual([false, false, false]);
    claimed.release();
  });

  test("that is over refuses, and the lock that comes later is not kept", async () => {
    const key = scene.key();
    const { lock } = scene.placeOf(key);
    const held = await scene.hold([key]);
    // Long enough for a thread to have begun to wait, however busy the machine is.
    const refusal = await refusalOf(scene.request([key], { waitMs: 4_000 }));
    expect([refusal.because, refusal.waitedMs >= 4_000]).toEqual(["beat-fresh", true]);
    expect(countWaiting(lock)).toBe(1);
    held.markReleased();
    held.close();
    await waitFor(() => !isOpen(lock), "the thread of the abandoned wait to give the lock back");
    expect(isFree(lock)).toBe(true);
    (await claim(scene.request([key]))).release();
  });

  test("of no length is no wait", async () => {
    const key = scene.key();
    const release = holdPlace(scene.placeOf(key));
    const request = scene.request([key], { waitMs: 0 });
    const refusal = await refusalOf(request);
    expect([refusal.waitedMs, request.asked.waits]).toEqual([0, []]);
    release();
  });

  test("for a lock file that was replaced meanwhile goes on to the new one", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    await scene.leaveDead(key, { run_id: "dead" });
    const release = holdPlace(place);
    const request = scene.request([key], { waitMs: LONG });
    const waiting = claim(request);
    await waitsFor(place.lock);
    unlinkSync(place.lock);
    const releaseNew = holdFile(place.lock);
    release();
    await waitsFor(place.lock);
    expect(request.asked.looked).toEqual([]); // under the old lock nothing was looked at or ended
    releaseNew?.();
    const claimed = await waiting;
    expect([isFree(place.lock), request.asked.looked]).toEqual([false, ["dead"]]);
    claimed.release();
  });

  test("without a thread is a poll", async () => {
    const key = scene.key();
    const release = holdPlace(scene.placeOf(key));
    const waitWorkerUrl = new URL("./no-such-worker.ts", import.meta.url);
    const request = scene.request([key], { waitMs: LONG, waitWorkerUrl });
    const waiting = claim(request);
    await waitFor(() => request.asked.waits.length > 0, "the wait to begin");
    release();
    (await waiting).release();
    const again = holdPlace(scene.placeOf(key));
    const refused = await refusalOf({ ...request, waitMs: 100 });
    expect(refused.because).toBe("being-acquired");
    again();
  });
});

describe("where the lock is free and the verdict refuses", () => {
  test("it is looked at again until the verdict allows it", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const suspects = { members: [], suspects: [found(9)] };
    const request = scene.request([key], { waitMs: LONG, trees: [suspects, EMPTY] });
    (await claim(request)).release();
    expect(request.asked.waits.map(({ because }) => because)).toEqual(["suspects"]);
  });

  test("it is refused at the deadline, and held by nobody in between", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const suspects = { members: [], suspects: [found(9)] };
    const request = scene.request([key], { waitMs: 1200, trees: [suspects] });
    const waiting = refusalOf(request);
    await waitFor(() => request.asked.waits.length > 0, "the wait to begin");
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
    const refusal = await waiting;
    expect([refusal.because, refusal.waitedMs >= 1200]).toEqual(["suspects", true]);
    expect(request.asked.looked.length).toBeGreaterThan(1);
    expect(request.asked.waits).toHaveLength(1);
  });

  test("an ancestor of ours is not waited for: it waits for us", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const trees = [{ members: [found(9, { isAncestor: true })], suspects: [] }];
    const request = scene.request([key], { waitMs: LONG, trees });
    const refusal = await refusalOf(request);
    expect([refusal.because, request.asked.waits]).toEqual(["ancestor-of-newcomer", []]);
  });
});

test("of many newcomers each has the keys alone, and all of them have their turn", async () => {
  const [one, two] = [scene.key("aa"), scene.key("bb")];
  for (const key of [one, two]) makePlace(scene.placeOf(key));
  const choices = [[one], [two], [one, two]];
  const inside = new Map([one, two].map((key) => [key.kind, 0]));
  const numbers = new Map([one, two].map((key) => [key.kind, [] as number[]]));
  let overlaps = 0;
  const run = async (number: number): Promise<void> => {
    const keys = choices[number % choices.length] ?? [one];
    const result = await claimLeases(scene.request(keys, { waitMs: LONG }));
    if (result.kind !== "claimed") throw new Error(result.refusal.text);
    const held = grant(result.claim);
    for (const { key, generation } of held.leases) {
      const count = (inside.get(key.kind) ?? 0) + 1;
      inside.set(key.kind, count);
      if (count > 1) overlaps += 1;
      numbers.get(key.kind)?.push(generation);
    }
    await Bun.sleep(1);
    for (const { key } of held.leases) inside.set(key.kind, (inside.get(key.kind) ?? 0) - 1);
    held.markReleased();
    held.close();
  };
  await Promise.all(Array.from({ length: 18 }, (_, number) => run(number)));
  expect(overlaps).toBe(0);
  for (const list of numbers.values()) {
    expect(list).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  }
}, 180_000);
