/**
 * Which processes are at work in a checkout: by their working directory, or by a regular file below
 * its top level that they have open for writing. Read only; who of them counts is decided in
 * core/worktree-users.ts.
 *
 * A place belongs to the nearest top level above it, told by device and inode, so that a linked
 * worktree or a submodule below is another checkout, and a bind mount of the whole is the same one.
 * Non-guarantees: a bind mount of a part, a file that is only mapped, a process whose `cwd` and
 * `fd` are not ours to read. Files in a `.git` tell nothing: linked worktrees write there for
 * another. Clock: none. State after a crash: none.
 */
import { dirname } from "node:path";
import type { SeenProcess } from "../core/survivors-view.ts";
import type { PlaceInWorktree } from "../core/worktree-users.ts";
import { readCommand, readStat } from "../os/proc.ts";
import { isDeadState } from "../os/proc-look.ts";
import {
  identifyPath,
  isWritableFile,
  listOpenFiles,
  readMountNamespace,
  readWorkingDirectory,
} from "../os/proc-places.ts";
import type { ScanResult } from "./scan.ts";

export interface WorktreeOrder {
  /** The real path of the top level, as seen from here. */
  readonly topLevel: string;
  /** Everybody is looked at, and not only those that carry a cookie. */
  readonly isStrict: boolean;
}

export type WorktreeScan =
  | {
      readonly processes: readonly SeenProcess[];
      readonly places: readonly PlaceInWorktree[];
    }
  /** The processes could not be read as a whole. */
  | "unread";

/** Waits for ever where a file server hangs: in a Worker only. */
export function addPlaces(processes: ScanResult, order: WorktreeOrder): WorktreeScan {
  if (processes === "unread") return "unread";
  try {
    const checkout = new Checkout(order.topLevel);
    const isOfInterest = ({ runPath, state, isKernelThread }: SeenProcess): boolean =>
      (order.isStrict || (runPath !== "unread" && runPath.length > 0)) &&
      !isKernelThread &&
      !isDeadState(state);
    const asked = processes.filter(isOfInterest);
    return { processes, places: asked.flatMap((seen) => findPlace(seen, checkout) ?? []) };
  } catch {
    return "unread"; // EMFILE, ENFILE, ENOMEM: a part of the places would be a wrong answer
  }
}

/** The first that is found: the working directory, or else a file. */
function findPlace(
  { pid, startTicks }: SeenProcess,
  checkout: Checkout,
): PlaceInWorktree | undefined {
  const root = rootOf(pid);
  const cwd = readWorkingDirectory(pid);
  const found =
    cwd !== undefined && checkout.has(cwd, root)
      ? { by: "cwd" as const, path: cwd }
      : findFile(pid, checkout, root);
  // Another process with its pid by now has other places.
  if (found === undefined || readStat(pid)?.startTicks !== startTicks) return undefined;
  return { pid, start_time: startTicks, command: readCommand(pid), ...found };
}

function findFile(
  pid: number,
  checkout: Checkout,
  root: string,
): Pick<PlaceInWorktree, "by" | "path"> | undefined {
  const file = listOpenFiles(pid).find(
    ({ fd, path }) =>
      !path.includes("/.git/") && checkout.has(dirname(path), root) && isWritableFile(pid, fd),
  );
  return file === undefined ? undefined : { by: "file", path: file.path };
}

/** Paths of a process in a mount namespace of its own (a container) are those of that one. */
function rootOf(pid: number): string {
  const theirs = readMountNamespace(pid);
  const isElsewhere = theirs !== undefined && theirs !== ownNamespace();
  return isElsewhere ? `/proc/${pid}/root` : "";
}

let own: string | undefined;

function ownNamespace(): string | undefined {
  own ??= readMountNamespace("self");
  return own;
}

/** One top level, and what is known of the directories that were asked for. */
class Checkout {
  readonly #inode: string | undefined;
  readonly #known = new Map<string, boolean>();

  constructor(topLevel: string) {
    this.#inode = identifyPath(topLevel);
  }

  /**
   * Whether the checkout of this directory is the one. A directory that is gone counts as where it
   * was.
   *
   * @param root  where its path begins, as seen from here
   */
  has(directory: string, root: string): boolean {
    if (this.#inode === undefined) return false; // no such directory, and so nobody in it
    const path = root + directory;
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const answer = this.#ask(directory, root);
    this.#known.set(path, answer);
    return answer;
  }

  #ask(directory: string, root: string): boolean {
    if (identifyPath(root + directory) === this.#inode) return true;
    const isTop = identifyPath(`${root}${directory}/.git`) !== undefined;
    const above = dirname(directory);
    return !isTop && above !== directory && this.has(above, root);
  }
}
