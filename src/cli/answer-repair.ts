/**
 * `watchdog repair`: hands the pieces of other rooms to the repair, and its answer to whoever
 * prints it. Decides nothing.
 */
import type { PolicyFile } from "../core/policy.ts";
import type { RunRecord } from "../core/run-record.ts";
import { checkPlace } from "../inspect/state.ts";
import { askRight } from "../os/rights.ts";
import { say } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { takeUmaskOf } from "../os/state-sharing.ts";
import { repairCommand } from "../repair/repair-command.ts";
import { keptProcesses } from "../run/claim-for-run.ts";
import type { Answer } from "./answer.ts";
import type { RepairCut } from "./cut.ts";
import { renderRepair } from "./render-repair.ts";

export interface RepairAround {
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  /** Configuration files with a `[policy]`. */
  readonly policies: readonly PolicyFile[];
  readonly build: RunRecord["watchdog"];
}

export async function answerRepair(cut: RepairCut, around: RepairAround): Promise<Answer> {
  const stateDirectory = resolveStateDirectory(cut.stateDir);
  checkPlace(stateDirectory);
  takeUmaskOf(stateDirectory);
  const { scanUrl, policies, build } = around;
  return repairCommand({
    stateDirectory,
    options: cut,
    scanUrl,
    readKept: (runId) => keptProcesses(stateDirectory, runId),
    decideRight: (right) => askRight(right, stateDirectory, policies),
    build,
    onStep: (line) => say(`watchdog: ${line}`),
    render: renderRepair,
  });
}
