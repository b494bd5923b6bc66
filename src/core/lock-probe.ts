/**
 * The words between `watchdog doctor` and the process that it starts to try a lock, and what the
 * answers of both say about locks there. Pure; refuses to know how a lock is asked for.
 *
 * Always: `proven` only where a second process was refused, whoever inherits a lock keeps it, and
 * the death of the last one gives it back; an answer that never came proves nothing.
 */

/** The word by which it is started: `watchdog __lock-probe PATH`. */
export const LOCK_PROBE_COMMAND = "__lock-probe";

/** What it says about the lock, a letter each. */
export const LOCK_PROBE_WORDS = { granted: "g", refused: "r", failed: "f" } as const;

/** The descriptor under which it holds the lock of its parent. */
export const LOCK_PROBE_DESCRIPTOR = 9;

/** `refused`: somebody has the lock. A number is that of another error. */
export type LockAnswer = "granted" | "refused" | number;

export interface LockAnswers {
  /** Of the other process, while its parent held the lock: what it wrote, "" for nothing. */
  readonly said: string;
  /** Of the parent, while the other process alone had what it inherited. */
  readonly whileItLives: LockAnswer;
  /** Of the parent, once that process was dead. */
  readonly afterwards: LockAnswer;
}

export type LockJudgement =
  | "proven"
  | "given-to-a-second-process"
  | "unanswered"
  | "ends-while-inherited"
  | "outlives-its-process";

/** What all of it shows, the worst first. */
export function decideLockProbe(answers: LockAnswers): LockJudgement {
  const { said, whileItLives, afterwards } = answers;
  if (said === LOCK_PROBE_WORDS.granted) return "given-to-a-second-process";
  if (said !== LOCK_PROBE_WORDS.refused) return "unanswered";
  if (whileItLives !== "refused") return "ends-while-inherited";
  return afterwards === "granted" ? "proven" : "outlives-its-process";
}
