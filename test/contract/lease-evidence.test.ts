/**
 * The evidence that real files give: which source tells of the last generation, when the journal is
 * asked, and that nothing is written by looking.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JournalLease, LeaseEvidence, LockAnswer } from "../../src/core/evidence.ts";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import { raiseFloor } from "../../src/lease/files/floors.ts";
import { gatherEvidence, mergeShown } from "../../src/lease/gather.ts";
import { openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf, slotPath } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { writeNote } from "../../src/lease/files/seen-note.ts";
import { createSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { monotonicNow } from "../../src/os/clock.ts";
import { readMachine, readProcessIdentity } from "../../src/os/machine.ts";
import { sampleRecord, sampleSlot, type SlotChanges } from "../support/lease-samples.ts";
import { countOpen } from "../support/open-files.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-evidence-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const machine = readMachine();
const self = readProcessIdentity(process.pid) ?? { pid: 0, start_time: 0 };
const KEY: LeaseKey = { kind: "job", name: "backup" };
let count = 0;
let state = "";
let place: LeasePlace = placeOf(root, KEY);
let asked: LeaseKey[] = [];

/** A state directory of its own for each test. */
beforeEach(() => {
  count += 1;
  state = `${root}/${count}`;
  mkdirSync(state);
  place = placeOf(state, KEY);
  asked = [];
});

function gather(
  journal?: JournalLease | "unread",
  options: { key?: LeaseKey; lock?: LockAnswer } = {},
): LeaseEvidence {
  const ask = (key: LeaseKey): JournalLease | undefined | "unread" => {
    asked.push(key);
    return journal;
  };
  const looker = { stateDirectory: state, machine, journal: ask };
  return gatherEvidence(looker, options.key ?? KEY, options.lock);
}

/** The files of a lease of ours, as after a grant; the lock is not held. */
function grant(changes: Partial<LeaseRecord> = {}, beat: SlotChanges | "none" = {}): void {
  makePlace(place);
  const lock = openLock(place.lock, "create");
  if (lock.kind !== "open") throw new Error(lock.kind);
  closeSync(lock.fd);
  const fields = {
    host: machine.host,
    machine_id: machine.machineId,
    boot_id: machine.bootId,
    pid: self.pid,
    pid_start_time: self.start_time,
    pid_namespace: machine.pidNamespace,
    time_namespace: machine.timeNamespace,
    lock_inode: lock.inode,
  };
  writeRecord(place.record, sampleRecord({ ...fields, ...changes }));
  if (beat !== "none") writeBeat(changes.generation ?? 7, lock.inode, beat);
}

function writeBeat(generation: number, lockInode: string, changes: SlotChanges): void {
  const fd = createSlot(place, generation);
  const head = { generation, bootId: machine.bootId, monotonicMs: monotonicNow() };
  const owner = { ...self, pidfd_inode: 0 };
  const body = { lockInode, pidNamespace: machine.pidNamespace, owner };
  writeSlot(
    fd,
    sampleSlot({ head: { ...head, ...changes.head }, body: { ...body, ...changes.body } }),
  );
  closeSync(fd);
}

const RELEASED: JournalLease = { generation: 7, runId: "run-7", isReleased: true };
const HELD: JournalLease = { ...RELEASED, isReleased: false };
const NEVER = { source: { kind: "none" }, hasHistory: "no", lock: { kind: "free" } } as const;

describe("a key", () => {
  test("that was never used has no history, and looking makes none", () => {
    expect(gather()).toMatchObject({ ...NEVER, record: undefined, slot: undefined, note: "none" });
    expect(readdirSync(state)).toEqual([]);
  });

  test("whose first acquirer died before its number has no history either", () => {
    makePlace(place);
    const lock = openLock(place.lock, "create");
    if (lock.kind === "open") closeSync(lock.fd);
    expect(gather()).toMatchObject(NEVER);
  });

  test("whose first acquirer died with its number, before a record, was never granted", () => {
    makePlace(place);
    closeSync(createSlot(place, 1));
    expect(gather()).toMatchObject(NEVER);
  });

  test("that is held has all facts, and its journal is not asked", () => {
    grant();
    const lock = openLock(place.lock, "existing");
    if (lock.kind !== "open") throw new Error(lock.kind);
    expect(tryLock(lock.fd, "exclusive")).toBe("locked");
    const evidence = gather();
    expect(evidence).toMatchObject({
      lock: { kind: "held" },
      source: { kind: "read", from: "record", generation: 7, isReleased: false, runId: "run-7" },
      ownerAlive: "yes",
      sameBoot: "yes",
      sameMachine: "yes",
      sameLockInode: "yes",
      namespaceContained: machine.seesOwnProc ? "yes" : "unread",
      isReleasedByJournal: "unread",
      staleAfterMs: 40_000,
      tree: "unread",
    });
    expect(evidence.beatAgeMs).toBeGreaterThanOrEqual(0);
    expect(evidence.beatAgeMs).toBeLessThan(10_000);
    expect(asked).toEqual([]);
    expect(mergeShown(evidence)).toMatchObject({ state: "held", pid: self.pid, heartbeat_seq: 3 });
    closeSync(lock.fd);
  });

  test("is told by the caller who holds its lock", () => {
    grant();
    const given = { kind: "unaskable", reason: "x" } as const;
    expect(gather(undefined, { lock: given }).lock).toEqual(given);
  });

  test("whose owner is dead says so: the pid alone is not enough", () => {
    grant({ pid_start_time: self.start_time + 1 });
    expect(gather().ownerAlive).toBe("no");
    grant({ pid_start_time: self.start_time }, "none");
    expect(gather().ownerAlive).toBe("yes");
  });

  test("whose lock file was replaced or removed says so", () => {
    grant();
    expect(gather().sameLockInode).toBe("yes");
    // A living holder has the old file open, so that its inode is not given to the new one.
    const old = openSync(place.lock, "r");
    unlinkSync(place.lock);
    expect(gather()).toMatchObject({ lock: { kind: "free" }, sameLockInode: "no" });
    const other = openLock(place.lock, "create");
    if (other.kind === "open") closeSync(other.fd);
    expect(gather()).toMatchObject({ lock: { kind: "free" }, sameLockInode: "no" });
    closeSync(old);
  });

  test("whose lock cannot be asked says why", () => {
    grant();
    unlinkSync(place.lock);
    symlinkSync(place.record, place.lock);
    expect(gather().lock).toEqual({
      kind: "unaskable",
      reason: `${place.lock}: it is a symbolic link`,
    });
  });

  test("has the note of a newcomer about its last generation alone", () => {
    grant();
    const { bootId, timeNamespace } = machine;
    const note = { bootId, timeNamespace, monotonicMs: monotonicNow() - 50_000 };
    makePlace(place);
    writeNote(place, { ...note, generation: 7 });
    expect(gather().note).toBe("old");
    grant({ stale_after_ms: 60_000 }, "none");
    expect(gather().note).toBe("young");
    writeNote(place, { ...note, generation: 6 });
    expect(gather().note).toBe("none");
  });
});

describe("the journal", () => {
  test("is not asked where the record says released", () => {
    grant({ state: "released" });
    expect(gather(HELD)).toMatchObject({ source: { isReleased: true } });
    expect(asked).toEqual([]);
  });

  test.each([
    ["yes", RELEASED],
    ["no", HELD],
    ["no", { ...RELEASED, generation: 6 }],
    ["yes", { ...RELEASED, generation: 8 }],
    ["no", undefined],
    ["unread", "unread"],
  ] as const)("says %s about a record that is held while the lock is free: %j", (fact, answer) => {
    grant();
    const evidence = gather(answer);
    expect(evidence).toMatchObject({
      isReleasedByJournal: fact,
      source: { from: "record", generation: 7, isReleased: false },
    });
    expect(asked).toEqual([KEY]);
  });

  test("stands in where the files tell nothing", () => {
    expect(gather(HELD).source).toEqual({ kind: "read", from: "journal", ...HELD });
    expect(gather(RELEASED)).toMatchObject({
      source: { from: "journal", isReleased: true },
      isReleasedByJournal: "yes",
    });
    expect(gather("unread")).toMatchObject({ ...NEVER, isReleasedByJournal: "unread" });
  });

  test("is overruled by the floor of a directory that was removed: that was over", () => {
    makePlace(place);
    raiseFloor(place, 6);
    expect(gather(HELD).source).toMatchObject({ from: "journal", isReleased: false });
    raiseFloor(place, 7);
    expect(gather(HELD).source).toMatchObject({ from: "journal", isReleased: true });
  });
});

/** Every way in which a record can be there and tell nothing. */
const BROKEN = ["", "\0".repeat(4096), "{", "[]", "null", '"x"', "{}", '{"pid":"abc"}'];

describe("a record that cannot be read", () => {
  test.each(BROKEN.map((text) => [text]))("(%j) is replaced by its slot", (text) => {
    grant();
    writeFileSync(place.record, text);
    expect(gather()).toMatchObject({
      source: { kind: "read", from: "slot", generation: 7, isReleased: false, runId: "run-7" },
      record: undefined,
      slot: { head: { sequence: 3 } },
      hasHistory: "yes",
      sameBoot: "yes",
      sameLockInode: "yes",
      isReleasedByJournal: "no",
    });
  });

  test.each(BROKEN.map((text) => [text]))(
    "(%j) without a slot is replaced by the journal",
    (text) => {
      grant({}, "none");
      writeFileSync(place.record, text);
      expect(gather(RELEASED).source).toMatchObject({ from: "journal", isReleased: true });
      expect(gather()).toMatchObject({ source: { kind: "unreadable" }, hasHistory: "yes" });
    },
  );

  test("is released where the journal says so of the slot's generation", () => {
    grant();
    writeFileSync(place.record, "");
    expect(gather(RELEASED)).toMatchObject({
      source: { from: "slot", isReleased: false },
      isReleasedByJournal: "yes",
    });
  });

  test("is passed over like a missing one when it is another key's", () => {
    grant({ name: "other" }, "none");
    expect(gather().source).toEqual({
      kind: "unreadable",
      reason: "it is the record of job:other",
    });
    grant({ kind: "lane" });
    expect(gather().source).toMatchObject({ from: "slot" });
  });

  test("of a newer version is replaced by nothing: it must not be written over", () => {
    grant();
    writeFileSync(place.record, '{"format":2}');
    expect(gather(RELEASED).source).toEqual({
      kind: "unreadable",
      reason: "its format 2 is newer than this version knows",
    });
    expect(asked).toEqual([]);
  });
});

describe("slots", () => {
  test("newer than the record change nothing: nobody was granted their numbers", () => {
    grant();
    closeSync(createSlot(place, 8));
    expect(gather()).toMatchObject({
      source: { from: "record", generation: 7 },
      slot: { head: { generation: 7 } },
    });
  });

  test("that are empty are passed over for an older one with a beat", () => {
    grant();
    closeSync(createSlot(place, 9));
    unlinkSync(place.record);
    expect(gather().source).toMatchObject({ from: "slot", generation: 7 });
  });

  test("that are broken hide the older ones: who was granted that number is not known", () => {
    grant();
    unlinkSync(place.record);
    writeFileSync(slotPath(place, 9), "broken");
    expect(gather(HELD)).toMatchObject({
      source: { kind: "unreadable", reason: "neither the record nor beat.9 can be read" },
      hasHistory: "yes",
    });
    const newer = { ...HELD, generation: 9, runId: "run-9" };
    expect(gather(newer).source).toMatchObject({ from: "journal", generation: 9, runId: "run-9" });
  });

  test("without a body are broken too, and only the age of a beat where there is a record", () => {
    grant();
    truncateSync(slotPath(place, 7), 200);
    expect(gather()).toMatchObject({ source: { from: "record" }, slot: { body: undefined } });
    expect(gather().beatAgeMs).toBeNumber();
    unlinkSync(place.record);
    expect(gather().source.kind).toBe("unreadable");
  });

  test("of another run or generation than the record's are not its own", () => {
    grant({ run_id: "run-x" });
    expect(gather()).toMatchObject({ slot: undefined, beatAgeMs: undefined });
    grant({ generation: 8 }, { head: { generation: 7 } });
    expect(gather()).toMatchObject({ source: { generation: 8 }, slot: undefined });
    unlinkSync(place.record);
    expect(gather().source.kind).toBe("unreadable");
  });
});

test("gathering writes nothing, whatever it finds", () => {
  grant();
  writeFileSync(place.note, "{");
  writeFileSync(slotPath(place, 9), "broken");
  writeFileSync(place.floors, "broken");
  const before = readdirSync(state, { recursive: true }).map((name) => {
    const { mtimeNs, ino, size } = statSync(join(state, String(name)), { bigint: true });
    return [String(name), mtimeNs, ino, size];
  });
  gather(HELD);
  unlinkSync(place.note);
  gather("unread");
  const opened = countOpen();
  for (let round = 0; round < 50; round += 1) gather();
  expect(countOpen()).toBe(opened);
  writeFileSync(place.note, "{");
  const after = readdirSync(state, { recursive: true }).map((name) => String(name));
  expect(after.toSorted()).toEqual(before.map(([name]) => String(name)).toSorted());
});
