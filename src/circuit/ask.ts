/**
 * One question to a dependency, whoever asks it: a probe that is handed in and always comes to a
 * result, and the note of it. Decides nothing.
 */
import type { ProbeResult } from "../core/probe-result.ts";
import type { ProbeNote } from "../core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../core/time.ts";
import type { Timer } from "../os/timers.ts";

/** Ends soon after the signal; may reject, which is trouble of ours. */
export type AskProbe = (signal: AbortSignal) => Promise<ProbeResult>;

/** wakeAfter (os/timers.ts), or one of a test. */
export type Wake = (waitMs: number, wake: () => void) => Timer;

export interface Answer {
  readonly result: ProbeResult;
  readonly note: ProbeNote;
}

export interface AskClock {
  now(): MonotonicAt;
  wall(): WallAt;
}

/**
 * Never rejects. The note bears the instant at which it was asked: periods go from one question to
 * the next, and an answer says nothing about what came after it was sent.
 */
export async function ask(probe: AskProbe, signal: AbortSignal, clock: AskClock): Promise<Answer> {
  const at = clock.now();
  const wallAt = clock.wall();
  let result: ProbeResult;
  try {
    result = await probe(signal);
  } catch (cause) {
    const detail = `the probe itself has failed: ${String(cause)}`;
    result = { isGood: false, because: "worker-lost", stages: [], detail };
  }
  const { because, detail } = result;
  return { result, note: { because, detail, at, wallAt } };
}

/** Each kind of trouble of ours is told once. */
export class TroubleTeller {
  readonly #tell: ((result: ProbeResult) => void) | undefined;
  readonly #told = new Set<string>();

  constructor(tell: ((result: ProbeResult) => void) | undefined) {
    this.#tell = tell;
  }

  tell(result: ProbeResult): void {
    if (this.#told.has(result.because)) return;
    this.#told.add(result.because);
    this.#tell?.(result);
  }
}
