/**
 * Old files of a lease, kept beside the new ones: a repair deletes nothing. `lease.json.kept-N`,
 * `lock.kept-N`, `fence.kept-N`, N from 1 on. Knows nothing of what is in them.
 *
 * Guarantees: nothing that was kept is written over; after `keepCopy` the old record is on the disk
 * twice. Non-guarantees: room for more than MOST_KEPT of one name. Clock: none. Crash behaviour: a
 * copy may be there whose original was not replaced.
 */
import { lstatSync, renameSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import { replaceFile, syncDirectory } from "../../os/files.ts";
import { fileModeAt } from "../../os/state-sharing.ts";
import { codeOf, readOwnFile } from "./own-file.ts";

/** A person looks long before. */
export const MOST_KEPT = 16;

export type Kept =
  | { readonly kind: "kept"; readonly path: string }
  | { readonly kind: "nothing-there" }
  /** All names are taken: a person has to move them away first. */
  | { readonly kind: "too-many" };

/**
 * Keeps a copy; the file itself stays, so that a reader always finds it.
 * @throws the error of the system call (ENOSPC …), with nothing changed
 * Blocks: two fsyncs.
 */
export function keepCopy(path: string, limitBytes: number): Kept {
  const file = readOwnFile(path, limitBytes);
  if (file.kind === "missing") return { kind: "nothing-there" };
  if (file.kind !== "read") return keepAside(path);
  const free = findFreeName(path);
  if (free === undefined) return { kind: "too-many" };
  replaceFile(free, new TextDecoder().decode(file.bytes), fileModeAt(free));
  return { kind: "kept", path: free };
}

/** Renames whatever stands there. @throws the error of the system call. Blocks: one fsync. */
export function keepAside(path: string): Kept {
  if (!isTaken(path)) return { kind: "nothing-there" };
  const free = findFreeName(path);
  if (free === undefined) return { kind: "too-many" };
  renameSync(path, free);
  syncDirectory(path.slice(0, path.lastIndexOf("/")));
  return { kind: "kept", path: free };
}

/** Whether what stands there, if anything does, could be kept now. @throws as `keepAside` */
export function hasRoomToKeep(path: string): boolean {
  return !isTaken(path) || findFreeName(path) !== undefined;
}

function findFreeName(path: string): string | undefined {
  const names = Array.from({ length: MOST_KEPT }, (_, index) => `${path}.kept-${index + 1}`);
  return names.find((name) => !isTaken(name));
}

function isTaken(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return false;
    throw new WatchdogError("lease.unusable", `${path} cannot be looked at: ${codeOf(cause)}`, {
      hint: `ls -l ${path}`,
      cause,
    });
  }
}
