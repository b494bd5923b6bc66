/**
 * The record that `--result-file` holds, field by field: the contract with whoever reads it.
 *
 * Writes nothing and is never loaded by a run; the README's table and the tests are made from it.
 * Always: a record that says it has ended has an outcome, one that says it runs has none; fields
 * that a later version adds are let through.
 */

import { z } from "zod";
import type { ABANDONED_BECAUSE } from "../core/burial.ts";
import type { OutcomeReason } from "../core/outcome.ts";
import { OUTCOME_TABLE } from "../core/outcome-table.ts";
import { artifactFields, CHECK_MEANINGS, checkFields, suspicionFields } from "./check-schema.ts";
import { nameAll } from "./dependency-fields.ts";

const outcomeWord = z.enum(OUTCOME_TABLE.map((row) => row.outcome));
/** Keyed by the reasons of core, so that one too many or too few does not compile. */
const REASONS: Readonly<Record<OutcomeReason | typeof ABANDONED_BECAUSE, string>> = {
  exited: "the command exited",
  "killed-by-signal": "the command died of a signal",
  terminated: "TERM was sent to watchdog",
  interrupted: "INT: Ctrl-C",
  quit: "QUIT: Ctrl-\\",
  "hung-up": "HUP: the terminal is gone",
  timeout: "--timeout",
  idle: "--idle-timeout",
  "not-after": "--not-after",
  "command-not-found": "no such program",
  "command-not-executable": "the program cannot be executed",
  "command-not-started": "the system could not start it",
  "tree-not-ended": "a process outlived even KILL",
  "output-not-written": "the command went well, but its output could not be written",
  ...CHECK_MEANINGS,
  "lease-held": "the lease was not to be had: `held_by` tells why",
  "lease-unknowable": "nobody can tell whether the lease is free",
  "lease-unusable": "the system did not let the lease be had",
  "lease-not-ours": "the record of the lease names another run",
  "probe-unusable": "what is to be probed cannot be, as it is written",
  "circuit-opened": "a dependency was down while the command ran: its circuit opened",
  "circuit-open": "a dependency was down before the start: its circuit was open",
  "trial-failed": "the circuit of a dependency was open, and the one trial of it failed",
  "startup-wait": "a dependency did not answer well within --probe-startup-wait",
  "max-attempts": "a dependency was down for as many attempts as were allowed",
  "max-elapsed": "a dependency was down for as long as was allowed",
  "too-many-failed": "more of its items failed than --max-fail-rate allows",
  "too-many-failed-in-row": "as many items in a row failed as --max-consecutive-fails says",
  "all-done": "all steps of the job are done",
  "only-done":
    "the step that --only names is done: that is neither a success of the job nor a failure",
  "step-failed": "a step of the job has failed",
  "step-stopped": "a step of the job was stopped on request, and runs again when the job goes on",
  "step-artifacts": "a step of the job said that all is well, and its artifacts are not there",
  "step-unknown": "whether a step of the job has happened is for a person to say",
  "step-not-ended": "processes of a step outlived even KILL: nothing is started beside them",
  "job-refused": "the job cannot be begun, or gone on with, as it is",
  "job-lost": "what was known of the job is lost, so that it cannot be gone on with",
  "job-broken-off": "the runner of the job met trouble of its own",
  "job-state-unwritten": "the journal did not take the state of a step of the job",
  "watchdog-killed": "watchdog was killed; nobody saw how the command ended",
};
export const reasonWord = z.enum(Object.keys(REASONS));
const instant = z.iso.datetime();
const spanMs = z.number().nonnegative();
const count = z.int().nonnegative();
const pid = z.int().positive();
const status = z.int().min(0).max(255);
const command = z.string();

const limits = z.looseObject({
  timeout_ms: spanMs.nullable().describe("--timeout, null without one"),
  idle_timeout_ms: spanMs.nullable().describe("--idle-timeout, null without one"),
  not_after: z.string().nullable().describe("--not-after, null without one"),
});

const jobSteps = z.looseObject({
  job_id: z.string().nullable().describe("id of the job, null: it was not begun"),
  total: count.describe("how many steps it has"),
  done: count.describe("how many of them are done"),
  unchanged: count.describe("how many of those were not run, because nothing has changed"),
  failed: z.array(z.string()).describe("names of steps that have failed"),
  unknown: z.array(z.string()).describe("names of steps of which a person must decide"),
});

const sentSignal = z.looseObject({
  signal: z.string().describe("name of the signal, without SIG"),
  at_ms: spanMs.describe("milliseconds after the start"),
  to: z.enum(["command", "tree"]).describe("main command only, or every member"),
  count: count.describe("processes that it was sent to"),
  why: z.string().describe("what it was sent for"),
});

const leftover = z.looseObject({
  pid: pid.describe("its pid"),
  command: command.describe("its command line, cut where it is long"),
  ended_by: z.enum(["TERM", "KILL"]).nullable().describe("what ended it, null: it was not ended"),
});

const named = z.looseObject({
  pid: pid.describe("its pid"),
  command: command.describe("its command line, cut where it is long"),
});
const leftAlone = named.extend({ why: z.string().describe("why it was not touched") });

const lease = z.looseObject({
  kind: z.string().min(1).describe("kind of its key"),
  name: z.string().min(1).describe("name of its key"),
  generation: z.int().positive().describe("number of the grant; a later one is larger"),
});

const holder = z.looseObject({
  key: z.string().describe("the key, as kind:name"),
  because: z
    .string()
    .describe(
      "what was in the way: `newcomer[].because` of `lease explain`, `survivors-remain`, " +
        "`fenced-around`, `repair-at-work`, `repair-cooldown`, `worktree-in-use` or " +
        "`worktree-unread`",
    ),
  run_id: z.uuidv7().nullable().describe("id of the run that holds it, or is in the way"),
  runner: z.string().nullable().describe("who that is, as user@host"),
  pid: pid.nullable().describe("pid of its watchdog, or of whoever else is in the way"),
  since: instant.nullable().describe("when it was granted the lease (wall clock, UTC)"),
});

const items = z.looseObject({
  ok: count.describe("items that went well"),
  failed: count.describe("items that failed"),
  total: count.nullable().describe("how many there are to do, null: it did not say"),
  checkpoint: z.string().nullable().describe("the last one that it named, null: none"),
  ignored: count.describe("lines of the progress file that could not be read as one"),
  rate_per_minute: z
    .number()
    .nonnegative()
    .nullable()
    .describe("items per minute over the whole run, without pauses; null: too short to tell"),
  last_message: z.string().nullable().describe("the last one that it told, null: none"),
});

const output = z.looseObject({
  stdout_bytes: count.nullable().describe("bytes that the command wrote to stdout"),
  stderr_bytes: count.nullable().describe("bytes that the command wrote to stderr"),
  last_output_at: instant.nullable().describe("when it last wrote, null: never"),
  is_copied: z
    .boolean()
    .describe("false: the command has the descriptors themselves, nothing counted"),
  write_error: z.string().nullable().describe("why output could not be written, null: it could"),
});

const log = z.looseObject({
  path: z.string().nullable().describe("the file, null: nothing was kept"),
  kept_bytes: count.describe("bytes in the file"),
  omitted_bytes: count.describe("bytes left out of the middle (--log-max)"),
  dropped_bytes: count.describe("bytes that the disk could not take"),
  because: z.string().nullable().describe("why nothing or not all was kept"),
});

const build = z.looseObject({
  version: z.string().describe("version of watchdog"),
  commit: z.string().describe("commit it was built from"),
});

const dependency = z.looseObject({
  name: z.string().describe("of its circuit, or of the readiness probe"),
  role: z.enum(["liveness", "readiness"]).describe("which question is asked"),
  target: z
    .string()
    .describe("what is asked, without credentials and query, of a `cmd:` the first word alone"),
  policy: z.enum(["stop", "pause", "notify"]).describe("what is done where it is away"),
  state: z
    .enum(["unknown", "closed", "open", "half-open", "permanent", "ready", "unready"])
    .describe("where its circuit stood, or whether it was ready"),
  probes: count.describe("probes that this run has made"),
  failed_probes: count.describe("those of them that were not good"),
  last_because: z
    .string()
    .nullable()
    .describe(
      "what the last known probe found, of whichever run, as `because` of `watchdog probe`",
    ),
  last_detail: z.string().nullable().describe("the same in words"),
  last_at: instant.nullable().describe("when that was (wall clock, UTC)"),
});

export const resultSchema = z
  .looseObject({
    format: z.literal(1).describe("format of the record; a larger number: another contract"),
    run_id: z.uuidv7().describe("id of the run"),
    run_path: z
      .string()
      .describe("ids of the runs around it, outermost first, `/` between them, its own last"),
    job: z.string().min(1).describe("name of the run"),
    state: z.enum(["running", "ended"]).describe("`running` from the start, `ended` at the end"),
    outcome: outcomeWord.nullable().describe("how the run ended, null while it runs"),
    because: reasonWord.nullable().describe("which reason decided the outcome"),
    exit_status: status.nullable().describe("what watchdog exited with (128+N for a signal)"),
    status_of: z.enum(["command", "watchdog"]).nullable().describe("whose status that is"),
    exit_code: status.nullable().describe("exit code of the command, null if it did not exit"),
    signal: z.string().nullable().describe("signal that the command died of, null if it exited"),
    command: z.array(z.string()).min(1).describe("the command and its arguments"),
    command_bytes: z
      .array(z.base64())
      .optional()
      .describe("the same in base64, only where an argument is not valid UTF-8"),
    cwd: z.string().nullable().describe("working directory, null if it was gone"),
    pid: pid.describe("pid of watchdog"),
    child_pid: pid.nullable().describe("pid of the command, null if it was not started"),
    started_at: instant.describe("when the run started (wall clock, UTC)"),
    ended_at: instant.nullable().describe("when it ended (wall clock, UTC), null while it runs"),
    duration_ms: spanMs.nullable().describe("how long it took, without time in suspend"),
    suspended_ms: spanMs.describe("time that the machine was suspended during the run"),
    paused_ms: spanMs.describe("time that the tree stood still because of a dependency"),
    leases: z.array(lease).describe("leases that the run was granted, in the order of their keys"),
    held_by: holder
      .nullable()
      .describe(
        "where the outcome is `locked`: who has the lease, or is in the way; null: not known",
      ),
    guard: z.boolean().describe("a guard stood by to end the tree if watchdog were killed"),
    limits: limits.describe("the limits in force"),
    dependencies: z.array(dependency).describe("what the run was told to probe"),
    signals: z
      .array(sentSignal)
      .describe("signals that watchdog sent, in order, but those of a pause"),
    leftovers: z.array(leftover).describe("processes alive when the command had ended"),
    kept: z.array(named).describe("processes started by `watchdog keep`"),
    left_alone: z
      .array(leftAlone)
      .describe("processes near the run that are not proven to be its own"),
    unsignalable: z.array(named).describe("processes of the run that may not be signalled"),
    items: items.nullable().describe("what the job told of its items, null: nothing"),
    steps: jobSteps
      .nullable()
      .describe("of a job of many steps, once it has ended by itself; null: it is none"),
    output: output.describe("what the command wrote"),
    log: log.nullable().describe("the log that was kept, null without one"),
    checks: z
      .array(checkFields)
      .describe("what the command must bring about; none where it has not ended well itself"),
    artifacts: z.array(artifactFields).describe("what the expected files hold"),
    suspicions: z.array(suspicionFields).describe("what is far from usual in a run that went well"),
    degraded: z.array(z.string()).describe("promises that do not hold on this machine"),
    dropped_lines: count.describe("lines of watchdog's own that stderr had no room for"),
    watchdog: build.describe("the binary that wrote the record"),
  })
  .refine((record) => (record.state === "ended") === (record.outcome !== null), {
    error: "a record has an outcome exactly when it has ended",
    path: ["outcome"],
  })
  .refine((record) => (record.state === "ended") === (record.ended_at !== null), {
    error: "a record has an end exactly when it has ended",
    path: ["ended_at"],
  })
  .refine((record) => record.outcome === "locked" || record.held_by === null, {
    error: "a record names a holder only where the lease was held",
    path: ["held_by"],
  });

export type ResultRecord = z.infer<typeof resultSchema>;

/** One word of `because`. */
export interface ReasonRow {
  readonly because: string;
  readonly meaning: string;
}

export const RESULT_REASONS = listReasons(REASONS);

export function listReasons(reasons: Readonly<Record<string, string>>): readonly ReasonRow[] {
  return Object.entries(reasons).map(([because, meaning]) => ({ because, meaning }));
}

export interface FieldRow {
  /** `limits.timeout_ms`, `signals[].to`. */
  readonly path: string;
  readonly meaning: string;
}

/**
 * Every field of the record with its meaning, in the order of the record; parts follow their whole.
 */
export function listFields(): readonly FieldRow[] {
  return fieldsOf(resultSchema.shape, "");
}

/** Of any record; parts follow their whole. */
export function fieldsOf(
  shape: Readonly<Record<string, z.ZodType>>,
  prefix: string,
): readonly FieldRow[] {
  return Object.entries(shape).flatMap(([name, field]): readonly FieldRow[] => {
    const path = `${prefix}${name}`;
    const inner = withoutNull(field);
    const own = { path, meaning: meaningOf(field, inner) };
    if (inner instanceof z.ZodObject) return [own, ...fieldsOf(inner.shape, `${path}.`)];
    if (inner instanceof z.ZodArray && inner.element instanceof z.ZodObject) {
      return [own, ...fieldsOf(inner.element.shape, `${path}[].`)];
    }
    return [own];
  });
}

/** Longer lists are tables of their own. */
const MOST_LISTED = 8;

/** The description, with the words of a field that has few and does not name them already. */
function meaningOf({ description = "" }: z.ZodType, inner: unknown): string {
  if (!(inner instanceof z.ZodEnum) || inner.options.length > MOST_LISTED) return description;
  const words = inner.options.map(String);
  const areNamed = words.every((word) => description.includes(nameAll([word])));
  return areNamed ? description : `${description}; one of ${nameAll(words)}`;
}

function withoutNull(field: z.ZodType): unknown {
  return field instanceof z.ZodNullable ? field.unwrap() : field;
}
