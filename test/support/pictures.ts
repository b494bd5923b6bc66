/**
 * What there is before something happens and after: every file of a state directory byte by byte,
 * and processes that must go on. Looks only.
 *
 * Always: a file that was written, replaced, renamed, truncated, touched or given another mode is
 * another file in the picture; so is a directory in which something came or went.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readStatusLine } from "./processes.ts";

/** By its path in the state directory: one line that tells all about it. */
export type Picture = Readonly<Record<string, string>>;

/** The journal itself is not in it: `journal.db` and what SQLite puts beside it. */
export function pictureOf(stateDirectory: string): Picture {
  const picture: Record<string, string> = {};
  const look = (path: string, shown: string): void => {
    picture[shown] = describe(path, shown === ".");
    if (!lstatSync(path).isDirectory()) return;
    for (const name of readdirSync(path).sort()) {
      const isJournal = shown === "." && name.startsWith("journal.db");
      if (!isJournal) look(`${path}/${name}`, shown === "." ? name : `${shown}/${name}`);
    }
  };
  look(stateDirectory, ".");
  return picture;
}

/** The times of the state directory itself change with the files of the journal. */
function describe(path: string, isTop: boolean): string {
  const found = lstatSync(path, { bigint: true });
  const { ino, mode, uid, gid } = found;
  const who = `${ino} ${mode.toString(8)} ${uid}:${gid}`;
  if (isTop) return who;
  const times = `${found.mtimeNs} ${found.ctimeNs}`;
  if (found.isDirectory()) return `${who} ${times} directory`;
  const file = `${who} ${times} ${found.nlink} ${found.size}`;
  if (found.isSymbolicLink()) return `${file} -> ${readlinkSync(path)}`;
  return found.isFile() ? `${file} ${readFileSync(path, "latin1")}` : `${file} special`;
}

export interface Difference {
  readonly added: readonly string[];
  readonly gone: readonly string[];
  readonly changed: readonly string[];
}

export const NO_DIFFERENCE: Difference = { added: [], gone: [], changed: [] };

/** Paths, in their order. A directory has changed only where nothing new lies in it. */
export function compare(before: Picture, after: Picture): Difference {
  const added = Object.keys(after).filter((path) => !(path in before));
  const hasNew = (path: string): boolean =>
    added.some((one) => one.startsWith(`${path}/`) && !one.slice(path.length + 1).includes("/"));
  const isSame = (path: string): boolean =>
    before[path] === after[path] ||
    (hasNew(path) &&
      after[path]?.endsWith("directory") === true &&
      whoOf(before, path) === whoOf(after, path));
  const common = Object.keys(after).filter((path) => path in before);
  return {
    added: added.sort(),
    gone: Object.keys(before)
      .filter((path) => !(path in after))
      .sort(),
    changed: common.filter((path) => !isSame(path)).sort(),
  };
}

/** Inode, mode and owner. */
function whoOf(picture: Picture, path: string): string {
  return (picture[path] ?? "").split(" ", 3).join(" ");
}

/** Processes by pid: since when each lives, and whether it is stopped; undefined: it is gone. */
export function lookAt(pids: readonly number[]): Record<number, string | undefined> {
  return Object.fromEntries(pids.map((pid) => [pid, lifeOf(pid)]));
}

function lifeOf(pid: number): string | undefined {
  const state = readStatusLine(pid, "State");
  if (state === undefined || /^[ZX]/.test(state)) return undefined;
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return `since ${fields[19]}${state.startsWith("T") ? ", stopped" : ""}`;
}
