/**
 * The record of `watchdog retry --result-file`, for those who read it: what each field means.
 *
 * Never loaded by `watchdog retry` itself. Always: fields that are not described are taken, because
 * a later version may add some.
 */

import { z } from "zod";
import type { AttemptReason } from "../core/retry-record.ts";
import { fieldsOf, type FieldRow, listReasons, reasonWord } from "./result-schema.ts";

/** Keyed by the reasons of core, so that one too many or too few does not compile. */
const REASONS: Readonly<Record<AttemptReason, string>> = {
  succeeded: "it ended with 0: none follows",
  "asked-to-end": "a signal has asked for the end: none follows",
  "never-retried": "it ended with 64, 126 or 127, as it would again: none follows",
  excluded: "`--no-retry-on` names its status: none follows",
  "not-listed": "`--retry-on` does not name its status: none follows",
  failed: "it ended with another status: another one follows",
  signaled: "it died of a signal: another one follows",
  "timed-out": "`--attempt-timeout` ended it: another one follows",
  "not-started": "the system could not start it: another one follows",
  "max-attempts": "it failed and was the last one that `--max-attempts` allows",
  "max-elapsed": "it failed and the time of `--max-elapsed` was over",
};

export const RETRY_REASONS = listReasons(REASONS);

const instant = z.iso.datetime();
const spanMs = z.number().nonnegative();
const status = z.int().min(0).max(255);

const attempt = z.looseObject({
  attempt: z.int().positive().describe("its number, from 1: `WATCHDOG_ATTEMPT`"),
  started_at: instant.describe("when it began (wall clock, UTC)"),
  duration_ms: spanMs.describe("how long it took"),
  exit_code: status.nullable().describe("null: a signal or the limit ended it, or no start"),
  signal: z.string().nullable().describe("signal that it died of"),
  status: status.describe("as a shell shows it: 124 at the limit, 128+N for a signal"),
  because: z.enum(Object.keys(REASONS)).describe("why another one followed, or none"),
  waited_ms: spanMs.describe("the wait before it"),
});

const circuit = z.looseObject({
  name: z.string().describe("that of `--breaker`"),
  state: z.enum(["closed", "open", "half-open", "permanent"]).describe("where it was left"),
});

const build = z.looseObject({
  version: z.string().describe("version of watchdog"),
  commit: z.string().describe("commit it was built from"),
});

export const retrySchema = z
  .looseObject({
    format: z.literal(1).describe("format of the record; a larger number: another contract"),
    state: z.enum(["running", "ended"]).describe("`running` from the start, `ended` at the end"),
    outcome: z.string().nullable().describe("how it ended, as the outcomes of a run"),
    because: reasonWord
      .nullable()
      .describe(
        "which reason decided that, as of a run; `max-attempts`, `max-elapsed`: its bounds",
      ),
    exit_status: status.nullable().describe("what watchdog exited with (128+N for a signal)"),
    status_of: z.enum(["command", "watchdog"]).nullable().describe("whose status that is"),
    command: z.array(z.string()).min(1).describe("the command and its arguments"),
    command_bytes: z
      .array(z.base64())
      .optional()
      .describe("the same in base64, only where an argument is not valid UTF-8"),
    pid: z.int().positive().describe("pid of watchdog"),
    started_at: instant.describe("when it was started (wall clock, UTC)"),
    ended_at: instant.nullable().describe("when it ended, null while it runs"),
    duration_ms: spanMs.nullable().describe("how long it took, with the waits"),
    attempt_count: z.int().nonnegative().describe("attempts that were begun"),
    attempts: z.array(attempt).describe("the first 50 of them and the last 50"),
    circuit: circuit.nullable().describe("null without `--breaker`"),
    watchdog: build.describe("the binary that wrote the record"),
  })
  .refine((record) => (record.state === "ended") === (record.outcome !== null), {
    error: "a record has an outcome exactly when it has ended",
    path: ["outcome"],
  });

/** Every field with its meaning, in the order of the record. */
export function listRetryFields(): readonly FieldRow[] {
  return fieldsOf(retrySchema.shape, "");
}
