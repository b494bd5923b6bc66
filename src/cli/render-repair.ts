/**
 * `watchdog repair` for people and for machines: the evidence about each suspicious lease, what may
 * be done with the line that does it, and what was done. Pure text from a report; decides nothing.
 */
import { renderKey } from "../core/lease-key.ts";
import { escapeUnprintable } from "../core/printable.ts";
import { isFenced, isSuspicious, type RepairAction } from "../core/repair-plan.ts";
import { showLease } from "../inspect/lease-facts.ts";
import { ownLine } from "../os/own-line.ts";
import type {
  InterruptedAct,
  NamedOption,
  RepairAct,
  RepairLease,
  RepairOptions,
  RepairReport,
} from "../repair/repair-command.ts";
import { REASONS } from "../repair/lines.ts";
import { renderLeaseBlock } from "./render-lease.ts";
import { renderInstant, renderJson, renderLines, renderSpanText } from "./render-words.ts";

export const ACTIONS: Readonly<Record<RepairAction, string>> = {
  "continue-owner": "continue the stopped owner (SIGCONT)",
  "end-owner": "end the living owner and its processes, prove it dead, free the key",
  "end-survivors": "end the processes that the dead owner has left, free the key",
  "end-suspects": "end these processes, proven and not proven ones, free the key",
  mark: "mark the last generation as over, free the key",
  note: "note the time; it can be marked when nothing was heard for the whole limit",
  "set-aside-lock": "rename what stands in the place of the lock or the fence",
  "set-generation": "begin the record anew with a generation that you give",
  none: "nothing can be done from here",
};

export function renderRepair(report: RepairReport, options: RepairOptions): string {
  return options.isJson ? renderJson(showRepair(report)) : renderText(report);
}

function renderText(report: RepairReport): string {
  const busy = report.isBusy ? [["another repair is at work at this moment"]] : [];
  const interrupted = report.interrupted.map((one) => [describeInterrupted(one)]);
  const leases = report.leases.map((lease) => renderLease(lease, report));
  const beside = report.isBusy ? " beside that" : "";
  const nothing = report.leases.length === 0 ? [[`nothing is to be repaired${beside}`]] : [];
  const acts = report.acts.length === 0 ? [] : [report.acts.map(describeAct)];
  const blocks = [...busy, ...interrupted, ...leases, ...nothing, ...acts];
  return blocks.map(renderLines).join("\n");
}

function describeInterrupted({ act, settled, askedRun }: InterruptedAct): string {
  const { planId, key, action, who, at, pid } = act;
  const what = `repair ${planId} of ${key} (${action}, by ${who})`;
  if (settled === "at-work") {
    return escapeUnprintable(`${what} is at work since ${renderInstant(at)} (pid ${pid})`);
  }
  const stop = askedRun === undefined ? undefined : ownLine(["stop", askedRun]);
  const next =
    stop === undefined
      ? SETTLED[settled]
      : `; its owner was asked to end and still has the key: ${stop}`;
  return escapeUnprintable(`${what} was interrupted at ${renderInstant(at)}${next}`);
}

const SETTLED: Readonly<Record<Exclude<InterruptedAct["settled"], "at-work">, string>> = {
  open: "",
  completed: "; it was complete but for its last line, which is written now",
  "given-up": "; what is left of it is judged anew",
};

function renderLease(lease: RepairLease, report: RepairReport): string[] {
  const { evidence, verdict, key, limit } = lease;
  const isPlanned = report.mode === "dry-run";
  return [
    ...renderLeaseBlock({ key, evidence, verdict }),
    ...(isPlanned ? lease.options.flatMap((option) => describeOption(lease, option)) : []),
    ...(limit === undefined ? [] : [`  stopped   ${describeLimit(limit)}`]),
  ];
}

function describeOption(lease: RepairLease, option: NamedOption): string[] {
  const { action, because } = option;
  if (action === "none" && !isSuspicious(lease.verdict) && !isFenced(lease)) {
    return ["  plan      nothing has to be done"];
  }
  if (action === "none") {
    return [`  plan      ${ACTIONS.none}: ${REASONS[because] ?? because}`];
  }
  const line = lineFor(lease, option);
  return [
    `  plan      ${option.planId ?? "-"}  ${ACTIONS[action]} (${because})`,
    ...(line === undefined ? [] : [`            ${line}`]),
  ];
}

/** What does it, to be pasted. */
function lineFor({ key, leastGeneration }: RepairLease, option: NamedOption): string | undefined {
  const words = ["repair", renderKey(key)];
  if (option.needs === "apply") return ownLine([...words, "--apply"]);
  if (option.action === "set-generation") {
    return ownLine([...words, "--set-generation", String(leastGeneration ?? 1)]);
  }
  return ownLine([...words, "--approve", option.planId ?? ""]);
}

function describeLimit(limit: NonNullable<RepairLease["limit"]>): string {
  if (limit.because === "repair-interval") {
    const what = limit.end === "repaired" ? "repaired" : "tried in vain";
    return `${what} a moment ago; --apply acts again in ${renderSpanText(limit.remainingMs)}`;
  }
  return `repaired ${limit.count} times in a row, and no run has ended by itself: look at the job`;
}

function describeAct({ end, text, planId }: RepairAct): string {
  const id = planId === null ? "" : ` (plan ${planId})`;
  return escapeUnprintable(`${end}: ${text}${id}`);
}

/** A contract; ignore unknown fields. */
export function showRepair(report: RepairReport): Record<string, unknown> {
  return {
    format: 1,
    state_directory: report.stateDirectory,
    mode: report.mode,
    is_busy: report.isBusy,
    leases: report.leases.map(showRepairLease),
    interrupted: report.interrupted.map(showInterrupted),
    acts: report.acts.map(showAct),
    troubles: report.troubles,
  };
}

function showRepairLease(lease: RepairLease): Record<string, unknown> {
  const { key, evidence, verdict, facts, limit } = lease;
  return {
    ...showLease({ key, evidence, verdict }),
    lock_file: facts.lockFile,
    fence_file: facts.fenceFile,
    record_file: facts.recordFile,
    owner_state: facts.owner.state,
    owner_signal: facts.owner.signal,
    plans: lease.options.map(({ planId, action, needs, because }) => ({
      plan_id: planId,
      action,
      needs,
      because,
    })),
    least_generation: lease.leastGeneration ?? null,
    stopped_by: limit?.because ?? null,
    stopped_for_ms: limit?.because === "repair-interval" ? Math.ceil(limit.remainingMs) : null,
  };
}

function showInterrupted(interrupted: InterruptedAct): Record<string, unknown> {
  const { act, settled, askedRun } = interrupted;
  return {
    plan_id: act.planId,
    key: act.key,
    generation: act.generation,
    action: act.action,
    by: act.who,
    pid: act.pid,
    at: new Date(act.at).toISOString(),
    settled,
    asked_run_id: askedRun ?? null,
  };
}

function showAct({ key, action, planId, end, because, text }: RepairAct): Record<string, unknown> {
  return { key: renderKey(key), action, plan_id: planId, end, because, text };
}
