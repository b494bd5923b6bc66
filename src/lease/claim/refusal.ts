/**
 * What a refused newcomer is told: one sentence that names the key, who has it, and what is in the
 * way. Pure text; decides nothing.
 */
import type { FoundProcess, LeaseEvidence, Repairer } from "../../core/evidence.ts";
import { type LeaseKey, renderKey } from "../../core/lease-key.ts";
import type { SecondLookRefusal } from "../../core/second-look.ts";
import type { WorktreeUser } from "../../core/worktree-users.ts";
import type { Refusal } from "./request.ts";
import type { Assessment } from "./assess.ts";

/** So many processes are named in a sentence; the rest is counted. */
const MOST_NAMED = 5;

/** What this room itself can refuse for, beside the reasons of core/newcomer.ts. */
export type ClaimReason =
  | "survivors-remain"
  | "fenced-operation"
  /** The operation is that which this run is part of. */
  | "fenced-around"
  | "repair-at-work";

/** A process as the sentences name it. */
type Named = Pick<FoundProcess, "pid" | "command">;

/** Why it is not the decision that refuses, where it is not. */
export interface OtherReason {
  readonly because: ClaimReason | undefined;
  readonly second: SecondLookRefusal | undefined;
  /** Who holds the fence, as far as that can be told. */
  readonly fencedBy: readonly Named[];
}

export function describeRefusal(
  assessment: Assessment,
  waitedMs: number,
  other: OtherReason,
): Refusal {
  const { because, second } = other;
  const { evidence, verdict, decision } = assessment;
  const isConfigError = decision.kind === "refuse" && decision.status === "config_error";
  const reason =
    second?.because ?? because ?? (decision.kind === "refuse" ? decision.because : verdict.because);
  const sentence =
    second === undefined ? SENTENCES[reason]?.(evidence, other) : describeSecondLook(second);
  return {
    key: evidence.key,
    evidence,
    verdict,
    status: isConfigError ? "config_error" : "locked",
    because: reason,
    users: second?.because === "worktree-in-use" ? second.users : [],
    fencedBy: other.fencedBy,
    text: `${show(evidence.key)} ${sentence ?? `is not to be had (${reason})`}`,
    waitedMs,
  };
}

function describeSecondLook(second: SecondLookRefusal): string {
  switch (second.because) {
    case "worktree-in-use":
      return `is worked in by others: ${nameUsers(second.users)}`;
    case "worktree-unread":
      return "is free, and who works in it could not be looked for";
    case "repair-at-work":
      return describeRepairer({ pid: second.pid });
    case "repair-cooldown": {
      const { plan_id, by, at } = second.repair;
      const seconds = Math.ceil(second.remainingMs / 1000);
      return (
        `is granted to nobody for ${seconds} s more: repair ${plan_id} by ${by} has ended its ` +
        `living owner at ${at}`
      );
    }
  }
}

function describeRepairer({ pid }: Repairer): string {
  const named = pid === null ? "" : ` (pid ${pid})`;
  return `is in the hands of watchdog repair${named}, which has not finished`;
}

function nameUsers(users: readonly WorktreeUser[]): string {
  const named = users.slice(0, MOST_NAMED).map(({ pid, command, runId, by, path }) => {
    const place = by === "cwd" ? `in ${path}` : `writes ${path}`;
    return `${pid} ${command} (${runId === null ? "" : `run ${runId}, `}${place})`;
  });
  return named.join(", ") + countMore(users.length);
}

function show(key: LeaseKey): string {
  return renderKey(key);
}

type Sentence = (evidence: LeaseEvidence, other: OtherReason) => string;

const SENTENCES: Readonly<Record<string, Sentence>> = {
  "lock-unaskable": ({ lock }) =>
    `cannot be asked for: ${lock.kind === "unaskable" ? lock.reason : "no answer"}`,
  "beat-fresh": (evidence) => describeHeld(evidence),
  "beat-unread": (evidence) => describeHeld(evidence),
  "beat-old": (evidence) =>
    whereOf(evidence) === undefined
      ? `is held by ${nameHolder(evidence)}, whose heartbeat is ${showAge(evidence)} old`
      : describeHeld(evidence),
  "being-acquired": ({ waitingStart: start }) =>
    start === undefined
      ? "is just being acquired by another run"
      : `is had by a start that waits for its dependencies (pid ${start.pid})`,
  "repair-at-work": ({ repairer }) => describeRepairer(repairer ?? { pid: null }),
  "held-by-run-around": (evidence) =>
    `is held by a run around this one: ${nameHolder(evidence)}; it would wait for itself`,
  "tree-unread": (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead, and its processes could not be looked for`,
  unsignalable: (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; ` +
    `its processes may not be signalled from here: ${nameMembers(evidence)}`,
  suspects: (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; ` +
    "these carry its id, may be its command, or cannot be read, and are not proven: " +
    nameSuspects(evidence),
  "ancestor-of-newcomer": (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; this run is below its processes: ` +
    nameMembers(evidence),
  "survivors-alive": (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; its processes live and are left alone, ` +
    `as --on-survivors says: ${nameMembers(evidence)}`,
  "survivors-remain": (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; these could not be ended: ` +
    nameMembers(evidence),
  "fenced-around": (_, { fencedBy }) =>
    "has an operation in progress under its fence, and this run is a part of it: it would wait " +
    `for itself${nameAfterColon(fencedBy)}`,
  "fenced-operation": (_, { fencedBy }) =>
    `has an operation in progress under its fence${nameAfterColon(fencedBy)}`,
  "other-machine": (evidence) => `${describeElsewhere(evidence)}, another machine`,
  "machine-unread": (evidence) => `${describeElsewhere(evidence)}, perhaps another machine`,
  "boot-unread": (evidence) => `${describeElsewhere(evidence)}; nothing tells in which boot`,
  "other-namespace": (evidence) =>
    `${describeElsewhere(evidence)} in a pid namespace that cannot be seen from here`,
  "namespace-unread": (evidence) =>
    `${describeElsewhere(evidence)} in a pid namespace that could not be read`,
  "members-not-compared": (evidence) =>
    `was left by ${nameHolder(evidence)}, which is dead; what its last heartbeat names cannot be ` +
    "compared with the processes seen from here",
  "owner-unread": (evidence) =>
    `${describeElsewhere(evidence)}; its lock file was replaced, and whether it lives is unknown`,
  "lock-replaced": (evidence) =>
    `belongs to ${nameHolder(evidence)}, which lives; its lock file was replaced`,
  "no-generation": ({ source }) =>
    `cannot be granted: nothing tells its last generation${
      source.kind === "unreadable" ? ` (${source.reason})` : ""
    }`,
};

function describeHeld(evidence: LeaseEvidence): string {
  const held = `is held by ${nameHolder(evidence)}`;
  const where = whereOf(evidence);
  if (where === undefined) return held;
  const { beatAgeMs } = evidence;
  const isReadable = beatAgeMs !== undefined && beatAgeMs >= 0;
  const beat = isReadable ? `is ${showAge(evidence)} old` : "has an age that cannot be told here";
  return (
    `${held} ${where}; that pid means nothing here, the kernel's lock settles it: ` +
    `taken while that run lives, free once it is gone; its last heartbeat ${beat}`
  );
}

/**
 * Of a pid that is not counted as we count: who looks for it here finds nobody, or somebody else.
 * Undefined: it is counted so, or only the beat tells of it.
 */
function whereOf(evidence: LeaseEvidence): string | undefined {
  const { record, recordedPids, namespaceContained } = evidence;
  if (record === undefined || recordedPids === "ours") return undefined;
  return recordedPids === "below-ours" || namespaceContained === "no"
    ? "in another pid namespace or container"
    : "whose processes cannot be compared with those seen from here";
}

function describeElsewhere(evidence: LeaseEvidence): string {
  return `was last held by ${nameHolder(evidence)}`;
}

/** Run, pid and person, as far as they are known. */
function nameHolder({ record, source }: LeaseEvidence): string {
  if (record !== undefined) {
    const { run_id, pid, runner, acquired_at } = record;
    return `run ${run_id} (pid ${pid}, ${runner}, since ${acquired_at})`;
  }
  return source.kind === "read" ? `run ${source.runId}` : "an unknown run";
}

function showAge({ beatAgeMs }: LeaseEvidence): string {
  return `${Math.round((beatAgeMs ?? 0) / 1000)} s`;
}

function nameMembers({ tree }: LeaseEvidence): string {
  return tree === "unread" ? "unknown" : nameProcesses(tree.members);
}

function nameSuspects({ tree }: LeaseEvidence): string {
  return tree === "unread" ? "unknown" : nameProcesses(tree.suspects);
}

/** Nothing where nobody can be named. */
export function nameAfterColon(processes: readonly Named[]): string {
  return processes.length === 0 ? "" : `: ${nameProcesses(processes)}`;
}

export function nameProcesses(processes: readonly Named[]): string {
  const named = processes.slice(0, MOST_NAMED).map(({ pid, command }) => `${pid} ${command}`);
  return named.join(", ") + countMore(processes.length);
}

function countMore(count: number): string {
  return count > MOST_NAMED ? ` and ${count - MOST_NAMED} more` : "";
}
