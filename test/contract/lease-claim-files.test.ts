/**
 * Steps A1, A3 and A6 with files that are busy, replaced, or not what they should be: the fence of
 * a key, and what is refused as a matter for a person.
 */
import { describe, expect, test } from "bun:test";
import {
  closeSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import type { TreeFinding } from "../../src/core/evidence.ts";
import { claimLeases } from "../../src/lease/claim/claim.ts";
import { tryLock } from "../../src/lease/files/lock-file.ts";
import { makePlace } from "../../src/lease/files/places.ts";
import { wakeAfter } from "../../src/os/timers.ts";
import {
  claim,
  EMPTY,
  fenceElsewhere,
  found,
  holdFile,
  isFree,
  openClaimScene,
  refusalOf,
} from "../support/claim-scene.ts";
import { failureOf } from "../support/failure-of.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openClaimScene();
const MEMBERS: TreeFinding = { members: [found(4711), found(4712)], suspects: [] };

describe("the fence", () => {
  test("is waited for while an operation is in progress, with another look after", async () => {
    const key = scene.key();
    await scene.leaveDead(key, { run_id: "fenced" });
    const release = await fenceElsewhere(scene.placeOf(key).fence);
    const request = scene.request([key]);
    const attempt = claim(request);
    wakeAfter(120, () => void release());
    (await attempt).release();
    expect(request.asked.looked.length).toBeGreaterThan(1);
  });

  test("refuses at its deadline, and ends nobody for another key before that", async () => {
    const [ending, fenced] = [scene.key("aa"), scene.key("bb")];
    await scene.leaveDead(ending);
    makePlace(scene.placeOf(fenced));
    const release = await fenceElsewhere(scene.placeOf(fenced).fence);
    const request = scene.request([ending, fenced], { fenceDeadlineMs: 80, trees: [MEMBERS] });
    const refusal = await refusalOf(request);
    expect([refusal.key, refusal.because, refusal.status]).toEqual([
      fenced,
      "fenced-operation",
      "locked",
    ]);
    expect(request.asked.ended).toEqual([]);
    expect([isFree(scene.placeOf(fenced).lock), isFree(scene.placeOf(ending).fence)]).toEqual([
      true,
      true,
    ]);
    await release();
  });

  test("names who carries the operation out", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const { fence } = scene.placeOf(key);
    const flock = Bun.spawn(["flock", "-s", "--no-fork", fence, "sleep", "60"]);
    const isHeld = (): boolean => {
      const release = holdFile(fence);
      release?.();
      return release === undefined;
    };
    await waitFor(isHeld, "the operation");
    const refusal = await refusalOf(scene.request([key], { fenceDeadlineMs: 50 }));
    expect([refusal.because, refusal.text]).toEqual([
      "fenced-operation",
      `job:${key.name} has an operation in progress under its fence: ${flock.pid} sleep 60`,
    ]);
    flock.kill("SIGKILL");
    await flock.exited;
  });

  test("is waited for as long as --wait says, and nothing is held meanwhile", async () => {
    const [key, other] = [scene.key("aa"), scene.key("bb")];
    makePlace(scene.placeOf(key));
    const release = await fenceElsewhere(scene.placeOf(key).fence);
    const request = scene.request([key, other], { waitMs: 1_500, fenceDeadlineMs: 60_000 });
    const began = performance.now();
    const refused = refusalOf(request);
    await waitFor(() => request.asked.waits.length > 0, "the wait");
    expect([key, other].map((one) => isFree(scene.placeOf(one).lock))).toEqual([true, true]);
    expect([(await refused).because, request.asked.waits.length]).toEqual(["fenced-operation", 1]);
    const tookMs = performance.now() - began;
    expect([tookMs >= 1_490, tookMs < 20_000]).toEqual([true, true]);
    await release();
  });

  test.each([
    ["--wait 0", { waitMs: 0 }],
    ["--on-survivors refuse", { onSurvivors: "refuse" }],
  ] as const)("is not waited for with %s", async (_, changes) => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    const release = await fenceElsewhere(scene.placeOf(key).fence);
    const request = scene.request([key], { ...changes, fenceDeadlineMs: 60_000 });
    const refusal = await refusalOf(request);
    expect([refusal.because, request.asked.waits]).toEqual(["fenced-operation", []]);
    await release();
  });

  test("is waited for beyond its deadline with --on-survivors wait", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    const release = await fenceElsewhere(scene.placeOf(key).fence);
    const policy = { onSurvivors: "wait", survivorWaitMs: Number.POSITIVE_INFINITY } as const;
    const request = scene.request([key], { ...policy, fenceDeadlineMs: 10 });
    const claimed = claim(request);
    await waitFor(() => request.asked.waits.length > 0, "the wait");
    wakeAfter(300, () => void release());
    (await claimed).release();
  });

  test("that this process or one above it has is refused at once: it waits for us", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    const fd = openSync(scene.placeOf(key).fence, "w+");
    expect(tryLock(fd, "shared")).toBe("locked");
    const request = scene.request([key], { waitMs: 60_000 });
    const refusal = await refusalOf(request);
    expect([refusal.because, request.asked.waits]).toEqual(["fenced-around", []]);
    expect(refusal.text).toContain("this run is a part of it: it would wait for itself: ");
    expect(refusal.fencedBy).toMatchObject([{ pid: process.pid }]);
    closeSync(fd);
    (await claim(request)).release();
  });

  test("of a tree that is ended may be busy: its holder is among the members", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const release = holdFile(scene.placeOf(key).fence, "shared");
    const request = scene.request([key], { trees: [MEMBERS, EMPTY] });
    const end = async () => {
      release?.();
      return EMPTY;
    };
    const claimed = await claim({ ...request, survivors: { ...request.survivors, end } });
    expect(isFree(scene.placeOf(key).fence)).toBe(false);
    claimed.release();
  });
});

describe("files that are not what they should be", () => {
  test.each(["lock", "fence"] as const)(
    "a link in the place of the %s is refused",
    async (name) => {
      const key = scene.key();
      const place = scene.placeOf(key);
      makePlace(place);
      const victim = `${scene.directory}/victim`;
      writeFileSync(victim, "precious");
      symlinkSync(victim, place[name]);
      const failure = await failureOf(claimLeases(scene.request([key])));
      expect([failure.code, failure.exitStatus]).toEqual(["lease.refused", 78]);
      expect([failure.message, readFileSync(victim, "utf8")]).toEqual([
        `${place[name]}: it is a symbolic link`,
        "precious",
      ]);
      if (name === "fence") expect(isFree(place.lock)).toBe(true);
    },
  );

  test.each(["lock", "fence"] as const)(
    "a %s with a second name, as in a snapshot of hard links, is the one of its path all the same",
    async (name) => {
      const key = scene.key();
      const place = scene.placeOf(key);
      makePlace(place);
      writeFileSync(place[name], "");
      linkSync(place[name], `${place.directory}/second`);
      const claimed = await claim(scene.request([key]));
      expect(isFree(place[name])).toBe(false);
      expect(isFree(`${place.directory}/second`)).toBe(false);
      claimed.release();
    },
  );

  test("a lock that was replaced while survivors were ended is locked anew", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    await scene.leaveDead(key);
    const request = scene.request([key], { trees: [MEMBERS, EMPTY] });
    const end = async () => {
      unlinkSync(place.lock);
      return EMPTY;
    };
    const claimed = await claim({ ...request, survivors: { ...request.survivors, end } });
    expect(isFree(place.lock)).toBe(false);
    claimed.release();
  });

  test("a lock that was replaced during the last look is locked anew", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    await scene.leaveDead(key);
    let looks = 0;
    const look = async () => {
      looks += 1;
      if (looks === 1) unlinkSync(place.lock);
      return EMPTY;
    };
    const request = scene.request([key]);
    const claimed = await claim({ ...request, survivors: { ...request.survivors, look } });
    expect([looks, isFree(place.lock)]).toEqual([2, false]);
    claimed.release();
  });

  test("a directory that vanishes while its fence is busy is made again", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    await scene.leaveDead(key);
    const release = holdFile(place.fence, "shared");
    const request = scene.request([key], { trees: [MEMBERS, EMPTY] });
    const end = async () => {
      rmSync(place.directory, { recursive: true });
      release?.();
      return EMPTY;
    };
    const claimed = await claim({ ...request, survivors: { ...request.survivors, end } });
    expect([isFree(place.lock), isFree(place.fence)]).toEqual([false, false]);
    claimed.release();
  });

  test("a directory that vanishes under the lock is made again", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    await scene.leaveDead(key);
    const request = scene.request([key], { trees: [MEMBERS, EMPTY] });
    const end = async () => {
      rmSync(place.directory, { recursive: true });
      return EMPTY;
    };
    const claimed = await claim({ ...request, survivors: { ...request.survivors, end } });
    expect([isFree(place.lock), claimed.keys[0]?.previous]).toEqual([false, null]);
    claimed.release();
  });

  test("a run around this one is not waited for beside a replaced lock file", async () => {
    const key = scene.key();
    const held = await scene.hold([key], { run_id: "outer" });
    unlinkSync(scene.placeOf(key).lock);
    const request = scene.request([key], { runsAround: ["outer"], waitMs: 60_000 });
    expect((await refusalOf(request)).because).toBe("held-by-run-around");
    held.close();
  });

  test("what no waiting helps against is told first, and ends the wait", async () => {
    const [left, broken] = [scene.key("aa"), scene.key("bb")];
    await scene.leaveDead(left, { boot_id: "other", machine_id: "another" });
    makePlace(scene.placeOf(broken));
    writeFileSync(scene.placeOf(broken).record, "{");
    const refusal = await refusalOf(scene.request([left, broken], { waitMs: 60_000 }));
    expect([refusal.key, refusal.because]).toEqual([broken, "no-generation"]);
  });

  test("a living owner beside a replaced lock file keeps its key", async () => {
    const key = scene.key();
    const held = await scene.hold([key]);
    unlinkSync(scene.placeOf(key).lock);
    const refusal = await refusalOf(scene.request([key]));
    expect([refusal.verdict.name, refusal.because, refusal.status]).toEqual([
      "unknowable",
      "lock-replaced",
      "locked",
    ]);
    held.close();
  });

  test("records that nobody can read, with nothing beside them, need a person", async () => {
    const key = scene.key();
    const place = scene.placeOf(key);
    makePlace(place);
    writeFileSync(place.record, "{");
    const refusal = await refusalOf(scene.request([key], { waitMs: 60_000 }));
    expect([refusal.because, refusal.status]).toEqual(["no-generation", "config_error"]);
    expect(refusal.text).toContain("it is no JSON");
  });
});
