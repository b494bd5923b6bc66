/**
 * Makes one notice of many that wait for the same receiver: when a whole machine's jobs fail at
 * once, a person reads one message and not hundreds. Pure.
 *
 * Always: it names how many, of which events, and how each job stood last; nothing that is good
 * news hides a bad ending.
 */
import { makeKeyedId } from "./make-notice.ts";
import { BAD_ENDINGS, type Notice, type NoticeEvent } from "./notice.ts";

/** Fewer than these are sent one by one. */
export const JOIN_FROM = 10;
/** A person reads the first ones. */
const MOST_NAMED = 5;
const MOST_JOBS = 200;

/**
 * @param notices  the oldest first, at least one
 * @param key  what it is about and for whom, so that its id follows from it
 */
export function joinNotices(
  notices: readonly [Notice, ...Notice[]],
  key: { readonly entryId: string; readonly sinkId: string; readonly at: number },
): Notice {
  const [first] = notices;
  const jobs = new Map<string, NoticeEvent>();
  const counts = new Map<NoticeEvent, number>();
  for (const { job, event } of notices) {
    if (job !== null) jobs.set(job, event);
    counts.set(event, (counts.get(event) ?? 0) + 1);
  }
  const names = [...jobs.keys()];
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
  const events = [...counts].map(([event, count]) => `${count} ${event.replaceAll("_", " ")}`);
  const summary =
    `${notices.length} notices of ${names.length} jobs on ${first.host}: ${events.join(", ")} ` +
    `(${names.slice(0, MOST_NAMED).join(", ")}${more})`;
  return {
    ...first,
    id: makeKeyedId(key),
    at: new Date(key.at).toISOString(),
    event: worstOf(notices),
    job: null,
    run_id: null,
    outcome: null,
    because: null,
    exit_status: null,
    status_of: null,
    summary,
    started_at: null,
    ended_at: null,
    duration_ms: null,
    command: null,
    cwd: null,
    log_tail: null,
    is_reminder: notices.every((notice) => notice.is_reminder),
    since: first.at,
    failures_in_row: 0,
    details: {
      joined: notices.length,
      events: Object.fromEntries(counts),
      jobs: Object.fromEntries([...jobs].slice(0, MOST_JOBS)),
    },
  };
}

function worstOf(notices: readonly [Notice, ...Notice[]]): NoticeEvent {
  const bad = notices.find(({ event }) => BAD_ENDINGS.includes(event));
  return bad === undefined ? notices[0].event : "failure";
}
