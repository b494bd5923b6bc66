/**
 * The course of a job in progress as a pure machine: what is started next, and how the job ends.
 * Knows no process and no clock.
 *
 * Always: a step is started once, and only when all that it needs is done; of those that could
 * start, the first in the order of the job does; never more run at a time than allowed; once
 * somebody has asked for the end, or processes of a step have outlived KILL, nothing is started any
 * more; the job ends when nothing runs and nothing can be started.
 */
import { assert, EXIT } from "./errors.ts";
import { linkSteps, type StepNode } from "./job-graph.ts";
import { statusOf } from "./retry.ts";
import { numberOfSignal } from "./signals.ts";
import { STOPPED_STATUS } from "./step-outcome.ts";
import type { JobState, StepRecord, StepState } from "./step-record.ts";

/**
 * How a job is called that was begun for one step alone and has come to its end: the next run
 * begins anew, or tonight's steps would be those of yesterday.
 */
export const OVER_FOR_ONE_STEP = "only-over";

/** Of a job about which a person must decide. */
export const UNKNOWN_STATUS = 3;

/** The steps by their places in the order. */
interface Graph {
  readonly names: readonly string[];
  readonly places: ReadonlyMap<string, number>;
  readonly dependents: readonly (readonly number[])[];
  /** The only one that may be started; undefined: all of them. */
  readonly only: number | undefined;
  readonly isDoubted: boolean;
}

/** `--only`. */
export interface RunAlone {
  readonly only?: string | undefined;
  /** Of the others one is called done which is not as it was: with it the job is not done. */
  readonly isDoubted?: boolean;
}

/** Never changed: each event gives a new one. */
export interface JobProgress {
  readonly graph: Graph;
  /** By place. */
  readonly states: readonly StepState[];
  /** By place: how many of the steps that it needs are not done. */
  readonly open: readonly number[];
  /** By place: what a failed step leads to as the exit status of the job. */
  readonly statuses: ReadonlyMap<number, number>;
  /** By place: without side effects, and ended by somebody who has not asked for the job's end. */
  readonly stopped: ReadonlySet<number>;
  readonly running: number;
  /** By which somebody has asked for the end; undefined: nobody has. */
  readonly stopSignal: number | undefined;
  /** Processes of a step have outlived KILL: nothing may be started beside them. */
  readonly isHeldBack: boolean;
}

/** Of a step that was started, and is no longer running. */
export type JobEvent =
  | { readonly kind: "step-done"; readonly step: string }
  /** For good: one that is tried again still counts as running. @param status  not 0 */
  | { readonly kind: "step-failed"; readonly step: string; readonly status: number }
  | { readonly kind: "step-unknown"; readonly step: string }
  /** Told to stop, or nobody knows and `settle` has not been asked. */
  | { readonly kind: "step-interrupted"; readonly step: string }
  /** The same of one without side effects that alone was told to stop: it runs at a resume. */
  | { readonly kind: "step-stopped"; readonly step: string }
  | { readonly kind: "stop-asked"; readonly signal: number }
  | { readonly kind: "step-not-ended" };

/** Of the job as a whole. */
type JobWideEvent = "stop-asked" | "step-not-ended";

export type JobNext =
  /** In this order; they count as running in `progress`. */
  | {
      readonly kind: "start";
      readonly steps: readonly string[];
      readonly progress: JobProgress;
    }
  | { readonly kind: "wait" }
  | {
      readonly kind: "finish";
      readonly state: Exclude<JobState, "running">;
      readonly exitStatus: number;
      readonly because: FinishReason;
    };

export type FinishReason =
  | "all-done"
  /** A person, or the time limit of the whole job. */
  | "stop-asked"
  | "step-unknown"
  | "step-failed"
  /** Processes of a step have outlived KILL, and something was left to do. */
  | "step-not-ended"
  /** Somebody has stopped a step without side effects, and nothing else went wrong. */
  | "step-stopped"
  /** `--only`: what was to be run is done. */
  | "only-done"
  /** `--only`: it cannot be run, because something that it needs is not done. */
  | "only-blocked";

/**
 * @param order  as `orderSteps` gives it
 * @param records  as the journal has them, without one that is running
 */
export function beginProgress(
  order: readonly StepNode[],
  records: ReadonlyMap<string, StepRecord>,
  { only, isDoubted = false }: RunAlone = {},
): JobProgress {
  const { needs, dependents } = linkSteps(order);
  const names = order.map(({ name }) => name);
  const places = new Map(names.map((name, place) => [name, place]));
  const states = names.map((name) => records.get(name)?.state ?? "pending");
  assert(!states.includes("running"), "a step runs in a job that only begins to run");
  const failed = names.flatMap((name, place) => {
    const record = records.get(name);
    return record?.state === "failed" ? [[place, statusOfRecord(record)] as const] : [];
  });
  return {
    graph: {
      names,
      places,
      dependents,
      only: only === undefined ? undefined : places.get(only),
      isDoubted,
    },
    states,
    open: needs.map((list) => list.filter((need) => states[need] !== "done").length),
    statuses: new Map(failed),
    stopped: new Set(),
    running: 0,
    stopSignal: undefined,
    isHeldBack: false,
  };
}

/** What a failed step leads to where it was not run now; 1 where nothing is known of its end. */
function statusOfRecord({ exitCode, signal, because }: StepRecord): number {
  if (because === "timeout") return statusOf({ kind: "timed-out" });
  const number = signal === null ? undefined : numberOfSignal(signal);
  if (number !== undefined) return statusOf({ kind: "signaled", signal: number });
  return exitCode === null || exitCode === 0 ? 1 : exitCode;
}

export function noteEvent(progress: JobProgress, event: JobEvent): JobProgress {
  if (event.kind === "stop-asked") {
    return { ...progress, stopSignal: progress.stopSignal ?? event.signal };
  }
  if (event.kind === "step-not-ended") return { ...progress, isHeldBack: true };
  const { graph, states, open } = progress;
  const place = graph.places.get(event.step);
  assert(place !== undefined && states[place] === "running", "a step has ended that did not run");
  const ended = { ...progress, running: progress.running - 1 };
  const state = STATES[event.kind];
  const changed = { ...ended, states: states.with(place, state) };
  if (event.kind === "step-failed") {
    return { ...changed, statuses: new Map([...progress.statuses, [place, event.status]]) };
  }
  if (event.kind === "step-stopped") {
    return { ...changed, stopped: new Set([...progress.stopped, place]) };
  }
  return state === "done" ? { ...changed, open: closeNeed(graph, open, place) } : changed;
}

const STATES = {
  "step-done": "done",
  "step-failed": "failed",
  "step-unknown": "unknown",
  "step-interrupted": "interrupted",
  "step-stopped": "interrupted",
} as const satisfies Record<Exclude<JobEvent["kind"], JobWideEvent>, StepState>;

function closeNeed({ dependents }: Graph, open: readonly number[], place: number): number[] {
  const left = [...open];
  for (const dependent of dependents[place] ?? []) left[dependent] = (left[dependent] ?? 0) - 1;
  return left;
}

/** @param maxParallel  at least 1 */
export function decideNextSteps(progress: JobProgress, maxParallel: number): JobNext {
  const ready = listReady(progress, maxParallel - progress.running);
  if (ready.length > 0) {
    const states = [...progress.states];
    for (const place of ready) states[place] = "running";
    const running = progress.running + ready.length;
    const steps = ready.flatMap((place) => progress.graph.names[place] ?? []);
    return { kind: "start", steps, progress: { ...progress, states, running } };
  }
  return progress.running > 0 ? { kind: "wait" } : finish(progress);
}

function listReady(progress: JobProgress, most: number): number[] {
  const { stopSignal, isHeldBack } = progress;
  return stopSignal !== undefined || isHeldBack ? [] : listOpen(progress, most);
}

/** What could be started if nothing kept it back. */
function listOpen({ graph, states, open }: JobProgress, most: number): number[] {
  const ready: number[] = [];
  for (let place = 0; place < states.length && ready.length < most; place += 1) {
    if (graph.only !== undefined && graph.only !== place) continue;
    if (states[place] === "pending" && open[place] === 0) ready.push(place);
  }
  return ready;
}

type Finish = Extract<JobNext, { kind: "finish" }>;

function finish(progress: JobProgress): Finish {
  const { states, stopSignal, graph } = progress;
  const isDone = states.every((state) => state === "done") && !graph.isDoubted;
  if (isDone) return end("done", "all-done", 0);
  if (stopSignal !== undefined) return end("interrupted", "stop-asked", 128 + stopSignal);
  if (progress.isHeldBack && isLeftToDo(progress)) {
    return end("interrupted", "step-not-ended", EXIT.wrapper_error);
  }
  return graph.only === undefined ? finishWhole(progress) : finishOnly(progress, graph.only);
}

/** A step would be started, or gone on with, or asked about, if nothing kept it back. */
function isLeftToDo(progress: JobProgress): boolean {
  const { states, graph } = progress;
  const isInterrupted = (place: number): boolean => states[place] === "interrupted";
  const places = graph.only === undefined ? [...states.keys()] : [graph.only];
  return places.some(isInterrupted) || listOpen(progress, 1).length > 0;
}

function end(state: Finish["state"], because: FinishReason, exitStatus: number): Finish {
  return { kind: "finish", state, because, exitStatus };
}

function finishWhole({ states, statuses, stopped }: JobProgress): Finish {
  const isUnclear = states.some(
    (state, place) => state === "unknown" || (state === "interrupted" && !stopped.has(place)),
  );
  if (isUnclear) return end("unknown", "step-unknown", UNKNOWN_STATUS);
  if (statuses.size === 0 && stopped.size > 0) {
    return end("interrupted", "step-stopped", STOPPED_STATUS);
  }
  if (statuses.size === 0) return end("interrupted", "only-blocked", 1);
  // By the order of the job: which of two has failed first is a matter of luck.
  return end("failed", "step-failed", statuses.get(Math.min(...statuses.keys())) ?? 1);
}

/** The job stands as it does; the exit status speaks of what was to be run. */
function finishOnly({ states, statuses, stopped }: JobProgress, only: number): Finish {
  const whole = stateOf(states);
  const state = states[only];
  if (state === "done") return end(whole, "only-done", 0);
  if (stopped.has(only)) return end(whole, "step-stopped", STOPPED_STATUS);
  const isUnclear = state === "unknown" || state === "interrupted";
  if (isUnclear) return end("unknown", "step-unknown", UNKNOWN_STATUS);
  const status = statuses.get(only);
  if (status === undefined) return end(whole, "only-blocked", 1);
  return end(whole, "step-failed", status);
}

/** Of a job that nobody carries further; one that was interrupted is for who goes on with it. */
function stateOf(states: readonly StepState[]): Finish["state"] {
  if (states.includes("unknown")) return "unknown";
  return states.includes("failed") ? "failed" : "interrupted";
}
