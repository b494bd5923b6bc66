/**
 * The record that `--result-file` holds, field by field: the contract with whoever reads it.
 *
 * Writes nothing and is never loaded by a run; the README's table and the tests are made from it.
 * Always: a record that says it has ended has an outcome, one that says it runs has none; fields
 * that a later version adds are let through.
 */

import { z } from "zod";
import type { OutcomeReason } from "../core/outcome.ts";
import { OUTCOME_TABLE } from "../core/outcome-table.ts";

const outcomeWord = z.enum(OUTCOME_TABLE.map((row) => row.outcome));
/** Keyed by the reasons of core, so that one too many or too few does not compile. */
const REASONS: Readonly<Record<OutcomeReason, string>> = {
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
};
const reason = z.enum(Object.keys(REASONS));
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

const sentSignal = z.looseObject({
  signal: z.string().describe("name of the signal, without SIG"),
  at_ms: spanMs.describe("milliseconds after the start"),
  to: z.enum(["command", "tree"]).describe("main command only, or every member"),
  count: count.describe("processes that it was sent to"),
  why: z.string().describe("what it was sent for"),
});

const leftover = z.looseObject({
  pid: pid.describe("its pid"),
  command: command.describe("its name"),
  ended_by: z.enum(["TERM", "KILL"]).nullable().describe("what ended it, null: it was not ended"),
});

const named = z.looseObject({
  pid: pid.describe("its pid"),
  command: command.describe("its name"),
});
const leftAlone = named.extend({ why: z.string().describe("why it was not touched") });

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

export const resultSchema = z
  .looseObject({
    format: z.literal(1).describe("format of the record; a larger number: another contract"),
    run_id: z.uuidv7().describe("id of the run"),
    job: z.string().min(1).describe("name of the run"),
    state: z.enum(["running", "ended"]).describe("`running` from the start, `ended` at the end"),
    outcome: outcomeWord.nullable().describe("how the run ended, null while it runs"),
    because: reason.nullable().describe("which reason decided the outcome"),
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
    limits: limits.describe("the limits in force"),
    signals: z.array(sentSignal).describe("signals that watchdog sent, in order"),
    leftovers: z.array(leftover).describe("processes alive when the command had ended"),
    kept: z.array(named).describe("processes started by `watchdog keep`"),
    left_alone: z
      .array(leftAlone)
      .describe("processes near the run that are not proven to be its own"),
    unsignalable: z.array(named).describe("processes of the run that may not be signalled"),
    output: output.describe("what the command wrote"),
    log: log.nullable().describe("the log that was kept, null without one"),
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
  });

export type ResultRecord = z.infer<typeof resultSchema>;

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

function fieldsOf(shape: Readonly<Record<string, z.ZodType>>, prefix: string): readonly FieldRow[] {
  return Object.entries(shape).flatMap(([name, field]): readonly FieldRow[] => {
    const path = `${prefix}${name}`;
    const inner = withoutNull(field);
    const own = { path, meaning: field.description ?? "" };
    if (inner instanceof z.ZodObject) return [own, ...fieldsOf(inner.shape, `${path}.`)];
    if (inner instanceof z.ZodArray && inner.element instanceof z.ZodObject) {
      return [own, ...fieldsOf(inner.element.shape, `${path}[].`)];
    }
    return [own];
  });
}

function withoutNull(field: z.ZodType): unknown {
  return field instanceof z.ZodNullable ? field.unwrap() : field;
}
