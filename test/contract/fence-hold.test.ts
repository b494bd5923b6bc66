/** Holding the fences of leases (F1 to F3): with real files and real locks in this process. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeKeys, type LeaseKey } from "../../src/core/lease-key.ts";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import { type FenceRefusal, type HeldFences, holdFences } from "../../src/fence/hold.ts";
import { inodeAt, openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { wakeAfter } from "../../src/os/timers.ts";
import { failureOf } from "../support/failure-of.ts";
import { sampleRecord } from "../support/lease-samples.ts";
import { countOpen } from "../support/open-files.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-fence-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const RUN = "01930000-0000-7000-8000-00000000000a";
const OTHER = "01930000-0000-7000-8000-00000000000c";
let count = 0;

function freshKey(kind = "job"): LeaseKey {
  return { kind, name: `night ${(count += 1)}` };
}

function at(key: LeaseKey): LeasePlace {
  return placeOf(directory, key);
}

/** Locks a file as another process would. @returns how to let it go; undefined: it is taken */
function lockFile(path: string, mode: "exclusive" | "shared"): (() => void) | undefined {
  const opened = openLock(path, "create");
  if (opened.kind !== "open") throw new Error(`${path}: ${opened.kind}`);
  if (tryLock(opened.fd, mode) === "locked") return () => closeSync(opened.fd);
  closeSync(opened.fd);
  return undefined;
}

function isFree(path: string): boolean {
  const release = lockFile(path, "exclusive");
  release?.();
  return release !== undefined;
}

/** A lease as its owner has it; the lock is let go by what is returned. */
function own(key: LeaseKey, changes: Partial<LeaseRecord> = {}): () => void {
  makePlace(at(key));
  lockFile(at(key).fence, "exclusive")?.();
  const release = lockFile(at(key).lock, "exclusive");
  const lock_inode = String(inodeAt(at(key).lock));
  const owner = { ...key, run_id: RUN, generation: 7, lock_inode };
  writeRecord(at(key).record, sampleRecord({ ...owner, ...changes }));
  return release ?? (() => undefined);
}

function environmentOf(keys: readonly LeaseKey[], generation = 7, runPath = RUN): Uint8Array[] {
  return [
    `WATCHDOG_RUN_PATH=${runPath}`,
    `WATCHDOG_LEASE=${encodeKeys(keys)}`,
    `WATCHDOG_GENERATION=${keys.map(() => generation).join(" ")}`,
  ].map((entry) => Buffer.from(entry));
}

function hold(
  keys: readonly LeaseKey[],
  more: Partial<Parameters<typeof holdFences>[0]> = {},
): Promise<HeldFences | FenceRefusal> {
  const environment = environmentOf(keys);
  return holdFences({ stateDirectory: directory, environment, keys: [], waitMs: 0, ...more });
}

async function held(...words: Parameters<typeof hold>): Promise<HeldFences> {
  const result = await hold(...words);
  if (result.kind === "held") return result;
  throw new Error(`refused: ${result.text}`);
}

async function refused(...words: Parameters<typeof hold>): Promise<FenceRefusal> {
  const before = countOpen();
  const result = await hold(...words);
  if (result.kind === "held") throw new Error("held, expected a refusal");
  expect(countOpen()).toBe(before);
  return result;
}

describe("fences that are held", () => {
  test("exclude a grant of each key, and not each other, until they are released", async () => {
    const keys = [freshKey("aa"), freshKey("bb")];
    const owners = keys.map((key) => own(key));
    const before = countOpen();
    const one = await held(keys);
    const other = await held(keys);
    expect(one.keys).toMatchObject([
      { key: keys[0], generation: 7, runId: RUN },
      { key: keys[1], generation: 7, runId: RUN },
    ]);
    expect(one.descriptors).toHaveLength(2);
    one.release();
    expect(keys.map((key) => isFree(at(key).fence))).toEqual([false, false]);
    other.release();
    other.release();
    expect(keys.map((key) => isFree(at(key).fence))).toEqual([true, true]);
    expect(countOpen()).toBe(before);
    for (const release of owners) release();
  });

  test("have numbers that the redirections of scripts leave alone", async () => {
    const key = freshKey();
    const release = own(key);
    const fences = await held([key]);
    expect(Math.min(...fences.descriptors)).toBeGreaterThanOrEqual(10);
    fences.release();
    release();
  });

  test("are looked at again on request, and say what has changed", async () => {
    const key = freshKey();
    const release = own(key);
    const fences = await held([key]);
    expect(fences.check()).toBeUndefined();
    release();
    expect(fences.check()).toMatchObject({ because: "owner-dead", exit: "lease_lost", key });
    fences.release();
  });

  test("of a run around this one are had with --key", async () => {
    const key = freshKey();
    const release = own(key, { run_id: OTHER, generation: 3 });
    const environment = [Buffer.from(`WATCHDOG_RUN_PATH=${OTHER}/${RUN}`)];
    const fences = await held([], { environment, keys: [key] });
    expect(fences.keys).toMatchObject([{ runId: OTHER, generation: 3 }]);
    fences.release();
    release();
  });
});

describe("a fence that a grant holds", () => {
  test("is waited for, and everything is looked at after that", async () => {
    const key = freshKey();
    const release = own(key);
    const grant = lockFile(at(key).fence, "exclusive");
    wakeAfter(100, () => {
      writeRecord(at(key).record, sampleRecord({ ...key, run_id: OTHER, generation: 8 }));
      grant?.();
    });
    const refusal = await hold([key], { waitMs: 20_000 });
    expect(refusal).toMatchObject({
      because: "other-run",
      exit: "lease_lost",
      text:
        `job:${key.name} belongs to run ${OTHER}, generation 8 (ops@nightly), ` +
        `not to run ${RUN}, generation 7`,
    });
    expect(isFree(at(key).fence)).toBe(true);
    release();
  });

  test("is 75 at the deadline, and at once without one", async () => {
    const key = freshKey();
    const release = own(key);
    const grant = lockFile(at(key).fence, "exclusive");
    for (const waitMs of [0, 60]) {
      const refusal = await refused([key], { waitMs });
      expect([refusal.because, refusal.exit, refusal.key]).toEqual(["fence-busy", "locked", key]);
    }
    grant?.();
    (await held([key])).release();
    release();
  });

  test("is waited for with nothing in hand: a grant of two keys gets the other one", async () => {
    const [first, second] = [freshKey("aa"), freshKey("bb")];
    const owners = [own(first), own(second)];
    const grant = lockFile(at(second).fence, "exclusive");
    const waiting = hold([first, second], { waitMs: 20_000 });
    // The first try was made before this promise was handed out, and holds nothing any more.
    const other = lockFile(at(first).fence, "exclusive");
    expect(other).toBeDefined();
    grant?.();
    other?.();
    const result = await waiting;
    expect(result.kind).toBe("held");
    if (result.kind === "held") result.release();
    for (const release of owners) release();
  });
});

describe("a fence is refused", () => {
  test.each<[string, (key: LeaseKey) => void, string]>([
    ["without a record", (key) => rmSync(at(key).record), "record-missing"],
    ["with an empty one", (key) => writeFileSync(at(key).record, ""), "record-unreadable"],
    ["with zero bytes", (key) => writeFileSync(at(key).record, "\0\0"), "record-unreadable"],
    ["with half of one", (key) => writeFileSync(at(key).record, '{"for'), "record-unreadable"],
    [
      "with a newer one",
      (key) => writeFileSync(at(key).record, '{"format":2}'),
      "record-unreadable",
    ],
    ["without a fence", (key) => rmSync(at(key).fence), "fence-missing"],
    [
      "without a directory",
      (key) => rmSync(at(key).directory, { recursive: true }),
      "fence-missing",
    ],
  ])("%s: 76, although the lock is held", async (_, change, because) => {
    const key = freshKey();
    const release = own(key);
    change(key);
    const refusal = await refused([key], { waitMs: 20_000 });
    expect<object>(refusal).toMatchObject({ because, exit: "lease_lost", key });
    release();
  });

  test("for a link in the place of the record, which is not followed", async () => {
    const key = freshKey();
    const release = own(key);
    renameSync(at(key).record, `${at(key).record}.real`);
    symlinkSync(`${at(key).record}.real`, at(key).record);
    expect(await refused([key])).toMatchObject({ because: "record-unreadable" });
    release();
  });

  test("when the owner is dead, whatever the record says", async () => {
    const key = freshKey();
    own(key)();
    expect(await refused([key])).toMatchObject({ because: "owner-dead", exit: "lease_lost" });
  });

  test("when its lock file was replaced, until its owner has restored it", async () => {
    const key = freshKey();
    const release = own(key);
    renameSync(at(key).lock, `${at(key).lock}.old`);
    expect(await refused([key])).toMatchObject({ because: "lock-replaced", exit: "lease_lost" });
    writeFileSync(at(key).lock, "", { mode: 0o600 });
    expect(await refused([key])).toMatchObject({ because: "lock-replaced", exit: "lease_lost" });
    renameSync(`${at(key).lock}.old`, at(key).lock);
    (await held([key])).release();
    release();
  });

  test("when one of several keys is not ours, and then no fence is held", async () => {
    const [mine, other] = [freshKey("aa"), freshKey("bb")];
    const owners = [own(mine), own(other, { run_id: OTHER })];
    expect(await refused([mine, other])).toMatchObject({ key: other, because: "other-run" });
    expect(isFree(at(mine).fence)).toBe(true);
    for (const release of owners) release();
  });

  test("outside any run, without a look at any file", async () => {
    const stateDirectory = join(directory, "not-there");
    const refusal = await refused([], { stateDirectory, environment: [], keys: [freshKey()] });
    expect([refusal.because, refusal.exit]).toEqual(["outside-any-run", "lease_lost"]);
  });

  test("in a state directory that is not there, and none is made", async () => {
    const stateDirectory = join(directory, "not-there");
    const refusal = await refused([freshKey()], { stateDirectory });
    expect([refusal.because, readdirSync(directory).includes("not-there")]).toEqual([
      "fence-missing",
      false,
    ]);
  });
});

describe("something else in the place of the fence", () => {
  test.each<[string, (path: string) => void, string]>([
    ["a link", (path) => symlinkSync("/etc/hostname", path), "it is a symbolic link"],
    ["a directory", (path) => mkdirSync(path), "it is a directory"],
    ["a FIFO", (path) => void Bun.spawnSync(["mkfifo", path]), "it is not a regular file"],
  ])("is an error for a person: %s", async (_, make, reason) => {
    const key = freshKey();
    const release = own(key);
    rmSync(at(key).fence);
    make(at(key).fence);
    const failure = await failureOf(hold([key]));
    expect([failure.code, failure.exitStatus]).toEqual(["lease.refused", 78]);
    expect(failure.message).toBe(`${at(key).fence}: ${reason}`);
    release();
  });
});
