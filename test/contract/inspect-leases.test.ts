/** Leases as a reader finds them: real files, locks and processes; the look changes nothing. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { WatchdogError } from "../../src/core/errors.ts";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import { troubleOf } from "../../src/inspect/lease-facts.ts";
import { findPlaceTroubles } from "../../src/inspect/lease-places.ts";
import { gatherLeases, type LeaseView, readLeases } from "../../src/inspect/leases.ts";
import { checkPlace } from "../../src/inspect/state.ts";
import { readStatus, showStatus } from "../../src/inspect/status.ts";
import { openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { makePlace, placeOf } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { readMachine } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { scanInWorker } from "../../src/tree/scan-handle.ts";
import { sampleRecord } from "../support/lease-samples.ts";
import { DeadRunScene, NOBODY_KEPT } from "../support/survivor-scene.ts";

const dead = new DeadRunScene(import.meta.file);
const { scene } = dead;
const machine = readMachine();
const treeLook = {
  scanUrl: new URL("../../src/tree/scan-worker.ts", import.meta.url),
  readKept: NOBODY_KEPT,
};

let count = 0;

function newState(): string {
  count += 1;
  const path = scene.path(`state-${count}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

/** A lease of this machine; its owner is dead unless it is told otherwise. */
function writeLease(state: string, name: string, changes: Partial<LeaseRecord> = {}): number {
  const place = placeOf(state, { kind: "job", name });
  makePlace(place);
  const lock = openLock(place.lock, "create");
  if (lock.kind !== "open") throw new Error(`found no lock: ${lock.kind}`);
  writeRecord(
    place.record,
    sampleRecord({
      name,
      job: name,
      boot_id: machine.bootId,
      machine_id: machine.machineId,
      host: machine.host,
      pid_namespace: machine.pidNamespace,
      time_namespace: machine.timeNamespace,
      lock_inode: lock.inode,
      pid: 2 ** 22 + 1,
      pid_start_time: readStat(process.pid)?.startTicks ?? 0,
      cgroup: null,
      ...changes,
    }),
  );
  return lock.fd;
}

function verdicts(views: readonly LeaseView[]): string[] {
  return views.map(({ key, verdict }) => `${key.name} ${verdict.name} ${verdict.because}`);
}

/** Every file with its times and content: what a reader must leave as it is. */
function snapshot(path: string): unknown {
  const found = lstatSync(path, { bigint: true });
  const times = [found.mtimeNs, found.ctimeNs, found.mode, found.ino].map(String);
  if (!found.isDirectory()) return [path, times, readFileSync(path, "latin1")];
  return [path, times, readdirSync(path).map((name) => snapshot(join(path, name)))];
}

describe("leases are read", () => {
  test("as what they are: held, free and dead ones beside a corrupt record", async () => {
    const state = newState();
    const taken = writeLease(state, "taken", {
      pid: process.pid,
      pid_start_time: readStat(process.pid)?.startTicks ?? 0,
    });
    expect(tryLock(taken, "exclusive")).toBe("locked");
    writeLease(state, "given-back", { state: "released" });
    writeLease(state, "dead");
    writeLease(state, "old-boot", { boot_id: "11111111-2222-3333-4444-555555555555" });
    writeLease(state, "corrupt");
    writeFileSync(placeOf(state, { kind: "job", name: "corrupt" }).record, "{ no JSON");
    expect(verdicts(await readLeases({ stateDirectory: state }, treeLook))).toEqual([
      "corrupt unknowable no-generation",
      "dead dead tree-empty",
      "given-back free released",
      "old-boot dead other-boot",
      "taken held beat-unread",
    ]);
  });

  test("without a trace in the state directory", async () => {
    const state = newState();
    writeLease(state, "dead");
    writeLease(state, "given-back", { state: "released" });
    const before = snapshot(state);
    await readLeases({ stateDirectory: state }, treeLook);
    await readStatus({ stateDirectory: state, name: undefined, treeLook });
    expect(snapshot(state)).toEqual(before);
  });

  test("with the survivors of a dead owner, found in one look for all keys", async () => {
    const state = newState();
    const run = { run_id: dead.runId, run_path: dead.runId };
    writeLease(state, "first", run);
    writeLease(state, "second", run);
    writeLease(state, "third");
    const child = scene.startProgram(["sleep", "300"], { env: dead.env });
    try {
      const views = await readLeases({ stateDirectory: state }, treeLook);
      // A child of this test is nobody's orphan: it only carries the id, and is a suspect.
      expect(verdicts(views)).toEqual([
        "first orphaned suspects",
        "second orphaned suspects",
        "third dead tree-empty",
      ]);
      const [first] = views;
      const tree = first?.evidence.tree;
      expect(tree === "unread" ? [] : tree?.suspects.map(({ pid }) => pid)).toEqual([child.pid]);
    } finally {
      child.kill("SIGKILL");
      await child.ended;
    }
    expect(verdicts(await readLeases({ stateDirectory: state }, treeLook))).toContain(
      "first dead tree-empty",
    );
  });

  test("and not with one that has ended since the look", async () => {
    const state = newState();
    writeLease(state, "dead", { run_id: dead.runId, run_path: dead.runId });
    const child = scene.startProgram(["sleep", "300"], { env: dead.env });
    try {
      const processes = await scanInWorker(treeLook.scanUrl);
      const seen = processes === "unread" ? [] : processes.filter(({ pid }) => pid === child.pid);
      expect(seen).toHaveLength(1);
      // No pid is as large (pid_max, proc(5)): it bears the cookie, and is gone.
      const gone = { ...seen[0], pid: 2 ** 22 + 2 };
      const answer = JSON.stringify({ kind: "whole", result: [...seen, gone] });
      const source = `self.onmessage = () => self.postMessage(${answer});`;
      const scanUrl = URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
      const views = await readLeases({ stateDirectory: state }, { ...treeLook, scanUrl });
      const tree = views[0]?.evidence.tree;
      expect(tree === "unread" ? [] : tree?.suspects.map(({ pid }) => pid)).toEqual([child.pid]);
    } finally {
      child.kill("SIGKILL");
      await child.ended;
    }
  });

  test("and a look that fails proves nothing", async () => {
    const state = newState();
    writeLease(state, "dead");
    const scanUrl = new URL("./no-such-worker.ts", import.meta.url);
    const views = await readLeases({ stateDirectory: state }, { ...treeLook, scanUrl });
    expect(verdicts(views)).toEqual(["dead orphaned tree-unread"]);
  });

  test("for one name only, where one was asked for", async () => {
    const state = newState();
    for (const name of ["one", "two"]) writeLease(state, name, { state: "released" });
    for (const name of ["one", "job:one"]) {
      const { leases } = await readStatus({ stateDirectory: state, name, treeLook });
      expect(verdicts(leases)).toEqual(["one free released"]);
    }
    const none = await readStatus({ stateDirectory: state, name: "three", treeLook });
    expect([none.leases, none.runs, none.lastRuns]).toEqual([[], [], []]);
  });
});

describe("what stands in the place of leases and is none", () => {
  const verdictOf = async (state: string, name: string): Promise<string[]> =>
    verdicts(await readLeases({ stateDirectory: state, keys: [{ kind: "job", name }] }, treeLook));

  test("in that of all of them is refused", () => {
    const makers = [
      (path: string) => writeFileSync(path, ""),
      (path: string) => symlinkSync(newState(), path),
    ];
    for (const make of makers) {
      const state = newState();
      make(join(state, "leases"));
      expect(() => gatherLeases({ stateDirectory: state })).toThrow(/leases: it is (a|not a) /);
      expect(() => gatherLeases({ stateDirectory: state })).toThrow(WatchdogError);
    }
  });

  test.each(["directory", "kindDirectory"] as const)(
    "in that of a key (%s) is told, and makes it unknowable",
    async (what) => {
      const state = newState();
      const place = placeOf(state, { kind: "job", name: "one" });
      mkdirSync(join(state, "leases"));
      if (what === "directory") mkdirSync(place.kindDirectory);
      expect([await verdictOf(state, "one"), findPlaceTroubles(state)]).toEqual([
        ["one free never-held"],
        [],
      ]);
      writeFileSync(place[what], "");
      expect(await verdictOf(state, "one")).toEqual(["one unknowable lock-unaskable"]);
      expect(findPlaceTroubles(state)).toEqual([`${place[what]}: it is not a directory`]);
    },
  );

  test.each(["lock", "fence"] as const)("in that of a %s makes it unknowable", async (what) => {
    const state = newState();
    writeLease(state, "one", { state: "released" });
    const path = placeOf(state, { kind: "job", name: "one" })[what];
    expect(await verdictOf(state, "one")).toEqual(["one free released"]);
    rmSync(path, { force: true });
    symlinkSync("/etc/passwd", path);
    const [view] = await readLeases({ stateDirectory: state }, treeLook);
    expect(verdicts(view === undefined ? [] : [view])).toEqual(["one unknowable lock-unaskable"]);
    expect(view === undefined ? "" : troubleOf(view)).toContain(`${path}: it is a symbolic link`);
  });

  test("is no trouble of the files that belong there", async () => {
    const state = newState();
    writeLease(state, "one", { state: "released" });
    writeFileSync(placeOf(state, { kind: "job", name: "one" }).floors, "{}");
    writeFileSync(join(state, "leases", "job", ".floors.tmp"), "");
    writeFileSync(join(state, "leases", "README"), "");
    expect(findPlaceTroubles(state)).toEqual([]);
  });
});

describe("a state directory", () => {
  test("that is not there is an empty answer, and is not made", async () => {
    const state = scene.path("none");
    checkPlace(state);
    const view = await readStatus({ stateDirectory: state, name: undefined, treeLook });
    expect(showStatus(view)).toEqual({
      format: 1,
      state_directory: state,
      leases: [],
      runs: [],
      circuits: [],
      last_runs: [],
      troubles: [],
    });
    expect(existsSync(state)).toBe(false);
  });

  test("that may not be trusted is refused, as by run", () => {
    const state = newState();
    checkPlace(state);
    symlinkSync(state, scene.path("link"));
    expect(() => checkPlace(scene.path("link"))).toThrow("it is a symbolic link");
    writeFileSync(join(state, "FORMAT"), '{"format":2}');
    expect(() => checkPlace(state)).toThrow("has format 2, expected at most 1");
    chmodSync(state, 0o777);
    expect(() => checkPlace(state)).toThrow("others may write into it");
  });
});
