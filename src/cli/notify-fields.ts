/**
 * The fields of the answers about notices in JSON: `notify list`, `notify flush`, `notify test`. A
 * part of the table in answer-fields.ts; never loaded by an answer.
 */

import { SENT_REASONS } from "../core/delivery.ts";
import { type Meanings, nameAll } from "./dependency-fields.ts";

/** Of a notice in a list. */
function shownFields(list: string): Meanings {
  const meanings = {
    id: "its number, for `notify drop`",
    state: nameAll(["waiting", "delivered", "dead", "superseded"]),
    attempts: "attempts to deliver it, those that were broken off by a kill too",
    created_at: "when it was made (wall clock, UTC)",
    next_at: "when it is tried next (wall clock, UTC), null: it is not",
    delivered_at: "when its receiver took it (wall clock, UTC), null: it did not",
    last_because:
      "what the last attempt came to, for people; null: there was none, or it went well",
    sink: "its receiver, without anything secret",
    key: "its idempotency key, the same in each attempt",
    event: "what it tells of",
    job: "about which job, null: none",
    run_id: "about which run, null: none",
    summary: "its one sentence",
    is_reminder: "whether it was told before and still lasts",
  };
  return Object.fromEntries(
    Object.entries(meanings).map(([name, meaning]) => [`${list}[].${name}`, meaning]),
  );
}

export function noticeListFields(): Meanings {
  return { notices: "the newest first", ...shownFields("notices") };
}

export function flushFields(): Meanings {
  return {
    delivered: "how many were delivered now",
    failed: "how many were tried in vain",
    waiting: "those that wait now, the newest first",
    ...shownFields("waiting"),
  };
}

export function testFields(): Meanings {
  return {
    is_delivered: "whether every sink has taken it",
    sinks: "whom this line, the environment and the configuration name",
    "sinks[].sink": "the sink, without anything secret",
    "sinks[].is_delivered": "whether it has taken it",
    "sinks[].because": `null: it has; ${nameAll(SENT_REASONS)}`,
    "sinks[].detail": "what was found, for people; null: it has taken it",
  };
}
