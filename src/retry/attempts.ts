/**
 * The attempts one after the other: asks whether the next one may begin, lets it run, and waits. A
 * list of steps; what is decided is in core/retry.ts and core/circuit.ts.
 *
 * Always: at most as many attempts as allowed, none after the total time, none after somebody has
 * asked for the end. Clock: CLOCK_MONOTONIC. State after a crash: see attempt.ts and breaker.ts.
 */
import { type BackoffState, startBackoff } from "../core/backoff.ts";
import { type Outcome, outcomeOfDependency, outcomeOfEarlyStop } from "../core/outcome.ts";
import {
  type AttemptDecision,
  decideAfterAttempt,
  decideCounted,
  mayBegin,
  outcomeOfAttempt,
} from "../core/retry.ts";
import type { RetryOptions } from "../core/retry-options.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { throwDice } from "../os/dice.ts";
import { faultPoint } from "../os/faults.ts";
import { say } from "../os/say.ts";
import type { AttemptResult } from "./attempt.ts";
import type { BetweenAttempts } from "./between.ts";
import type { Breaker } from "./breaker.ts";
import { messages } from "./messages.ts";
import type { RetryReport } from "./report.ts";
import type { MovingClock } from "./standstill.ts";

/** How often a circuit is asked again by a call whose run is about to stand still. */
const ASK_AGAIN_MS = 100;
/** A run that was killed as it probed is followed by another within one look of that. */
const TAKEOVER_MS = 3_000;

export interface AttemptsRequest {
  readonly options: RetryOptions;
  /** For people. */
  readonly program: string;
  readonly between: BetweenAttempts;
  readonly breaker: Breaker | undefined;
  /** The run around this one stands still while the circuit is open: the call waits for that. */
  readonly waitsForRun: boolean;
  /** Of the total time. */
  readonly clock: MovingClock;
  readonly report: RetryReport;
  readonly run: (attempt: number) => Promise<AttemptResult>;
}

interface Attempted {
  readonly result: AttemptResult;
  readonly decision: AttemptDecision;
}

export class Attempts {
  readonly #request: AttemptsRequest;
  readonly #began: MonotonicAt;
  #last: AttemptResult | undefined;

  constructor(request: AttemptsRequest) {
    this.#request = request;
    this.#began = request.clock.now();
  }

  /** @throws as `run` of the request */
  async run(): Promise<Outcome> {
    let state = startBackoff(this.#began, 1);
    for (let waitedMs = 0; ;) {
      const early = await this.#enter(state);
      if (early !== undefined) return early;
      const { result, decision } = await this.#attempt(state, waitedMs);
      if (decision.kind !== "again") return this.#conclude(result, decision, state);
      const began = monotonicNow();
      state = decision.state;
      await this.#wait(decision.delayMs, state);
      waitedMs = spanMs(began, monotonicNow());
    }
  }

  /** @returns how all of it ends where the next attempt may not begin */
  async #enter(state: BackoffState): Promise<Outcome | undefined> {
    const { between, options, clock } = this.#request;
    if (between.asking !== undefined) return outcomeOfEarlyStop(between.asking);
    if (this.#last !== undefined && !mayBegin(options, state, clock.now())) {
      const given = { kind: "given-up", because: "max-elapsed" } as const;
      return this.#conclude(this.#last, given, { ...state, attempts: state.attempts - 1 });
    }
    return this.#passCircuit(state.attempts - 1);
  }

  /** @param count  attempts before this one */
  async #passCircuit(count: number): Promise<Outcome | undefined> {
    const { breaker, between, options, clock } = this.#request;
    if (breaker === undefined) return undefined;
    let probedAt = monotonicNow();
    for (let hasTold = false; ; hasTold = true) {
      if (this.#request.waitsForRun && breaker.isProbed) probedAt = monotonicNow();
      // What a run has left behind when it ended waits for nobody.
      const isRunThere = spanMs(probedAt, monotonicNow()) < TAKEOVER_MS;
      const waitsForRun = this.#request.waitsForRun && isRunThere;
      // A trial would be frozen with us, and nobody could have another: the run's probe has it.
      const admission = breaker.admit({ leavesTrial: waitsForRun });
      if (admission.kind === "admitted") return undefined;
      const leftMs = options.backoff.maxElapsedMs - spanMs(this.#began, clock.now());
      if (!waitsForRun || leftMs <= 0) {
        say(messages.refused(admission.circuit, monotonicNow(), { last: this.#last, count }));
        return outcomeOfDependency(waitsForRun ? "max-elapsed" : "circuit-open");
      }
      if (!hasTold && options.isVerbose) {
        say(messages.waitingForCircuit(admission.circuit, monotonicNow()));
      }
      await between.wait(Math.min(ASK_AGAIN_MS, leftMs));
      if (between.asking !== undefined) return outcomeOfEarlyStop(between.asking);
    }
  }

  async #attempt(state: BackoffState, waitedMs: number): Promise<Attempted> {
    const { options, clock, breaker, report } = this.#request;
    const [startedAt, startedWallAt] = [monotonicNow(), wallNow()];
    const result = await this.#request.run(state.attempts);
    const durationMs = spanMs(startedAt, monotonicNow());
    this.#last = result;
    breaker?.note(decideCounted(result));
    const chance = { nowMs: clock.now(), random: throwDice() };
    const decision = decideAfterAttempt({ ...result, state }, options, chance);
    const { because } = decision;
    report.note({
      attempt: state.attempts,
      startedWallAt,
      durationMs,
      waitedMs,
      end: result.end,
      because,
    });
    if (result.unended.length > 0) say(messages.unended(result.unended));
    if (options.isVerbose) say(messages.attempt(state.attempts, result, { durationMs, because }));
    return { result, decision };
  }

  async #wait(delayMs: number, state: BackoffState): Promise<void> {
    const { between, options } = this.#request;
    faultPoint("retry.wait", { attempt: state.attempts, delayMs });
    if (options.isVerbose) {
      say(messages.waiting(delayMs, state.attempts, options.backoff.maxAttempts));
    }
    await between.wait(delayMs);
  }

  #conclude(
    last: AttemptResult,
    decision: Exclude<AttemptDecision, { kind: "again" }>,
    { attempts }: BackoffState,
  ): Outcome {
    const outcome = outcomeOfAttempt(last);
    if (decision.kind === "given-up") {
      const { because } = decision;
      say(
        messages.gaveUp(last, {
          count: attempts,
          spentMs: spanMs(this.#began, this.#request.clock.now()),
          because,
        }),
      );
      return { ...outcome, because };
    }
    if (last.end.kind === "not-started") {
      say(messages.notStarted(this.#request.program, last.reason ?? last.end.because));
    }
    return outcome;
  }
}
