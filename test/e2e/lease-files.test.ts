/**
 * Files of a lease that are removed or replaced while the run goes on: the kernel's lock decides,
 * so a run whose files are only gone restores them and lives, and whoever comes meanwhile is
 * refused.
 */
import { expect, test } from "bun:test";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import {
  holdJob,
  inodeOf,
  listGenerations,
  newcomer,
  eventsOf,
  readLease,
  readSlot,
  RELEASED,
  type SeenPlace,
  tryReadLease,
  waitForBeat,
} from "../support/lease-seen.ts";
import { readStatusLine } from "../support/processes.ts";
import { type Ended, openScene, ROUNDS, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const LEASE_LOST = 76;
const LIMIT_MS = 180_000;
const QUICK = ["--heartbeat-interval", "150ms"];
/** No beat of the thread's after the first one. */
const RARE = ["--heartbeat-interval", "1h"];

async function expectLocked(name: string): Promise<Ended> {
  const ended = await newcomer(scene, name);
  expect([ended.status, ended.stdout.toString()]).toEqual([LOCKED, ""]);
  return ended;
}

/** A stopped owner restores nothing, so that whoever comes now comes before the next beat. */
async function whileStopped<Value>(run: Started, act: () => Promise<Value>): Promise<Value> {
  run.kill("SIGSTOP");
  await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "it to be stopped");
  const value = await act();
  run.kill("SIGCONT");
  return value;
}

async function waitForRestored(place: SeenPlace): Promise<void> {
  const isRestored = (): boolean =>
    existsSync(place.lock) && tryReadLease(place)?.["lock_inode"] === inodeOf(place.lock);
  await waitFor(isRestored, `a lock file at ${place.lock} that the record names`);
}

/** Nothing of a lease is left over once its run has ended well: the next one is its successor. */
async function expectFree(name: string, place: SeenPlace, generation: number): Promise<void> {
  expect(readLease(place)).toMatchObject({ generation, state: "released" });
  const next = await newcomer(scene, name);
  expect([next.status, next.stdout.toString(), next.stderr]).toEqual([0, "STOLEN\n", ""]);
  expect(readLease(place)).toMatchObject({ generation: generation + 1, state: "released" });
  expect(listGenerations(place)).toEqual([generation + 1]);
}

test("a lock file that was deleted is restored, and the job lives", async () => {
  const words = [...QUICK, ...scene.recordTo("lock")];
  const { run, place, release } = await holdJob(scene, "lock", words);
  const before = inodeOf(place.lock);
  // Kept under another name: its inode cannot be given to the new file.
  const early = await whileStopped(run, async () => {
    renameSync(place.lock, scene.path("old-lock"));
    const ended = await expectLocked("lock");
    expect(readLease(place)["lock_inode"]).toBe(before);
    return ended;
  });
  expect(early.stderr).toMatch(
    new RegExp(
      `^watchdog: not started: job:lock belongs to run [\\w-]+ \\(pid ${run.pid}, [^)]*\\), ` +
        "which lives; its lock file was replaced\n" +
        "watchdog: hint: watchdog lease show job:lock\n$",
    ),
  );

  await waitForRestored(place);
  expect(inodeOf(place.lock)).not.toBe(before);
  expect(readLease(place)).toMatchObject({ generation: 1, state: "held" });
  const late = await expectLocked("lock");
  expect(late.stderr).toBe("");
  expect((await askJson(scene, ["lease", "show", "job:lock"])).verdict).toBe("held");

  release();
  const ended = await run.ended;
  expect([ended.status, ended.stderr]).toEqual([
    RELEASED,
    "watchdog: the lock file of job:lock was gone or replaced; restored it, the job goes on\n",
  ]);
  const record = scene.readRecord("lock");
  expect(record).toMatchObject({ outcome: "failed", degraded: ["lock-restored", "rewritten"] });
  expect((await eventsOf(scene, "lock")).sort()).toEqual(["lock_restored", "refused", "refused"]);
  await expectFree("lock", place, 1);
});

test("negative twin: a run whose files are left alone restores nothing", async () => {
  const words = [...QUICK, ...scene.recordTo("alone")];
  const { run, place, release } = await holdJob(scene, "alone", words);
  const before = inodeOf(place.lock);
  await waitForBeat(place, 6);
  await expectLocked("alone");
  release();
  const ended = await run.ended;
  expect([ended.status, ended.stderr, inodeOf(place.lock)]).toEqual([RELEASED, "", before]);
  expect(scene.readRecord("alone")["degraded"]).toEqual([]);
  expect(await eventsOf(scene, "alone")).toEqual(["refused"]);
  await expectFree("alone", place, 1);
});

test(
  "a lock file that is deleted again and again lets nobody in",
  async () => {
    const { run, place, release } = await holdJob(scene, "again", QUICK);
    for (let round = 1; round <= ROUNDS / 4; round += 1) {
      rmSync(place.lock);
      const all = await Promise.all([1, 2, 3].map(() => newcomer(scene, "again")));
      expect(all.map(({ status, stdout }) => [status, stdout.toString()])).toEqual(
        [1, 2, 3].map(() => [LOCKED, ""]),
      );
      await waitForRestored(place);
    }
    release();
    expect((await run.ended).status).toBe(RELEASED);
    expect(readLease(place)).toMatchObject({ generation: 1, state: "released" });
  },
  LIMIT_MS,
);

test("A-47: a record that was removed is written again, and nobody gets in meanwhile", async () => {
  const { run, place, release } = await holdJob(scene, "a47", QUICK);
  const before = readLease(place);
  await whileStopped(run, async () => {
    rmSync(place.record);
    await expectLocked("a47");
    expect(existsSync(place.record)).toBe(false);
  });
  const after = await waitFor(() => tryReadLease(place), "the record");
  expect(after).toEqual(before);
  expect((await expectLocked("a47")).stderr).toBe("");
  release();
  expect((await run.ended).status).toBe(RELEASED);
  await expectFree("a47", place, 1);
});

test("A-47: a slot that was removed is made again, with the same number", async () => {
  const { run, place, release } = await holdJob(scene, "slot", QUICK);
  await whileStopped(run, async () => {
    rmSync(place.slot(1));
    await expectLocked("slot");
    expect(existsSync(place.slot(1))).toBe(false);
  });
  const slot = await waitForBeat(place, 4);
  expect([slot.generation, slot.runId]).toEqual([1, readLease(place)["run_id"]]);
  release();
  expect((await run.ended).status).toBe(RELEASED);
  await expectFree("slot", place, 1);
});

test("A-47: a whole directory that a cleaner removed comes back under the run", async () => {
  const { run, place, release } = await holdJob(scene, "swept", QUICK);
  const runId = readLease(place)["run_id"];
  await whileStopped(run, async () => {
    rmSync(place.directory, { recursive: true });
    await expectLocked("swept");
    expect(existsSync(place.record)).toBe(false);
  });
  await waitForRestored(place);
  await waitFor(() => readSlot(place.slot(1))?.runId === runId, "the slot");
  expect(readLease(place)).toMatchObject({ generation: 1, run_id: runId, state: "held" });
  expect((await expectLocked("swept")).stderr).toBe("");
  release();
  expect((await run.ended).status).toBe(RELEASED);
  await expectFree("swept", place, 1);
});

test("a lock file that was replaced by another empty one is as good as deleted", async () => {
  const { run, place, release } = await holdJob(scene, "emptied", QUICK);
  writeFileSync(`${place.lock}.new`, "", { mode: 0o600 });
  const other = inodeOf(`${place.lock}.new`);
  renameSync(`${place.lock}.new`, place.lock);
  await waitFor(() => readLease(place)["lock_inode"] === other, "the new lock file to be taken");
  expect((await expectLocked("emptied")).stderr).toBe("");
  release();
  expect((await run.ended).status).toBe(RELEASED);
  await expectFree("emptied", place, 1);
});

const REMOVALS: readonly (readonly (keyof SeenPlace | "slot")[])[] = [
  ["fence"],
  ["lock"],
  ["record"],
  ["slot"],
  ["lock", "record"],
  ["lock", "slot"],
  ["record", "slot"],
  ["lock", "record", "slot", "fence"],
  ["directory"],
];

test(
  "whatever was removed under a stopped owner, a newcomer is refused and the owner goes on",
  async () => {
    const { run, place, release } = await holdJob(scene, "removed", QUICK);
    for (const names of REMOVALS) {
      await whileStopped(run, async () => {
        for (const name of names) {
          const path = name === "slot" ? place.slot(1) : String(place[name]);
          rmSync(path, { recursive: true, force: true });
        }
        const ended = await newcomer(scene, "removed");
        expect([names, ended.status, ended.stdout.toString()]).toEqual([names, LOCKED, ""]);
      });
      await waitForRestored(place);
      await waitFor(() => readSlot(place.slot(1)) !== undefined, "the slot");
    }
    release();
    expect((await run.ended).status).toBe(RELEASED);
    await expectFree("removed", place, 1);
  },
  LIMIT_MS,
);

test("what goes missing right before the end costs the next run nothing", async () => {
  const missing = ["lock", "record", "directory"] as const;
  for (const name of missing) {
    const { run, place, release } = await holdJob(scene, `late-${name}`, RARE);
    rmSync(place[name], { recursive: true });
    release();
    const ended = await run.ended;
    expect([name, ended.status]).toEqual([name, RELEASED]);
    const next = await newcomer(scene, `late-${name}`);
    expect([name, next.status, next.stdout.toString()]).toEqual([name, 0, "STOLEN\n"]);
    expect([name, readLease(place)["generation"]]).toEqual([name, 2]);
  }
});

test("A-47: when all state was removed, the first one sees the second and ends", async () => {
  const state = scene.path("gone");
  const env = { WATCHDOG_STATE_DIR: state };
  const words = [...QUICK, ...scene.recordTo("gone")];
  const { run, place } = await holdJob(scene, "gone", words, { env });
  // Nothing is left that could tell of the first one, so that the second gets in.
  const second = await whileStopped(run, () => {
    rmSync(state, { recursive: true });
    rmSync(scene.path("gone.ready"));
    return holdJob(scene, "gone", QUICK, { env });
  });
  const runId = readLease(place)["run_id"];
  const ended = await run.ended;
  expect([ended.status, ended.signal]).toEqual([LEASE_LOST, null]);
  expect(ended.stderr).toContain(`its record names run ${runId}`);
  second.release();
  // The first one closes a journal whose files are gone, which the second one may notice.
  const { status, stderr } = await second.run.ended;
  expect(status).toBe(RELEASED);
  expect(stderr).toMatch(/^(watchdog: journal: .*\n)*$/);
  expect(readLease(place)).toMatchObject({ run_id: runId, state: "released" });
});
