/**
 * The sentences of the help of the commands that look at runs, tell about them, or end one.
 *
 * Always: each example is a line that can be pasted, and a test cuts it.
 */

import type { HelpTopic } from "./cut.ts";
import {
  type HelpText,
  ANSWERED,
  NAMED,
  UNANSWERED,
  WRONG_LINE,
  WRONG_PLACE,
} from "./help-words.ts";

export const RUNS_HELP_TEXT = {
  status: {
    sentence: "Shows what runs now and how each job last ended.",
    notes: [
      "Without a name: of all jobs of the state directory.",
      NAMED,
      "A beat says that a watchdog lives; items and work say what its job does.",
    ],
    examples: [
      "watchdog status",
      "watchdog status --watch nightly-backup",
      "watchdog status --json --state-dir /var/lib/watchdog",
    ],
    statuses: [ANSWERED, WRONG_LINE, WRONG_PLACE, UNANSWERED],
  },
  history: {
    sentence: "Shows the last runs, newest first: when, how long, how each ended and why.",
    notes: [
      "Without a name: of all jobs of the state directory.",
      "A name is that of a job, a key such as lane:gpu (the runs that held it), or the id of " +
        "a run.",
    ],
    examples: [
      "watchdog history",
      "watchdog history nightly-backup --limit 5",
      "watchdog history --json --limit 1000",
    ],
    statuses: [ANSWERED, WRONG_LINE, WRONG_PLACE, UNANSWERED],
  },
  report: {
    sentence:
      "Tells what has run since yesterday, job by job: how it ended, against what is usual for " +
      "it, what was skipped and why, and first of all what needs a person.",
    notes: [
      "A skip is a start that was refused because another run held the lease. Usual is the " +
        "median of earlier good runs; fewer than three say nothing.",
    ],
    examples: [
      "watchdog report",
      "watchdog report --since 7d --html /srv/www/week.html",
      "watchdog report --json --since 12h",
    ],
    statuses: [ANSWERED, WRONG_LINE, WRONG_PLACE, UNANSWERED],
  },
  why: {
    sentence:
      "Tells why a job did not run, or how its last run ended: in one sentence, with the " +
      "evidence, what has happened in it, and the last lines of its output.",
    notes: [
      NAMED,
      "Where the last start was refused, the run before it is told of, too. Of the " +
        "output what has the shape of a secret is hidden; watchdog logs prints it as it is.",
    ],
    examples: [
      "watchdog why nightly-backup",
      "watchdog why lane:gpu",
      "watchdog why --json nightly-backup",
    ],
    statuses: [
      ANSWERED,
      { status: "1", meaning: "no such run is known" },
      WRONG_LINE,
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  logs: {
    sentence: "Prints the output that was kept of a run, as it was written.",
    notes: [NAMED, "Of a job it is the last run that is meant. The ids are in the history."],
    examples: [
      "watchdog logs nightly-backup",
      "watchdog logs 01900000-0000-7000-8000-000000000000",
      "watchdog logs --state-dir /var/lib/watchdog nightly-backup",
    ],
    statuses: [
      { status: "0", meaning: "printed" },
      { status: "1", meaning: "no such run is known, or nothing was kept of it" },
      WRONG_LINE,
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  notify: {
    sentence:
      "Shows the notices of the state directory that are not delivered, delivers or drops them, " +
      "and tests whom runs tell.",
    notes: [
      "Notices wait in the outbox of the state directory until their receiver has taken them: " +
        "what a run could not deliver is sent by the next run, and by flush. A receiver that " +
        "refuses one for good, or takes it in none of 40 attempts (most of a day) or not within " +
        "three days, has it given up: it is dead, and stays in the list for a person.",
      "test and flush know the receivers of their own line, of the environment and of the " +
        "configuration, and those whose address is no secret.",
    ],
    examples: [
      "watchdog notify list",
      "watchdog notify test --webhook file:/etc/watchdog/webhook",
      "watchdog notify flush --dead",
    ],
    statuses: [
      ANSWERED,
      { status: "1", meaning: "test: not each receiver has taken it, or there is none" },
      WRONG_LINE,
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  patrol: {
    sentence:
      "Looks after all leases and all jobs that have said when they are expected, tells what is " +
      "wrong, and writes down each change once.",
    notes: [
      "For cron, or with --loop under a service manager. It ends no process: of leases it only " +
        "marks those whose owner and whose whole tree are dead.",
      "A job is overdue when a good run of it (--every, --schedule of watchdog run) has not been " +
        "there in time, whatever else ran: never started, not started, failing, started late " +
        "and running too long are told apart.",
      "One patrol goes on at a time.",
    ],
    examples: [
      "watchdog patrol",
      "watchdog patrol --quiet --every 5m",
      "watchdog patrol --loop 1m",
    ],
    statuses: [
      ANSWERED,
      { status: "1", meaning: "--forget, --retire: nothing is known of it" },
      WRONG_LINE,
      { status: "75", meaning: "another patrol goes on" },
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  stop: {
    sentence: "Ends a run: its watchdog ends the whole tree, and its outcome is stopped.",
    notes: [
      "Sends TERM, then KILL after --kill-after, and waits until the run has ended.",
      "A name is that of a job, a key such as lane:gpu (the run that holds it), or the id of " +
        "a run.",
    ],
    examples: [
      "watchdog stop nightly-backup",
      "watchdog stop --kill-after 1m nightly-backup",
      "watchdog stop 01900000-0000-7000-8000-000000000000",
    ],
    statuses: [
      { status: "0", meaning: "the run has ended" },
      { status: "1", meaning: "no such run goes on" },
      WRONG_LINE,
      { status: "77", meaning: "the run is another user's and may not be signalled" },
      WRONG_PLACE,
      { status: "125", meaning: "the run could not be ended" },
    ],
  },
} as const satisfies Partial<Record<HelpTopic, HelpText>>;
