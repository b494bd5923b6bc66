/**
 * A run without FFI (W^X, no JIT, little address space): better than no run, and honest about it.
 * The command is started by `Bun.spawn`, so what that changes is changed (signals at default,
 * descriptors above 2 closed, arguments as UTF-8); orphans of the tree are not contained; output is
 * not copied and no log is kept. The record says `no-ffi`.
 *
 * Limits, forwarded signals and the exit status hold as in a full run, for what can still be found
 * below the command.
 */
import type { WatchdogError } from "../core/errors.ts";
import { decideOutcome, type Leaving, outcomeOfRefusal } from "../core/outcome.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { CommandEnd, LimitName, StopRequest } from "../core/run-state.ts";
import { DEFAULT_KILL_AFTER_MS } from "../core/run-options.ts";
import { numberOfSignal, SIGKILL, SIGTERM } from "../core/signals.ts";
import { type DegradedChild, spawnDegraded } from "../os/degraded-spawn.ts";
import { wallNow } from "../os/clock.ts";
import { say } from "../os/say.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { type Course, JOURNAL_LIMIT_MS, makeCommandEnvironment } from "./course.ts";
import { type Deadlines, setDeadlines, watchDeadlines } from "./limits.ts";
import { messages } from "./messages.ts";
import { recordOfEnded, recordOfRunning, unstarted, writeRecord } from "./record.ts";
import { declareSchedule } from "./schedule.ts";
import { SignalInbox } from "./signal-inbox.ts";

interface DegradedState {
  limit: LimitName | undefined;
  stop: StopRequest | undefined;
  grace: Timer | undefined;
}

export async function runDegraded(course: Course, trouble: WatchdogError): Promise<Leaving> {
  course.ledger.noteDegraded("no-ffi");
  say(messages.degraded(trouble.message));
  const inbox = new SignalInbox(course.request.inherited.ignoredSignals);
  writeRecord(course, recordOfRunning(course, undefined));
  const ours = process.umask(course.umask);
  const child = spawnDegraded(course.request.argv, variablesOf(course));
  process.umask(ours);
  if (child.kind === "refused") return leaveUnstarted(course, child.because, child.message);
  const state: DegradedState = { limit: undefined, stop: undefined, grace: undefined };
  inbox.open((signal) => forward(course, child, state, signal));
  const limits = watchDeadlines(deadlinesOf(course), (limit) => {
    state.limit ??= limit;
    ask(course, child, state, course.options.signal);
  });
  const end = describeEnd(await child.ended);
  limits.cancel();
  state.grace?.cancel();
  return conclude(course, child.pid, state, end);
}

function deadlinesOf({ options, identity }: Course): Deadlines {
  return setDeadlines(options, identity.askedWallAt);
}

/** The same environment as in a full run, as far as text can hold it. */
function variablesOf(course: Course): Record<string, string> {
  const entries = makeCommandEnvironment(course).map((entry) => Buffer.from(entry).toString());
  return Object.fromEntries(
    entries.map((entry) => {
      const end = entry.indexOf("=");
      return [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}

function forward(course: Course, child: DegradedChild, state: DegradedState, signal: number): void {
  const isSecond = signal === SIGTERM && state.stop === "terminated";
  if (signal === SIGTERM) state.stop ??= "terminated";
  if (isSecond) return child.signalAll(SIGKILL);
  if (signal !== SIGTERM) return child.signal(signal);
  child.signalAll(signal);
  if (course.options.isKillAfterOnLine) startGrace(course, child, state);
}

function ask(course: Course, child: DegradedChild, state: DegradedState, signal: number): void {
  child.signalAll(signal);
  startGrace(course, child, state);
}

function startGrace(course: Course, child: DegradedChild, state: DegradedState): void {
  const graceMs = course.options.killAfterMs ?? DEFAULT_KILL_AFTER_MS;
  state.grace ??= wakeAfter(graceMs, () => child.signalAll(SIGKILL));
}

function describeEnd(ended: { code: number | null; signal: string | null }): CommandEnd {
  if (ended.code !== null) return { kind: "exited", code: ended.code };
  return { kind: "signaled", signal: numberOfSignal(String(ended.signal)) ?? SIGKILL };
}

function leaveUnstarted(
  course: Course,
  because: "not-found" | "not-executable" | "system",
  message: string,
): Leaving {
  const outcome = outcomeOfRefusal(because);
  say(`watchdog: error: ${message}`);
  writeEnd(course, recordOfEnded(course, undefined, unstarted(outcome)));
  return outcome.leaving;
}

function conclude(course: Course, pid: number, state: DegradedState, end: CommandEnd): Leaving {
  const { successExitCodes } = course.options;
  const outcome = decideOutcome({
    ...state,
    end,
    seen: [],
    hasLostLease: false,
    dependency: undefined,
    itemsFailure: undefined,
    finalItemsFailure: undefined,
    successExitCodes,
    hasLostOutput: false,
    failedChecks: [],
  });
  if (state.limit !== undefined) say(messages.limitReached(outcome, course.options));
  const facts = { ...unstarted(outcome), end, endedLeftovers: true };
  writeEnd(course, recordOfEnded(course, pid, facts));
  return outcome.leaving;
}

/** The journal needs no FFI. */
function writeEnd(course: Course, record: RunRecord): void {
  writeRecord(course, record);
  const { runPath, journal } = course;
  const schedule = declareSchedule(course.options);
  const told = { ...course.telling.fieldOfEnd(record), schedule };
  const entry = { at: wallNow(), run: record, runPath, leases: [], isReleased: true, ...told };
  journal?.put({ kind: "run-ended", ...entry });
  journal?.close(JOURNAL_LIMIT_MS);
}
