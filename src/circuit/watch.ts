/**
 * A run's eye on one circuit while its job runs: probes it where it has the lock, else looks what
 * whoever has it finds. Refuses to know what follows for the job.
 *
 * Always: one probe at a time, and none while the circuit is open but the trial that is due; each
 * change of state is told once, whoever made it; trouble of our own is no answer of the dependency,
 * and whoever has it leaves the lock to others for a period; after `end` nobody is told anything.
 * Clock: MONOTONIC, of the circuit; a timer only makes it look again. State after a crash: the
 * kernel frees the lock, and another one takes over with his next look.
 *
 * Whoever probes wakes once for each probe, and once a second, so that what others do is seen; he
 * looks at lock and row before he asks, and not after the answer, too.
 */
import { isOwnTrouble } from "../core/circuit-change.ts";
import type { CircuitEvent, CircuitState, CircuitTransition } from "../core/circuit.ts";
import type { ProbeResult } from "../core/probe-result.ts";
import {
  decideNextProbe,
  type ProbePlan,
  pollMsOf,
  proberPollMsOf,
} from "../core/probe-schedule.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import type { ProbeNote, SharedCircuit } from "../core/shared-circuit.ts";
import type { MonotonicAt } from "../core/time.ts";
import type { Timer } from "../os/timers.ts";
import { type Answer, ask, type AskProbe, TroubleTeller, type Wake } from "./ask.ts";
import type { LiveCircuit } from "./live-circuit.ts";

export interface CircuitWatchParts {
  readonly circuit: LiveCircuit;
  readonly settings: Pick<ProbeSettings, "periodMs" | "initialDelayMs">;
  readonly probe: AskProbe;
  readonly wake: Wake;
  /** When the job was started. */
  readonly startedAt: MonotonicAt;
  /** @param transition  undefined: somebody else has made it, `isOurs` is false then */
  onChange(
    circuit: SharedCircuit,
    transition: CircuitTransition | undefined,
    isOurs: boolean,
  ): void;
  /** Each of ours that says something about the dependency. */
  onProbe?(result: ProbeResult): void;
  /** Each kind of trouble of our own, once. */
  onTrouble?(result: ProbeResult): void;
}

export class CircuitWatch {
  readonly #parts: CircuitWatchParts;
  readonly #troubles: TroubleTeller;
  /** As it was told last; nobody is told of one that is closed from the start. */
  #told: CircuitState["kind"] = "closed";
  #notBeforeAt: MonotonicAt;
  /** One for all probes: none is stopped but by the end. */
  readonly #stopping = new AbortController();
  #isProbing = false;
  #timer: Timer | undefined;
  #isEnded = false;

  constructor(parts: CircuitWatchParts) {
    this.#parts = parts;
    this.#troubles = new TroubleTeller((result) => parts.onTrouble?.(result));
    this.#notBeforeAt = (parts.startedAt + parts.settings.initialDelayMs) as MonotonicAt;
  }

  begin(): void {
    const { circuit } = this.#parts;
    circuit.keepOn();
    if (circuit.now() < this.#notBeforeAt) circuit.unlock();
    this.#step();
  }

  /** Aborts a probe, gives the lock back; a trial of ours may be made by another at once. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#stopping.abort();
    this.#parts.circuit.leave();
  }

  #step(): void {
    const { circuit } = this.#parts;
    const isProber = this.#mayProbe() && circuit.takeLockToWatch();
    const seen = circuit.look();
    this.#notice(seen, undefined);
    if (this.#isEnded) return;
    const plan = isProber && !this.#isProbing ? this.#plan(seen) : undefined;
    if (plan?.kind === "probe") this.#begin();
    else if (plan?.kind === "try") this.#try();
    if (!this.#isEnded) this.#wait(plan);
  }

  #wait(plan: ProbePlan | undefined): void {
    const { settings, wake } = this.#parts;
    const pollMs = plan === undefined ? pollMsOf(settings) : proberPollMsOf(settings);
    this.#timer?.cancel();
    this.#timer = wake(Math.min(Math.max(0, this.#restMsOf(plan)), pollMs), () => this.#step());
  }

  /** Whoever asks now asks again in a period: one timer serves both. */
  #restMsOf(plan: ProbePlan | undefined): number {
    const { circuit, settings } = this.#parts;
    if (plan === undefined) return Infinity;
    if (plan.kind !== "wait") return settings.periodMs;
    return plan.untilAt === undefined ? Infinity : plan.untilAt - circuit.now();
  }

  /** Whoever is not to ask yet does not keep others from it. */
  #mayProbe(): boolean {
    return this.#parts.circuit.now() >= this.#notBeforeAt;
  }

  #plan(seen: SharedCircuit): ProbePlan {
    const { circuit, settings } = this.#parts;
    const sight = {
      circuit: seen,
      mayTry: seen.state.kind === "closed" || circuit.mayTry,
      notBeforeAt: this.#notBeforeAt,
      nowMs: circuit.now(),
    };
    return decideNextProbe(sight, settings);
  }

  #try(): void {
    const { decision, circuit } = this.#parts.circuit.tell({ kind: "due" });
    // Asked before it is told, so that a run which ends at this news ends the trial, too.
    if (decision.isAdmitted) this.#begin();
    this.#notice(circuit, decision.transition);
  }

  #begin(): void {
    const { probe, circuit } = this.#parts;
    this.#isProbing = true;
    void ask(probe, this.#stopping.signal, circuit).then((answer) => this.#hear(answer));
  }

  #hear({ result, note }: Answer): void {
    if (this.#isEnded) return;
    this.#isProbing = false;
    if (isOwnTrouble(result.because)) this.#stepAside(result);
    else this.#count(result, note);
    if (!this.#isEnded) this.#goOn();
  }

  #count(result: ProbeResult, note: ProbeNote): void {
    const event: CircuitEvent = { kind: result.isGood ? "probe-succeeded" : "probe-failed" };
    const { decision, circuit } = this.#parts.circuit.tellProbe(event, note);
    this.#parts.onProbe?.(result);
    this.#notice(circuit, decision.transition);
  }

  /** Where there is time until the next probe, the timer that was set with this one will do. */
  #goOn(): void {
    const { known } = this.#parts.circuit;
    const isResting = known.state.kind === "closed" && this.#mayProbe();
    if (!isResting || this.#plan(known).kind !== "wait") this.#step();
  }

  #stepAside(result: ProbeResult): void {
    const { circuit, settings } = this.#parts;
    circuit.leave();
    this.#notBeforeAt = (circuit.now() + settings.periodMs) as MonotonicAt;
    this.#troubles.tell(result);
  }

  /** @param transition  ours */
  #notice(circuit: SharedCircuit, transition: CircuitTransition | undefined): void {
    const isSame = circuit.state.kind === this.#told && transition === undefined;
    if (this.#isEnded || isSame) return;
    this.#told = circuit.state.kind;
    this.#parts.onChange(circuit, transition, transition !== undefined);
  }
}
