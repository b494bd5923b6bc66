/**
 * The second look of a run: which directory a key stands for, and who works in it but us. Decides
 * nothing.
 */
import { isAbsolute } from "node:path";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { SecondLooker } from "../lease/claim/request.ts";
import type { WorktreeKey } from "../lease/worktree-place.ts";
import { scanWorktreeInWorker, tryTwice } from "../tree/scan-handle.ts";
import { findWorktreeUsers } from "../tree/worktree-users.ts";
import type { Course } from "./course.ts";
import { keptProcesses } from "./kept-registry.ts";
import { readOwnSelf } from "./own-self.ts";

/** @param worktree  of `--worktree`; its key may have the name of another path to the tree */
export function makeSecondLooker(course: Course, worktree: WorktreeKey | undefined): SecondLooker {
  const { options, request, runsAround, stateDirectory } = course;
  return {
    repairCooldownMs: options.repairCooldownMs,
    usersOf: async (key, spared) => {
      const topLevel = topLevelOf(key, worktree);
      if (topLevel === undefined) return [];
      return findWorktreeUsers(
        {
          topLevel,
          isStrict: options.isStrictWorktree,
          sessionId: readOwnSelf().sessionId,
          runsAround,
          spared,
          kept: (runId) => keptProcesses(stateDirectory, runId),
        },
        (order) => tryTwice(() => scanWorktreeInWorker(request.workerUrls.scan, order)),
      );
    },
  };
}

/** Undefined: `--lock worktree:NAME` with a name that is no path, so that nobody can be in it. */
function topLevelOf(key: LeaseKey, worktree: WorktreeKey | undefined): string | undefined {
  if (worktree !== undefined && renderKey(worktree.key) === renderKey(key)) {
    return worktree.worktree;
  }
  return isAbsolute(key.name) ? key.name : undefined;
}
