/**
 * What the end of a job, or its refusal, is for whoever waits for it: lines for people, the verdict
 * for the run around it, and how the runner leaves. Pure, but for the lines.
 */
import { EXIT } from "../core/errors.ts";
import type { FinishReason } from "../core/job-next.ts";
import type { JobOrder } from "../core/job-order.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import type { JobSteps, JobVerdict } from "../core/job-verdict.ts";
import type { JobSpec } from "../core/job-spec.ts";
import type { Leaving } from "../core/outcome.ts";
import { addPlace } from "../core/own-command.ts";
import type { JobRecord, StepRecord } from "../core/step-record.ts";
import { say } from "../os/say.ts";
import type { Begun } from "./begin-job.ts";
import { messages } from "./messages.ts";
import type { RunnerEnd } from "./runner.ts";

/** What was begun, or is gone on with. */
export function tellBegun(
  { spec, asked, tells }: JobOrder,
  begun: Extract<Begun, { kind: "begun" }>,
): void {
  const { steps, how } = begun;
  const records = steps.map(({ record }) => record);
  const unchanged = records.filter(isUnchanged);
  if (how === "resume") {
    say(messages.goesOn(spec.name, countDone(records), records.length));
    for (const { step } of steps.filter(isSettled).map(({ record }) => record)) {
      say(messages.happened(step));
    }
    const isCertain = findCertain(spec, asked, records);
    for (const { record } of steps.filter(isSentBack)) {
      say(messages.sentBack(record, isCertain(record.step)));
    }
  } else if (tells === "all") {
    say(messages.begins(spec.name, records.length, unchanged.length));
    for (const { step } of unchanged) say(messages.unchanged(step));
  }
  const alreadyDone = findAlreadyDone(asked, steps);
  if (alreadyDone !== undefined) say(messages.alreadyDone(alreadyDone));
}

/** What needs another one that is not done is run only when that has gone well. */
function findCertain(
  { steps }: JobOrder["spec"],
  { only }: JobOrder["asked"],
  records: readonly StepRecord[],
): (name: string) => boolean {
  const done = new Set(named(records, ({ state }) => state === "done"));
  const needs = new Map(steps.map((step) => [step.name, step.needs]));
  return (name) =>
    (only === undefined || only === name) && (needs.get(name) ?? []).every((one) => done.has(one));
}

function isSentBack({ record, todo, isChanged }: PlannedStep): boolean {
  return todo === "run" && isChanged && record.because !== null;
}

function isSettled({ record, isChanged }: PlannedStep): boolean {
  return isChanged && record.state === "done" && record.because === "settled-happened";
}

/** @returns what was asked for alone and is done, as it was left; undefined: there is none */
export function findAlreadyDone(
  { only }: JobOrder["asked"],
  steps: readonly PlannedStep[],
): string | undefined {
  const meant = steps.find(({ record }) => record.step === only);
  if (meant?.record.state !== "done") return undefined;
  return meant.isChanged && SAID_DONE.includes(meant.because) ? undefined : only;
}

/** Now: by a person, or by its settle. */
const SAID_DONE: readonly PlannedStep["because"][] = ["accepted-done", "settled-happened"];

/** What a person should know at the end, when nothing has told it yet. */
export function tellEnd(order: JobOrder, end: RunnerEnd): void {
  const { spec, place, asked } = order;
  const records = [...end.records.values()];
  const reason = end.kind === "finished" ? end.finish.because : undefined;
  const isCutShort = reason === "stop-asked" || reason === "step-not-ended";
  tellOpen(order, records, {
    isUnclear: (record) => isUnclear(record, order, end),
    isCutOff: ({ state }) => isCutShort && state === "interrupted",
  });
  if (reason === "step-not-ended") {
    const isLeft = ({ step, state }: StepRecord): boolean =>
      state !== "done" && (asked.only === undefined || asked.only === step);
    say(messages.heldBack(named(records, isLeft)));
    return say(addPlace(messages.hintResume(spec.file), place));
  }
  if (end.kind === "stuck" || end.finish.state === "done") return;
  // What only `--only` has kept from starting is no news.
  if (asked.only !== undefined) {
    const meant = records.filter(({ step }) => step === asked.only);
    for (const line of linesOfRefused(spec.file, meant)) say(addPlace(line, place));
    return;
  }
  if (!BLOCKED.includes(end.finish.because)) return;
  for (const line of linesOfWaiting(spec, records)) say(addPlace(line, place));
}

/** The runner was killed before it could tell: the same by what the journal has. */
export function tellKilled(order: JobOrder, { state, steps }: JobRecord): void {
  if (state !== "running") return;
  tellOpen(order, steps, {
    isUnclear: (record) => record.state === "unknown",
    isCutOff: (record) => record.state === "running" || record.state === "interrupted",
  });
}

interface Open {
  /** Nobody but a person can tell of it. */
  readonly isUnclear: (record: StepRecord) => boolean;
  /** Ended in the middle: that counts where it is unsafe. */
  readonly isCutOff: (record: StepRecord) => boolean;
}

/** Of which steps nobody knows, and who can tell. */
function tellOpen(
  { spec, place }: JobOrder,
  records: readonly StepRecord[],
  { isUnclear: isAlready, isCutOff }: Open,
): void {
  const unsafe = new Map(
    spec.steps.filter((step) => step.sideEffects === "unsafe").map((step) => [step.name, step]),
  );
  const cutOff = named(records, (record) => unsafe.has(record.step) && isCutOff(record));
  const asked = cutOff.filter((name) => unsafe.get(name)?.settle !== undefined);
  const open = new Set(cutOff.filter((name) => !asked.includes(name)));
  const unknown = named(records, (record) => isAlready(record) || open.has(record.step));
  if (unknown.length > 0) {
    say(messages.unknown(unknown));
    say(addPlace(messages.decide(spec.file, unknown[0] ?? ""), place));
  }
  if (asked.length > 0) say(messages.settleWillTell(asked));
}

const BLOCKED: readonly FinishReason[] = ["step-failed", "step-unknown", "step-stopped"];

/** What has not run, and what a person has to say before it would. */
function linesOfWaiting(
  { file, steps }: JobOrder["spec"],
  records: readonly StepRecord[],
): readonly string[] {
  const done = new Set(named(records, ({ state }) => state === "done"));
  const ready = new Set(
    steps.flatMap(({ name, needs }) => (needs.every((one) => done.has(one)) ? name : [])),
  );
  const pending = named(records, ({ state }) => state === "pending");
  const blocked = pending.filter((name) => !ready.has(name));
  const settled = named(
    records,
    ({ state, because }) => state === "failed" && because === "settled-not-happened",
  );
  const stopped = named(records, (record) => isStopped(record, steps));
  return [
    ...(stopped.length === 0 ? [] : [messages.stoppedPending(stopped)]),
    ...linesOfRefused(file, records),
    ...(settled.length === 0 ? [] : [messages.settledPending(settled)]),
    ...(blocked.length === 0 ? [] : [messages.blocked(blocked)]),
  ];
}

function linesOfRefused(file: string, records: readonly StepRecord[]): readonly string[] {
  const refused = records.filter(
    ({ state, because }) => state === "failed" && because === "accepted-fail",
  );
  return refused.flatMap(({ step }) => messages.staysFailed(file, step));
}

/**
 * Interrupted ones are asked at the next resume, if somebody has asked for the end, or for another
 * step alone.
 */
function isUnclear(record: StepRecord, { spec, asked }: JobOrder, end: RunnerEnd): boolean {
  const { step, state } = record;
  if (state === "unknown") return true;
  if (state !== "interrupted" || isStopped(record, spec.steps)) return false;
  if (asked.only !== undefined && step !== asked.only) return false;
  return end.kind === "finished" && end.finish.state === "unknown";
}

/** It can run a second time: nobody need decide about it. */
function isStopped({ step, state }: StepRecord, steps: JobSpec["steps"]): boolean {
  if (state !== "interrupted") return false;
  return steps.find(({ name }) => name === step)?.sideEffects === "none";
}

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

function countDone(records: readonly StepRecord[]): number {
  return records.filter(({ state }) => state === "done").length;
}

function isUnchanged({ state, because }: StepRecord): boolean {
  return state === "done" && because === "unchanged";
}

function named(
  records: readonly StepRecord[],
  isMeant: (record: StepRecord) => boolean,
): readonly string[] {
  return records.filter(isMeant).map(({ step }) => step);
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
