/**
 * Entries of directories by descriptor and name, one name at a time: what they are, what is in
 * them, opening and removing them. No call here follows a symbolic link, and a name of one part
 * cannot lead out of its directory, so that whoever goes down name by name stays below where he
 * began, whatever is renamed meanwhile.
 *
 * Results as in `sys.ts`: 0 or more, or -errno; no retries but for EINTR, no policy. Names are
 * bytes. Memory that the kernel writes into is this module's own: a result is taken out of it
 * before the next call. Blocks as long as the file system does. Clock: none. State after a crash:
 * what was removed is removed.
 */
import { ptr } from "bun:ffi";
import { constants } from "node:fs";
import { asByteText, type ByteText } from "../core/byte-text.ts";
import { coldLibc, errno } from "./libc.ts";
import { EINTR, O_CLOEXEC, sys } from "./sys.ts";

const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** The value is the same on x64 and arm64 (open(2)). */
const O_PATH = 0o10000000;
const ENAMETOOLONG = 36;
const AT_FDCWD = -100;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_REMOVEDIR = 0x200;
const AT_NO_AUTOMOUNT = 0x800;
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;
/** Since Linux 5.8; an older kernel leaves it out of the answer. */
const STATX_MNT_ID = 0x1000;

const isArm = process.arch === "arm64";
/** Not all have a wrapper in every C library. */
const CALL = {
  getdents64: isArm ? 61 : 217,
  openat: isArm ? 56 : 257,
  readlinkat: isArm ? 78 : 267,
  statx: isArm ? 291 : 332,
  unlinkat: isArm ? 35 : 263,
} as const;

/** With its NUL (path_resolution(7)); a single name may have 255 bytes. */
const LONGEST_PATH = 4_096;
const LISTING_BYTES = 65_536;
const LINK_BYTES = 4_096;

const nameBuffer = new Uint8Array(LONGEST_PATH);
const listing = new Uint8Array(LISTING_BYTES);
const listingView = new DataView(listing.buffer);
const linkBuffer = new Uint8Array(LINK_BYTES);
const statBuffer = new Uint8Array(256);
const statView = new DataView(statBuffer.buffer);

export type EntryKind = "file" | "directory" | "link" | "special";

/**
 * All in plain numbers, side by side and none of them rounded: who surveys a large directory keeps
 * many of these.
 */
export interface EntryStat {
  readonly kind: EntryKind;
  readonly bytes: number;
  readonly device: number;
  /** The inode's number, above and below 2^32: a double has not enough digits for all of it. */
  readonly inodeHigh: number;
  readonly inodeLow: number;
  /** Wall clock of the file system: seconds, and nanoseconds within the second. */
  readonly changedSeconds: number;
  readonly changedNanoseconds: number;
  readonly modifiedSeconds: number;
  readonly modifiedNanoseconds: number;
  /** The number of the mount that it lies on; undefined: the kernel does not tell it here. */
  readonly mount: number | undefined;
}

/** One file, on this machine and in this boot. */
export function isSameNode(one: EntryStat, other: EntryStat): boolean {
  return (
    one.device === other.device &&
    one.inodeHigh === other.inodeHigh &&
    one.inodeLow === other.inodeLow
  );
}

/** And unchanged, as far as its length and its times tell. */
export function isSameStat(one: EntryStat, other: EntryStat): boolean {
  return (
    isSameNode(one, other) &&
    one.kind === other.kind &&
    one.bytes === other.bytes &&
    one.changedSeconds === other.changedSeconds &&
    one.changedNanoseconds === other.changedNanoseconds &&
    one.modifiedSeconds === other.modifiedSeconds &&
    one.modifiedNanoseconds === other.modifiedNanoseconds
  );
}

/** A directory by its path, to go down from; the path may lead through links, its end may not. */
export function openTop(path: ByteText): number {
  return path.length < LONGEST_PATH ? open(AT_FDCWD, path, O_PATH | O_DIRECTORY) : -ENAMETOOLONG;
}

/** Only to go further down or to look: nothing is read, no right to read is needed. */
export function openToPass(directory: number, name: ByteText): number {
  return open(directory, name, O_PATH | O_DIRECTORY);
}

export function openToList(directory: number, name: ByteText): number {
  return open(directory, name, O_RDONLY | O_DIRECTORY);
}

/** Comes back at once where a pipe has taken the file's place since it was looked at. */
export function openToRead(directory: number, name: ByteText): number {
  return open(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

/** Of an entry, itself where it is a link. */
export function statEntry(directory: number, name: ByteText): EntryStat | number {
  return stat(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
}

/** Of what is open. */
export function statOpen(fd: number): EntryStat | number {
  return stat(fd, "" as ByteText, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

/** The text of a link; one as long as the buffer was cut, which Linux has nowhere. */
export function readLink(directory: number, name: ByteText): ByteText | number {
  const length = call(
    CALL.readlinkat,
    directory,
    putName(name),
    ptr(linkBuffer),
    linkBuffer.length,
  );
  return length < 0 ? length : asByteText(linkBuffer.subarray(0, length));
}

/**
 * The next names of an open directory, without `.` and `..`: some hundreds at a time, none at its
 * end (getdents64(2)).
 */
export function listSome(fd: number): readonly ByteText[] | number {
  for (;;) {
    const length = call(CALL.getdents64, fd, ptr(listing), listing.length);
    if (length < 0) return length;
    const names = parseListing(length);
    // Nothing but the two that are left out is no end.
    if (names.length > 0 || length === 0) return names;
  }
}

/** Anything but a directory; a link itself, never what it leads to. */
export function removeEntry(directory: number, name: ByteText): number {
  return call(CALL.unlinkat, directory, putName(name), 0);
}

/** An empty one. */
export function removeDirectory(directory: number, name: ByteText): number {
  return call(CALL.unlinkat, directory, putName(name), AT_REMOVEDIR);
}

function open(directory: number, name: ByteText, flags: number): number {
  return call(CALL.openat, directory, putName(name), flags | O_NOFOLLOW | O_CLOEXEC, 0);
}

function stat(directory: number, name: ByteText, flags: number): EntryStat | number {
  const mask = STATX_BASIC_STATS | STATX_MNT_ID;
  const outcome = call(CALL.statx, directory, putName(name), flags, mask, ptr(statBuffer));
  return outcome < 0 ? outcome : parseStat();
}

/** `struct statx` (statx(2)). */
function parseStat(): EntryStat {
  const word = (offset: number): number => statView.getUint32(offset, true);
  const long = (offset: number): number => Number(statView.getBigInt64(offset, true));
  return {
    kind: kindOf(statView.getUint16(28, true)),
    bytes: long(40),
    device: word(136) * 2 ** 32 + word(140),
    inodeHigh: word(36),
    inodeLow: word(32),
    changedSeconds: long(96),
    changedNanoseconds: word(104),
    modifiedSeconds: long(112),
    modifiedNanoseconds: word(120),
    // Linux takes it from a counter that stays below 2^31.
    mount: (word(0) & STATX_MNT_ID) === 0 ? undefined : long(144),
  };
}

/** The type's bits of a mode (inode(7)). */
function kindOf(mode: number): EntryKind {
  const type = mode & 0o170000;
  if (type === 0o100000) return "file";
  if (type === 0o040000) return "directory";
  return type === 0o120000 ? "link" : "special";
}

/** `struct linux_dirent64`: inode, offset, length of the record, type, name with a NUL. */
function parseListing(length: number): ByteText[] {
  const names: ByteText[] = [];
  for (let at = 0; at < length; at += listingView.getUint16(at + 16, true)) {
    const begin = at + 19;
    const name = asByteText(listing.subarray(begin, listing.indexOf(0, begin)));
    if (name !== "." && name !== "..") names.push(name);
  }
  return names;
}

/**
 * @returns the address of the name with a NUL behind it; what is cut off was too long for a name
 *   even so, and the kernel says it (ENAMETOOLONG)
 */
function putName(name: ByteText): number {
  const length = Math.min(name.length, LONGEST_PATH - 1);
  for (let at = 0; at < length; at += 1) nameBuffer[at] = name.charCodeAt(at);
  nameBuffer[length] = 0;
  return ptr(nameBuffer);
}

function call(number: number, ...given: readonly number[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = given;
  const { syscall } = coldLibc();
  for (;;) {
    const value = Number(syscall(number, a, b, c, d, e, f));
    const outcome = value === -1 ? -errno() : value;
    if (outcome !== -EINTR) return outcome;
  }
}

export function closeQuietly(fd: number): void {
  // Nothing was written: there is no error that anybody could act on.
  if (fd >= 0) sys.close(fd);
}
