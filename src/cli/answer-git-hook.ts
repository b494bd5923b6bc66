/**
 * `watchdog __git-hook`: hands the pieces of other rooms to the hook. Decides nothing.
 */
import { readFileSync } from "node:fs";
import type { Leaving } from "../core/outcome.ts";
import { gitHookCommand } from "../fence/git-hook.ts";
import { readLeases } from "../inspect/leases.ts";
import { checkPlace } from "../inspect/state.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { keptProcesses } from "../run/claim-for-run.ts";
import type { GitHookCut } from "./cut.ts";

export interface GitHookAround {
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  readonly environment: readonly Uint8Array[];
}

/** @throws WatchdogError as `gitHookCommand` */
export async function answerGitHook(cut: GitHookCut, around: GitHookAround): Promise<Leaving> {
  const { scanUrl, environment } = around;
  const { hook, words, keys } = cut;
  return gitHookCommand({
    findState: () => {
      const stateDirectory = resolveStateDirectory(cut.stateDir);
      checkPlace(stateDirectory);
      return stateDirectory;
    },
    environment,
    hook,
    words,
    keys,
    readInput: () => readFileSync(0, "utf8"),
    look: (stateDirectory, asked) => {
      const readKept = (runId: string) => keptProcesses(stateDirectory, runId);
      return readLeases({ stateDirectory, keys: asked }, { scanUrl, readKept });
    },
  });
}
