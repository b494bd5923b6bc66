/**
 * The pause of a run: its tree stands still, its clock too, and everybody who must know is told.
 * Decides nothing: the machine of the run says when.
 *
 * Always: whoever was stopped here is continued, killed, or named to the guard; leases and beats go
 * on meanwhile. State after a crash of watchdog: the guard knows whom we have stopped.
 */
import { wallNow } from "../os/clock.ts";
import { TreeFreeze } from "../tree/freeze.ts";
import { nameProcesses, type Tree } from "../tree/tree.ts";
import type { Course } from "./course.ts";
import type { Guard } from "./guard.ts";
import { messages } from "./messages.ts";
import type { PauseClock } from "./pause-clock.ts";

export interface PauseParts {
  readonly course: Course;
  readonly tree: Tree;
  readonly clock: PauseClock;
  readonly guard: Guard | undefined;
  /** The names of the dependencies that it is for. */
  readonly holding: () => readonly string[];
}

export class RunPause {
  readonly #parts: PauseParts;
  readonly #freeze: TreeFreeze;
  #isTold = false;

  constructor(parts: PauseParts) {
    const { course, clock } = parts;
    this.#parts = parts;
    this.#freeze = new TreeFreeze(parts.tree, {
      onListed: () => this.#noteFrozen(),
      onFrozen: (count) => this.#tellFrozen(count),
      onIncomplete: (rows) =>
        course.ledger.tellOnce(messages.notPaused(nameProcesses(rows), rows.length)),
      onBug: (error) => course.ledger.noteBug(error),
    });
    course.ledger.notePauses(() => clock.pausedMs);
  }

  freeze(): void {
    this.#isTold = false;
    this.#parts.clock.pause();
    this.#freeze.freeze();
  }

  thaw(): void {
    this.#parts.clock.resume();
    this.#freeze.thaw();
    const { course, clock } = this.#parts;
    this.#put("resumed", { paused_ms: Math.round(clock.pausedMs) });
    if (course.options.isVerbose) course.ledger.tellOnce(messages.resumed());
  }

  /** From the first KILL on, and at the end: nobody is continued, and nobody stopped again. */
  end(): void {
    this.#parts.clock.resume();
    this.#freeze.end();
  }

  #tellFrozen(count: number): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const { holding } = this.#parts;
    this.#put("paused", { processes: count, dependencies: holding() });
  }

  #noteFrozen(): void {
    this.#parts.guard?.note({ frozen: this.#freeze.frozen });
  }

  #put(name: "paused" | "resumed", data: Readonly<Record<string, unknown>>): void {
    const { journal, identity } = this.#parts.course;
    const about = { runId: identity.runId, job: identity.jobName, key: null, because: null };
    journal?.put({ kind: "event", at: wallNow(), name, ...about, data });
  }
}
