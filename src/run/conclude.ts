/**
 * The end of a run: names what is left, decides the outcome, tells it on stderr where a person must
 * know, writes the record.
 */
import { decideOutcome, type Leaving, type Outcome } from "../core/outcome.ts";
import type { RunState } from "../core/run-state.ts";
import type { NamedProcess } from "../core/run-record.ts";
import { faultPoint } from "../os/faults.ts";
import { say } from "../os/say.ts";
import { nameProcesses, type Tree } from "../tree/tree.ts";
import type { Course } from "./course.ts";
import { describeEnd } from "./evidence.ts";
import { forgetKept } from "./kept-registry.ts";
import { messages } from "./messages.ts";
import type { RunOutput } from "./output.ts";
import { recordOfEnded, writeRecord } from "./record.ts";

export interface EndedRun {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly tree: Tree;
  readonly state: RunState;
}

/** The status is decided first: whatever goes wrong in telling it does not change it. */
export function conclude(run: EndedRun): Leaving {
  const { successExitCodes } = run.course.options;
  const outcome = decideOutcome({
    ...run.state,
    successExitCodes,
    hasLostOutput: run.output.writeError() !== undefined,
  });
  try {
    report(run, outcome);
  } catch (error) {
    run.course.ledger.noteBug(error);
  }
  return outcome.leaving;
}

function report(run: EndedRun, outcome: Outcome): void {
  const { course, state, output } = run;
  const hasChildren = run.tree.hasChildren();
  const kept = hasChildren ? nameProcesses(run.tree.kept()) : [];
  const leftAlone = hasChildren ? nameProcesses(run.tree.leftAlone()) : [];
  if (!(course.options.isQuiet && outcome.name === "ok")) tell(run, outcome, leftAlone);
  const { unsignalable } = course.ledger;
  if (unsignalable.length > 0) say(messages.notSignalable(unsignalable));
  for (const line of output.troubles()) say(line);
  faultPoint("record.end", { outcome: outcome.name });
  const record = recordOfEnded(course, run.main, {
    outcome,
    end: state.end,
    endedLeftovers: endsLeftovers(run),
    kept,
    leftAlone,
    output: output.summary(),
    log: output.logSummary(),
  });
  if (course.options.isVerbose) for (const line of describeEnd(outcome, record)) say(line);
  writeRecord(course, record);
  forgetKept(course.stateDirectory, course.identity.runId);
}

/** Whether watchdog ended what was left, or waited for it, or left it. */
function endsLeftovers({ course, state }: EndedRun): boolean {
  if (course.options.leftovers === "kill") return true;
  return state.isKilling || state.limit !== undefined;
}

function tell(run: EndedRun, outcome: Outcome, leftAlone: readonly NamedProcess[]): void {
  const { course, state } = run;
  if (state.limit !== undefined) say(messages.limitReached(outcome, course.options));
  tellLeftovers(run);
  if (leftAlone.length > 0) say(messages.leftAlone(leftAlone));
}

function tellLeftovers(run: EndedRun): void {
  const { course, state } = run;
  const left = course.ledger.leftovers(true);
  // After a limit or a request the whole tree was meant: who outlived the main command is no news.
  if (left.length === 0 || state.limit !== undefined || state.stop !== undefined) return;
  const { unnamedLeftovers } = course.ledger;
  if (endsLeftovers(run)) {
    // Who could not be ended has a line of its own.
    const ended = left.filter((one) => one.ended_by !== null);
    if (ended.length > 0) say(messages.leftoversEnded(ended, ended.length + unnamedLeftovers));
    return;
  }
  if (course.options.leftovers === "leave") {
    say(messages.leftoversLeft(left, left.length + unnamedLeftovers));
  }
}
