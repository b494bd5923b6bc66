/**
 * The sentences of the help of `watchdog job`.
 *
 * Always: each example is a line that can be pasted, and a test cuts it.
 */

import { type HelpText, UNANSWERED, WRONG_LINE } from "./help-words.ts";

export const JOB_HELP_TEXT = {
  job: {
    sentence:
      "Runs the steps of a job file in the order of their needs, each once, writes down what has " +
      "become of each, and goes on after a crash where it was.",
    notes: [
      "run goes on with the unfinished job of that name, else it begins a new one; resume begins " +
        "none. The whole job has one lease, job:NAME, and as a run the options of watchdog run " +
        "that are listed here; steps have the others in the job file.",
      "After a crash a step without side effects runs again. Of an unsafe one that was " +
        "interrupted its settle command is asked whether it has happened (0 yes, 1 no); where " +
        "that does not tell, the step is unknown, nothing that needs it runs, and a person " +
        "decides by --accept-unknown. A step that is done stays done while its artifacts, its " +
        "command and what it reads are what they were.",
      "Nobody can promise that a step runs exactly once: between its effect and the record of it " +
        "the machine may die. What is promised is that an unsafe step is not run a second time " +
        "without a status of its own that says that it failed, a settle that says that it has " +
        "not happened, or a person's word.",
      "A job file is YAML (.yaml, .yml), JSON (.json) or TOML (.toml); schema prints what may " +
        "stand in it, for editors. A step may have options of watchdog run by their names in a " +
        "file, such as probe, expect_match or idle_timeout. status takes the NAME of a job " +
        "in place of FILE, too.",
    ],
    examples: [
      "watchdog job run --timeout 4h --on-failure ./tell-me.sh nightly.yaml",
      "watchdog job status nightly.yaml",
      "watchdog job resume --accept-unknown upload=done nightly.yaml",
    ],
    statuses: [
      { status: "0", meaning: "all steps are done; of the others: answered" },
      { status: "its own", meaning: "run, resume: that of the first step that failed" },
      { status: "1", meaning: "verify: the file is no job, or something is not as it was left" },
      { status: "3", meaning: "a person must decide about an unsafe step: see job status" },
      WRONG_LINE,
      { status: "65", meaning: "an artifact is missing, empty or not new" },
      { status: "69", meaning: "what the step that failed first depends on was down" },
      { status: "75", meaning: "another run of the job goes on" },
      { status: "76", meaning: "the lease was lost: nothing more was written" },
      {
        status: "78",
        meaning: "a person must change something, such as the job file; the message tells where",
      },
      { status: "124", meaning: "the job, or the step that failed first, took too long" },
      UNANSWERED,
    ],
  },
} as const satisfies { readonly job: HelpText };
