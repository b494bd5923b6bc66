/**
 * One readiness of a run (`--ready-probe`): asked while the job runs, by this run for itself.
 * Decides nothing about the job. State after a crash: none.
 */
import { ReadinessWatch } from "../../circuit/readiness.ts";
import type { Dependency } from "../../core/dependencies.ts";
import type { ProbeResult } from "../../core/probe-result.ts";
import type { ProbeSettings } from "../../core/probe-settings.ts";
import { renderTarget } from "../../core/probe-target.ts";
import type { RecordedDependency } from "../../core/run-record.ts";
import type { ProbeNote } from "../../core/shared-circuit.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { monotonicNow, wallNow } from "../../os/clock.ts";
import { wakeAfter } from "../../os/timers.ts";
import type { Probing } from "./probing.ts";
import { recordLast } from "./recorded.ts";
import { sentences } from "./sentences.ts";

export interface WatchedReadinessParts {
  readonly settings: ProbeSettings;
  readonly probing: Probing;
  onChange(isReady: boolean, result: ProbeResult): void;
  /** A line about trouble of our own. */
  tell(line: string): void;
}

export class WatchedReadiness {
  readonly #parts: WatchedReadinessParts;
  #watch: ReadinessWatch | undefined;
  #state: "unknown" | "ready" | "unready" = "unknown";
  #probes = 0;
  #failedProbes = 0;
  #last: ProbeNote | undefined;

  constructor(parts: WatchedReadinessParts) {
    this.#parts = parts;
  }

  get name(): string {
    const { name, target } = this.#parts.settings;
    return name ?? renderTarget(target);
  }

  get settings(): ProbeSettings {
    return this.#parts.settings;
  }

  begin(startedAt: MonotonicAt): void {
    const { settings, probing, onChange, tell } = this.#parts;
    this.#watch = new ReadinessWatch({
      settings,
      probe: (stopping) => probing.ask(settings, settings.timeoutMs, stopping),
      wake: wakeAfter,
      now: monotonicNow,
      wall: wallNow,
      startedAt,
      onProbe: (result) => this.#count(result),
      onChange: (isReady, result) => {
        this.#state = isReady ? "ready" : "unready";
        onChange(isReady, result);
      },
      onTrouble: ({ detail }) => tell(sentences.trouble(this.name, detail)),
    });
    this.#watch.begin();
  }

  end(): void {
    this.#watch?.end();
  }

  #count({ isGood, because, detail }: ProbeResult): void {
    this.#probes += 1;
    if (!isGood) this.#failedProbes += 1;
    if (isGood && this.#state === "unknown") this.#state = "ready";
    this.#last = { because, detail, at: monotonicNow(), wallAt: wallNow() };
  }

  get dependency(): Dependency {
    const { onUnready } = this.#parts.settings;
    return { name: this.name, policy: onUnready, state: { kind: this.#state } };
  }

  record(): RecordedDependency {
    const { target, onUnready } = this.#parts.settings;
    return {
      name: this.name,
      role: "readiness",
      target: renderTarget(target),
      policy: onUnready,
      state: this.#state,
      probes: this.#probes,
      failed_probes: this.#failedProbes,
      ...recordLast(this.#last),
    };
  }
}
