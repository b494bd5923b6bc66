/**
 * A run's question whether a dependency wants work now (`--ready-probe`): each run asks for itself,
 * and there is no circuit. Refuses to know what follows for the job.
 *
 * Always: one probe at a time, a period apart from the start of one to that of the next; trouble of
 * our own is no answer; after `end` nobody is told anything. Clock: MONOTONIC, handed in; a timer
 * only makes it look again. State after a crash: none.
 */
import { isOwnTrouble } from "../core/circuit-change.ts";
import type { ProbeResult } from "../core/probe-result.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import { decideReadiness, FIRST_READINESS } from "../core/readiness.ts";
import type { MonotonicAt, WallAt } from "../core/time.ts";
import type { Timer } from "../os/timers.ts";
import { ask, type AskProbe, TroubleTeller, type Wake } from "./ask.ts";

export interface ReadinessWatchParts {
  readonly settings: Pick<
    ProbeSettings,
    "periodMs" | "initialDelayMs" | "failureThreshold" | "successThreshold"
  >;
  readonly probe: AskProbe;
  readonly wake: Wake;
  now(): MonotonicAt;
  wall(): WallAt;
  /** When the job was started. */
  readonly startedAt: MonotonicAt;
  /** It is ready until it was found unready: the first word is always a no. */
  onChange(isReady: boolean, result: ProbeResult): void;
  /** Each that says something about the dependency. */
  onProbe?(result: ProbeResult): void;
  /** Each kind of trouble of our own, once. */
  onTrouble?(result: ProbeResult): void;
}

export class ReadinessWatch {
  readonly #parts: ReadinessWatchParts;
  readonly #troubles: TroubleTeller;
  #state = FIRST_READINESS;
  #nextAt: MonotonicAt;
  /** One for all probes: none is stopped but by the end. */
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #isEnded = false;

  constructor(parts: ReadinessWatchParts) {
    this.#parts = parts;
    this.#troubles = new TroubleTeller((result) => parts.onTrouble?.(result));
    this.#nextAt = (parts.startedAt + parts.settings.initialDelayMs) as MonotonicAt;
  }

  get isReady(): boolean {
    return this.#state.isReady;
  }

  begin(): void {
    this.#step();
  }

  end(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#stopping.abort();
  }

  #step(): void {
    const restMs = this.#nextAt - this.#parts.now();
    if (restMs <= 0) this.#ask();
    else this.#timer = this.#parts.wake(restMs, () => this.#step());
  }

  #ask(): void {
    const { probe, settings } = this.#parts;
    this.#nextAt = (this.#parts.now() + settings.periodMs) as MonotonicAt;
    void ask(probe, this.#stopping.signal, this.#parts).then(({ result }) => this.#hear(result));
  }

  #hear(result: ProbeResult): void {
    if (this.#isEnded) return;
    if (isOwnTrouble(result.because)) this.#troubles.tell(result);
    else this.#count(result);
    if (!this.#isEnded) this.#step();
  }

  #count(result: ProbeResult): void {
    const decision = decideReadiness(this.#state, result.isGood, this.#parts.settings);
    this.#state = decision.state;
    this.#parts.onProbe?.(result);
    if (decision.kind === "changed" && !this.#isEnded) {
      this.#parts.onChange(decision.state.isReady, result);
    }
  }
}
