/**
 * The place of an artifact below a job's directory, reached name by name from the directory's own
 * descriptor. Guarantees: no link is followed below the directory, the way never leads out of it,
 * whatever is renamed or replaced meanwhile (O_NOFOLLOW at each name, no `..`). Reads no content.
 *
 * Clock: none. State after a crash: none.
 */
import type { ArtifactTrouble } from "../core/artifact.ts";
import { bytesOfText, type ByteText, showBytes } from "../core/byte-text.ts";
import { closeQuietly, openToPass, openTop, statEntry } from "../os/entries.ts";
import { ELOOP, ENOENT, ENOTDIR, nameErrno } from "../os/sys.ts";

/** Why a look has come to nothing: caught where a result is made of it. */
export class PlaceTrouble extends Error {
  readonly kind: ArtifactTrouble;

  constructor(kind: ArtifactTrouble, reason: string) {
    super(reason);
    this.name = "PlaceTrouble";
    this.kind = kind;
  }
}

export interface Place {
  /** Where the entry is; whoever has reached the place closes it. */
  readonly directory: number;
  readonly name: ByteText;
}

/**
 * @param directory  absolute, without a link in its last part
 * @param path  relative, normalized, as a job file has it
 * @throws PlaceTrouble where there is no such place: `missing`, `link`, `outside`, `unreadable`
 * @throws WatchdogError "os.no-ffi"
 */
export function reachPlace(directory: string, path: string): Place {
  const names = splitPath(path);
  const last = names.at(-1);
  if (last === undefined) throw new PlaceTrouble("outside", "the path names no file");
  let at = openTop(bytesOfText(directory));
  if (at < 0) throw new PlaceTrouble("unreadable", `the job's directory: ${nameErrno(at)}`);
  for (const name of names.slice(0, -1)) {
    const next = openToPass(at, name);
    const trouble = next < 0 ? explain(at, name, next) : undefined;
    closeQuietly(at);
    if (trouble !== undefined) throw trouble;
    at = next;
  }
  return { directory: at, name: last };
}

/** A NUL would end the name before its end. */
function splitPath(path: string): readonly ByteText[] {
  const names = path.split("/").map(bytesOfText);
  const isBelow = names.every((name) => name !== "" && name !== "." && name !== "..");
  if (isBelow && !path.includes("\0")) return names;
  throw new PlaceTrouble("outside", "the path is none below the job's directory");
}

/** ENOTDIR for a link too: opened without being followed, it is no directory. */
function explain(directory: number, name: ByteText, error: number): PlaceTrouble {
  const shown = showBytes(name);
  if (error === -ENOENT) return new PlaceTrouble("missing", `there is no directory '${shown}'`);
  const found = statEntry(directory, name);
  if (typeof found !== "number" && found.kind === "link") {
    return new PlaceTrouble("link", `'${shown}' on the way is a symbolic link`);
  }
  if (error === -ENOTDIR) return new PlaceTrouble("missing", `'${shown}' is no directory`);
  return new PlaceTrouble("unreadable", `'${shown}' on the way: ${nameErrno(error)}`);
}

/** An error of the system at an entry that was there a moment ago, or is the place itself. */
export function troubleAt(path: ByteText, error: number): PlaceTrouble {
  if (path === "" && error === -ENOENT) return new PlaceTrouble("missing", "is not there");
  const shown = path === "" ? "" : `'${showBytes(path)}' in it: `;
  const isGone = error === -ENOENT || error === -ENOTDIR || error === -ELOOP;
  return new PlaceTrouble(isGone ? "changing" : "unreadable", `${shown}${nameErrno(error)}`);
}
