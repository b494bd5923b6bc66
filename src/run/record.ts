/**
 * Fills the record of a run from what its parts have noted, and writes it for `--result-file`. A
 * record that cannot be written is told, and never stops or changes the run.
 */
import type { Outcome } from "../core/outcome.ts";
import type { CommandEnd } from "../core/run-state.ts";
import type { RunOptions } from "../core/run-options.ts";
import {
  describeCommand,
  type LogSummary,
  type NamedProcess,
  type OutputSummary,
  type RunRecord,
  shownStatus,
} from "../core/run-record.ts";
import { nameSignal } from "../core/signals.ts";
import { spanMs } from "../core/time.ts";
import { monotonicNow, suspendedMs, wallNow } from "../os/clock.ts";
import { ownMask } from "../os/mask.ts";
import { droppedLines } from "../os/say.ts";
import { deliverFile, isReplaceable } from "../os/files.ts";
import type { Course } from "./course.ts";
import { messages } from "./messages.ts";

/** Less than this between two readings of the clocks is no suspend. */
const SHORTEST_SUSPEND_MS = 100;
const RESULT_FILE_MODE = 0o666;

/** What the run has brought about, as far as somebody looked. */
export type RunResults = Pick<RunRecord, "checks" | "artifacts" | "suspicions">;

export const NO_RESULTS: RunResults = { checks: [], artifacts: [], suspicions: [] };

export interface EndFacts {
  readonly outcome: Outcome;
  readonly end: CommandEnd | undefined;
  readonly endedLeftovers: boolean;
  readonly kept: readonly NamedProcess[];
  readonly leftAlone: readonly NamedProcess[];
  readonly output: OutputSummary;
  readonly log: LogSummary | null;
  readonly results: RunResults;
  readonly steps: RunRecord["steps"];
}

const NO_OUTPUT: OutputSummary = {
  stdout_bytes: null,
  stderr_bytes: null,
  last_output_at: null,
  is_copied: false,
  write_error: null,
};

/** The end of a run whose command was never started. */
export function unstarted(outcome: Outcome): EndFacts {
  return {
    outcome,
    end: undefined,
    endedLeftovers: false,
    kept: [],
    leftAlone: [],
    output: NO_OUTPUT,
    log: null,
    results: NO_RESULTS,
    steps: null,
  };
}

/** The record while the run goes on. */
export function recordOfRunning(course: Course, childPid: number | undefined): RunRecord {
  const { identity, options, ledger } = course;
  return {
    format: 1,
    run_id: identity.runId,
    run_path: course.runPath,
    job: identity.jobName,
    state: "running",
    outcome: null,
    because: null,
    exit_status: null,
    status_of: null,
    exit_code: null,
    signal: null,
    ...describeCommand(course.request.argv, ownMask()),
    cwd: identity.cwd ?? null,
    pid: process.pid,
    child_pid: childPid ?? null,
    started_at: new Date(identity.startedWallAt).toISOString(),
    ended_at: null,
    duration_ms: null,
    suspended_ms: 0,
    paused_ms: ledger.pausedMs,
    leases: ledger.leases,
    held_by: ledger.heldBy,
    guard: ledger.hasGuard,
    limits: {
      timeout_ms: options.timeoutMs ?? null,
      idle_timeout_ms: options.idleTimeoutMs ?? null,
      not_after: showTimeOfDay(options),
    },
    dependencies: ledger.dependencies,
    signals: ledger.signals,
    leftovers: [],
    kept: [],
    left_alone: [],
    unsignalable: [],
    items: ledger.items,
    steps: null,
    output: NO_OUTPUT,
    log: null,
    checks: [],
    artifacts: [],
    suspicions: [],
    degraded: ledger.degraded,
    dropped_lines: droppedLines(),
    watchdog: course.request.build,
  };
}

export function recordOfEnded(
  course: Course,
  childPid: number | undefined,
  ended: EndFacts,
): RunRecord {
  const { identity, ledger } = course;
  const suspended = suspendedMs() - identity.suspendedAtStartMs;
  return {
    ...recordOfRunning(course, childPid),
    state: "ended",
    outcome: ended.outcome.name,
    because: ended.outcome.because,
    exit_status: shownStatus(ended.outcome.leaving),
    status_of: ended.outcome.statusOf,
    exit_code: ended.end?.kind === "exited" ? ended.end.code : null,
    signal: ended.end?.kind === "signaled" ? nameSignal(ended.end.signal) : null,
    ended_at: new Date(wallNow()).toISOString(),
    duration_ms: Math.round(spanMs(identity.startedAt, monotonicNow())),
    suspended_ms: suspended >= SHORTEST_SUSPEND_MS ? Math.round(suspended) : 0,
    leftovers: ledger.leftovers(ended.endedLeftovers),
    kept: ended.kept,
    left_alone: ended.leftAlone.map((one) => ({ ...one, why: "adopted, not proven" })),
    unsignalable: ledger.unsignalable,
    output: ended.output,
    log: ended.log,
    steps: ended.steps,
    ...ended.results,
  };
}

function showTimeOfDay(options: RunOptions): string | null {
  const time = options.notAfter;
  if (time === undefined) return null;
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${two(time.hour)}:${two(time.minute)}:${two(time.second)}`;
}

/** Of a file that was not there, with the caller's umask. */
export function resultFileMode(course: Course): number {
  return RESULT_FILE_MODE & ~course.umask;
}

/** Without secrets. Atomic where there is a file to replace; on trouble one line on stderr. */
export function writeRecord(course: Course, record: RunRecord): void {
  const path = course.options.resultFile;
  if (path === undefined) return;
  try {
    if (record.state === "running" && !isReplaceable(path)) return;
    const text = JSON.stringify(ownMask().value(record), null, 2);
    deliverFile(path, `${text}\n`, resultFileMode(course));
  } catch (error) {
    // EACCES, ENOSPC, EROFS, ENOENT: the promise to report cannot be kept; the run itself can.
    const text = error instanceof Error ? error.message : String(error);
    // Without `, open '/x/.r.json.4f2a.tmp'`: that name is another one each time.
    const reason = text.replace(/, \w+ '.*$/s, "");
    course.ledger.tellOnce(messages.noResultFile(path, reason));
  }
}
