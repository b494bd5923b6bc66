/**
 * The outbox as those who deliver from it see it: notices that wait, who is sending which, and what
 * becomes of one after an attempt. Pure; where it is kept is `OutboxStore`, which the journal
 * implements.
 *
 * Guarantees: a notice is attempted until it was taken, was refused for good, or the bound of
 * attempts and time is reached; then it is `dead`, and a person decides. An attempt is counted
 * before it is made, so that a notice which kills its sender ends, too. Non-guarantees: exactly
 * once. Who dies between the answer of a receiver and the row leaves a notice that is sent again,
 * with the same key.
 *
 * Clock: the wall clock, because a notice outlives a boot. One that was set back makes nothing wait
 * longer than LONGEST_PAUSE_MS or LONGEST_CLAIM_MS: what lies further ahead was written by a clock
 * that was wrong.
 */
import { type Backoff, decideNextAttempt } from "./backoff.ts";
import type { Sent } from "./delivery.ts";
import type { Notice } from "./notice.ts";
import type { SinkSpec } from "./sink.ts";
import type { MonotonicAt } from "./time.ts";

export type OutboxState =
  | "waiting"
  | "delivered"
  /** Given up: refused for good, or the bound was reached. */
  | "dead"
  /** Something newer says all of it. */
  | "superseded";

export interface OutboxRow {
  readonly id: number;
  readonly sink: SinkSpec;
  readonly notice: Notice;
  readonly job: string;
  readonly runId: string | null;
  readonly state: OutboxState;
  readonly attempts: number;
  /** Wall clock, in milliseconds, as every instant here. */
  readonly nextAt: number;
  /** Who sends it just now: renderClaim; null: nobody. */
  readonly claimedBy: string | null;
  readonly claimedUntil: number | null;
  readonly lastBecause: string | null;
  readonly createdAt: number;
  readonly deliveredAt: number | null;
}

export type Settlement =
  | { readonly kind: "delivered"; readonly at: number }
  | { readonly kind: "dead"; readonly because: string }
  | { readonly kind: "waiting"; readonly because: string; readonly nextAt: number };

export interface DueQuestion {
  readonly now: number;
  /** Whatever its next attempt was planned for: a person asks for it. */
  readonly isForced: boolean;
  /** Those of this run come first; null: there is none. */
  readonly runId: string | null;
  /** Whose targets are known here although they are not stored. */
  readonly ownSinkIds: readonly string[];
}

/** "busy": somebody holds the journal, again in a moment. */
export type StoreTrouble = { readonly kind: "busy" | "unusable"; readonly reason: string };

export interface OutboxStore {
  /** The first of each sink and job that may be tried now; another's claim is part of the row. */
  listDue(question: DueQuestion): readonly OutboxRow[] | StoreTrouble;
  /** Counts the attempt. "lost": somebody else was faster. */
  claim(row: OutboxRow, claim: { readonly by: string; readonly until: number }): ClaimResult;
  settle(row: OutboxRow, by: string, settlement: Settlement): ClaimResult;
  /** The earliest next attempt of what waits; undefined: nothing does, or it cannot be told. */
  nextAt(sinkIds: readonly string[]): number | undefined;
  close(): void;
}

export type ClaimResult = "done" | "lost" | StoreTrouble;

/** The first wait is below half a minute, the later ones below an hour. */
export const DELIVERY_BACKOFF: Backoff = {
  initialMs: 30_000,
  capMs: 3_600_000,
  factor: 2,
  maxAttempts: 40,
  maxElapsedMs: 3 * 86_400_000,
};

/** A receiver that asks for more is asked after this long all the same. */
export const LONGEST_ASKED_MS = 6 * 3_600_000;
/** No next attempt is ever planned further ahead. */
export const LONGEST_PAUSE_MS = LONGEST_ASKED_MS;
/** No attempt takes longer, with all that is around it. */
export const LONGEST_CLAIM_MS = 120_000;

export interface AttemptChance {
  readonly now: number;
  /** 0 ≤ random < 1. */
  readonly random: number;
}

/** What becomes of a row after its attempt, which is counted in it already. */
export function decideSettlement(
  { attempts, createdAt }: Pick<OutboxRow, "attempts" | "createdAt">,
  sent: Sent,
  { now, random }: AttemptChance,
): Settlement {
  if (sent.kind === "delivered") return { kind: "delivered", at: now };
  const because = `${sent.because}: ${sent.detail}`;
  if (sent.kind === "refused") return { kind: "dead", because };
  const state = {
    startedAt: createdAt as MonotonicAt,
    attempts,
    waits: Math.max(0, attempts - 1),
  };
  const next = decideNextAttempt(DELIVERY_BACKOFF, state, { nowMs: now as MonotonicAt, random });
  if (next.kind === "exhausted") return { kind: "dead", because: `${next.because}: ${because}` };
  const askedMs = Math.min(Math.max(0, sent.retryAfterMs ?? 0), LONGEST_ASKED_MS);
  return { kind: "waiting", because, nextAt: now + Math.max(next.delayMs, askedMs) };
}

export function isDue({ nextAt }: Pick<OutboxRow, "nextAt">, now: number): boolean {
  return nextAt <= now || nextAt > now + LONGEST_PAUSE_MS;
}

/** Who sends a notice, so that others can see whether he lives. */
export interface Claimant {
  readonly pid: number;
  readonly start_time: number;
  readonly boot_id: string;
  readonly pid_namespace: string | null;
  /** Tells two senders in one process apart. */
  readonly token: string;
}

export function renderClaim(claimant: Claimant): string {
  const { pid, start_time, boot_id, pid_namespace, token } = claimant;
  return JSON.stringify({ pid, start_time, boot_id, pid_namespace, token });
}

/** Undefined: nobody of this version. */
export function parseClaim(text: string): Claimant | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return isClaimant(found) ? found : undefined;
  } catch {
    return undefined; // SyntaxError: a row that somebody else has written
  }
}

function isClaimant(found: unknown): found is Claimant {
  if (typeof found !== "object" || found === null) return false;
  const { pid, start_time, boot_id, pid_namespace, token } = found as Partial<
    Record<string, unknown>
  >;
  return (
    Number.isSafeInteger(pid) &&
    Number.isFinite(start_time) &&
    typeof boot_id === "string" &&
    (pid_namespace === null || typeof pid_namespace === "string") &&
    typeof token === "string"
  );
}

/**
 * Whether somebody is sending it: his time is not over, and he is not known to be dead. A pid that
 * was given anew to another process costs the rest of the time and nothing else.
 */
export function isClaimed(
  { claimedBy, claimedUntil }: Pick<OutboxRow, "claimedBy" | "claimedUntil">,
  now: number,
  mayLive: (claimant: Claimant) => boolean,
): boolean {
  if (claimedBy === null || claimedUntil === null) return false;
  if (claimedUntil <= now || claimedUntil > now + LONGEST_CLAIM_MS) return false;
  const claimant = parseClaim(claimedBy);
  return claimant === undefined || mayLive(claimant);
}
