/**
 * `watchdog __job`: the runner of a job, inside of the run that has its lease. Reads what it is
 * told from memory, lets the job begin or go on, runs its steps, and tells what has become of it.
 *
 * Always: nothing is done without an order, or without the lease that the run around us was
 * granted. State after a crash: runner.ts; the run around us ends what is left of a step.
 */
import { readVariables } from "../core/environment-entries.ts";
import { EXIT } from "../core/errors.ts";
import { type JobOrder, listStepEnvironment } from "../core/job-order.ts";
import { readSettleEnd, type SettleAnswer } from "../core/job-settle.ts";
import type { StepSpec } from "../core/job-spec.ts";
import type { JobVerdict } from "../core/job-verdict.ts";
import type { GrantedLease } from "../core/journal-entry.ts";
import { decodeKeys } from "../core/lease-key.ts";
import type { Leaving } from "../core/outcome.ts";
import type { StepEnd } from "../core/step-outcome.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { readNewestJob } from "../journal/job-queries.ts";
import { JobStore } from "../journal/job-store.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { setMask } from "../os/mask.ts";
import { say } from "../os/say.ts";
import { encodeName } from "../os/state-dir.ts";
import { ArtifactHandle } from "./artifact-handle.ts";
import { beginJob, type Begun } from "./begin-job.ts";
import { VerdictEnd } from "./channel.ts";
import { findPresent } from "./gather.ts";
import { messages } from "./messages.ts";
import { JobRunner } from "./runner.ts";
import type { StepRunRequest } from "./step-run.ts";
import { runQuestion } from "./step-run.ts";
import { directoryOf, nameOfNestedRun, wordsOf } from "./step-command.ts";
import { StopAsked } from "./stop-asked.ts";
import { tellBegun, tellEnd } from "./telling.ts";
import { leavingOf, NOT_ENDED, refuseBegun, verdictOfEnd, verdictOfStop } from "./verdict.ts";

export interface RunnerCommandRequest {
  readonly inherited: Inheritance;
  /** Of job/artifact-worker.ts. */
  readonly artifactUrl: URL;
  readonly findKept: (
    rows: readonly ProcessRow[],
    stateDirectory: string,
    runId: string,
  ) => ReadonlySet<number>;
}

/** Where the step names no limit of its own. */
const SETTLE_LIMIT_MS = 60_000;
const NOT_ORDERED: Leaving = { kind: "status", code: 64 };

/** @returns how the runner leaves; 64: nobody has told what to run */
export async function runnerCommand(request: RunnerCommandRequest): Promise<Leaving> {
  const channel = VerdictEnd.open();
  const around = channel === undefined ? undefined : readRun(request.inherited.environment);
  if (channel === undefined || around === undefined) return NOT_ORDERED;
  const { spec, masks } = channel.order;
  const own = Object.entries(around.variables).map(([name, value]) => `${name}=${value ?? ""}`);
  setMask({ environment: [...own, ...listStepEnvironment(spec)], patterns: masks });
  try {
    const { verdict, signal } = await new JobCourse(request, channel.order, around).run();
    channel.tell(verdict);
    return leavingOf(verdict, signal);
  } catch (error) {
    // What runs is ended by the run around us, and the journal says that it runs.
    say(messages.bug(error));
    channel.tell(BROKEN_OFF);
    return leavingOf(BROKEN_OFF, undefined);
  }
}

const BROKEN_OFF: JobVerdict = {
  outcome: "wrapper_error",
  because: "job-broken-off",
  statusOf: "watchdog",
  status: EXIT.wrapper_error,
  steps: null,
};

interface RunAround {
  readonly runId: string;
  readonly stateDirectory: string;
  readonly leases: readonly GrantedLease[];
  readonly generation: number;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** @returns undefined: there is no run around us with a lease of the job */
function readRun(environment: readonly Uint8Array[]): RunAround | undefined {
  const variables = readVariables(environment);
  const { WATCHDOG_RUN_ID: runId, WATCHDOG_STATE_DIR: stateDirectory } = variables;
  const { WATCHDOG_JOB: job, WATCHDOG_LEASE: keys, WATCHDOG_GENERATION: numbers } = variables;
  if (runId === undefined || stateDirectory === undefined) return undefined;
  const generations = (numbers ?? "").split(" ").map(Number);
  const leases = decodeKeys(keys ?? "").flatMap((key, index): GrantedLease[] => {
    const generation = generations[index];
    return generation === undefined ? [] : [{ ...key, generation }];
  });
  const own = leases.find(({ kind, name }) => kind === "job" && name === job);
  if (own === undefined) return undefined;
  return { runId, stateDirectory, leases, generation: own.generation, variables };
}

class JobCourse {
  readonly #request: RunnerCommandRequest;
  readonly #order: JobOrder;
  readonly #around: RunAround;
  readonly #artifacts: ArtifactHandle;
  /** Of its own where steps run at the same time: one task is done after the other. */
  readonly #looking: ArtifactHandle;
  readonly #stop: StopAsked;

  constructor(request: RunnerCommandRequest, order: JobOrder, around: RunAround) {
    this.#request = request;
    this.#order = order;
    this.#around = around;
    this.#artifacts = new ArtifactHandle(request.artifactUrl);
    this.#looking =
      order.maxParallel > 1 ? new ArtifactHandle(request.artifactUrl) : this.#artifacts;
    this.#stop = new StopAsked(request.inherited);
  }

  async run(): Promise<{ readonly verdict: JobVerdict; readonly signal: number | undefined }> {
    const { runId, stateDirectory, leases, generation } = this.#around;
    const tell = (line: string): void => say(`watchdog: ${line}`);
    const store = new JobStore({ runId, stateDirectory, leases, generation, tell });
    try {
      const begun = await beginJob({
        order: this.#order,
        stateDirectory,
        run: { runId, generation },
        store,
        looks: { artifacts: this.#artifacts, caller: this.#around.variables },
        settle: (step) => this.#settle(step),
        stop: this.#stop,
      });
      if (begun.kind === "stopped") return this.#leaveStopped();
      if (begun.kind !== "begun") return { verdict: this.#refuse(begun), signal: undefined };
      tellBegun(this.#order, begun);
      const end = await this.#runSteps(store, begun);
      const jobId = store.jobId ?? null;
      tellEnd(this.#order, end);
      return { verdict: verdictOfEnd(this.#order, end, jobId), signal: this.#stop.signal };
    } finally {
      store.close();
      this.#artifacts.close();
      this.#looking.close();
      this.#stop.end();
    }
  }

  #leaveStopped(): { readonly verdict: JobVerdict; readonly signal: number | undefined } {
    const { signal } = this.#stop;
    const { name } = this.#order.spec;
    say(signal === undefined ? messages.heldBackBefore(name) : messages.stoppedBefore(name));
    if (signal === undefined) return { verdict: NOT_ENDED, signal };
    return { verdict: verdictOfStop(signal), signal };
  }

  #refuse(begun: Exclude<Begun, { kind: "begun" | "stopped" }>): JobVerdict {
    const { lines, verdict } = refuseBegun(this.#order, begun);
    for (const line of lines) say(line);
    return verdict;
  }

  async #runSteps(store: JobStore, begun: Extract<Begun, { kind: "begun" }>) {
    const { runId, stateDirectory, generation, variables } = this.#around;
    const { spec } = this.#order;
    const known = readNewestJob(stateDirectory, spec.name);
    const stored = known.kind === "read" ? (known.value?.record.artifacts ?? []) : [];
    const left = Map.groupBy(stored, ({ step }) => step);
    const runner = new JobRunner(
      {
        order: this.#order,
        isForOneStep: begun.isForOneStep,
        planned: begun.steps,
        store,
        stop: this.#stop,
        artifacts: this.#artifacts,
        looking: this.#looking,
        caller: variables,
        directory: spec.directory,
        run: { runId, generation },
        requestOf: (step) => this.#requestOf(step),
        settle: (step) => this.#settle(step),
      },
      left,
    );
    return runner.run();
  }

  #requestOf(step: StepSpec): Omit<StepRunRequest, "step" | "attempt"> {
    const { spec, runWords, nestedWords, maxParallel } = this.#order;
    const { runId, stateDirectory } = this.#around;
    const words = runWords.get(step.name);
    const position = spec.steps.indexOf(step);
    const resultFile = `${stateDirectory}/jobs/.${encodeName(spec.name)}.${runId}.${position}`;
    const isNested = words !== undefined || maxParallel > 1;
    const name = nameOfNestedRun(spec.name, step.name);
    return {
      directory: directoryOf(spec.directory, step),
      nested: isNested
        ? { words: [...nestedWords, ...(words ?? [])], name, resultFile }
        : undefined,
      inherited: this.#request.inherited,
      findKept: (rows) => this.#request.findKept(rows, stateDirectory, runId),
      onLeftovers: (rows) => say(messages.leftovers(step.name, rows)),
      onBug: (error) => say(messages.bug(error)),
    };
  }

  /** Asked once; where it has happened, with what it must have left. */
  async #settle(step: StepSpec): Promise<SettleAnswer> {
    if (step.settle === undefined) return { kind: "unclear", detail: "it has no settle" };
    const request = { ...this.#requestOf(step), step, attempt: 1 };
    const limitMs = step.timeoutMs ?? SETTLE_LIMIT_MS;
    const asked = await runQuestion(request, wordsOf(step.settle), limitMs);
    const { end, reason, signals, unended } = asked;
    this.#stop.note(signals);
    if (unended.length > 0) {
      say(messages.unendedSettle(step.name, unended));
      this.#stop.holdBack();
    }
    const answer = readSettleEnd(end);
    if (answer === "not-happened") return { kind: answer };
    if (answer === "unclear") return { kind: answer, detail: describeUnclear(end, reason) };
    const artifacts = await findPresent(this.#order.spec.directory, step, this.#artifacts);
    return { kind: "happened", artifacts };
  }
}

function describeUnclear(end: StepEnd, reason: string | undefined): string {
  if (end.kind === "exited") return `settle exited with status ${end.code}, not 0 or 1`;
  if (end.kind === "timed-out") return "settle took too long";
  return reason === undefined ? "settle did not come to its end" : `settle: ${reason}`;
}
