/**
 * Waits for a dependency before a job is started, as core/startup-wait.ts decides. Starts nothing
 * and tells nobody.
 *
 * Always: it ends, with the lock given back unless the job may start; then it is kept for as long
 * as the answer is fresh, so that others can rely on that (`CircuitWatch` or `leave` ends that).
 * While it waits it keeps the lock from other starts, and leaves it to whoever watches.
 * Clock: MONOTONIC, of the circuit. State after a crash: the kernel frees the lock.
 */
import { isOwnTrouble } from "../core/circuit-change.ts";
import type { StartRefusal } from "../core/outcome.ts";
import { pollMsOf } from "../core/probe-schedule.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import type { ProbeNote, SharedCircuit } from "../core/shared-circuit.ts";
import {
  beginStartup,
  decideStartup,
  type StartupDecision,
  type StartupState,
} from "../core/startup-wait.ts";
import { ask, type AskProbe, type Wake } from "./ask.ts";
import type { LiveCircuit } from "./live-circuit.ts";

export interface StartupParts {
  readonly circuit: LiveCircuit;
  readonly settings: Pick<
    ProbeSettings,
    "periodMs" | "timeoutMs" | "startupWaitMs" | "initialDelayMs" | "backoff"
  >;
  readonly probe: AskProbe;
  readonly wake: Wake;
  /** Uniform, 0 ≤ x < 1. */
  random(): number;
  readonly signal?: AbortSignal | undefined;
}

export type StartupEnd =
  | { readonly kind: "ready"; readonly circuit: SharedCircuit }
  | {
      readonly kind: "failed";
      readonly because: StartRefusal;
      readonly circuit: SharedCircuit;
      /** Ours, also where it was trouble of ours, else anybody's. */
      readonly last: ProbeNote | undefined;
    }
  /** The signal came. */
  | { readonly kind: "stopped" };

/** Never rejects. */
export async function waitForStart(parts: StartupParts): Promise<StartupEnd> {
  const wait = new StartupWait(parts);
  for (;;) {
    const end = await wait.step();
    if (end === undefined) continue;
    if (end.kind === "ready") wait.keepLock();
    else parts.circuit.leave();
    return end;
  }
}

class StartupWait {
  readonly #parts: StartupParts;
  readonly #signal: AbortSignal;
  #state: StartupState;
  #troubles = 0;
  #last: ProbeNote | undefined;

  constructor(parts: StartupParts) {
    this.#parts = parts;
    this.#signal = parts.signal ?? new AbortController().signal;
    this.#state = beginStartup(parts.circuit.look(), parts.circuit.now());
  }

  async step(): Promise<StartupEnd | undefined> {
    if (this.#signal.aborted) return { kind: "stopped" };
    const { circuit } = this.#parts;
    const decision = this.#decide();
    switch (decision.kind) {
      case "ready":
        return { kind: "ready", circuit: circuit.look() };
      case "failed": {
        const seen = circuit.look();
        const last = this.#last ?? seen.lastProbe ?? undefined;
        return { kind: "failed", because: decision.because, circuit: seen, last };
      }
      case "wait":
        await this.#pause(decision.untilAt - circuit.now());
        return undefined;
      case "probe":
        await this.#ask(decision.because === "due");
        return undefined;
    }
  }

  #decide(): StartupDecision {
    const { circuit, settings, random } = this.#parts;
    // The lock first: whoever had it has written down what he found before he gave it back.
    const isProber = circuit.takeLockToStart();
    const seen = circuit.look();
    const decision = decideStartup(
      this.#state,
      {
        circuit: seen,
        isProber,
        mayTry: circuit.mayTry,
        troubles: this.#troubles,
        nowMs: circuit.now(),
        random: random(),
      },
      settings,
    );
    this.#troubles = 0;
    if ("state" in decision) this.#state = decision.state;
    return decision;
  }

  async #ask(isTrial: boolean): Promise<void> {
    const { circuit, settings, probe } = this.#parts;
    if (isTrial && !circuit.tell({ kind: "due" }).decision.isAdmitted) {
      await this.#pause(pollMsOf(settings)); // somebody was faster, or the row cannot be had now
      return;
    }
    const { result, note } = await ask(probe, this.#signal, circuit);
    this.#last = note;
    if (isOwnTrouble(result.because)) {
      this.#troubles = 1;
      if (isTrial) circuit.tell({ kind: "trial-lost" });
      circuit.unlock(); // somebody else may be able to ask: within one look everybody has tried
      await this.#pause(pollMsOf(settings));
    } else if (isTrial) {
      circuit.tell({ kind: result.isGood ? "probe-succeeded" : "probe-failed" }, note);
    } else circuit.noteStartupProbe(note);
  }

  /** Until then, but looks after what others do. */
  #pause(restMs: number): Promise<void> {
    const { wake, settings } = this.#parts;
    const signal = this.#signal;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = wake(Math.min(Math.max(0, restMs), pollMsOf(settings)), end);
      function end(): void {
        timer.cancel();
        signal.removeEventListener("abort", end);
        resolve();
      }
      signal.addEventListener("abort", end, { once: true });
    });
  }

  keepLock(): void {
    const { circuit, settings, wake } = this.#parts;
    // Whoever does not probe at first leaves it to those who do.
    if (settings.initialDelayMs > 0) circuit.unlock();
    else circuit.keepFor(settings.periodMs, wake);
  }
}
