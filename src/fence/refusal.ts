/**
 * Why an operation was not started, as one sentence. Pure text; decides nothing.
 */
import type { ExitName } from "../core/errors.ts";
import type { FenceClaim, FencedRecord, FenceReason } from "../core/fence.ts";
import { exitOfFence } from "../core/fence.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";

export interface FenceRefusal {
  readonly kind: "refused";
  readonly because: FenceReason;
  /** The key that is not ours; undefined: none was looked at. */
  readonly key: LeaseKey | undefined;
  /** `locked`: 75, try again. `lease_lost`: 76. */
  readonly exit: ExitName;
  /** For people, without a prefix. */
  readonly text: string;
}

/** What is known of one key when it is refused. */
export interface RefusedKey {
  readonly claim: FenceClaim;
  readonly found?: FencedRecord;
  /** What an unaskable lock said, or a fence that is not there. */
  readonly reason?: string;
  readonly waitMs?: number;
}

export function refuseFence(because: FenceReason, of?: RefusedKey): FenceRefusal {
  const text =
    of === undefined
      ? (WITHOUT_KEY[because] ?? because)
      : `${renderKey(of.claim.key)} ${SENTENCES[because]?.(of) ?? `is not to be had (${because})`}`;
  return { kind: "refused", because, key: of?.claim.key, exit: exitOfFence(because), text };
}

const WITHOUT_KEY: Partial<Record<FenceReason, string>> = {
  "outside-any-run": "this is not inside any run of watchdog (WATCHDOG_RUN_PATH names none)",
  "no-lease": "the run around this holds no lease (WATCHDOG_LEASE is not set); name one with --key",
  "environment-broken":
    "WATCHDOG_LEASE and WATCHDOG_GENERATION do not fit each other; this run cannot be told",
};

const SENTENCES: Partial<Record<FenceReason, (of: RefusedKey) => string>> = {
  "fence-missing": ({ reason }) =>
    `has no fence: it was never granted here, or ${reason ?? "its file is missing"}`,
  "fence-busy": ({ waitMs = 0 }) =>
    `is being granted: its fence could not be had within ${Math.round(waitMs) / 1000} s`,
  "record-missing": () => "has no record: nothing tells whose it is",
  "record-unreadable": ({ found }) => `has a record that cannot be read: ${describeFound(found)}`,
  "record-of-another-key": ({ found }) => `has the record of another key: ${describeKey(found)}`,
  released: ({ found }) => `was released: it was of ${describeOwner(found)}`,
  "other-run": ({ claim, found }) =>
    `belongs to ${describeOwner(found)}, not to ${describe(claim)}`,
  "other-generation": ({ claim, found }) =>
    `is recorded for ${describeOwner(found)}, not for ${describe(claim)}`,
  "owner-dead": ({ found }) => `has no living owner: nobody holds its lock, ${diedOf(found)}`,
  "lock-replaced": ({ found }) =>
    `has a lock file that was replaced or removed: that ${describeOwner(found)} lives is not ` +
    "proven until its next heartbeat",
  "lock-unaskable": ({ reason }) => `cannot be asked for its owner: ${reason ?? "no answer"}`,
};

function describeFound(found: FencedRecord | undefined): string {
  if (found?.kind === "newer") return `format ${found.format} of a newer version`;
  return found?.kind === "unreadable" ? found.reason : "nothing in it";
}

function describeKey(found: FencedRecord | undefined): string {
  return found?.kind === "read" ? `${found.record.kind}:${found.record.name}` : "unknown";
}

function describeOwner(found: FencedRecord | undefined): string {
  if (found?.kind !== "read") return "nobody";
  const { run_id, generation, runner } = found.record;
  return `run ${run_id}, generation ${generation} (${runner})`;
}

function diedOf(found: FencedRecord | undefined): string {
  return found?.kind === "read" ? `${describeOwner(found)} is dead` : "its owner is dead";
}

function describe({ innermost, generation }: FenceClaim): string {
  return `run ${innermost}${generation === undefined ? "" : `, generation ${generation}`}`;
}
