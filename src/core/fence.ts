/**
 * Whether an operation may run under the fence of a lease: who asks for what (from the environment
 * of its run), and whether what the lease's files and its lock say is still that run. Pure; opens
 * no file and asks no lock.
 *
 * Always: it fails closed. What is missing, unreadable or of somebody else refuses, and nothing but
 * the lock of a living owner, together with a record that names a run around the one who asks,
 * allows.
 */
import type { ExitName } from "./errors.ts";
import { splitRunPath } from "./environment-entries.ts";
import type { Fact, LockAnswer } from "./evidence.ts";
import { decodeKeys, type LeaseKey, orderKeys, renderKey } from "./lease-key.ts";
import type { LeaseRecord } from "./lease-record.ts";
import type { Leaving } from "./outcome.ts";
import type { CommandEnd } from "./run-state.ts";

/** What the environment says about the runs around a process, as it stands there. */
export interface FenceEnvironment {
  /** WATCHDOG_RUN_PATH */
  readonly runPath: string | undefined;
  /** WATCHDOG_LEASE */
  readonly leases: string | undefined;
  /** WATCHDOG_GENERATION */
  readonly generations: string | undefined;
}

/** What somebody says to have: a key, as one of these runs. */
export interface FenceClaim {
  readonly key: LeaseKey;
  /** The record must name one of them: the runs around who asks. */
  readonly runIds: readonly string[];
  /** The run that the environment was made for. */
  readonly innermost: string;
  /** The number that the environment has for this key; undefined: it does not list the key. */
  readonly generation: number | undefined;
}

export type FenceReason =
  | "outside-any-run"
  | "no-lease"
  | "environment-broken"
  | "fence-missing"
  | "fence-busy"
  | "record-missing"
  | "record-unreadable"
  | "record-of-another-key"
  | "released"
  | "other-run"
  | "other-generation"
  | "owner-dead"
  | "lock-replaced"
  | "lock-unaskable";

export type ClaimsDecision =
  | { readonly kind: "claims"; readonly claims: readonly FenceClaim[] }
  | { readonly kind: "refuse"; readonly because: FenceReason };

/**
 * What is claimed, in the one order of keys.
 * @param asked  `--key`; empty: all leases that the environment lists, which are those of the
 *   innermost run or, in a step of a job, of the job
 */
export function decideClaims(
  environment: FenceEnvironment,
  asked: readonly LeaseKey[],
): ClaimsDecision {
  const runPath = splitRunPath(environment.runPath);
  const innermost = runPath.at(-1);
  if (innermost === undefined) return { kind: "refuse", because: "outside-any-run" };
  const numbers = readNumbers(environment);
  if (numbers === undefined) return { kind: "refuse", because: "environment-broken" };
  if (asked.length === 0 && numbers.size === 0) return { kind: "refuse", because: "no-lease" };
  const keys = asked.length > 0 ? asked : [...numbers.values()].map(({ key }) => key);
  const claims = orderKeys(keys).map((key): FenceClaim => {
    const generation = numbers.get(renderKey(key))?.generation;
    return { key, runIds: runPath, innermost, generation };
  });
  return { kind: "claims", claims };
}

interface NumberedKey {
  readonly key: LeaseKey;
  readonly generation: number;
}

/** By the text of the key; undefined: the two lists are not what watchdog has written. */
function readNumbers(environment: FenceEnvironment): ReadonlyMap<string, NumberedKey> | undefined {
  const words = listWords(environment.leases);
  const numbers = listWords(environment.generations);
  const byText = new Map<string, NumberedKey>();
  for (const [index, word] of words.entries()) {
    const [key] = decodeKeys(word);
    const generation = readGeneration(numbers[index]);
    if (key === undefined || generation === undefined) return undefined;
    byText.set(renderKey(key), { key, generation });
  }
  return words.length === numbers.length && byText.size === words.length ? byText : undefined;
}

function listWords(text: string | undefined): string[] {
  return text === undefined || text === "" ? [] : text.split(" ");
}

function readGeneration(word: string | undefined): number | undefined {
  if (word === undefined || !/^[1-9][0-9]{0,15}$/.test(word)) return undefined;
  return Number.isSafeInteger(Number(word)) ? Number(word) : undefined;
}

/** What the record of a lease was read as. */
export type FencedRecord =
  | { readonly kind: "none" }
  | { readonly kind: "unreadable"; readonly reason: string }
  | { readonly kind: "newer"; readonly format: number }
  | { readonly kind: "read"; readonly record: LeaseRecord };

export type RecordDecision =
  | {
      readonly kind: "current";
      readonly generation: number;
      readonly runId: string;
      readonly record: LeaseRecord;
    }
  | { readonly kind: "refuse"; readonly because: FenceReason };

/** F2: whether the record still names the run that claims the key, and its number. */
export function decideFenceRecord(claim: FenceClaim, found: FencedRecord): RecordDecision {
  if (found.kind === "none") return { kind: "refuse", because: "record-missing" };
  if (found.kind !== "read") return { kind: "refuse", because: "record-unreadable" };
  const { record } = found;
  const { generation, run_id: runId } = record;
  if (record.kind !== claim.key.kind || record.name !== claim.key.name) {
    return { kind: "refuse", because: "record-of-another-key" };
  }
  if (!claim.runIds.includes(runId)) return { kind: "refuse", because: "other-run" };
  const isNumbered = claim.generation !== undefined || runId === claim.innermost;
  if (isNumbered && generation !== claim.generation) {
    return { kind: "refuse", because: "other-generation" };
  }
  if (record.state !== "held") return { kind: "refuse", because: "released" };
  return { kind: "current", generation, runId, record };
}

export type LockDecision =
  { readonly kind: "held" } | { readonly kind: "refuse"; readonly because: FenceReason };

/**
 * F3: the lock must be taken, and the owner not known to be dead: a newcomer may have it by now. Of
 * an owner that cannot be asked for, the lock alone tells; a newcomer that has it cannot grant
 * itself anything while the fence is held.
 * @param isRecorded  whether the lock that was asked is the one that the record names; if it is
 *   not, that it is free tells nothing about the owner
 */
export function decideFenceLock(
  lock: LockAnswer,
  { isRecorded, ownerAlive }: { readonly isRecorded: Fact; readonly ownerAlive: Fact },
): LockDecision {
  if (lock.kind === "unaskable") return { kind: "refuse", because: "lock-unaskable" };
  if (ownerAlive === "no") return { kind: "refuse", because: "owner-dead" };
  if (lock.kind === "held") return { kind: "held" };
  return { kind: "refuse", because: isRecorded === "no" ? "lock-replaced" : "owner-dead" };
}

/** 75 where it may be different in a moment; all else is 76: the lease is not ours (any more). */
export function exitOfFence(because: FenceReason): ExitName {
  return because === "fence-busy" ? "locked" : "lease_lost";
}

export interface OperationFacts {
  /** Undefined: it outlived even KILL. */
  readonly end: CommandEnd | undefined;
  /** `--timeout` was reached before it had ended. */
  readonly isTimedOut: boolean;
}

/** How `fence` leaves: as the operation did, unless a limit has ended it. */
export function decideFenceLeaving({ end, isTimedOut }: OperationFacts, timeout: number): Leaving {
  if (isTimedOut || end === undefined) return { kind: "status", code: timeout };
  return end.kind === "exited"
    ? { kind: "status", code: end.code }
    : { kind: "signal", signal: end.signal };
}
