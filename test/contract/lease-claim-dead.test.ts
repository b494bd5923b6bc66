/**
 * Steps A4 and A5 with the record of an owner that is dead, or that cannot be seen from here: who
 * is ended, who never is, and when the key is had.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { TreeFinding } from "../../src/core/evidence.ts";
import { claimLeases } from "../../src/lease/claim/claim.ts";
import {
  claim,
  EMPTY,
  found,
  grant,
  isFree,
  openClaimScene,
  refusalOf,
} from "../support/claim-scene.ts";
import { failureOf } from "../support/failure-of.ts";

const scene = openClaimScene();
const MEMBERS: TreeFinding = { members: [found(4711), found(4712)], suspects: [] };

describe("a key of a dead owner", () => {
  test("is claimed where its tree is empty, and the owner is told as abandoned", async () => {
    const key = scene.key();
    await scene.leaveDead(key, { run_id: "dead-1" });
    const request = scene.request([key]);
    const claimed = await claim(request);
    expect(claimed.keys[0]?.abandoned).toEqual({
      runId: "dead-1",
      generation: 1,
      verdict: "dead",
      because: "R6 tree-empty",
      ended: [],
    });
    expect([request.asked.looked, request.asked.ended]).toEqual([["dead-1"], []]);
    claimed.release();
  });

  test("with members is claimed after they were ended and looked for again", async () => {
    const key = scene.key();
    await scene.leaveDead(key, { run_id: "dead-2" });
    const request = scene.request([key], { trees: [MEMBERS, EMPTY] });
    const claimed = await claim(request);
    expect(request.asked.looked).toEqual(["dead-2", "dead-2"]);
    expect(request.asked.ended).toEqual(["dead-2"]);
    expect(request.asked.endings[0]?.members.map(({ pid }) => pid)).toEqual([4711, 4712]);
    expect(claimed.keys[0]?.previous).toMatchObject({
      how_it_ended: "orphaned",
      evidence: "R6 members",
    });
    expect(claimed.keys[0]?.abandoned?.ended.map(({ pid }) => pid)).toEqual([4711, 4712]);
    claimed.release();
  });

  test.each([
    ["suspects", { members: [found(1)], suspects: [found(2)] }],
    ["unsignalable", { members: [found(1, { isSignalable: false })], suspects: [] }],
    ["ancestor-of-newcomer", { members: [found(1, { isAncestor: true })], suspects: [] }],
    ["tree-unread", "unread" as const],
  ])("is refused because of %s, and nobody is ended", async (because, tree) => {
    const key = scene.key();
    await scene.leaveDead(key);
    const request = scene.request([key], { trees: [tree] });
    const refusal = await refusalOf(request);
    expect([refusal.verdict.name, refusal.because]).toEqual(["orphaned", because]);
    expect([request.asked.ended, isFree(scene.placeOf(key).lock)]).toEqual([[], true]);
    expect(refusal.text).toContain("which is dead");
  });

  test("ends nobody while another of the keys refuses", async () => {
    const [ending, refusing] = [scene.key("aa"), scene.key("bb")];
    await scene.leaveDead(ending, { run_id: "ends" });
    await scene.leaveDead(refusing, { run_id: "refuses" });
    const looks = new Map<string, TreeFinding>([
      ["ends", MEMBERS],
      ["refuses", { members: [], suspects: [found(9)] }],
    ]);
    const request = scene.request([ending, refusing]);
    const look = async (run: { runId: string }) => looks.get(run.runId) ?? EMPTY;
    const survivors = { ...request.survivors, look };
    const refusal = await refusalOf({ ...request, survivors });
    expect([refusal.key, refusal.because, request.asked.ended]).toEqual([refusing, "suspects", []]);
    looks.set("refuses", EMPTY);
    const ended: string[] = [];
    const end = async (run: { runId: string }) => {
      ended.push(run.runId);
      looks.set(run.runId, EMPTY);
      return EMPTY;
    };
    (await claim({ ...request, survivors: { ...survivors, look, end } })).release();
    expect(ended).toEqual(["ends"]);
  });

  test("is looked for once where several keys were held by the same run", async () => {
    const keys = [scene.key("aa"), scene.key("bb")];
    const held = await scene.hold(keys, { run_id: "both", pid: 2 ** 22 + 1 });
    held.close();
    const request = scene.request(keys, { trees: [MEMBERS, EMPTY] });
    const claimed = await claim(request);
    expect([request.asked.looked, request.asked.ended]).toEqual([["both", "both"], ["both"]]);
    expect(claimed.keys.map(({ previous }) => previous?.how_it_ended)).toEqual([
      "orphaned",
      "orphaned",
    ]);
    claimed.release();
  });

  test("is refused where members outlive every round of ending", async () => {
    const key = scene.key();
    await scene.leaveDead(key, { run_id: "immortal" });
    const request = scene.request([key], { trees: [MEMBERS] });
    const refusal = await refusalOf(request);
    expect([refusal.because, refusal.status]).toEqual(["survivors-remain", "locked"]);
    expect(request.asked.ended).toEqual(["immortal", "immortal", "immortal"]);
    expect(refusal.text).toContain("4711 work 4711, 4712 work 4712");
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
  });
});

describe("a key of an owner that cannot be seen from here", () => {
  const other = { boot_id: "99999999-2222-3333-4444-555555555555", machine_id: "another" };

  test("is refused with a note, and acquired when the note is old", async () => {
    const key = scene.key();
    await scene.leaveDead(key, { ...other, run_id: "afar", stale_after_ms: 60_000 });
    const { note } = scene.placeOf(key);
    const refusal = await refusalOf(scene.request([key]));
    expect([refusal.verdict.name, refusal.because]).toEqual(["elsewhere", "other-machine"]);
    const first = readFileSync(note, "utf8");
    await refusalOf(scene.request([key]));
    expect(readFileSync(note, "utf8")).toBe(first);
    const old = { ...JSON.parse(first), monotonic_ms: JSON.parse(first).monotonic_ms - 60_000 };
    writeFileSync(note, JSON.stringify(old));
    const claimed = await claim(scene.request([key]));
    expect(claimed.keys[0]?.previous).toMatchObject({
      run_id: "afar",
      how_it_ended: "elsewhere",
      evidence: "R5 other-machine, note-old",
    });
    const held = grant(claimed);
    expect(existsSync(note)).toBe(false);
    held.close();
  });

  test("is refused also where the note cannot be written, and that is told", async () => {
    const key = scene.key();
    await scene.leaveDead(key, other);
    mkdirSync(scene.placeOf(key).note);
    const refusal = await refusalOf(scene.request([key]));
    expect(refusal.text).toMatch(/another machine; .*seen\.json could not be written: E/);
  });
});

test("a bug in what is handed in comes through as it is, with everything let go", async () => {
  const key = scene.key();
  await scene.leaveDead(key);
  const request = scene.request([key]);
  const look = async () => {
    throw new TypeError("a bug");
  };
  const survivors = { ...request.survivors, look };
  const failure = await failureOf(claimLeases({ ...request, survivors }));
  expect([failure.name, isFree(scene.placeOf(key).lock)]).toEqual(["TypeError", true]);
});
