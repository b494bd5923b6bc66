/**
 * What a repair says on stderr beside its answer: what it could not do, and what a person can type
 * next. Pure text.
 */
import { renderKey } from "../core/lease-key.ts";
import { quoteForShell } from "../core/own-command.ts";
import { isLeftOver } from "./exit-code.ts";
import type { RepairAct, RepairLease, RepairOptions, RepairReport } from "./request.ts";

/** Why nothing can be done, or what is unusual about it. */
export const REASONS: Readonly<Record<string, string>> = {
  "owner-unseen": "the owner cannot be looked up from here",
  "owner-gone": "the owner has just ended; look again",
  "owner-of-another-user": "the owner is another user's and may not be signalled",
  "owner-is-ancestor": "this command is a part of that run",
  "owner-is-process-one": "the owner is process 1, which is ended from outside its container",
  "owner-is-self": "the owner is this process",
  "record-newer": "a newer version has written the record; use that one",
  "note-old": "the next run from here gets the key; who can see its processes has to judge them",
  "note-young": "the limit since the first look is not over yet",
  "tree-unread": "its processes could not be looked for; look again",
  unsignalable: "processes of it may not be signalled by this user",
  "ancestor-of-newcomer": "this command is below a process of it",
  "fenced-operation": "an operation is in progress under its fence, which ends by itself",
  "lock-unaskable": "the lock cannot be asked",
};

export function describeAfter(report: RepairReport, options: RepairOptions): string[] {
  if (report.mode === "dry-run") return [];
  const undone = report.acts.filter(({ end }) => end !== "done").flatMap(describeUndone);
  if (report.mode === "approve" && !report.isPlanKnown) {
    const line = `error: no plan has the id ${options.approve} now: the evidence has changed`;
    return [...undone, line, "hint: watchdog repair"];
  }
  const left =
    report.mode === "apply" ? report.leases.filter((one) => isLeftOver(one, report)) : [];
  return [...undone, ...left.flatMap(describeLeft)];
}

function describeUndone({ text }: RepairAct): string[] {
  return [`error: ${text}`];
}

const PAST = {
  repaired: "it was repaired",
  tried: "its processes were asked to end and did not",
} as const;

function describeLeft({ key, verdict, options, limit }: RepairLease): string[] {
  const name = renderKey(key);
  if (limit !== undefined) {
    const why =
      limit.because === "repair-interval"
        ? `${PAST[limit.end]} a moment ago, wait ${Math.ceil(limit.remainingMs / 1000)} s`
        : `it was repaired ${limit.count} times in a row, and no run of it has ended by itself`;
    return [`${name} was left as it is (${limit.because}): ${why}`, hint("lease", "explain", name)];
  }
  const why = `${verdict.name}, ${verdict.rule} ${verdict.because}`;
  const approvable = options.find(({ needs }) => needs === "approval");
  if (approvable === undefined) {
    const reasons = options.map(({ because }) => REASONS[because] ?? because).join(", ");
    return [`${name} was left as it is (${why}): ${reasons}`, hint("lease", "explain", name)];
  }
  return [
    `${name} was left as it is (${why}): a person has to approve what is done`,
    hint("repair", name),
  ];
}

/** Whoever prints it adds the place (os/say.ts). */
function hint(...words: string[]): string {
  return `hint: ${quoteForShell(["watchdog", ...words]) ?? "watchdog repair"}`;
}
