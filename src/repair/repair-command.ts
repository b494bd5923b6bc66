/**
 * `watchdog repair`: what is wrong with leases, and what may be done about it. Without `--apply`
 * and `--approve` it looks and changes nothing. One repair acts at a time.
 *
 * Guarantees: nothing is done without the right to it, without a line of the audit before it, and
 * beyond what core/repair-plan.ts allows; nothing is deleted. Clock: MONOTONIC, by the parts. Crash
 * behaviour: the next repair tells what this one has left, and finishes it or gives it up.
 */
import { EXIT, WatchdogError } from "../core/errors.ts";
import { codeOf, textOf } from "../lease/files/own-file.ts";
import { findRepairer } from "../lease/files/repairer.ts";
import { codeOfReport } from "./exit-code.ts";
import { describeAfter } from "./lines.ts";
import { type Mode, performRepair } from "./repair.ts";
import { takeRepairLock } from "./repair-lock.ts";
import type { RepairAnswer, RepairRequest } from "./request.ts";

export type {
  InterruptedAct,
  NamedOption,
  RepairAct,
  RepairAnswer,
  RepairLease,
  RepairOptions,
  RepairReport,
  RepairRequest,
} from "./request.ts";

/**
 * @throws WatchdogError "repair.unusable", "lease.unusable", "state.unusable" (125),
 *   "lease.refused" (78)
 */
export async function repairCommand(request: RepairRequest): Promise<RepairAnswer> {
  try {
    return await command(request);
  } catch (error) {
    if (error instanceof WatchdogError || codeOf(error) === "unknown") throw error;
    throw new WatchdogError("repair.unusable", textOf(error), { cause: error });
  }
}

async function command(request: RepairRequest): Promise<RepairAnswer> {
  const { options, stateDirectory } = request;
  const mode = modeOf(request);
  const missing = findMissingRight(request, mode);
  if (missing !== undefined) {
    return { lines: [`error: ${missing}`, "hint: watchdog doctor"], code: EXIT.refused };
  }
  if (mode === "dry-run") return report(request, mode, undefined);
  const lock = takeRepairLock(stateDirectory);
  if (lock === "no-state") return report(request, mode, undefined);
  if (lock === "busy") {
    const pid = findRepairer(stateDirectory)?.pid ?? null;
    const named = pid === null ? "" : ` (pid ${pid})`;
    const line = `error: another repair is at work in ${stateDirectory}${named}`;
    return { lines: [line, "hint: watchdog repair"], code: EXIT.locked };
  }
  try {
    return await report(request, mode, options);
  } finally {
    lock.release();
  }
}

/** @param locked  undefined: the lock of repairs is not ours */
async function report(
  request: RepairRequest,
  mode: Mode,
  locked: object | undefined,
): Promise<RepairAnswer> {
  const { options, stateDirectory } = request;
  const isLocked = locked !== undefined;
  const repairer = isLocked ? undefined : findRepairer(stateDirectory);
  const found = await performRepair(request, mode, { isLocked, repairer });
  const lines = [...found.troubles, ...describeAfter(found, options)];
  return { text: request.render(found, options), lines, code: codeOfReport(found) };
}

function modeOf({ options }: RepairRequest): Mode {
  if (options.approve !== undefined || options.setGeneration !== undefined) return "approve";
  return options.isApplying ? "apply" : "dry-run";
}

function findMissingRight(request: RepairRequest, mode: Mode): string | undefined {
  if (mode === "dry-run") return undefined;
  const answer = request.decideRight(mode === "approve" ? "approve" : "repair");
  return answer.kind === "granted" ? undefined : answer.what;
}
