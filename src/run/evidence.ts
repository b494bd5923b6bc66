/**
 * What `-v` tells: the evidence behind each decision of a run, in the words of the record. Pure
 * text.
 */
import type { Outcome } from "../core/outcome.ts";
import type { OutputSummary, RunRecord } from "../core/run-record.ts";
import { shownStatus } from "../core/run-record.ts";
import type { Course } from "./course.ts";

/** Before the command runs: who the run is, and what was decided about its surroundings. */
export function describeStart(course: Course, copied: readonly string[]): string[] {
  const { identity, request, stateDirectory } = course;
  const { hasTerminal, inbornChildren } = request.inherited;
  const group = hasTerminal ? "shared, /dev/tty can be opened" : "its own, no terminal";
  const output = copied.length === 0 ? "inherited" : `copied: ${copied.join(", ")}`;
  return [
    `watchdog: run ${identity.runId} of job ${identity.jobName}, state in ${stateDirectory}`,
    `watchdog: process group ${group}; output ${output}; ` +
      `${inbornChildren.length} children from before the run`,
  ];
}

/** After it: why the outcome is what it is. */
export function describeEnd(outcome: Outcome, record: RunRecord): string[] {
  const whose = `status ${shownStatus(outcome.leaving)} of ${outcome.statusOf}`;
  return [
    ...record.signals.map(
      (one) =>
        `watchdog: after ${one.at_ms} ms ${one.signal} to ${one.count} of the ${one.to}, ` +
        one.why,
    ),
    `watchdog: ${describeOutput(record.output)}`,
    `watchdog: outcome ${outcome.name} because ${outcome.because}, ${whose}, ` +
      `after ${record.duration_ms ?? 0} ms`,
  ];
}

function describeOutput(output: OutputSummary): string {
  if (!output.is_copied) return "output not copied, not counted";
  const counts = `${output.stdout_bytes ?? 0} and ${output.stderr_bytes ?? 0} bytes`;
  return `output ${counts}, the last at ${output.last_output_at ?? "no time"}`;
}
