/**
 * With which status a repair leaves: 0 answered, 75 somebody else is at it, 77 a person or a right
 * is missing, 78 a person must change something, 125 the system said no. Pure.
 */
import { EXIT } from "../core/errors.ts";
import { isSuspicious } from "../core/repair-plan.ts";
import type { ActReason, RepairAct, RepairLease, RepairReport } from "./request.ts";

/** Reasons of what was not done, by what it takes; what is missing here is 125. */
const STATUS: Readonly<Partial<Record<ActReason, number>>> = {
  "evidence-changed": EXIT.refused,
  "survivors-remain": EXIT.refused,
  "owner-unsignalable": EXIT.refused,
  "owner-still-stopped": EXIT.refused,
  "owner-gone": EXIT.refused,
  "generation-too-small": EXIT.refused,
  "generation-known": EXIT.refused,
  "lock-busy": EXIT.locked,
  "fenced-operation": EXIT.locked,
  "lock-unaskable": EXIT.config_error,
  "too-many-kept": EXIT.config_error,
};

export function codeOfReport(report: RepairReport): number {
  if (report.mode === "dry-run") return EXIT.ok;
  if (report.mode === "approve" && !report.isPlanKnown) return EXIT.refused;
  const failures = report.acts.filter(({ end }) => end !== "done").map(statusOf);
  if (failures.length > 0) return Math.max(...failures);
  const isLeft = report.mode === "apply" && report.leases.some((one) => isLeftOver(one, report));
  return isLeft ? EXIT.refused : EXIT.ok;
}

function statusOf({ because }: RepairAct): number {
  return STATUS[because] ?? EXIT.wrapper_error;
}

/** Suspicious, and nothing was done about it: a person is needed, unless time alone does it. */
export function isLeftOver(lease: RepairLease, { acts }: Pick<RepairReport, "acts">): boolean {
  const isDone = acts.some(({ key }) => key.kind === lease.key.kind && key.name === lease.key.name);
  const isWaiting = lease.options.every(
    ({ action, because }) =>
      because === "note-young" || (action === "none" && because === "note-old"),
  );
  return isSuspicious(lease.verdict) && !isDone && !isWaiting;
}
