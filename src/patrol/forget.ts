/**
 * The two things that a person says to the patrol: that nothing is expected of a job any more, and
 * that no patrol is. Decides nothing.
 *
 * Guarantees: nothing is made where there is no journal; what the journal cannot take at once waits
 * in its spool. Clock: the wall clock and MONOTONIC, in the entries.
 */
import type { JournalEntry } from "../core/journal-entry.ts";
import { Journal } from "../journal/journal.ts";
import { readPatrolKnowledge } from "../journal/schedule-queries.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { readBootId } from "../os/machine.ts";

const JOURNAL_MS = 5_000;

export interface Forgotten {
  readonly kind: "done" | "unknown" | "unread";
  /** For people. */
  readonly troubles: readonly string[];
}

export function forgetJob(stateDirectory: string, job: string): Forgotten {
  const answer = readPatrolKnowledge(stateDirectory, { drains: true });
  if (answer.kind === "unreadable") {
    return { kind: "unread", troubles: [`journal: ${answer.reason}`] };
  }
  const jobs = answer.kind === "read" ? answer.value.jobs : [];
  if (!jobs.some(({ schedule }) => schedule.job === job)) return { kind: "unknown", troubles: [] };
  return put(stateDirectory, { kind: "schedule-forgotten", at: wallNow(), job });
}

export function retirePatrol(stateDirectory: string): Forgotten {
  const answer = readPatrolKnowledge(stateDirectory, { drains: true });
  if (answer.kind === "unreadable") {
    return { kind: "unread", troubles: [`journal: ${answer.reason}`] };
  }
  const last = answer.kind === "read" ? answer.value.patrol : undefined;
  if (last === undefined) return { kind: "unknown", troubles: [] };
  return put(stateDirectory, {
    kind: "patrolled",
    at: wallNow(),
    pid: process.pid,
    bootId: readBootId(),
    monotonicMs: monotonicNow(),
    periodMs: null,
    findings: [],
    looked: [],
    recovered: [],
    jobs: [],
    isExpected: false,
  });
}

function put(stateDirectory: string, entry: JournalEntry): Forgotten {
  const troubles: string[] = [];
  const journal = new Journal(stateDirectory, (line) => troubles.push(`journal: ${line}`));
  journal.put(entry);
  journal.close(JOURNAL_MS);
  return { kind: "done", troubles };
}
