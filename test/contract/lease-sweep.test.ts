/** Removing old lease directories: which go, which stay, and that no number is lost. */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { readFloor } from "../../src/lease/files/floors.ts";
import type { OwnerFacts } from "../../src/lease/claim/grant.ts";
import { makePlace, slotPath } from "../../src/lease/files/places.ts";
import { sweepOldPlaces } from "../../src/lease/sweep.ts";
import { resolveWorktreeKey } from "../../src/lease/worktree-place.ts";
import { claim, holdFile, openClaimScene } from "../support/claim-scene.ts";

const scene = openClaimScene();
const DAY_S = 86_400;
let kinds = 0;

/** A kind that no other test has: each sweep meets its own directories alone. */
function newKind(): string {
  kinds += 1;
  return `kind-${kinds}`;
}

/** Gives a directory and all in it times of so many days ago. */
function age(key: LeaseKey, days: number): void {
  const { directory } = scene.placeOf(key);
  const then = Date.now() / 1000 - days * DAY_S;
  for (const name of readdirSync(directory)) utimesSync(`${directory}/${name}`, then, then);
  utimesSync(directory, then, then);
}

async function used(kind: string, owner: Partial<OwnerFacts> = {}): Promise<LeaseKey> {
  const key = scene.key(kind);
  const held = await scene.hold([key], owner);
  held.markReleased();
  held.close();
  return key;
}

function isThere(key: LeaseKey): boolean {
  return existsSync(scene.placeOf(key).directory);
}

function sweep(kind: string, limit?: number) {
  return sweepOldPlaces(scene.directory, kind, limit);
}

describe("a directory goes", () => {
  test("after 30 days without use, with its number kept for the next grant", async () => {
    const kind = newKind();
    const key = await used(kind);
    (await scene.hold([key])).close(); // generation 2, not released …
    const held = await scene.hold([key]); // … and 3
    held.markReleased();
    held.close();
    age(key, 31);
    expect(sweep(kind)).toEqual({ removed: [key], trouble: [] });
    expect([isThere(key), readFloor(scene.placeOf(key))]).toEqual([false, 3]);
    const again = await scene.hold([key]);
    expect(again.leases[0]).toMatchObject({ generation: 4, record: { previous: null } });
    again.close();
  });

  test("where its owner died with another boot of this machine", async () => {
    const kind = newKind();
    const key = scene.key(kind);
    await scene.leaveDead(key, { boot_id: "99999999-2222-3333-4444-555555555555" });
    age(key, 31);
    expect(sweep(kind).removed).toEqual([key]);
  });

  test("where it was made and never used, or a sweep was killed in it", () => {
    const kind = newKind();
    const [empty, half] = [scene.key(kind), scene.key(kind)];
    makePlace(scene.placeOf(empty));
    makePlace(scene.placeOf(half));
    for (const path of [scene.placeOf(half).lock, slotPath(scene.placeOf(half), 6)]) {
      writeFileSync(path, "");
    }
    age(half, 31);
    expect(sweep(kind).removed).toEqual([half]);
    expect(readFloor(scene.placeOf(half))).toBe(6);
    age(empty, 31);
    expect(sweep(kind).removed).toEqual([]); // it has a lock file from now on
    age(empty, 31);
    expect(sweep(kind).removed).toEqual([empty]);
  });

  test("at most as many as allowed, and only of the kind asked for", async () => {
    const [kind, other] = [newKind(), newKind()];
    const keys = await Promise.all([1, 2, 3].map(() => used(kind)));
    const stranger = await used(other);
    for (const key of [...keys, stranger]) age(key, 31);
    expect(sweep(kind, 2).removed).toHaveLength(2);
    expect(keys.filter(isThere)).toHaveLength(1);
    expect(isThere(stranger)).toBe(true);
  });
});

describe("a directory stays", () => {
  test("before the 30 days are over, by any file in it", async () => {
    const kind = newKind();
    const key = await used(kind);
    age(key, 29);
    expect(sweep(kind).removed).toEqual([]);
    age(key, 31);
    utimesSync(slotPath(scene.placeOf(key), 1), new Date(), new Date());
    expect([sweep(kind).removed, isThere(key)]).toEqual([[], true]);
  });

  test("while it is held, or its fence is", async () => {
    const kind = newKind();
    const key = scene.key(kind);
    const held = await scene.hold([key]);
    age(key, 31);
    expect(sweep(kind).removed).toEqual([]);
    held.markReleased();
    held.close();
    age(key, 31);
    const release = holdFile(scene.placeOf(key).fence, "shared");
    expect(sweep(kind).removed).toEqual([]);
    release?.();
    expect(sweep(kind).removed).toEqual([key]);
  });

  test("where its tree may still live, or its owner is elsewhere", async () => {
    const kind = newKind();
    const [unreleased, elsewhere] = [scene.key(kind), scene.key(kind)];
    await scene.leaveDead(unreleased);
    await scene.leaveDead(elsewhere, { boot_id: "other", machine_id: "another" });
    for (const key of [unreleased, elsewhere]) age(key, 400);
    expect(sweep(kind)).toEqual({ removed: [], trouble: [] });
  });

  test("where something is in it that is not ours, and that is told", async () => {
    const kind = newKind();
    const key = await used(kind);
    writeFileSync(`${scene.placeOf(key).directory}/notes.txt`, "mine");
    age(key, 31);
    const { removed, trouble } = sweep(kind);
    expect([removed, isThere(key)]).toEqual([[], true]);
    expect(trouble.join()).toContain("holds notes.txt, not ours");
  });

  test("where its number cannot be kept", async () => {
    const kind = newKind();
    const key = await used(kind);
    age(key, 31);
    const { floors } = scene.placeOf(key);
    mkdirSync(floors);
    expect([sweep(kind).removed, isThere(key)]).toEqual([[], true]);
    rmSync(floors, { recursive: true });
    expect(sweep(kind).removed).toEqual([key]);
  });
});

test("a state directory that is not there is no trouble", () => {
  expect(sweepOldPlaces(`${scene.directory}/absent`, "job")).toEqual({ removed: [], trouble: [] });
});

test("who waits for the lock of a directory that goes begins again", async () => {
  const kind = newKind();
  const key = await used(kind);
  const { lock } = scene.placeOf(key);
  const release = holdFile(lock);
  const waiting = claim(scene.request([key], { waitMs: 60_000 }));
  unlinkSync(lock); // what a sweep does last, under the lock
  release?.();
  const claimed = await waiting;
  expect(existsSync(lock)).toBe(true);
  claimed.release();
});

test("the first claim of a checkout is new, although its directory was made before", async () => {
  const tree = mkdtempSync(`${tmpdir()}/watchdog-tree-`);
  try {
    const { key } = resolveWorktreeKey(scene.directory, tree);
    for (const newKinds of [["worktree"], []]) {
      const claimed = await claim(scene.request([key]));
      expect(claimed.newKinds).toEqual(newKinds);
      claimed.release();
    }
  } finally {
    rmSync(tree, { recursive: true });
  }
});

test("the directory of a checkout stays as long as somebody asks for its key", () => {
  const tree = mkdtempSync(`${tmpdir()}/watchdog-tree-`);
  try {
    const { key } = resolveWorktreeKey(scene.directory, tree);
    age(key, 31);
    resolveWorktreeKey(scene.directory, tree);
    expect(sweep("worktree").removed).toEqual([]);
    age(key, 31);
    sweep("worktree"); // makes the missing lock file
    age(key, 31);
    expect(sweep("worktree").removed).toEqual([key]);
  } finally {
    rmSync(tree, { recursive: true });
  }
});
