/**
 * Watches a tree for idleness: takes samples of its CPU time and I/O, and asks the pure decision.
 * Reads only; signals nobody.
 *
 * CPU of processes that ended is counted where the kernel adds it to the parent that waited, or
 * where we collected them; a process whose parent ignores SIGCHLD takes its last sample's worth
 * with it, so a sum that falls counts as 0.
 */
import {
  type ActivitySample,
  decideIdleness,
  dropOldSamples,
  type IdlePolicy,
} from "../core/idleness.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { readIoBytes, readStat, TICK_MS } from "../os/proc.ts";
import { type Timer, wakeEvery } from "../os/timers.ts";

export interface IdleSubject {
  members(): readonly ProcessRow[];
  /** CPU of children that were collected so far. */
  collectedCpuMs(): number;
  lastOutputAt(): MonotonicAt | undefined;
}

const SAMPLES_IN_SPAN = 20;
const SHORTEST_PERIOD_MS = 50;
const LONGEST_PERIOD_MS = 30_000;

export function watchIdleness(subject: IdleSubject, policy: IdlePolicy, onIdle: () => void): Timer {
  const watch = new IdleWatch(subject, policy, onIdle);
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
  #samples: readonly ActivitySample[] = [];
  #raw = { cpuMs: 0, ioBytes: 0 };

  constructor(subject: IdleSubject, policy: IdlePolicy, onIdle: () => void) {
    this.#subject = subject;
    this.#policy = policy;
    this.#onIdle = onIdle;
    this.#raw = this.#measure();
  }

  look(): void {
    const raw = this.#measure();
    const before = this.#samples.at(-1) ?? { cpuMs: 0, ioBytes: 0 };
    const sample: ActivitySample = {
      at: monotonicNow(),
      cpuMs: before.cpuMs + Math.max(0, raw.cpuMs - this.#raw.cpuMs),
      ioBytes: before.ioBytes + Math.max(0, raw.ioBytes - this.#raw.ioBytes),
    };
    this.#raw = raw;
    this.#samples = dropOldSamples([...this.#samples, sample], this.#policy.spanMs);
    const idleness = decideIdleness(this.#samples, this.#subject.lastOutputAt(), this.#policy);
    if (idleness.kind === "idle") this.#onIdle();
  }

  #measure(): { cpuMs: number; ioBytes: number } {
    let cpuMs = this.#subject.collectedCpuMs();
    let ioBytes = 0;
    for (const row of this.#subject.members()) {
      const stat = readStat(row.pid);
      // A nested watchdog's own beats are no work; what its children used and it collected is.
      const own = row.isWatchdog ? 0 : (stat?.ownTicks ?? 0);
      cpuMs += (own + (stat?.waitedTicks ?? 0)) * TICK_MS;
      // EACCES: a process of other rights; its CPU time still shows whether it works.
      ioBytes += row.isWatchdog ? 0 : (readIoBytes(row.pid) ?? 0);
    }
    return { cpuMs, ioBytes };
  }
}
