/**
 * Watches a tree for idleness: takes samples of its CPU time and I/O (tree-use.ts), and asks the
 * pure decision. Reads only; signals nobody.
 *
 * Clock: that of the run's pauses (pause-clock.ts); while it stands still no sample is taken, so
 * that a tree which was made to stand still is not found idle for it.
 */
import {
  type ActivitySample,
  decideIdleness,
  dropOldSamples,
  type IdlePolicy,
} from "../core/idleness.ts";
import type { MonotonicAt } from "../core/time.ts";
import { type Timer, wakeEvery } from "../os/timers.ts";
import { neverPaused, type PauseClock } from "./pause-clock.ts";
import { measureTree, type RawUse, usedBetween, type UsedTree } from "./tree-use.ts";

export interface IdleSubject extends UsedTree {
  /** On CLOCK_MONOTONIC. */
  lastOutputAt(): MonotonicAt | undefined;
}

const SAMPLES_IN_SPAN = 20;
const SHORTEST_PERIOD_MS = 50;
const LONGEST_PERIOD_MS = 30_000;

export function watchIdleness(
  subject: IdleSubject,
  policy: IdlePolicy,
  onIdle: () => void,
  clock: PauseClock = neverPaused(),
): Timer {
  const watch = new IdleWatch(subject, policy, { onIdle, clock });
  const period = policy.spanMs / SAMPLES_IN_SPAN;
  const timer = wakeEvery(Math.min(Math.max(period, SHORTEST_PERIOD_MS), LONGEST_PERIOD_MS), () =>
    watch.look(),
  );
  watch.look();
  return timer;
}

class IdleWatch {
  readonly #subject: IdleSubject;
  readonly #policy: IdlePolicy;
  readonly #onIdle: () => void;
  readonly #clock: PauseClock;
  #samples: readonly ActivitySample[] = [];
  #raw: RawUse;

  constructor(
    subject: IdleSubject,
    policy: IdlePolicy,
    { onIdle, clock }: { readonly onIdle: () => void; readonly clock: PauseClock },
  ) {
    this.#subject = subject;
    this.#policy = policy;
    this.#onIdle = onIdle;
    this.#clock = clock;
    this.#raw = measureTree(this.#subject);
  }

  look(): void {
    if (this.#clock.standsStill) return;
    const raw = measureTree(this.#subject);
    const before = this.#samples.at(-1) ?? { cpuMs: 0, ioBytes: 0 };
    const used = usedBetween(this.#raw, raw);
    const sample: ActivitySample = {
      at: this.#clock.now(),
      cpuMs: before.cpuMs + used.cpuMs,
      ioBytes: before.ioBytes + used.ioBytes,
    };
    this.#raw = raw;
    this.#samples = dropOldSamples([...this.#samples, sample], this.#policy.spanMs);
    const outputAt = this.#subject.lastOutputAt();
    const translatedAt = outputAt === undefined ? undefined : this.#clock.at(outputAt);
    const idleness = decideIdleness(this.#samples, translatedAt, this.#policy);
    if (idleness.kind === "idle") this.#onIdle();
  }
}
