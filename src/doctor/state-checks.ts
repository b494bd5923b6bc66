/**
 * What a state directory needs of its file system: room, files that appear whole, numbers that are
 * given once; and its journal. Decides nothing about leases.
 *
 * Always: files are tried under names of their own, and removed. Clock: none. State after a crash:
 * a `.doctor-….tmp` may remain.
 */
import { closeSync, fstatSync, lstatSync, readFileSync, statfsSync, unlinkSync } from "node:fs";
import { examineJournal, examineSpool } from "../journal/examine.ts";
import { LEAST_ROOM_BYTES } from "../journal/room.ts";
import { MOST_FILES } from "../journal/spool.ts";
import { describeTrouble, isTrouble, type Trouble } from "../journal/trouble.ts";
import { replaceFile } from "../os/files.ts";
import { createStateFile, sharingOf } from "../os/state-sharing.ts";
import { type Finding, finding, note, ok, textOf, unknown } from "./request.ts";

/** A run needs about ten files. */
const LEAST_INODES = 100n;
const MIB = 1_048_576n;

/** By what an ordinary user may still write. */
export function checkRoom(directory: string): Finding {
  const { blocks, bavail, bsize, files, ffree } = statfsSync(directory, { bigint: true });
  const bytes = bavail * bsize;
  const isCounted = blocks > 0n;
  const room = isCounted ? `${bytes / MIB} MiB` : "no limit of bytes";
  const seen = `${room} and ${files > 0n ? `${ffree} files` : "no limit of files"} are free`;
  if (isCounted && bytes < BigInt(LEAST_ROOM_BYTES)) {
    return finding(`${seen}: the journal is not written below 1 MiB`, "free some room there");
  }
  if (files > 0n && ffree < LEAST_INODES) return finding(seen, "remove files there (df -i)");
  return ok(seen);
}

/** As grants are written: a number is a name that is created once, a record is renamed. */
export function checkFiles(directory: string): Finding {
  const name = `${directory}/.doctor-${crypto.randomUUID()}`;
  const [reserved, record] = [`${name}.number.tmp`, `${name}.record.tmp`];
  try {
    const trouble = reserveTwice(reserved) ?? replaceTwice(record);
    return trouble ?? ok("written, fsynced and renamed; a name is created once");
  } catch (error) {
    return finding(
      `files cannot be written there: ${textOf(error)}`,
      "look at the mode, the mount and the room of the state directory",
    );
  } finally {
    for (const path of [reserved, record]) removeIfThere(path);
  }
}

const OTHER_FILE_SYSTEM = "put the state directory on another file system (--state-dir)";

function reserveTwice(path: string): Finding | undefined {
  const { fileMode } = sharingOf(path.slice(0, path.lastIndexOf("/")));
  const fd = createStateFile(path);
  const mode = fstatSync(fd).mode & 0o777;
  closeSync(fd);
  if (mode !== fileMode) {
    const found = `a file gets mode ${mode.toString(8)}, expected ${fileMode.toString(8)}`;
    return finding(found, OTHER_FILE_SYSTEM);
  }
  try {
    closeSync(createStateFile(path));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
    throw error;
  }
  return finding("a name could be created twice", OTHER_FILE_SYSTEM);
}

function replaceTwice(path: string): Finding | undefined {
  const { fileMode } = sharingOf(path.slice(0, path.lastIndexOf("/")));
  for (const content of ["one\n", "two\n"]) {
    replaceFile(path, content, fileMode);
    if (readFileSync(path, "utf8") !== content) {
      return finding("a file that was renamed into place has another content", OTHER_FILE_SYSTEM);
    }
  }
  return undefined;
}

function removeIfThere(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) unlinkSync(path);
}

/** The journal is never in the way of a run; without it nobody knows tomorrow what ran tonight. */
export function checkJournal(stateDirectory: string): Finding {
  const found = examineJournal(stateDirectory);
  const spool = examineSpool(stateDirectory);
  if (isTrouble(found) && found.kind !== "missing") return judgeTrouble(found);
  if (spool.refusal !== undefined) return finding(spool.refusal, "move it out of the way");
  if (spool.bad > 0) {
    return finding(`${spool.bad} files in spool/ could not be read`, "look at spool/*.bad");
  }
  if (spool.waiting >= MOST_FILES / 2) {
    const advice = "watchdog history (it reads them in, and says what is in the way)";
    return finding(`${spool.waiting} writes wait in spool/, at most ${MOST_FILES} do`, advice);
  }
  if (isTrouble(found)) return ok("there is none yet");
  if (found.faults.length > 0) {
    const [first = ""] = found.faults;
    return finding(`journal.db is broken: ${first}`, "the next run keeps it aside and begins anew");
  }
  if (found.decision === "newer" || found.decision === "unknown") {
    return finding(`journal.db is of version ${found.version}`, "use the newest watchdog here");
  }
  const seen = `whole, version ${found.version}`;
  return spool.waiting === 0 ? ok(seen) : note(`${seen}, ${spool.waiting} writes wait in spool/`);
}

function judgeTrouble(trouble: Trouble): Finding {
  const seen = describeTrouble(trouble);
  if (trouble.kind === "busy") return unknown(seen, "ask again in a moment");
  if (trouble.kind === "newer") return finding(seen, "use the newest watchdog here");
  if (trouble.kind === "corrupt") {
    return finding(seen, "the next run keeps it aside and begins anew");
  }
  return finding(seen, "look at journal.db: owner, mode, kind, room");
}
