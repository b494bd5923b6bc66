/**
 * One dependency of a run with its circuit (`--probe`): joined, waited for before the start,
 * watched while the job runs, and given back. Decides nothing about the job.
 *
 * Always: transitions that this run has made are in the journal once, under its id. State after a
 * crash: the kernel frees the lock of the circuit, its row stays.
 */
import { LiveCircuit } from "../../circuit/live-circuit.ts";
import { CircuitPlace } from "../../circuit/place.ts";
import { isHolderAlive, readTrialSelf } from "../../circuit/holder.ts";
import { type StartupEnd, waitForStart } from "../../circuit/startup.ts";
import { CircuitWatch } from "../../circuit/watch.ts";
import type { CircuitTransition } from "../../core/circuit.ts";
import { type Dependency, stateOfCircuit } from "../../core/dependencies.ts";
import { WatchdogError } from "../../core/errors.ts";
import type { ProbeResult } from "../../core/probe-result.ts";
import {
  circuitNameOf,
  hashSettings,
  type ProbeSettings,
  startupOf,
} from "../../core/probe-settings.ts";
import { renderTarget } from "../../core/probe-target.ts";
import type { RecordedDependency } from "../../core/run-record.ts";
import type { CircuitStore, SharedCircuit } from "../../core/shared-circuit.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { monotonicNow, wallNow } from "../../os/clock.ts";
import { throwDice } from "../../os/dice.ts";
import { wakeAfter } from "../../os/timers.ts";
import type { Course } from "../course.ts";
import { readOwnSelf } from "../own-self.ts";
import type { Probing } from "./probing.ts";
import { recordLast } from "./recorded.ts";
import { commandAbout, sentences } from "./sentences.ts";

export interface WatchedCircuitParts {
  readonly course: Course;
  readonly settings: ProbeSettings;
  readonly store: CircuitStore | undefined;
  readonly probing: Probing;
  /** A transition that we have made. */
  onTransition(circuit: SharedCircuit, transition: CircuitTransition): void;
  /** Whoever has made it. */
  onChange(circuit: SharedCircuit): void;
  /** A line about trouble of our own. */
  tell(line: string): void;
}

export class WatchedCircuit {
  readonly #parts: WatchedCircuitParts;
  readonly #circuit: LiveCircuit;
  #watch: CircuitWatch | undefined;
  #probes = 0;
  #failedProbes = 0;

  constructor(parts: WatchedCircuitParts) {
    const { course, settings, store } = parts;
    const { failureThreshold, failureWindow, successThreshold, backoff } = settings;
    const { machine } = readOwnSelf();
    const name = circuitNameOf(settings);
    this.#parts = parts;
    this.#circuit = new LiveCircuit({
      name,
      settings: { failureThreshold, failureWindow, successThreshold, backoff },
      join: {
        settingsHash: hashSettings(settings),
        job: course.identity.jobName,
        target: renderTarget(settings.target),
      },
      store,
      place: store && new CircuitPlace(course.stateDirectory, name),
      wanted: store && new CircuitPlace(course.stateDirectory, name, "wanted"),
      times: {
        periodMs: settings.periodMs,
        timeoutMs: Math.max(settings.timeoutMs, startupOf(settings).timeoutMs),
        backoff,
      },
      self: readTrialSelf(machine),
      isAlive: (holder) => isHolderAlive(holder, machine),
      now: monotonicNow,
      wall: wallNow,
      random: throwDice,
      tell: (reason) => {
        course.ledger.noteDegraded("circuit-unshared");
        parts.tell(sentences.unshared(reason));
      },
      onTransition: (circuit, transition) => parts.onTransition(circuit, transition),
    });
  }

  get name(): string {
    return this.#circuit.name;
  }

  get settings(): ProbeSettings {
    return this.#parts.settings;
  }

  /** @throws WatchdogError "probe.refused": the name belongs to a probe with other settings */
  join(): void {
    const decision = this.#circuit.join();
    if (decision === "unshared" || decision.kind !== "refused") return;
    const isInUse = decision.because === "in-use";
    const own = this.#parts.course.identity.jobName;
    const found = this.#circuit.look();
    throw new WatchdogError("probe.refused", sentences.otherSettings(found, { own, isInUse }), {
      hint: commandAbout("show", this.name),
    });
  }

  waitForStart(signal: AbortSignal): Promise<StartupEnd> {
    const { settings } = this.#parts;
    const { timeoutMs, backoff } = startupOf(settings);
    return waitForStart({
      circuit: this.#circuit,
      settings: { ...settings, timeoutMs, backoff },
      probe: (stopping) => this.#ask(timeoutMs, stopping),
      wake: wakeAfter,
      random: throwDice,
      signal,
    });
  }

  begin(startedAt: MonotonicAt): void {
    const { settings, onChange, tell } = this.#parts;
    this.#watch = new CircuitWatch({
      circuit: this.#circuit,
      settings,
      probe: (stopping) => this.#ask(settings.timeoutMs, stopping),
      wake: wakeAfter,
      startedAt,
      onChange: (circuit) => onChange(circuit),
      onTrouble: ({ detail }) => tell(sentences.trouble(this.name, detail)),
    });
    this.#watch.begin();
  }

  /** The lock is free, and nothing is asked any more. */
  end(): void {
    if (this.#watch === undefined) this.#circuit.leave();
    else this.#watch.end();
  }

  async #ask(timeoutMs: number, stopping: AbortSignal): Promise<ProbeResult> {
    const result = await this.#parts.probing.ask(this.#parts.settings, timeoutMs, stopping);
    if (result.because === "stopped") return result;
    this.#probes += 1;
    if (!result.isGood) this.#failedProbes += 1;
    return result;
  }

  get dependency(): Dependency {
    const state = stateOfCircuit(this.#circuit.look().state);
    return { name: this.name, policy: this.#parts.settings.onOpen, state };
  }

  record(): RecordedDependency {
    const { state, lastProbe } = this.#circuit.look();
    const { target, onOpen } = this.#parts.settings;
    return {
      name: this.name,
      role: "liveness",
      target: renderTarget(target),
      policy: onOpen,
      state: state.kind,
      probes: this.#probes,
      failed_probes: this.#failedProbes,
      ...recordLast(lastProbe),
    };
  }
}
