/**
 * The verdict on what a run has brought about: when it is given, and that it is given once. What it
 * is made of is loaded only when it is needed.
 *
 * Always: only a run that its command calls good is judged; one that was asked for nothing is
 * compared with the good runs before, at its end and never before its start.
 */
import { decideUnchecked, listFailures } from "../core/checks.ts";
import { type Expectations, expectsAnything } from "../core/expectations.ts";
import { decideOutcome } from "../core/outcome.ts";
import type { RunState } from "../core/run-state.ts";
import { awaitNextTick } from "../os/file-tick.ts";
import type { Look } from "./checks/expected-files.ts";
import type { Judged } from "./checks/run-checks.ts";
import type { Course } from "./course.ts";
import type { RunOutput } from "./output.ts";
import type { RunProgress } from "./progress/run-progress.ts";
import { NO_RESULTS } from "./record.ts";

export interface JudgingParts {
  readonly course: Course;
  readonly output: RunOutput;
  /** What the job has told of its items is judged there. */
  readonly progress: Pick<RunProgress, "failure">;
  /** What `lookBefore` has seen. */
  readonly before: readonly Look[];
}

const NOT_JUDGED: Judged = { results: NO_RESULTS, failedChecks: [] };

export class Judging {
  readonly #course: Course;
  readonly #output: RunOutput;
  readonly #progress: JudgingParts["progress"];
  readonly #before: readonly Look[];
  #judged: Promise<Judged> | undefined;

  constructor({ course, output, progress, before }: JudgingParts) {
    this.#course = course;
    this.#output = output;
    this.#progress = progress;
    this.#before = before;
  }

  /** The same answer each time. */
  async judge(state: RunState): Promise<Judged> {
    if (!this.#isGoodSoFar(state)) return NOT_JUDGED;
    this.#judged ??= this.#judge();
    return this.#judged;
  }

  /** Whether the run went well as far as can be told before its output has arrived. */
  async isGood(state: RunState): Promise<boolean> {
    if (!this.#isGoodSoFar(state)) return false;
    return (await this.judge(state)).failedChecks.length === 0;
  }

  #isGoodSoFar(state: RunState): boolean {
    const { successExitCodes } = this.#course.options;
    const finalItemsFailure = this.#progress.failure;
    const told = { successExitCodes, finalItemsFailure, hasLostOutput: false, failedChecks: [] };
    const facts = { ...state, ...told };
    return decideOutcome(facts).name === "ok";
  }

  async #judge(): Promise<Judged> {
    const { options, journal } = this.#course;
    // Nothing was asked for, and there is nothing to compare with.
    if (!expectsAnything(options) && journal === undefined) return NOT_JUDGED;
    try {
      const { judgeRun } = await import("./checks/run-checks.ts");
      return await judgeRun(this.#course, this.#output, this.#before);
    } catch (error) {
      this.#course.ledger.noteBug(error);
      return leaveUnchecked(this.#course.options, error);
    }
  }
}

function leaveUnchecked(asked: Expectations, error: unknown): Judged {
  const checks = decideUnchecked(asked, error instanceof Error ? error.message : String(error));
  return { results: { ...NO_RESULTS, checks }, failedChecks: listFailures(checks) };
}

/** Right before the start: what must be known of the files that the command is to write. */
export async function lookBefore({ options, identity }: Course): Promise<readonly Look[]> {
  if (options.expectFiles.length === 0) return [];
  const { lookAtFiles } = await import("./checks/expected-files.ts");
  const before = await lookAtFiles(identity.cwd, options.expectFiles, "start");
  for (const { newest } of before) await awaitNextTick(newest);
  return before;
}
