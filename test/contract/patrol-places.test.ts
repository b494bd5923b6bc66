/** The lock of a patrol, and the room of its file system. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { lockPatrol } from "../../src/patrol/lock.ts";
import { readRoom } from "../../src/patrol/room.ts";
import { failureOf } from "../support/failure-of.ts";
import { openJournalScene } from "../support/journal-scene.ts";
import { isRoot } from "../support/scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

describe("the lock of a patrol", () => {
  test("is one, and is had again when it was given back", () => {
    const state = scene.newState();
    const first = lockPatrol(state);
    expect(first.kind).toBe("locked");
    expect(lockPatrol(state)).toMatchObject({ kind: "busy" });
    if (first.kind === "locked") first.lock.release();
    expect(lockPatrol(state).kind).toBe("locked");
  });

  test("is not that of a file which was put aside", () => {
    const state = scene.newState();
    const first = lockPatrol(state);
    renameSync(`${state}/patrol.lock`, `${state}/patrol.lock.old`);
    expect([first.kind, lockPatrol(state).kind]).toEqual(["locked", "locked"]);
  });

  test("needs a state directory, and makes none", () => {
    expect(lockPatrol(`${scene.newState()}/none`)).toEqual({ kind: "no-state" });
  });

  test("is never one behind a link or in a directory", async () => {
    const [linked, blocked] = [scene.newState(), scene.newState()];
    writeFileSync(`${linked}/other`, "");
    symlinkSync(`${linked}/other`, `${linked}/patrol.lock`);
    mkdirSync(`${blocked}/patrol.lock`);
    for (const state of [linked, blocked]) {
      expect(await failureOf(() => lockPatrol(state))).toMatchObject({ code: "lease.refused" });
    }
  });
});

describe("the room of a file system", () => {
  test("is told, and is not low here", () => {
    const room = readRoom(scene.newState());
    expect(room).toMatchObject({ isLow: false });
    expect(room?.freeBytes).toBeGreaterThan(0);
    expect(room?.totalBytes).toBeGreaterThanOrEqual(room?.freeBytes ?? 0);
  });

  test("is unknown where there is nothing, or nothing is counted", () => {
    expect(readRoom("/nonexistent-place")).toBeUndefined();
    expect(readRoom("/proc")).toBeUndefined();
  });

  test.if(isRoot)("is low on a small one", async () => {
    const place = scene.newState();
    const mount = Bun.spawn(
      ["unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=8m t ${place} && exec cat`],
      { stdin: "pipe", stdout: "ignore", stderr: "pipe" },
    );
    try {
      const seen = `/proc/${mount.pid}/root${place}`;
      const until = performance.now() + 10_000;
      let room = readRoom(seen);
      while (room?.isLow !== true && performance.now() < until && mount.exitCode === null) {
        await Bun.sleep(10);
        room = readRoom(seen);
      }
      const trouble = mount.exitCode === null ? "" : await new Response(mount.stderr).text();
      expect([trouble, room?.isLow]).toEqual(["", true]);
    } finally {
      mount.kill();
      await mount.exited;
    }
  });
});
