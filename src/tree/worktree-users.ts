/**
 * Who else works in a checkout, seen from this process: one look in a Worker, and the decision of
 * core/worktree-users.ts about what it has found. Signals nobody.
 *
 * Guarantees: an answer within the limit of the look, 5 s; an answer that is short because the
 * processes could not be read is `unread`. Non-guarantees: processes whose environment or places
 * are not ours to read are not found; it is a look and no lock. Clock: a timer of this thread.
 * State after a crash: none.
 */
import {
  decideWorktreeUsers,
  type WorktreeUser,
  type WorktreeView,
} from "../core/worktree-users.ts";
import type { WorktreeOrder, WorktreeScan } from "./worktree-places.ts";
import { findAncestors } from "./find.ts";

export type WorktreeQuestion = WorktreeOrder &
  Pick<WorktreeView, "sessionId" | "runsAround" | "spared" | "kept">;

/** @param look  `(order) => scanWorktreeInWorker(url, order)` */
export async function findWorktreeUsers(
  question: WorktreeQuestion,
  look: (order: WorktreeOrder) => Promise<WorktreeScan>,
): Promise<readonly WorktreeUser[] | "unread"> {
  const { topLevel, isStrict, ...known } = question;
  const scan = await look({ topLevel, isStrict });
  if (scan === "unread") return "unread";
  const ancestors = findAncestors();
  return decideWorktreeUsers({ ...scan, ...known, isStrict, self: process.pid, ancestors });
}
