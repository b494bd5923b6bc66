/**
 * Ends one run by asking its own watchdog: TERM, and once more after the grace, which makes it kill
 * its tree. Nobody else is ever signalled, whatever of the run may be left
 * (tree/signal-supervisor.ts asserts it).
 *
 * Always: who is asked was found by running.ts and proven again on an open pidfd; a name that means
 * two runs ends neither. Clock: MONOTONIC, by the wait. After a crash in between the run has been
 * asked, and its end is its own matter.
 */
import { SIGCONT, SIGTERM } from "../core/signals.ts";
import { type OpenSupervisor, openSupervisor, protectionOf } from "../tree/signal-supervisor.ts";
import type { LeaseView } from "./leases.ts";
import { findRunning, isStillRunning, type RunningFinding, type RunningRun } from "./running.ts";

export interface StopQuestion {
  readonly stateDirectory: string;
  /** The name of a job, a key or the id of a run. */
  readonly target: string;
  /** Milliseconds between the two TERMs. 0: one right after the other. */
  readonly killAfterMs: number;
  /** Milliseconds that it is waited for after the second TERM; undefined: ENDING_MS. */
  readonly endingMs?: number;
  readonly onStep: (step: StopStep, run: RunningRun) => void;
}

/** What is worth a line while it goes on. */
export type StopStep = "was-stopped" | "asked-again";

export type StopEnd =
  | { readonly kind: "stopped"; readonly run: RunningRun }
  | {
      readonly kind: "not-running";
      /** Leases that a dead watchdog has left, or that cannot be judged from here. */
      readonly left: readonly LeaseView[];
      /** False: it may run without a lease, which only the journal knows. */
      readonly isKnown: boolean;
    }
  | { readonly kind: "ambiguous"; readonly runs: readonly RunningRun[] }
  /** Somebody has the lease, and nothing tells from here which process that is. */
  | { readonly kind: "unseen"; readonly lease: LeaseView }
  | {
      readonly kind: "not-allowed";
      readonly run: RunningRun;
      readonly because: "another-user" | "ancestor" | "process-one" | "self";
    }
  | {
      readonly kind: "not-ended";
      readonly run: RunningRun;
      /** `no-descriptor`: nobody was signalled. `still-there`: it does not answer. */
      readonly because: "no-descriptor" | "still-there";
    };

/** Time for a killed tree to be collected, and for the record and the journal to be written. */
export const ENDING_MS = 15_000;
/** Two TERMs at once would be one: a signal that waits already is not counted (signal(7)). */
const BETWEEN_TERMS_MS = 200;

/**
 * @returns after at most `killAfterMs` and ENDING_MS
 * @throws WatchdogError "state.unusable", "lease.unusable"
 */
export function stopRun(question: StopQuestion): StopEnd & { troubles: readonly string[] } {
  const found = findRunning(question.stateDirectory, question.target);
  return { ...endFound(question, found), troubles: found.troubles };
}

function endFound(question: StopQuestion, found: RunningFinding): StopEnd {
  const [run, another] = found.runs;
  if (run === undefined) {
    const [lease] = found.unseen;
    return lease === undefined
      ? { kind: "not-running", left: found.left, isKnown: found.isJournalRead }
      : { kind: "unseen", lease };
  }
  if (another !== undefined) return { kind: "ambiguous", runs: found.runs };
  const because = protectionOf(run.supervisor.pid);
  if (because !== undefined) return { kind: "not-allowed", run, because };
  return end(question, run);
}

function end(question: StopQuestion, run: RunningRun): StopEnd {
  const { pid, start_time: startTicks } = run.supervisor;
  const isStillProven = (): boolean => isStillRunning(question.stateDirectory, run);
  const opened = openSupervisor({ pid, startTicks, isStillProven });
  if (opened === "gone") return { kind: "not-running", left: [], isKnown: true };
  if (opened === "unopened") return { kind: "not-ended", run, because: "no-descriptor" };
  try {
    return ask(question, run, opened);
  } finally {
    opened.close();
  }
}

function ask(question: StopQuestion, run: RunningRun, supervisor: OpenSupervisor): StopEnd {
  const isStopped = supervisor.isStopped();
  const sent = supervisor.send(SIGTERM);
  if (sent === "refused") return { kind: "not-allowed", run, because: "another-user" };
  if (sent === "gone") return { kind: "not-running", left: [], isKnown: true };
  if (isStopped) {
    supervisor.send(SIGCONT); // a stopped process hears of TERM only when it goes on
    question.onStep("was-stopped", run);
  }
  const graceMs = Math.max(question.killAfterMs, BETWEEN_TERMS_MS);
  if (supervisor.awaitEnd(graceMs)) return { kind: "stopped", run };
  question.onStep("asked-again", run);
  supervisor.send(SIGTERM);
  if (supervisor.isStopped()) supervisor.send(SIGCONT);
  return supervisor.awaitEnd(question.endingMs ?? ENDING_MS)
    ? { kind: "stopped", run }
    : { kind: "not-ended", run, because: "still-there" };
}
