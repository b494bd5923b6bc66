/**
 * Runs as the journal has them, held against the processes of this machine, and under the names of
 * `--json`. A broken journal is an answer here, with its reason.
 *
 * Always: that a run goes on is said only where its very process lives. A row of an earlier boot
 * never does, whoever has its pid by now. Clock: wall and BOOTTIME, to tell the boot of a row.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import type { RunRecord } from "../core/run-record.ts";
import { renderIso } from "../core/time.ts";
import type { JournalAnswer, JournalRun } from "../journal/queries.ts";
import { bootedAt } from "../os/clock.ts";
import { isAlive } from "../os/machine.ts";

/** What came of asking the journal: the value, and lines for people about what went wrong. */
export interface JournalView<T> {
  readonly value: T;
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

export function viewAnswer<T>(answer: JournalAnswer<T>, nothing: T): JournalView<T> {
  if (answer.kind === "unreadable") {
    return { value: nothing, isReadable: false, troubles: [`journal: ${answer.reason}`] };
  }
  const { waiting = 0, notes: found = [] } = answer;
  const notes = found.map((note) => `journal: ${note}`);
  const isMissing = answer.kind === "missing";
  const value = isMissing ? nothing : answer.value;
  const files = waiting === 1 ? "1 file" : `${waiting} files`;
  const left = waiting > 0 ? [`journal: ${files} in spool/ could not be read in yet`] : [];
  // What waits for a journal was recorded: that is not `nothing is known`.
  const isReadable = !isMissing || waiting === 0;
  return { value, isReadable, troubles: [...notes, ...left] };
}

type RunPlace = Pick<JournalRun, "state" | "startedAt" | "pid" | "pidStartTime">;

/** Its watchdog, where the journal has it; the row of a run that could not tell it has none. */
export function supervisorOf(run: RunPlace): ProcessIdentity | undefined {
  const { pid, pidStartTime } = run;
  return pidStartTime === null ? undefined : { pid, start_time: pidStartTime };
}

/** The row says `running`, and its watchdog lives: the same pid, start time and boot. */
export function isGoingOn(run: RunPlace): boolean {
  const supervisor = supervisorOf(run);
  if (run.state !== "running" || supervisor === undefined) return false;
  return run.startedAt >= bootedAt() - CLOCK_ERROR_MS && isAlive(supervisor) === "yes";
}

/** Three clocks are read one after the other, and the wall clock is slewed now and then. */
const CLOCK_ERROR_MS = 1_000;

/** A run as `--json` shows it: its record, or what the columns tell where that cannot be read. */
export function showRun(run: JournalRun): RunRecord | Record<string, unknown> {
  if (run.record !== undefined) return run.record;
  return {
    format: 1,
    run_id: run.runId,
    run_path: run.runPath,
    job: run.job,
    state: run.state,
    outcome: run.outcome,
    because: run.because,
    exit_status: run.exitStatus,
    status_of: run.statusOf,
    pid: run.pid,
    child_pid: run.childPid,
    started_at: renderIso(run.startedAt),
    ended_at: run.endedAt === null ? null : renderIso(run.endedAt),
    duration_ms: run.durationMs,
    leases: run.leases,
  };
}

/** The same with what only the journal knows: who wrote down that it was abandoned. */
export function showJournalRun(run: JournalRun): Record<string, unknown> {
  return { ...showRun(run), abandoned_by: run.abandonedBy };
}
