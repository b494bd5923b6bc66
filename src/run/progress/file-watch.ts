/**
 * Looks again and again at the files that a job is expected to write, and remembers when they last
 * changed: shown beside output and CPU time, as a sign that the job works. Decides nothing.
 *
 * Always: nobody waits for it; of two looks none is under way beside the other; where a look could
 * not be finished, or there is much to look at, it was the last: a file system that hangs must not
 * take one thread after another, and what is only shown must cost little. Clock: MONOTONIC, of the
 * moment in which a change was seen. State after a crash: none.
 */
import type { FileExpectation } from "../../core/expectations.ts";
import { isSameSight } from "../../core/file-changes.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { monotonicNow } from "../../os/clock.ts";
import { type Look, lookAtFiles } from "../checks/expected-files.ts";

/** 6 ms of CPU time a look (measured on x64). */
const MOST_WATCHED = 1_000;

export class FileWatch {
  readonly #directory: string | undefined;
  readonly #expectations: readonly FileExpectation[];
  #seen: readonly Look[];
  #changedAt: MonotonicAt | undefined;
  #isLooking = false;
  #isOver: boolean;

  /** @param before  what was there right before the start; as many as there are expectations */
  constructor(
    directory: string | undefined,
    expectations: readonly FileExpectation[],
    before: readonly Look[],
  ) {
    this.#directory = directory;
    this.#expectations = expectations;
    this.#seen = before;
    this.#isOver = expectations.length === 0 || !areWatchable(before);
  }

  /** Undefined: no change was seen. */
  get changedAt(): MonotonicAt | undefined {
    return this.#changedAt;
  }

  /** Never rejects; at once where a look is under way. */
  async look(): Promise<void> {
    if (this.#isOver || this.#isLooking) return;
    this.#isLooking = true;
    const found = await lookAtFiles(this.#directory, this.#expectations, "meanwhile");
    this.#isLooking = false;
    this.#isOver = !areWatchable(found);
    if (this.#isOver) return;
    const isNews = found.some((one, index) => !isSameSight(this.#seen[index]?.sight, one.sight));
    if (isNews) this.#changedAt = monotonicNow();
    this.#seen = found;
  }
}

function areWatchable(looks: readonly Look[]): boolean {
  let files = 0;
  for (const { sight } of looks) {
    if (sight.kind === "unread") return false;
    files += sight.files.size;
  }
  return files <= MOST_WATCHED;
}
