/** Entries of directories by descriptor and name: what the kernel says, byte by byte. */
import { expect, test } from "bun:test";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { asByteText, bytesOfText, type ByteText } from "../../src/core/byte-text.ts";
import {
  closeQuietly,
  isSameNode,
  listSome,
  openToList,
  openToPass,
  openToRead,
  openTop,
  readLink,
  removeDirectory,
  removeEntry,
  statEntry,
  statOpen,
} from "../../src/os/entries.ts";
import { readMountNumber } from "../../src/os/mounts.ts";
import { mount, openPlaces, put, putBytes, unmount } from "../support/artifact-places.ts";
import { O_CLOEXEC } from "../../src/os/sys.ts";
import { rootTest } from "../support/scene.ts";

const makePlace = openPlaces();
const [ENOENT, ENOTDIR, ENAMETOOLONG, ENOTEMPTY, ELOOP] = [2, 20, 36, 39, 40] as const;
const name = bytesOfText;

/** The place, open as a descriptor to begin from. */
function withTop<Found>(place: string, look: (top: number) => Found): Found {
  const top = openTop(name(place));
  expect(top).toBeGreaterThan(2);
  try {
    return look(top);
  } finally {
    closeSync(top);
  }
}

test("an entry is what stat(2) says of it, a link itself", () => {
  const place = makePlace();
  put(place, "file", "abc");
  utimesSync(join(place, "file"), 1_000_000_000.5, -3.25);
  mkdirSync(join(place, "directory"));
  symlinkSync("file", join(place, "link"));
  withTop(place, (top) => {
    for (const one of ["file", "directory", "link"]) {
      const known = lstatSync(join(place, one), { bigint: true });
      const found = statEntry(top, name(one));
      if (typeof found === "number") throw new Error(`${one}: ${found}`);
      expect(found).toMatchObject({ kind: one, bytes: Number(known.size) });
      const at = (seconds: number, rest: number) => BigInt(seconds) * 1_000_000_000n + BigInt(rest);
      expect(at(found.changedSeconds, found.changedNanoseconds)).toBe(known.ctimeNs);
      expect(at(found.modifiedSeconds, found.modifiedNanoseconds)).toBe(known.mtimeNs);
      expect(BigInt(found.inodeHigh) * 2n ** 32n + BigInt(found.inodeLow)).toBe(known.ino);
      expect(found.mount).toBe(readMountNumber(top));
    }
    expect(statEntry(top, name("none"))).toBe(-ENOENT);
    expect(statEntry(top, name("file/below"))).toBe(-ENOTDIR);
    expect(statEntry(top, name("x".repeat(256)))).toBe(-ENAMETOOLONG);
    expect(statEntry(top, name("x".repeat(5_000)))).toBe(-ENAMETOOLONG);
  });
  expect(openTop(name(`/${"x/".repeat(3_000)}`))).toBe(-ENAMETOOLONG);
});

test("no opening follows a link", () => {
  const place = makePlace();
  put(place, "directory/file");
  put(place, "file");
  symlinkSync("directory", join(place, "to-directory"));
  symlinkSync("file", join(place, "to-file"));
  withTop(place, (top) => {
    expect(openToRead(top, name("to-file"))).toBe(-ELOOP);
    expect(openToRead(top, name("to-directory"))).toBe(-ELOOP);
    expect(openToPass(top, name("to-directory"))).toBe(-ENOTDIR);
    expect(openToList(top, name("to-directory"))).toBe(-ENOTDIR);
    expect(readLink(top, name("to-file"))).toBe(name("file"));
    // The negative twins.
    for (const open of [openToPass, openToList]) {
      const fd = open(top, name("directory"));
      expect(fd).toBeGreaterThan(2);
      expect(statOpen(fd)).toMatchObject({ kind: "directory" });
      closeQuietly(fd);
    }
  });
  expect(openTop(name(join(place, "to-directory")))).toBe(-ENOTDIR);
});

test("a pipe that nobody writes to is opened at once", () => {
  const place = makePlace();
  expect(Bun.spawnSync(["mkfifo", join(place, "pipe")]).exitCode).toBe(0);
  withTop(place, (top) => {
    expect(statEntry(top, name("pipe"))).toMatchObject({ kind: "special" });
    const fd = openToRead(top, name("pipe"));
    expect(fd).toBeGreaterThan(2);
    closeQuietly(fd);
  });
});

test("a listing has each name once, whatever its bytes, and an end", () => {
  const place = makePlace();
  const known: ByteText[] = [];
  for (let byte = 1; byte < 256; byte += 1) {
    if (byte === 0x2f || byte === 0x2e) continue;
    known.push(asByteText(Uint8Array.of(byte)));
    putBytes(place, [byte]);
  }
  for (let at = 0; at < 3_000; at += 1) {
    const long = `${"n".repeat(200)}${at}`;
    known.push(name(long));
    put(place, long, "");
  }
  const fd = withTop(place, (top) => openToList(top, name(".")));
  const found: ByteText[] = [];
  let parts = 0;
  for (;;) {
    const some = listSome(fd);
    if (typeof some === "number") throw new Error(`${some}`);
    if (some.length === 0) break;
    found.push(...some);
    parts += 1;
  }
  closeQuietly(fd);
  expect(parts).toBeGreaterThan(1);
  expect(found.toSorted()).toEqual(known.toSorted());
});

test("what is removed is the entry of that name, and only an empty directory", () => {
  const place = makePlace();
  put(place, "directory/file");
  symlinkSync("directory", join(place, "link"));
  withTop(place, (top) => {
    expect(removeDirectory(top, name("directory"))).toBe(-ENOTEMPTY);
    expect(removeDirectory(top, name("link"))).toBe(-ENOTDIR);
    expect(removeEntry(top, name("directory"))).toBeLessThan(0);
    expect(removeEntry(top, name("link"))).toBe(0);
    expect(removeEntry(top, name("link"))).toBe(-ENOENT);
  });
  expect(readdirSync(place)).toEqual(["directory"]);
  expect(readdirSync(join(place, "directory"))).toEqual(["file"]);
});

rootTest("a mount has another number, a bind mount of the same file system too", () => {
  const place = makePlace();
  mkdirSync(join(place, "one"));
  mkdirSync(join(place, "other"));
  mount("--bind", join(place, "one"), join(place, "other"));
  try {
    withTop(place, (top) => {
      const [one, other] = ["one", "other"].map((each) => statEntry(top, name(each)));
      if (typeof one !== "object" || typeof other !== "object") throw new Error("no entry");
      expect(isSameNode(one, other)).toBe(true);
      expect(one.mount).toBe(readMountNumber(top));
      expect(other.mount).not.toBe(one.mount);
      const fd = openToPass(top, name("other"));
      expect(readMountNumber(fd)).toBe(other.mount);
      closeQuietly(fd);
    });
  } finally {
    unmount(join(place, "other"));
  }
  expect(readMountNumber(1_000_000)).toBeUndefined();
});

test("what is open is closed in a program that is started", () => {
  const place = makePlace();
  put(place, "directory/file");
  withTop(place, (top) => {
    const opened = [
      openToRead(top, name("directory/file")),
      openToList(top, name("directory")),
      openToPass(top, name("directory")),
    ];
    for (const fd of [top, ...opened]) {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
      expect(Number.parseInt(flags ?? "", 8) & O_CLOEXEC).toBe(O_CLOEXEC);
    }
    for (const fd of opened) closeQuietly(fd);
  });
});
