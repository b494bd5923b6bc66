/**
 * A state directory that a group shares, with real files: modes and groups of all that is made in
 * it whatever the umask, whose files count as ours, and which directories are taken for shared.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openToWrite } from "../../src/journal/open.ts";
import { inspectDatabase, placeOfJournal } from "../../src/journal/places.ts";
import { addToSpool } from "../../src/journal/spool.ts";
import { openLock } from "../../src/lease/files/lock-file.ts";
import { makePlace, placeOf } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { createSlot } from "../../src/lease/files/slot-file.ts";
import { resolveWorktreeKey } from "../../src/lease/worktree-place.ts";
import { openStateDirectory, findStateDirectory } from "../../src/os/state-dir.ts";
import { checkStateFormat } from "../../src/os/state-format.ts";
import {
  makeStateDirectory,
  refusalOfOwner,
  sharingOf,
  takeUmaskOf,
} from "../../src/os/state-sharing.ts";
import { createLogFile } from "../../src/output/log-segments.ts";
import { registerKept } from "../../src/run/kept-registry.ts";
import { sampleRecord } from "../support/lease-samples.ts";
import { rootTest } from "../support/scene.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-sharing-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const OWN_UID = process.getuid?.() ?? 0;
const OWN_GID = process.getegid?.() ?? 0;
const STRANGER = 54_381;
const STRANGE_GROUP = 54_382;
/** In no database of a test machine. */
const NO_GROUP = "no-such-group-here";

let count = 0;
function fresh(): string {
  count += 1;
  return `${root}/state-${count}`;
}

function modeOf(path: string): string {
  return (lstatSync(path).mode & 0o7777).toString(8);
}

function withUmask<Value>(umask: number, work: () => Value): Value {
  const before = process.umask(umask);
  try {
    return work();
  } finally {
    process.umask(before);
  }
}

/** One of each kind of file that watchdog makes in its state. */
function fill(state: string): void {
  checkStateFormat(state);
  const key = { kind: "job", name: "one" };
  const place = placeOf(state, key);
  makePlace(place);
  for (const path of [place.lock, place.fence]) {
    const opened = openLock(path, "create");
    if (opened.kind === "open") closeSync(opened.fd);
  }
  closeSync(createSlot(place, 1));
  writeRecord(place.record, sampleRecord());
  resolveWorktreeKey(state, root);
  const journal = placeOfJournal(state);
  const opened = openToWrite(journal);
  if (opened.kind !== "open") throw new Error(JSON.stringify(opened));
  opened.db.run("CREATE TABLE wal_is_used (one)");
  expect(existsSync(`${journal.database}-wal`)).toBe(true);
  addToSpool(journal, []);
  makeStateDirectory(`${state}/logs/job/deep`);
  closeSync(createLogFile(`${state}/logs/job/deep/x.log`));
  registerKept(state, "run", { token: "t", identity: "1@1" });
  expectModes(state);
  opened.db.close(true);
}

function expectModes(state: string): void {
  const { directoryMode, fileMode, gid } = sharingOf(state);
  const names = readdirSync(state, { recursive: true }).map(String);
  const found = names.map((name) => {
    const { mode, gid: group } = lstatSync(`${state}/${name}`);
    return [name, (mode & 0o7777).toString(8), gid === undefined ? undefined : group];
  });
  expect(found).toEqual(
    names.map((name) => {
      const isDirectory = lstatSync(`${state}/${name}`).isDirectory();
      return [name, (isDirectory ? directoryMode : fileMode).toString(8), gid];
    }),
  );
  for (const part of ["journal.db-wal", "journal.db-shm", "journal.lock", "FORMAT", "kept/run/t"]) {
    expect([part, names.includes(part)]).toEqual([part, true]);
  }
}

test("the umask of a state directory is taken and given back", () => {
  for (const [group, expected] of [
    [undefined, 0o077],
    [String(OWN_GID), 0o007],
  ] as const) {
    const state = fresh();
    openStateDirectory(state, group === undefined ? {} : { group });
    withUmask(0o027, () => {
      const giveBack = takeUmaskOf(state);
      expect(process.umask()).toBe(expected);
      giveBack();
      expect(process.umask()).toBe(0o027);
    });
  }
});

describe.each([0o000, 0o022, 0o077, 0o777])("with a umask of %o", (umask) => {
  test("all that is made in a shared directory is 2770 and 0660 and the group's", () => {
    const state = fresh();
    withUmask(umask, () => {
      openStateDirectory(state, { group: String(OWN_GID) });
      expect([modeOf(state), statSync(state).gid]).toEqual(["2770", OWN_GID]);
      expect(sharingOf(state)).toMatchObject({ directoryMode: 0o2770, fileMode: 0o660 });
      fill(state);
    });
  });

  test("all that is made in a private one is 0700 and 0600", () => {
    const state = fresh();
    withUmask(umask, () => {
      openStateDirectory(state);
      expect(modeOf(state)).toBe("700");
      expect(sharingOf(state)).toMatchObject({ directoryMode: 0o700, fileMode: 0o600 });
      fill(state);
    });
  });
});

describe("a directory that is asked to be shared", () => {
  test("is recognized by itself at the next time, with the group asked for or not", () => {
    const state = fresh();
    openStateDirectory(state, { group: String(OWN_GID) });
    openStateDirectory(state, { group: String(OWN_GID) });
    openStateDirectory(state);
    expect(findStateDirectory(state)).toBe(true);
    expect(modeOf(state)).toBe("2770");
  });

  test("is finished where its first start was killed before it was opened to the group", () => {
    const state = fresh();
    mkdirSync(state, { mode: 0o700 });
    openStateDirectory(state, { group: String(OWN_GID) });
    expect(modeOf(state)).toBe("2770");
  });

  test("is refused and left alone where it is private and has files, and the way is shown", () => {
    const state = fresh();
    mkdirSync(state, { mode: 0o700 });
    writeFileSync(`${state}/file`, "");
    const asked = { group: String(OWN_GID) };
    expect(() => openStateDirectory(state, asked)).toThrow("it has mode 700 and group ");
    expect(modeOf(state)).toBe("700");
    const hint = hintOf(() => openStateDirectory(state, asked));
    const shell = Bun.spawnSync(["sh", "-c", hint], { stderr: "inherit" });
    expect(shell.exitCode).toBe(0);
    openStateDirectory(state, asked);
    expect([modeOf(state), modeOf(`${state}/file`)]).toEqual(["2770", "660"]);
  });

  test.each([0o770, 0o2750, 0o2775, 0o3770, 0o755])("is refused with mode %o", (mode) => {
    const state = fresh();
    mkdirSync(state);
    chmodSync(state, mode);
    const words = `it has mode ${mode.toString(8)} and group `;
    expect(() => openStateDirectory(state, { group: String(OWN_GID) })).toThrow(words);
    expect(modeOf(state)).toBe(mode.toString(8));
  });

  test("is refused where there is no such group, and nothing is made", () => {
    const state = fresh();
    const ask = (): void => openStateDirectory(state, { group: NO_GROUP });
    expect(ask).toThrow(`state directory ${state}: there is no group '${NO_GROUP}'`);
    expect(existsSync(state)).toBe(false);
  });

  test("is refused where it is a link or a file", () => {
    const [good, link, file] = [fresh(), fresh(), fresh()];
    openStateDirectory(good, { group: String(OWN_GID) });
    symlinkSync(good, link);
    writeFileSync(file, "");
    const group = String(OWN_GID);
    expect(() => openStateDirectory(link, { group })).toThrow("it is a symbolic link");
    expect(() => openStateDirectory(file, { group })).toThrow("it is not a directory");
  });

  rootTest("is waited for while its maker has not opened it to the group yet", async () => {
    const state = fresh();
    mkdirSync(state, { mode: 0o700 });
    chownSync(state, STRANGER, STRANGE_GROUP);
    const maker = Bun.spawn(["sh", "-c", 'sleep 0.1; chmod 2770 "$0"', state]);
    openStateDirectory(state, { group: String(STRANGE_GROUP) });
    expect(modeOf(state)).toBe("2770");
    expect(await maker.exited).toBe(0);
  });

  rootTest("is refused with another group than the one asked for", () => {
    const state = fresh();
    openStateDirectory(state, { group: String(STRANGE_GROUP) });
    expect([modeOf(state), statSync(state).gid]).toEqual(["2770", STRANGE_GROUP]);
    expect(() => openStateDirectory(state, { group: String(OWN_GID) })).toThrow(
      `it has mode 2770 and group ${STRANGE_GROUP}, expected mode 2770 and group `,
    );
  });
});

function hintOf(work: () => void): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Error && "hint" in error) return String(error.hint);
  }
  return "";
}

describe("without being asked", () => {
  rootTest("a directory shared by a group that we are not in is somebody else's", () => {
    const state = fresh();
    mkdirSync(state);
    chownSync(state, STRANGER, STRANGE_GROUP);
    chmodSync(state, 0o2770);
    expect(() => openStateDirectory(state)).toThrow(
      `it has mode 2770 and group ${STRANGE_GROUP}, which we are not in`,
    );
    // Root may look into it, and use it where its group was asked for.
    expect(findStateDirectory(state)).toBe(true);
    openStateDirectory(state, { group: String(STRANGE_GROUP) });
  });

  rootTest("one of ours that is shared by whatever group is ours", () => {
    const state = fresh();
    mkdirSync(state);
    chownSync(state, OWN_UID, STRANGE_GROUP);
    chmodSync(state, 0o2770);
    openStateDirectory(state);
  });
});

describe("somebody else's file", () => {
  rootTest("counts as ours in a shared directory, if it is the group's", () => {
    const state = fresh();
    openStateDirectory(state, { group: String(STRANGE_GROUP) });
    fill(state);
    const place = placeOf(state, { kind: "job", name: "one" });
    const journal = placeOfJournal(state);
    for (const path of [place.lock, place.directory, journal.database]) {
      chownSync(path, STRANGER, STRANGE_GROUP);
    }
    expect(makePlace(place)).toBe("there");
    expect(inspectDatabase(journal).kind).toBe("there");
    const opened = openLock(place.lock, "create");
    expect(opened.kind).toBe("open");
    if (opened.kind === "open") closeSync(opened.fd);

    chownSync(place.lock, STRANGER, OWN_GID);
    expect(openLock(place.lock, "create")).toEqual({
      kind: "refused",
      reason:
        `it belongs to uid ${STRANGER} and group ${OWN_GID}, expected uid ${OWN_UID} or group ` +
        STRANGE_GROUP,
    });
    chownSync(journal.database, STRANGER, OWN_GID);
    expect(inspectDatabase(journal).kind).toBe("refused");
  });

  rootTest("is refused in a private directory, whatever its group", () => {
    const state = fresh();
    openStateDirectory(state);
    fill(state);
    const place = placeOf(state, { kind: "job", name: "one" });
    chownSync(place.lock, STRANGER, OWN_GID);
    expect(openLock(place.lock, "create")).toEqual({
      kind: "refused",
      reason: `it belongs to uid ${STRANGER}, expected uid ${OWN_UID}`,
    });
    expect(refusalOfOwner(place.lock, lstatSync(place.lock))).toBeDefined();
  });
});
