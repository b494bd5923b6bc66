/**
 * What is said about the results of a run: one line each. Pure text.
 */
import { nameCheck, showSuspicion } from "../../core/check-words.ts";
import type { CheckResult } from "../../core/checks.ts";
import type { RunRecord } from "../../core/run-record.ts";
import type { Suspicion } from "../../core/suspicion.ts";

/** What a person must know: each check that has failed, and what is far from usual. */
export function tellResults(
  { checks, suspicions }: Pick<RunRecord, "checks" | "suspicions">,
  {
    isVerbose,
    isSuspicionTold,
  }: { readonly isVerbose: boolean; readonly isSuspicionTold: boolean },
): readonly string[] {
  const passed = checks.filter((check) => check.passed && isVerbose);
  const failed = checks.filter(({ passed }) => !passed);
  const isStrict = failed.some(({ check }) => check === "strict");
  return [
    ...passed.map(showPassedCheck),
    ...failed.map(showFailedCheck),
    ...(isSuspicionTold && !isStrict ? suspicions.map(showSuspicious) : []),
  ];
}

/** `check failed: --expect-file out: …; expected …` */
function showFailedCheck(result: CheckResult): string {
  const { found, expected } = result;
  return `watchdog: check failed: ${nameCheck(result)}: found ${found}; expected ${expected}`;
}

function showPassedCheck(result: CheckResult): string {
  return `watchdog: check passed: ${nameCheck(result)}: found ${result.found}`;
}

function showSuspicious(suspicion: Suspicion): string {
  const { found, expected } = showSuspicion(suspicion);
  return `watchdog: suspicious: ${found}; usual: ${expected}; hint: --strict makes it a failure`;
}
