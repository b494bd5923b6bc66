/** Lines for people about a job as a whole: how it begins or goes on, and what it leaves open. */
import type { FinishReason } from "../core/job-next.ts";
import type { JobOrder } from "../core/job-order.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import { addPlace } from "../core/own-command.ts";
import type { JobRecord, StepRecord } from "../core/step-record.ts";
import { say } from "../os/say.ts";
import type { Begun } from "./begin-job.ts";
import { messages } from "./messages.ts";
import type { RunnerEnd } from "./runner.ts";
import { countDone, isStopped, isUnchanged, isUnclear, named } from "./tallies.ts";

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
