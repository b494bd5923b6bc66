/**
 * Why a job did not run, or how it ended: its newest row in the journal, the last run behind it
 * where that was only a skip, what has happened in it, and the end of its output. Gathers; what the
 * record says is told in core/run-explanation.ts.
 *
 * Always: read only, but that the journal reads its spool in. Clock: none; pids of running rows are
 * looked up in /proc.
 */
import { isOfOneStep } from "../core/one-step.ts";
import { isRefusedByJob, isRefusedStart } from "../core/refused-start.ts";
import { explainRun, type RunExplanation } from "../core/run-explanation.ts";
import { decideFate, type Fate, medianOf } from "../core/run-report.ts";
import { renderIso } from "../core/time.ts";
import {
  type JournalEventRow,
  type JournalRun,
  readEvents,
  readHistory,
} from "../journal/queries.ts";
import { explainSteps } from "./job-steps.ts";
import { isGoingOn, showJournalRun, viewAnswer } from "./journal-runs.ts";
import { readLogTail } from "./log-tail.ts";

export interface WhyQuestion {
  readonly stateDirectory: string;
  /** The name of a job, a key, the id of a run or its beginning. */
  readonly target: string;
}

export interface ExplainedRun {
  readonly run: JournalRun;
  readonly fate: Fate;
  /** Undefined: its record cannot be read. */
  readonly explanation: RunExplanation | undefined;
  /** Oldest first. */
  readonly events: readonly JournalEventRow[];
}

export interface WhyView {
  readonly target: string;
  /** The newest row; undefined: nothing is known of it. */
  readonly newest: ExplainedRun | undefined;
  /** The last one that was neither a skip nor of one step alone, where the newest is one. */
  readonly before: ExplainedRun | undefined;
  /** How many skips in a row the newest one ends. */
  readonly skipsInRow: number;
  /** Median of earlier good runs of the job; undefined: too few. */
  readonly usualMs: number | undefined;
  /** The last lines of the run that the answer is about; undefined: nothing was kept of it. */
  readonly tail: readonly string[] | undefined;
  readonly tailOf: string | undefined;
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

/** So far back the last run that was no skip is looked for. */
const LOOK_BACK = 200;
const GOOD_RUNS = 20;
const MOST_EVENTS = 1_000;
const TAIL_LINES = 20;
/** Lines of a refusal: why, and a hint. */
const MOST_SAID = 3;

export function readWhy({ stateDirectory, target }: WhyQuestion): WhyView {
  const question = { target, limit: LOOK_BACK };
  const history = viewAnswer<JournalRun[]>(readHistory(stateDirectory, question), []);
  const [newest] = history.value;
  const tellsOfJob = (run: JournalRun): boolean => !isRefusedStart(run) && !isOfOneStep(run);
  const firstRun = history.value.findIndex((run) => !isRefusedStart(run));
  const isTold = newest === undefined || tellsOfJob(newest);
  const before = isTold ? undefined : history.value.find(tellsOfJob);
  const good = history.value.filter(
    (run) => run.outcome === "ok" && tellsOfJob(run) && run !== (before ?? newest),
  );
  const explain = (run: JournalRun | undefined): ExplainedRun | undefined =>
    run === undefined ? undefined : explainRow(stateDirectory, run);
  const tailOf = newest !== undefined && isRefusedStart(newest) ? (before ?? newest) : newest;
  const log = readTail(tailOf);
  return {
    target,
    newest: explain(newest),
    before: explain(before),
    skipsInRow: firstRun < 0 ? history.value.length : firstRun,
    usualMs: medianOf(good.flatMap(({ durationMs }) => durationMs ?? []).slice(0, GOOD_RUNS)),
    tail: log.tail,
    tailOf: tailOf?.runId,
    isReadable: history.isReadable,
    troubles: [...history.troubles, ...log.troubles],
  };
}

function explainRow(stateDirectory: string, run: JournalRun): ExplainedRun {
  const fate = decideFate(run, isGoingOn(run));
  const answer = readEvents(stateDirectory, { job: run.job, limit: MOST_EVENTS });
  const events = viewAnswer<JournalEventRow[]>(answer, []).value.toReversed();
  return {
    run,
    fate,
    explanation: explain(stateDirectory, run, fate),
    events: events.filter(({ runId }) => runId === run.runId),
  };
}

/** The journal knows more of the steps of a job than the record of a run that was killed. */
function explain(stateDirectory: string, run: JournalRun, fate: Fate): RunExplanation | undefined {
  if (run.record === undefined) return undefined;
  const { sentence, evidence } = explainRun(run.record, fate, run.abandonedBy);
  if (isRefusedByJob(run)) return { sentence, evidence: [...listSaid(run), ...evidence] };
  const steps = explainSteps(stateDirectory, run, isGoingOn(run));
  if (steps === undefined) return { sentence, evidence };
  return { sentence, evidence: [...steps, ...evidence.filter(([label]) => label !== "steps")] };
}

/** What its job has said, which the record does not hold. */
function listSaid(run: JournalRun): RunExplanation["evidence"] {
  const { tail = [] } = readTail(run);
  return tail.slice(-MOST_SAID).map((line) => ["said", line] as const);
}

/** A log that cannot be read is a line about it, and no reason to tell nothing. */
function readTail(run: JournalRun | undefined): Pick<WhyView, "tail" | "troubles"> {
  const path = run?.logPath ?? run?.record?.log?.path ?? undefined;
  if (path === undefined) return { tail: undefined, troubles: [] };
  try {
    return { tail: readLogTail(path, TAIL_LINES), troubles: [] };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { tail: undefined, troubles: [text] };
  }
}

/** As `why --json` shows it. A contract; ignore unknown fields. */
export function showWhy(view: WhyView): Record<string, unknown> {
  const show = (one: ExplainedRun | undefined): Record<string, unknown> | null =>
    one === undefined
      ? null
      : {
          ...showJournalRun(one.run),
          fate: one.fate,
          sentence: one.explanation?.sentence ?? null,
          evidence: (one.explanation?.evidence ?? []).map(([label, text]) => ({ label, text })),
          events: one.events.map(showEvent),
        };
  return {
    format: 1,
    target: view.target,
    run: show(view.newest),
    before: show(view.before),
    skips_in_row: view.skipsInRow,
    usual_ms: view.usualMs ?? null,
    tail: view.tail ?? null,
    troubles: view.troubles,
  };
}

function showEvent({ at, name, key, because, data }: JournalEventRow): Record<string, unknown> {
  return { at: renderIso(at), name, key, because, data };
}
