/**
 * What the end of a job, or its refusal, is for whoever waits for it: the verdict for the run
 * around it, and how the runner leaves. Pure.
 */
import { EXIT } from "../core/errors.ts";
import type { JobOrder } from "../core/job-order.ts";
import type { JobSteps, JobVerdict } from "../core/job-verdict.ts";
import type { Leaving } from "../core/outcome.ts";
import { addPlace } from "../core/own-command.ts";
import type { StepRecord } from "../core/step-record.ts";
import type { Begun } from "./begin-job.ts";
import { messages } from "./messages.ts";
import type { RunnerEnd } from "./runner.ts";
import { countDone, isUnchanged, isUnclear, named } from "./tallies.ts";

export function verdictOfEnd(order: JobOrder, end: RunnerEnd, jobId: string | null): JobVerdict {
  const steps = countSteps(order, [...end.records.values()], jobId, end);
  if (end.kind === "stuck") return { ...STUCK[end.result.kind], steps };
  const { finish } = end;
  const told = { steps, statusOf: "watchdog", status: finish.exitStatus } as const;
  switch (finish.because) {
    case "all-done":
    case "only-done":
      return { ...told, outcome: "ok", because: finish.because };
    case "step-unknown":
      return { ...told, outcome: "unknown", because: "step-unknown" };
    case "step-not-ended":
      return { ...NOT_ENDED, steps };
    case "only-blocked":
    case "step-failed":
      return { ...verdictOfFailure(order, end.records, finish.exitStatus), steps };
    case "step-stopped":
      return { ...told, outcome: "failed", because: "step-stopped" };
    case "stop-asked":
      return { ...told, outcome: "failed", because: "step-failed" };
  }
}

/** Of a job that processes of a `settle` keep from beginning, or from going on. */
export const NOT_ENDED = {
  outcome: "wrapper_error",
  because: "step-not-ended",
  statusOf: "watchdog",
  status: EXIT.wrapper_error,
  steps: null,
} as const satisfies JobVerdict;

/** Of a job that was told to end before it was known how it goes on. */
export function verdictOfStop(signal: number): JobVerdict {
  const status = 128 + signal;
  return { outcome: "failed", because: "step-failed", statusOf: "watchdog", status, steps: null };
}

/** Of those that were asked for the first that has failed decides whose status it is. */
function verdictOfFailure(
  order: JobOrder,
  records: ReadonlyMap<string, StepRecord>,
  status: number,
): Omit<JobVerdict, "steps"> {
  const because = reasonOfFailure(order, records);
  const isOfArtifacts = because?.startsWith("artifact-") === true;
  if (isOfArtifacts && status === EXIT.bad_output) {
    return { outcome: "bad_output", because: "step-artifacts", statusOf: "watchdog", status };
  }
  const isOfRun = because === "run-failed" || because === "not-started";
  if (isOfRun && status === EXIT.dependency_down) {
    return { outcome: "dependency_down", because: "step-failed", statusOf: "watchdog", status };
  }
  // No command has said so: the checks of the run around it have.
  if (because === "run-failed" && status === EXIT.bad_output) {
    return { outcome: "bad_output", because: "step-failed", statusOf: "watchdog", status };
  }
  if (isOfRun && status === EXIT.wrapper_error) {
    return { outcome: "wrapper_error", because: "step-failed", statusOf: "watchdog", status };
  }
  if (because === "timeout" && status === EXIT.timeout) {
    return { outcome: "timeout", because: "step-failed", statusOf: "watchdog", status };
  }
  return { outcome: "failed", because: "step-failed", statusOf: "command", status };
}

function reasonOfFailure(
  { spec, asked }: JobOrder,
  records: ReadonlyMap<string, StepRecord>,
): StepRecord["because"] {
  const names = asked.only === undefined ? spec.steps.map(({ name }) => name) : [asked.only];
  const failed = names.flatMap((name) => records.get(name) ?? []);
  return failed.find(({ state }) => state === "failed")?.because ?? null;
}

const STUCK = {
  fenced: {
    outcome: "lease_lost",
    because: "lease-not-ours",
    statusOf: "watchdog",
    status: EXIT.lease_lost,
  },
  unwritten: {
    outcome: "wrapper_error",
    because: "job-state-unwritten",
    statusOf: "watchdog",
    status: EXIT.wrapper_error,
  },
} as const;

function countSteps(
  order: JobOrder,
  records: readonly StepRecord[],
  jobId: string | null,
  end: RunnerEnd,
): JobSteps {
  return {
    job_id: jobId,
    total: order.spec.steps.length,
    done: countDone(records),
    unchanged: records.filter(isUnchanged).length,
    failed: named(records, ({ state }) => state === "failed"),
    unknown: named(records, (record) => isUnclear(record, order, end)),
  };
}

interface Refusal {
  readonly lines: readonly string[];
  readonly verdict: JobVerdict;
}

/** The job is not run as it is. */
export function refuseBegun(
  { spec, asked, place }: JobOrder,
  begun: Exclude<Begun, { kind: "begun" | "stopped" }>,
): Refusal {
  const { name } = spec;
  const config = {
    outcome: "config_error",
    because: "job-refused",
    statusOf: "watchdog",
    status: EXIT.config_error,
    steps: null,
  } as const;
  switch (begun.kind) {
    case "refused":
      return {
        lines: messages.refusal(spec, begun, asked).map((line) => addPlace(line, place)),
        verdict: config,
      };
    case "lost":
      // It is told as a failure: each night would be refused so.
      return {
        lines: messages.lost(name, begun.reason),
        verdict: { ...config, because: "job-lost" },
      };
    case "unreadable":
      return {
        lines: [messages.unreadable(name, begun.reason)],
        verdict: { ...STUCK.unwritten, steps: null },
      };
    case "fenced":
      return { lines: [messages.fenced(begun.reason)], verdict: { ...STUCK.fenced, steps: null } };
    case "unwritten": {
      const what = asked.verb === "resume" ? "what is gone on with" : "the job";
      const lines = [messages.unwritten(what, begun.reason)];
      return { lines, verdict: { ...STUCK.unwritten, steps: null } };
    }
  }
}

/** A job that was told to end leaves by the signal that has told it, as its steps would. */
export function leavingOf({ status }: JobVerdict, signal: number | undefined): Leaving {
  const isStopped = signal !== undefined && status === 128 + signal;
  return isStopped ? { kind: "signal", signal } : { kind: "status", code: status };
}
