/**
 * What a person wants to know in the morning: of each job how it ended, against what is usual for
 * it, what was skipped, and what needs somebody. Pure: from rows of the journal to one report.
 *
 * Always: a job that needs a person comes before all that do not; a run that was refused for its
 * lease, or by its job, is a skip and never a failure; one of one step alone changes nothing of
 * what is told of its job; a run that was ended on request is neither good nor bad.
 */
import { isOfOneStep } from "./one-step.ts";
import { type EndedStart, isRefusedStart } from "./refused-start.ts";
import type { NamedProcess } from "./run-record.ts";

/** How a run went, as far as a report tells it. */
export type Fate =
  | "good"
  | "bad"
  | "stopped"
  | "skipped"
  /** One step alone was asked for, and went well: that says nothing about the job. */
  | "partial"
  | "running"
  | "unfinished";

export interface ReportedRun {
  readonly runId: string;
  readonly job: string;
  readonly fate: Fate;
  /** Null while it runs. */
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exitStatus: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
}

/** What the journal holds of one job. Instants are wall-clock milliseconds. */
export interface JobFacts {
  readonly job: string;
  /** It is the run of a step within a job of many steps that is reported, too. */
  readonly isStep: boolean;
  /** In the span of the report. */
  readonly counts: Readonly<
    Record<"runs" | "good" | "stopped" | "skipped" | "partial" | "running", number>
  >;
  /** The last one that was neither a skip nor partial; undefined: there is none, at any time. */
  readonly last: ReportedRun | undefined;
  /** Whether it ran in the span of the report. */
  readonly isLastWithin: boolean;
  /** Of good runs before the last one, newest first. */
  readonly goodDurationsMs: readonly number[];
  /** Fates of the last runs that were neither skips nor partial, newest first. */
  readonly lastFates: readonly Fate[];
  /** Why the last skip was one, as a sentence; undefined: there was none in the span. */
  readonly skippedBecause: string | undefined;
  /** That one was refused by its job: the next one will be, too, where nobody mends it. */
  readonly isRefusedByJob: boolean;
  /** In the span of the report. */
  readonly leftovers: number;
  readonly retries: number;
  /** Members of the last run that outlived KILL. */
  readonly unsignalable: readonly NamedProcess[];
  /** Measures of the last run that are far from what is usual: `duration`, `output`. */
  readonly suspicions: readonly string[];
}

export type NeedReason =
  | "failed"
  | "unfinished"
  | "not-ended"
  | "suspicious"
  | "always-skipped"
  | "overdue"
  /** Of others than runs: circuits, notices, schedules. */
  | "other";

/** Something that somebody should look at. */
export interface Need {
  /** Null: no job of its own. */
  readonly job: string | null;
  readonly because: NeedReason;
  /** A clause for people. */
  readonly text: string;
}

export interface JobReport {
  readonly job: string;
  readonly runs: number;
  readonly good: number;
  readonly bad: number;
  readonly stopped: number;
  readonly skipped: number;
  readonly partial: number;
  readonly running: number;
  readonly last: ReportedRun | undefined;
  readonly isLastWithin: boolean;
  /** Median of earlier good runs; undefined: too few to tell. */
  readonly usualMs: number | undefined;
  /** How many in a row have gone badly, up to and with the last one. */
  readonly failuresInRow: number;
  readonly skippedBecause: string | undefined;
  readonly leftovers: number;
  readonly retries: number;
  readonly needs: readonly Need[];
}

export interface RunReport {
  readonly since: number;
  readonly until: number;
  readonly totals: Readonly<
    Record<"runs" | "good" | "bad" | "stopped" | "skipped" | "partial" | "running", number>
  >;
  /** Those that need a person first, then by the start of the last run, newest first. */
  readonly jobs: readonly JobReport[];
  /** Of jobs, in their order, and then of anything else. */
  readonly needs: readonly Need[];
}

/** Fewer good runs say nothing about what is usual. */
export const FEWEST_FOR_USUAL = 3;
/** So many skips without one run between them are no chance any more. */
const ALWAYS_SKIPPED = 3;

/** @param isGoingOn  the row says `running`, and its watchdog lives */
export function decideFate(
  run: EndedStart & { readonly state: "running" | "ended" },
  isGoingOn: boolean,
): Fate {
  if (run.state === "running") return isGoingOn ? "running" : "unfinished";
  if (isRefusedStart(run)) return "skipped";
  if (isOfOneStep(run)) return "partial";
  switch (run.outcome) {
    case "ok":
      return "good";
    case "stopped":
      return "stopped";
    default:
      return "bad";
  }
}

/**
 * @param jobs  in any order
 * @param others  what else needs somebody: an open circuit, a message that could not be sent
 */
export function makeReport(
  span: Pick<RunReport, "since" | "until">,
  jobs: readonly JobFacts[],
  others: readonly Need[],
): RunReport {
  const reported = jobs.map(reportJob).toSorted(byUrgency);
  const sum = (pick: (job: JobReport) => number): number =>
    reported.reduce((total, job) => total + pick(job), 0);
  return {
    ...span,
    totals: {
      runs: sum(({ runs }) => runs),
      good: sum(({ good }) => good),
      bad: sum(({ bad }) => bad),
      stopped: sum(({ stopped }) => stopped),
      skipped: sum(({ skipped }) => skipped),
      partial: sum(({ partial }) => partial),
      running: sum(({ running }) => running),
    },
    jobs: reported,
    needs: [...reported.flatMap(({ needs }) => needs), ...others],
  };
}

function reportJob(facts: JobFacts): JobReport {
  const { job, counts, last, isLastWithin, skippedBecause, leftovers, retries } = facts;
  const { runs, good, stopped, skipped, partial, running } = counts;
  const failuresInRow = countBad(facts.lastFates);
  return {
    job,
    runs,
    good,
    bad: runs - good - stopped - skipped - partial - running,
    stopped,
    skipped,
    partial,
    running,
    last,
    isLastWithin,
    usualMs: medianOf(facts.goodDurationsMs),
    failuresInRow,
    skippedBecause,
    leftovers,
    retries,
    needs: findNeeds(facts, failuresInRow),
  };
}

/** A run that goes on says nothing about those before it. */
function countBad(fates: readonly Fate[]): number {
  const ended = fates.filter((fate) => fate !== "running");
  const first = ended.findIndex((fate) => fate !== "bad" && fate !== "unfinished");
  return first < 0 ? ended.length : first;
}

function findNeeds(facts: JobFacts, failuresInRow: number): Need[] {
  // Its job tells of it, and of what has become of the step since.
  if (facts.isStep) return [];
  const { job, last, counts, unsignalable, suspicions } = facts;
  const needs: Need[] = [];
  const add = (because: NeedReason, text: string): void => void needs.push({ job, because, text });
  if (last?.fate === "bad") add("failed", describeFailure(last, failuresInRow));
  if (last?.fate === "unfinished") {
    add("unfinished", "its watchdog is gone, and nobody has written down how it ended");
  }
  if (unsignalable.length > 0) {
    const names = unsignalable.map(({ pid, command }) => `${pid} ${command}`).join(", ");
    add("not-ended", `could not be ended: ${names}`);
  }
  if (last?.fate === "good" && suspicions.length > 0) {
    add("suspicious", `said that all went well, and is unlike itself: ${suspicions.join(", ")}`);
  }
  if (counts.skipped >= ALWAYS_SKIPPED && counts.skipped === counts.runs) {
    add("always-skipped", `skipped ${counts.skipped} times, and has not run once`);
  } else if (facts.isRefusedByJob && counts.skipped === counts.runs) {
    add("always-skipped", "refused by its job, and has not run once");
  }
  return needs;
}

function describeFailure({ outcome, because }: ReportedRun, failuresInRow: number): string {
  const name = outcome ?? "failed";
  const isSaid = because === null || because === "exited" || because === name;
  const why = isSaid ? "" : ` (${because})`;
  return failuresInRow > 1 ? `${name}${why}, ${failuresInRow} times in a row` : `${name}${why}`;
}

function byUrgency(one: JobReport, other: JobReport): number {
  const urgency = Number(other.needs.length > 0) - Number(one.needs.length > 0);
  if (urgency !== 0) return urgency;
  const begun = (other.last?.startedAt ?? 0) - (one.last?.startedAt ?? 0);
  return begun === 0 ? compareTexts(one.job, other.job) : begun;
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The middle one; of an even number the mean of both in the middle. Undefined: too few. */
export function medianOf(values: readonly number[]): number | undefined {
  if (values.length < FEWEST_FOR_USUAL) return undefined;
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const above = sorted[Math.floor(middle)];
  const below = sorted[Math.ceil(middle) - 1];
  return above === undefined || below === undefined ? undefined : (above + below) / 2;
}
