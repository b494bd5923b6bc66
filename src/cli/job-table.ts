/**
 * `watchdog job`: the options of `run`, `resume`, `plan`, `status`, `verify` and `schema`.
 *
 * Knows nothing of how a command line is cut. Always: what a job is asked for stands on the line;
 * no variable says it. What it has as a run (leases, limits, who is told) is that of `watchdog
 * run`, row by row.
 */

import type { AcceptedAs } from "../core/job-asked.ts";
import { MOST_PARALLEL } from "../core/job-spec.ts";
import { LEASE_ROWS, localStateRow, stateGroupRow } from "./lease-options.ts";
import { LIMIT_ROWS } from "./limit-options.ts";
import { NOTIFY_ROWS } from "./notify-options.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { RUN_COMMAND } from "./options-table.ts";
import type { RunPart } from "./probe-options.ts";
import { SCHEDULE_ROWS } from "./schedule-options.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import { SINK_ROWS } from "./sink-options.ts";
import * as values from "./values.ts";
import type { Parsed } from "./values.ts";

/** What one option of these commands decides. */
export interface JobPart extends RunPart {
  readonly isFresh?: boolean;
  readonly maxParallel?: number;
  readonly from?: string;
  readonly only?: string;
  /** Adds, as `accepted` does. */
  readonly redo?: readonly string[];
  readonly accepted?: readonly (readonly [step: string, as: AcceptedAs])[];
  readonly isDryRun?: boolean;
  readonly isJson?: boolean;
  readonly isWatching?: boolean;
}

type Row = OptionRow<JobPart>;

const ANSWERS = ["retry", "fail", "done"] as const satisfies readonly AcceptedAs[];

const EXPECTED_JOB = {
  step: "the name of a step of the job file",
  accepted: "a step and retry, fail or done, with = between them",
  parallel: `a number from 1 to ${MOST_PARALLEL}, such as 4`,
} as const;

function own(row: Row): Row {
  return { ...row, variable: undefined };
}

/** What it says, only a person can mean. */
function decision(row: Row): Row {
  return { ...own(row), isDecision: true };
}

const freshRow = decision(
  toggle(
    "--fresh",
    { help: "Begin anew, and leave an unfinished job as it is for good." },
    (isFresh) => ({ isFresh }),
  ),
);

const DECISION_ROWS: readonly Row[] = [
  option<JobPart>(
    "--from",
    "text",
    {
      valueName: "STEP",
      example: "pack",
      defaultText: "none",
      help: "Run STEP and all that depends on it again; all else must be done.",
    },
    (text) => values.mapped(parseStep(text), (from) => ({ from })),
  ),
  option<JobPart>(
    "--only",
    "text",
    {
      valueName: "STEP",
      example: "pack",
      defaultText: "none",
      help: "Run nothing but STEP; what it needs must be done.",
    },
    (text) => values.mapped(parseStep(text), (only) => ({ only })),
  ),
  option<JobPart>(
    "--redo",
    "texts",
    {
      valueName: "STEP",
      example: "pack",
      defaultText: "none",
      help: "Run STEP and all that depends on it again. May be given more than once.",
    },
    (text) => values.mapped(parseStep(text), (step) => ({ redo: [step] })),
  ),
  option<JobPart>(
    "--accept-unknown",
    "texts",
    {
      valueName: "STEP=retry|fail|done",
      example: "upload=done",
      defaultText: "none",
      help:
        "Decide about an unsafe STEP of which nobody knows whether it has happened: run it " +
        "again, take it as failed, or as done. May be given more than once.",
    },
    parseAccepted,
  ),
].map(decision);

const CHOICE_ROWS: readonly Row[] = [
  ...DECISION_ROWS,
  own(
    option<JobPart>(
      "--max-parallel",
      "count",
      {
        valueName: "COUNT",
        example: "4",
        defaultText: "max_parallel of the job file, else 1",
        help: "Run at most so many steps at the same time.",
      },
      parseParallel,
    ),
  ),
];

const dryRunRow = own(
  toggle(
    "--dry-run",
    { help: "Tell what would be done, as job plan does; run and write nothing." },
    (isDryRun) => ({ isDryRun }),
  ),
);

const watchRow = own(
  toggle(
    "--watch",
    { help: "Draw it on the terminal, anew each second, until q or Ctrl-C." },
    (isWatching) => ({ isWatching }),
  ),
);

/** The same for all commands of jobs, so that the help tells it once. */
const jsonOfJobRow = { ...jsonRow, help: `${jsonRow.help} run and resume: with --dry-run alone.` };

function parseStep(text: string): Parsed<string> {
  const isName = text !== "" && values.isFaithful(text);
  return isName ? values.accepted(text) : values.refused(EXPECTED_JOB.step);
}

function parseAccepted(text: string): Parsed<JobPart> {
  const at = text.lastIndexOf("=");
  const step = text.slice(0, Math.max(at, 0));
  const as = ANSWERS.find((each) => each === text.slice(at + 1));
  if (step === "" || as === undefined || !values.isFaithful(step)) {
    return values.refused(EXPECTED_JOB.accepted);
  }
  return values.accepted({ accepted: [[step, as]] });
}

function parseParallel(text: string): Parsed<JobPart> {
  const count = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  const isRight = count >= 1 && count <= MOST_PARALLEL;
  return isRight ? values.accepted({ maxParallel: count }) : values.refused(EXPECTED_JOB.parallel);
}

/** Without a lease no state could be fenced. */
const NOT_OF_JOB = ["--no-lease", "--leftovers"];
const OUTPUT_FLAGS = ["--log", "--log-max", "--log-keep", "--quiet", "--verbose", "--result-file"];

/**
 * What a job is told as a run. Not among them: probes, which would pause the runner of the steps
 * within a transaction, and what a command must bring about; steps have those.
 */
export const WHOLE_JOB_ROWS: readonly OptionRow<RunPart>[] = [
  ...[...LEASE_ROWS, ...LIMIT_ROWS].filter(({ flag }) => !NOT_OF_JOB.includes(flag)),
  ...SINK_ROWS,
  ...NOTIFY_ROWS,
  ...RUN_COMMAND.rows.filter(({ flag }) => OUTPUT_FLAGS.includes(flag)),
  ...SCHEDULE_ROWS,
  stateGroupRow,
  localStateRow,
];

/** What is asked of a job and not of a run. */
export const OWN_JOB_ROWS: readonly Row[] = [freshRow, ...CHOICE_ROWS, dryRunRow, watchRow];

const TOLD_ROWS = [...SINK_ROWS, ...NOTIFY_ROWS];

/** Of `job run` and `job resume`; the other commands have none of these rows. */
const SECTIONS = [
  {
    title: "Options of job run and job resume about the job as a run",
    rows: WHOLE_JOB_ROWS.filter((row) => !TOLD_ROWS.includes(row)),
  },
  { title: "Options of job run and job resume about who is told", rows: TOLD_ROWS },
];

export const JOB_RUN_COMMAND: CommandRow<JobPart> = {
  name: "job run",
  summary: "run the steps of a job, or go on with those of an unfinished one",
  usage: "watchdog job run [options] FILE",
  rows: [
    freshRow,
    ...CHOICE_ROWS,
    dryRunRow,
    jsonOfJobRow,
    ...WHOLE_JOB_ROWS,
    ...placeRows,
    helpRow,
  ],
  sections: SECTIONS,
};

export const JOB_RESUME_COMMAND: CommandRow<JobPart> = {
  ...JOB_RUN_COMMAND,
  name: "job resume",
  summary: "go on with an unfinished job, and begin none",
  usage: "watchdog job resume [options] FILE",
  rows: JOB_RUN_COMMAND.rows.filter((row) => row !== freshRow),
};

export const JOB_PLAN_COMMAND: CommandRow<JobPart> = {
  name: "job plan",
  summary: "tell what job run would do",
  usage: "watchdog job plan [options] FILE",
  rows: [freshRow, ...CHOICE_ROWS, jsonOfJobRow, ...placeRows, helpRow],
};

export const JOB_STATUS_COMMAND: CommandRow<JobPart> = {
  name: "job status",
  summary: "show the steps of a job, and what a person must decide",
  usage: "watchdog job status [options] FILE",
  rows: [watchRow, jsonOfJobRow, ...placeRows, helpRow],
};

export const JOB_VERIFY_COMMAND: CommandRow<JobPart> = {
  name: "job verify",
  summary: "compare the artifacts of a job with what its steps have left",
  usage: "watchdog job verify [options] FILE",
  rows: [jsonOfJobRow, ...placeRows, helpRow],
};

export const JOB_SCHEMA_COMMAND: CommandRow<JobPart> = {
  name: "job schema",
  summary: "print the JSON Schema of a job file",
  usage: "watchdog job schema",
  rows: [...placeRows, helpRow],
};

/** In the order of the help. */
export const JOB_COMMANDS: readonly CommandRow<JobPart>[] = [
  JOB_RUN_COMMAND,
  JOB_RESUME_COMMAND,
  JOB_PLAN_COMMAND,
  JOB_STATUS_COMMAND,
  JOB_VERIFY_COMMAND,
  JOB_SCHEMA_COMMAND,
];
