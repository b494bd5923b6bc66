/**
 * Steps A1 to A6 without waiting, with real files and real locks: who gets a key, who is refused
 * and why, and that nothing is held or changed after a refusal.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, symlinkSync } from "node:fs";
import { claimLeases } from "../../src/lease/claim/claim.ts";
import { makePlace } from "../../src/lease/files/places.ts";
import {
  claim,
  countLooks,
  holdFile,
  holdPlace,
  isFree,
  openClaimScene,
  refusalOf,
} from "../support/claim-scene.ts";
import { failureOf } from "../support/failure-of.ts";
import { countOpen } from "../support/open-files.ts";

const scene = openClaimScene();

describe("a key that nobody holds", () => {
  test("is claimed with its lock and its fence held, and nobody before", async () => {
    const key = scene.key();
    const claimed = await claim(scene.request([key]));
    const place = scene.placeOf(key);
    expect([isFree(place.lock), isFree(place.fence)]).toEqual([false, false]);
    expect(claimed.keys[0]?.verdict).toEqual({
      name: "free",
      rule: "R4",
      because: "never-held",
    });
    expect([claimed.keys[0]?.previous, claimed.newKinds]).toEqual([null, ["job"]]);
    claimed.release();
    expect([isFree(place.lock), isFree(place.fence)]).toEqual([true, true]);
  });

  test("is claimed again after its release, and the record before is named", async () => {
    const key = scene.key();
    const first = await scene.hold([key]);
    first.markReleased();
    first.close();
    const claimed = await claim(scene.request([key]));
    const { generation, run_id } = first.leases[0]?.record ?? { generation: 0, run_id: "" };
    expect(claimed.keys[0]?.previous).toEqual({
      generation,
      run_id,
      how_it_ended: "released",
      evidence: "R4 released",
    });
    expect([claimed.keys[0]?.abandoned, claimed.newKinds]).toEqual([undefined, []]);
    claimed.release();
  });

  test("comes with all the others, or not at all", async () => {
    const [one, two, three] = [scene.key("aa"), scene.key("bb"), scene.key("cc")];
    const release = holdPlace(scene.placeOf(two));
    const refusal = await refusalOf(scene.request([three, one, two]));
    expect(refusal.key).toEqual(two);
    expect([one, three].map((key) => existsSync(scene.placeOf(key).lock))).toEqual([true, false]);
    expect(isFree(scene.placeOf(one).lock)).toBe(true);
    release();
    const claimed = await claim(scene.request([three, one, two]));
    expect(claimed.keys.map(({ key }) => key.kind)).toEqual(["aa", "bb", "cc"]);
    claimed.release();
  });

  test("leaves no descriptor open, had or refused or failed", async () => {
    const [key, other] = [scene.key(), scene.key("zz")];
    const failing = scene.key("zzz");
    makePlace(scene.placeOf(failing));
    symlinkSync("/dev/null", scene.placeOf(failing).lock);
    (await claim(scene.request([key]))).release();
    const before = countOpen();
    (await claim(scene.request([key, other]))).release();
    const release = holdPlace(scene.placeOf(other));
    await refusalOf(scene.request([key, other]));
    release();
    await failureOf(claimLeases(scene.request([key, other, failing])));
    expect(countOpen()).toBe(before);
  });
});

describe("a key that somebody holds", () => {
  test("is refused with the holder's evidence, and the holder keeps it", async () => {
    const key = scene.key();
    const held = await scene.hold([key]);
    const refusal = await refusalOf(scene.request([key]));
    expect([refusal.verdict.name, refusal.because, refusal.status]).toEqual([
      "held",
      "beat-fresh",
      "locked",
    ]);
    expect(refusal.text).toContain(`is held by run ${held.leases[0]?.record.run_id}`);
    expect([refusal.waitedMs, held.check()]).toEqual([0, { kind: "ours" }]);
    expect(isFree(scene.placeOf(key).lock)).toBe(false);
    held.close();
  });

  test("is being acquired before its first record, and refused", async () => {
    const key = scene.key();
    const claimed = await claim(scene.request([key]));
    const refusal = await refusalOf(scene.request([key]));
    expect([refusal.verdict.name, refusal.because]).toEqual(["held", "being-acquired"]);
    claimed.release();
  });

  test("is held by a run around this one: refused at once, whatever the wait", async () => {
    const key = scene.key();
    const held = await scene.hold([key], { run_id: "outer" });
    const request = scene.request([key], { runsAround: ["outer"], waitMs: 60_000 });
    const refusal = await refusalOf(request);
    expect([refusal.because, request.asked.waits]).toEqual(["held-by-run-around", []]);
    held.close();
  });

  test("is not waited for where a run around this one holds another of the keys", async () => {
    const [busy, outer] = [scene.key("aa"), scene.key("bb")];
    const release = holdPlace(scene.placeOf(busy));
    const held = await scene.hold([outer], { run_id: "outer" });
    const request = scene.request([busy, outer], { runsAround: ["outer"], waitMs: 60_000 });
    const refusal = await refusalOf(request);
    expect([refusal.key, refusal.because]).toEqual([outer, "held-by-run-around"]);
    held.close();
    release();
  });

  test("only for a moment, by a reader, is claimed; held on, it is refused", async () => {
    const key = scene.key();
    makePlace(scene.placeOf(key));
    const release = holdFile(scene.placeOf(key).lock, "shared");
    const attempt = claim(scene.request([key]));
    release?.();
    (await attempt).release();
    const stays = holdFile(scene.placeOf(key).lock, "shared");
    expect((await refusalOf(scene.request([key]))).because).toBe("being-acquired");
    stays?.();
  });

  test("by nobody who lives is claimed once it is let go, after three tries, too", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const release = holdFile(scene.placeOf(key).lock);
    const request = scene.request([key]);
    // Who holds it is looked at after the third try, and again after each one that follows.
    const looks = countLooks(request, (look) => {
      if (look === 2) release?.();
    });
    const claimed = await claim(request);
    expect(looks()).toBeGreaterThanOrEqual(2);
    expect(claimed.keys[0]?.verdict.name).toBe("dead");
    claimed.release();
  });

  test("by one who lives is looked at after the third try and for the refusal", async () => {
    const key = scene.key();
    const held = await scene.hold([key]);
    const request = scene.request([key]);
    const looks = countLooks(request);
    expect((await refusalOf(request)).because).toBe("beat-fresh");
    expect(looks()).toBe(2);
    held.close();
  });

  test("by two newcomers with several keys never keeps both of them out for good", async () => {
    const [one, two] = [scene.key("aa"), scene.key("bb")];
    const release = holdPlace(scene.placeOf(two));
    const wants = refusalOf(scene.request([one, two]));
    // The other newcomer lets go of the first key between its tries.
    const claimed = await claim(scene.request([one]));
    expect((await wants).status).toBe("locked");
    claimed.release();
    release();
  });
});
