/**
 * What a person is told about a job: the events there are, and one notice about one of them. Pure
 * data; knows no sink, no table and no time of its own.
 *
 * Always: a notice is complete when it is made. Whoever sends it, hours later and from another
 * process, needs nothing but the notice and the sink.
 */

export const NOTICE_EVENTS = [
  "start",
  "success",
  "failure",
  "recovered",
  "stalled",
  "lease_lost",
  "lock_restored",
  "suspended",
  "circuit_open",
  "circuit_closed",
  "timeout",
  "leftovers",
  "reclaimed",
  "abandoned",
  "overdue",
] as const;

export type NoticeEvent = (typeof NOTICE_EVENTS)[number];

export interface Notice {
  /** Of this notice to this sink; every attempt to deliver it carries it as its idempotency key. */
  readonly id: string;
  /** When it happened (wall clock, UTC), which is not when it is sent. */
  readonly at: string;
  readonly event: NoticeEvent;
  readonly job: string | null;
  readonly run_id: string | null;
  readonly host: string;
  /** `user@host`. */
  readonly runner: string;
  /** The outcome of the run, where it has one. */
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exit_status: number | null;
  readonly status_of: "command" | "watchdog" | null;
  /** One sentence for a person. */
  readonly summary: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
  /** Masked. */
  readonly command: readonly string[] | null;
  readonly cwd: string | null;
  /** The last lines of the output, masked; null: none was kept. */
  readonly log_tail: string | null;
  /** It was told before, and still lasts. */
  readonly is_reminder: boolean;
  /** Since when it lasts; null: it is no state. */
  readonly since: string | null;
  readonly failures_in_row: number;
  /** What this event has beside: `{"is_test": true}` of `watchdog notify test`. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** A run that ended so did not do its work: what `failure` covers. */
export const BAD_ENDINGS: readonly NoticeEvent[] = [
  "failure",
  "timeout",
  "lease_lost",
  "abandoned",
];

/** A run is over, well or not: what a ping always hears, beside `start`. */
export const ENDINGS: readonly NoticeEvent[] = ["success", "recovered", ...BAD_ENDINGS];

/**
 * What a sink hears that names no events: what a person should know of, once per change. Not every
 * good run, not what watchdog has settled by itself.
 */
export const DEFAULT_EVENTS: readonly NoticeEvent[] = [
  ...BAD_ENDINGS,
  "recovered",
  "stalled",
  "lock_restored",
  "circuit_open",
  "circuit_closed",
  "overdue",
];

/** Undefined: there is no such event. `lock-restored` is `lock_restored`, as in a flag. */
export function parseNoticeEvent(text: string): NoticeEvent | undefined {
  const name = text.trim().replaceAll("-", "_");
  return NOTICE_EVENTS.find((event) => event === name);
}
