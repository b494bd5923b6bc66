/**
 * What became of one attempt to deliver a notice, and what follows from what the other side said.
 * Pure.
 *
 * Always: what may be different in a while is `failed`, and tried again; what the other side will
 * refuse each time is `refused`, and is not.
 */
import { hasLeftWith } from "./command-probe.ts";
import type { ProbeResult } from "./probe-result.ts";

export const SENT_REASONS = [
  // Of HTTP.
  "rejected",
  "rate-limited",
  "server-error",
  "redirected",
  "no-answer",
  "not-connected",
  "tls-error",
  "not-an-address",
  // Of programs on this machine.
  "hook-failed",
  "hook-timeout",
  "hook-not-started",
  "no-sendmail",
  // Of the sink.
  "no-target",
  "stopped",
] as const;

export type SentReason = (typeof SENT_REASONS)[number];

export type Sent =
  | { readonly kind: "delivered" }
  /** For good: another attempt would end the same way. `detail` is for people, and masked. */
  | { readonly kind: "refused"; readonly because: SentReason; readonly detail: string }
  | {
      readonly kind: "failed";
      readonly because: SentReason;
      readonly detail: string;
      /** What the other side asks for; undefined: it did not say. */
      readonly retryAfterMs?: number;
    };

/** 4xx that may pass by themselves (RFC 9110, 15.5.9; RFC 8470, 5.2; RFC 6585, 4). */
const PASSING_STATUSES: readonly number[] = [408, 425, 429];
/** What a busy server may ask for is heard up to here; the engine has bounds of its own. */
export const LONGEST_RETRY_AFTER_MS = 86_400_000;

export interface HttpReply {
  readonly status: number;
  readonly retryAfter: string | null;
  /** The beginning of the body. */
  readonly text: string;
  /** For `Retry-After` as a date (wall clock). */
  readonly nowMs: number;
}

export function decideReply(reply: HttpReply): Sent {
  const { status } = reply;
  if (status >= 200 && status <= 299) return { kind: "delivered" };
  const detail = describeReply(reply);
  if (status >= 300 && status <= 399) {
    // It is the address that is wrong, and a person must see it; the notice was not taken.
    return { kind: "failed", because: "redirected", detail };
  }
  if (status >= 400 && status <= 499 && !PASSING_STATUSES.includes(status)) {
    return { kind: "refused", because: "rejected", detail };
  }
  const because = status === 429 ? "rate-limited" : "server-error";
  const retryAfterMs = readRetryAfter(reply);
  return retryAfterMs === undefined
    ? { kind: "failed", because, detail }
    : { kind: "failed", because, detail, retryAfterMs };
}

const LONGEST_SHOWN = 200;

function describeReply({ status, text }: HttpReply): string {
  const said = text.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return said === "" ? `status ${status}` : `status ${status}: ${said.slice(0, LONGEST_SHOWN)}`;
}

/**
 * Seconds or a date (RFC 9110, 10.2.3). Discord gives a fraction of a second in its answer, too
 * (https://docs.discord.com/developers/topics/rate-limits); its header is rounded up.
 */
export function readRetryAfter({
  retryAfter,
  nowMs,
}: Pick<HttpReply, "retryAfter" | "nowMs">): number | undefined {
  if (retryAfter === null) return undefined;
  const text = retryAfter.trim();
  const seconds = /^[0-9]{1,10}(\.[0-9]{1,6})?$/.test(text) ? Number(text) : undefined;
  // `Date.parse` takes nearly anything for a date; an HTTP date begins with the day of the week.
  const date = /^[A-Z][a-z]{2},/.test(text) ? Date.parse(text) : Number.NaN;
  const ms = seconds === undefined ? date - nowMs : seconds * 1000;
  if (!Number.isFinite(ms)) return undefined;
  return Math.min(Math.max(Math.ceil(ms), 0), LONGEST_RETRY_AFTER_MS);
}

/** EX_TEMPFAIL of sysexits.h: "try again later", as a program that takes mail says it. */
export const TRY_AGAIN_STATUS = 75;

/**
 * Of sysexits.h, too: wrong words, a wrong message, nobody of that name. What else a program that
 * takes mail leaves with says that it has not taken this one: exim 1 where it cannot write its log,
 * msmtp 68 where no name can be resolved, dma 73 where its queue cannot be written (seen with 4.96,
 * 1.8 and 0.13).
 */
const MAIL_REFUSALS: readonly number[] = [64, 65, 67];

/**
 * Of the program that takes mail, which is asked again where it has failed or had no end, as a
 * server is: rather twice, under one Message-ID, than never.
 *
 * @param answer  as `decideSent` has it
 */
export function decideMailed(answer: ProbeResult | undefined, found: string): Sent {
  const sent = decideSent(answer, found);
  if (answer === undefined || sent.kind !== "refused") return sent;
  const isForGood = MAIL_REFUSALS.some((status) => hasLeftWith(answer, status));
  return isForGood ? sent : { ...sent, kind: "failed" };
}

/**
 * A hook that fails, or has no end, has heard: it may have restarted a service or told somebody,
 * and is not run again hours later unless it asks for that (TRY_AGAIN_STATUS). One that could not
 * be started has not.
 *
 * @param answer  of the helper; undefined: it gave none
 */
export function decideSent(answer: ProbeResult | undefined, found: string): Sent {
  if (answer === undefined) return { kind: "failed", because: "hook-not-started", detail: found };
  const { because, detail } = answer;
  switch (because) {
    case "good":
      return { kind: "delivered" };
    case "command-failed":
      if (hasLeftWith(answer, TRY_AGAIN_STATUS)) {
        return { kind: "failed", because: "hook-failed", detail };
      }
      return { kind: "refused", because: "hook-failed", detail };
    case "command-timeout":
      return { kind: "refused", because: "hook-timeout", detail };
    default:
      return { kind: "failed", because: "hook-not-started", detail };
  }
}
