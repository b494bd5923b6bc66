/**
 * What one probe found: good or not, why, and how long each stage of it took. Types and words
 * alone: who probes is `probe/`, what follows from it is decided elsewhere. Always: plain data, so
 * that it can go from a Worker to main and into the journal as it is.
 */

/** In the order in which they come; a probe has those that its kind needs. */
export const PROBE_STAGES = [
  "name",
  "connect",
  "proxy",
  "tls",
  "headers",
  "body",
  "command",
] as const;
export type ProbeStageName = (typeof PROBE_STAGES)[number];

/** Why a probe is not good; the same word in the journal, in messages and in tests. */
export const PROBE_FAILURES = [
  "name-unresolved",
  "name-timeout",
  "refused",
  "unreachable",
  "connect-timeout",
  "proxy-refused",
  "tls-failed",
  "tls-timeout",
  /** The request was sent, and the head of an answer was not complete within the limit. */
  "no-answer",
  "malformed",
  "reset",
  "status",
  "redirect",
  "body-mismatch",
  "json-mismatch",
  /** More bytes than the limit allows. */
  "too-long",
  /** An answer that began, but had not ended within the limit. */
  "too-slow",
  "command-failed",
  "command-timeout",
  "command-not-started",
  /** A CA or credentials file, or another setting that cannot be used at the moment. */
  "unusable-settings",
  /** This machine had no descriptor or memory left to ask with. */
  "out-of-resources",
  /** The expression for the body did not come to an end. */
  "expression-too-slow",
  /** The thread that probes did not answer, or could not be had. */
  "worker-lost",
  /** Whoever asked did not want to wait any longer: says nothing about the other side. */
  "stopped",
] as const;
export type ProbeFailure = (typeof PROBE_FAILURES)[number];

export type ProbeReason = "good" | ProbeFailure;

export interface ProbeStage {
  readonly stage: ProbeStageName;
  /** Milliseconds, rounded to a tenth. */
  readonly ms: number;
}

export interface ProbeResult {
  readonly isGood: boolean;
  readonly because: ProbeReason;
  /** Those that began; the last one is where a probe ended that is not good. */
  readonly stages: readonly ProbeStage[];
  /** Of HTTP, as soon as there was one. */
  readonly status?: number;
  /** To which it was connected: `127.0.0.1:80`, `[::1]:80`, or the path of a socket. */
  readonly address?: string;
  /** A clause for people, in printable characters: what was found, and what was expected. */
  readonly detail: string;
}

/** The part of a result that does not depend on the way to it. */
export type ProbeVerdict = Pick<ProbeResult, "because" | "detail">;

export function isGoodVerdict(verdict: ProbeVerdict): boolean {
  return verdict.because === "good";
}
