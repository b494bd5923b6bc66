/**
 * The files of a lease with real files, locks and processes: what is taken, what is refused, and
 * what a reader sees while somebody writes.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  askLock,
  inodeAt,
  isThePath,
  openLock,
  tryLock,
  unlock,
} from "../../src/lease/files/lock-file.ts";
import { listSlots, makePlace, placeOf, slotPath } from "../../src/lease/files/places.ts";
import { readRecord, renderRecord, writeRecord } from "../../src/lease/files/record-file.ts";
import { encodeSlot, SLOT_BYTES } from "../../src/lease/files/slot.ts";
import { createSlot, readSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { sampleRecord, sampleSlot } from "../support/lease-samples.ts";
import { waitFor } from "../support/wait-for.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-lease-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
let place = placeOf(root, { kind: "job", name: "0" });

/** A lease directory of its own for each test. */
beforeEach(() => {
  count += 1;
  place = placeOf(root, { kind: "job", name: `backup ${count}` });
  makePlace(place);
});

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

/** Runs with a umask that takes away everything. */
function withoutRights<Value>(work: () => Value): Value {
  const old = process.umask(0o777);
  try {
    return work();
  } finally {
    process.umask(old);
  }
}

function makeFifo(path: string): void {
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
}

function openFor(path: string): { fd: number; inode: string } {
  const opened = openLock(path, "create");
  if (opened.kind !== "open") throw new Error(`not opened: ${opened.kind}`);
  return opened;
}

/** Everything that may stand in the place of a file and is none of ours. */
const IMPOSTORS: readonly (readonly [what: string, plant: (path: string) => void])[] = [
  ["a link to a file", (path) => symlinkSync(victim(), path)],
  ["a link to nothing", (path) => symlinkSync(join(root, "absent"), path)],
  ["a directory", (path) => mkdirSync(path)],
  ["a FIFO", makeFifo],
];

function victim(): string {
  const path = join(root, "victim");
  writeFileSync(path, "precious");
  return path;
}

describe("the place of a lease", () => {
  test("is made 0700 whatever the umask, and says whether it was new", () => {
    const fresh = placeOf(join(root, `state-${count}`), { kind: "lane", name: "x/y" });
    mkdirSync(join(root, `state-${count}`));
    expect(withoutRights(() => makePlace(fresh))).toBe("made");
    expect(makePlace(fresh)).toBe("there");
    const paths = [join(root, `state-${count}`, "leases"), fresh.kindDirectory, fresh.directory];
    expect(paths.map(modeOf)).toEqual([0o700, 0o700, 0o700]);
  });

  test.each([
    ["a link", (path: string) => symlinkSync(root, path), "symbolic link"],
    ["a file", (path: string) => writeFileSync(path, ""), "not a directory"],
  ])("is refused where %s stands in it", (_, plant, reason) => {
    rmSync(place.directory, { recursive: true });
    plant(place.directory);
    expect(() => makePlace(place)).toThrow(reason);
    expect(() => makePlace(place)).toThrow(expect.objectContaining({ code: "lease.refused" }));
  });

  test("lists the numbers that are taken, the largest first, and nothing else", () => {
    for (const name of ["beat.9", "beat.10", "beat.0", "beat.01", "beat.x", "beat.1.tmp", "lock"]) {
      writeFileSync(join(place.directory, name), "");
    }
    writeFileSync(join(place.directory, `beat.${2 ** 53}`), "");
    expect(listSlots(place)).toEqual([10, 9]);
    rmSync(place.directory, { recursive: true });
    expect(listSlots(place)).toEqual([]);
  });
});

describe("a lock", () => {
  test("excludes a second exclusive one and a shared one, until it is given back", () => {
    const [one, other] = [openFor(place.lock), openFor(place.lock)];
    expect(tryLock(one.fd, "exclusive")).toBe("locked");
    expect(tryLock(other.fd, "exclusive")).toBe("busy");
    expect(tryLock(other.fd, "shared")).toBe("busy");
    unlock(one.fd);
    expect(tryLock(other.fd, "exclusive")).toBe("locked");
    closeSync(other.fd);
    expect(tryLock(one.fd, "exclusive")).toBe("locked");
    closeSync(one.fd);
  });

  test("is shared by many readers", () => {
    const [one, other] = [openFor(place.lock), openFor(place.lock)];
    expect([tryLock(one.fd, "shared"), tryLock(other.fd, "shared")]).toEqual(["locked", "locked"]);
    expect(tryLock(one.fd, "exclusive")).toBe("busy");
    closeSync(one.fd);
    closeSync(other.fd);
  });

  test("is the kernel's: flock(1) is refused by it, and refuses us", async () => {
    const { fd } = openFor(place.lock);
    expect(tryLock(fd, "exclusive")).toBe("locked");
    expect(Bun.spawnSync(["flock", "-n", place.lock, "true"]).exitCode).toBe(1);
    closeSync(fd);
    const words = ["flock", "--no-fork", "-n", place.lock, "sleep", "60"];
    const holder = Bun.spawn(words);
    await waitFor(() => askLock(place.lock).kind === "held", "flock(1) to have the lock");
    const mine = openFor(place.lock);
    expect(tryLock(mine.fd, "exclusive")).toBe("busy");
    holder.kill("SIGKILL");
    await holder.exited;
    expect(tryLock(mine.fd, "exclusive")).toBe("locked");
    closeSync(mine.fd);
  });

  test("lives as long as anybody holds the descriptor, and no longer", async () => {
    const script = 'exec 9>>"$1"; flock -n 9; sleep 60 & echo $!; wait';
    const holder = Bun.spawn(["sh", "-c", script, "sh", place.lock], { stdout: "pipe" });
    const first = await holder.stdout.getReader().read();
    const heir = Number(new TextDecoder().decode(first.value));
    expect(askLock(place.lock)).toEqual({ kind: "held" });
    holder.kill("SIGKILL");
    await holder.exited;
    expect(askLock(place.lock)).toEqual({ kind: "held" });
    process.kill(heir, "SIGKILL");
    await waitFor(() => askLock(place.lock).kind === "free", "the lock to be free");
  });

  test("is asked for without leaving a trace", () => {
    expect(askLock(place.lock)).toEqual({ kind: "free" });
    expect(existsSync(place.lock)).toBe(false);
    const { fd } = openFor(place.lock);
    expect(askLock(place.lock)).toEqual({ kind: "free" });
    expect(tryLock(fd, "exclusive")).toBe("locked");
    expect(askLock(place.lock)).toEqual({ kind: "held" });
    closeSync(fd);
  });

  test("file is empty, 0600 whatever the umask, and closed at exec", () => {
    const { fd } = withoutRights(() => openFor(place.lock));
    expect([modeOf(place.lock), statSync(place.lock).size]).toEqual([0o600, 0]);
    expect(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")).toMatch(/^flags:\s+02\d{6}$/m);
    closeSync(fd);
    chmodSync(place.lock, 0o666);
    closeSync(openFor(place.lock).fd);
    expect(modeOf(place.lock)).toBe(0o600);
  });

  test("is the path's until the file is replaced or removed, whatever other names it has", () => {
    const { fd, inode } = openFor(place.lock);
    expect([isThePath(fd, place.lock), inodeAt(place.lock)]).toEqual([true, inode]);
    linkSync(place.lock, `${place.lock}2`);
    expect(isThePath(fd, place.lock)).toBe(true);
    unlinkSync(place.lock);
    expect([isThePath(fd, place.lock), inodeAt(place.lock)]).toEqual([false, undefined]);
    const other = openFor(place.lock);
    expect([isThePath(fd, place.lock), isThePath(other.fd, place.lock)]).toEqual([false, true]);
    expect(other.inode).not.toBe(inode);
    unlinkSync(place.lock);
    symlinkSync(`${place.lock}2`, place.lock);
    expect(isThePath(fd, place.lock)).toBe(false);
    closeSync(fd);
    closeSync(other.fd);
  });

  test.each(IMPOSTORS)("is refused where %s stands in its place", (_, plant) => {
    plant(place.lock);
    expect(openLock(place.lock, "create").kind).toBe("refused");
    expect(openLock(place.lock, "existing").kind).toBe("refused");
    expect(askLock(place.lock).kind).toBe("unaskable");
    expect(existsSync(join(root, "absent"))).toBe(false);
  });

  test("is missing where its directory is, and is only made when asked for", () => {
    expect(openLock(place.lock, "existing")).toEqual({ kind: "missing" });
    rmSync(place.directory, { recursive: true });
    expect(openLock(place.lock, "create")).toEqual({ kind: "missing" });
  });

  test("tells the errno of what flock(2) does not take", () => {
    expect(tryLock(999_999, "exclusive")).toEqual({ errno: 9 });
    expect(() => unlock(999_999)).toThrow("EBADF");
  });
});

describe("a record file", () => {
  test("is none, then the one written, then the next; 0600, with nothing beside it", () => {
    expect(readRecord(place.record)).toEqual({ kind: "none" });
    withoutRights(() => writeRecord(place.record, sampleRecord()));
    expect(readRecord(place.record)).toEqual({ kind: "read", record: sampleRecord() });
    const next = sampleRecord({ generation: 8, state: "released" });
    writeRecord(place.record, next);
    expect(readRecord(place.record)).toEqual({ kind: "read", record: next });
    expect(readdirSync(place.directory)).toEqual(["lease.json"]);
    expect(modeOf(place.record)).toBe(0o600);
  });

  test.each(IMPOSTORS)("is unreadable where %s stands in its place, at once", (_, plant) => {
    plant(place.record);
    expect(readRecord(place.record).kind).toBe("unreadable");
  });

  test("takes the place of a link and never follows it", () => {
    symlinkSync(victim(), place.record);
    writeRecord(place.record, sampleRecord());
    expect(readRecord(place.record).kind).toBe("read");
    expect(readFileSync(victim(), "utf8")).toBe("precious");
  });

  test("that is too long is not read to its end", () => {
    writeFileSync(place.record, renderRecord(sampleRecord()));
    truncateSync(place.record, 2 ** 40);
    expect(readRecord(place.record)).toEqual({
      kind: "unreadable",
      reason: "it is longer than 65536 bytes",
    });
  });

  test("is whole for every reader while it is replaced again and again", async () => {
    const source = JSON.stringify(join(import.meta.dir, "../../src/lease/files/record-file.ts"));
    const script = `const { writeRecord } = await import(${source});
      const [text, path] = process.argv.slice(1);
      for (let generation = 1; generation <= 300; generation += 1) {
        writeRecord(path, { ...JSON.parse(text), generation });
      }`;
    const words = [process.execPath, "-e", script, JSON.stringify(sampleRecord()), place.record];
    const writer = Bun.spawn(words);
    const seen = new Set<number>();
    while (writer.exitCode === null) {
      const reading = readRecord(place.record);
      if (reading.kind !== "none") expect(reading.kind).toBe("read");
      if (reading.kind === "read") seen.add(reading.record.generation);
      await Bun.sleep(0);
    }
    expect(await writer.exited).toBe(0);
    expect(seen.size).toBeGreaterThan(1);
  });
});

describe("a slot file", () => {
  test("takes its number once", () => {
    const fd = withoutRights(() => createSlot(place, 5));
    expect(modeOf(slotPath(place, 5))).toBe(0o600);
    expect(() => createSlot(place, 5)).toThrow("EEXIST");
    expect(listSlots(place)).toEqual([5]);
    expect(readSlot(slotPath(place, 5))).toBe("empty");
    closeSync(fd);
  });

  test("holds the last beat, and is missing where it never was", () => {
    const fd = createSlot(place, 7);
    writeSlot(fd, sampleSlot());
    writeSlot(fd, sampleSlot({ head: { sequence: 4 } }));
    expect(readSlot(slotPath(place, 7))).toEqual(sampleSlot({ head: { sequence: 4 } }));
    expect(statSync(slotPath(place, 7)).size).toBe(SLOT_BYTES);
    expect(readSlot(slotPath(place, 8))).toBe("missing");
    closeSync(fd);
  });

  test.each(IMPOSTORS)("is unread where %s stands in its place", (_, plant) => {
    plant(slotPath(place, 7));
    expect(readSlot(slotPath(place, 7))).toBe("unread");
    expect(() => createSlot(place, 7)).toThrow("EEXIST");
  });

  test("is unread where its head is broken, and comes without a body where only that is", () => {
    const [path, whole] = [slotPath(place, 7), encodeSlot(sampleSlot())];
    writeFileSync(path, whole.subarray(0, 100));
    expect(readSlot(path)).toBe("unread");
    writeFileSync(path, new Uint8Array(SLOT_BYTES));
    expect(readSlot(path)).toBe("unread");
    writeFileSync(path, whole.subarray(0, 1000));
    expect(readSlot(path)).toEqual({ head: sampleSlot().head, body: undefined });
  });

  test("that cannot take a beat says so", () => {
    closeSync(createSlot(place, 7));
    const fd = openSync(slotPath(place, 7), constants.O_RDONLY);
    expect(() => writeSlot(fd, sampleSlot())).toThrow("EBADF");
    closeSync(fd);
  });

  test("stays with its holder when the lease directory is moved away", () => {
    const fd = createSlot(place, 7);
    renameSync(place.directory, `${place.directory}.old`);
    makePlace(place);
    writeSlot(fd, sampleSlot());
    expect(readSlot(slotPath(place, 7))).toBe("missing");
    closeSync(fd);
  });
});
