/**
 * The progress file of one run from before the spawn to the end: made, named to the command,
 * followed, removed. Counts nothing itself; what does is loaded when there is something to count,
 * or a bound to hold.
 *
 * Always: a run without the file is a run all the same, and says so; nothing here is waited for
 * before the command is started, apart from the making of an empty file. State after a crash:
 * progress/place.ts.
 */
import { statSync } from "node:fs";
import type { ItemsFailure } from "../../core/item-counts.ts";
import type { Progress } from "../../core/progress.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { type Timer, wakeAfter } from "../../os/timers.ts";
import { makeProgressFile, type ProgressFile, removeProgressFile } from "../../progress/place.ts";
import type { Look } from "../checks/expected-files.ts";
import type { Course } from "../course.ts";
import { messages } from "../messages.ts";
import type { PauseClock } from "../pause-clock.ts";
import type { UsedTree } from "../tree-use.ts";
import type { ProgressWatch } from "./progress-watch.ts";

/** A run that is over sooner has not loaded what counts, unless it has reported. */
const FIRST_LOOK_MS = 1_000;

/** What of the run the progress is told with, and who hears of it. */
export interface ProgressScene {
  /** Stands still where the job does. */
  readonly clock: PauseClock;
  readonly lastOutputAt: () => MonotonicAt | undefined;
  readonly tree: UsedTree;
  /** The bound that was passed first. Called once. */
  readonly onFailure: (failure: ItemsFailure) => void;
  /** What the heartbeat shows of it. */
  readonly onProgress: (progress: Progress, isNews: boolean) => void;
}

export class RunProgress {
  readonly #course: Course;
  readonly #file: ProgressFile | undefined;
  readonly #before: readonly Look[];
  #scene: ProgressScene | undefined;
  #watch: Promise<ProgressWatch | undefined> | undefined;
  #loaded: ProgressWatch | undefined;
  #timer: Timer | undefined;
  #finishing: Promise<void> | undefined;

  /** @param before  of the files that the job is expected to write */
  constructor(course: Course, before: readonly Look[]) {
    this.#course = course;
    this.#before = before;
    this.#file = makeFile(course);
  }

  /** Of the file; undefined: none could be made. */
  get path(): string | undefined {
    return this.#file?.path;
  }

  /** The bound that was passed first; certain only after `finish`. */
  get failure(): ItemsFailure | undefined {
    return this.#loaded?.failure;
  }

  /** The command runs. */
  begin(scene: ProgressScene): void {
    this.#scene = scene;
    this.#course.ledger.noteItems(() => this.#loaded?.summary() ?? null);
    this.#timer = wakeAfter(FIRST_LOOK_MS, () => void this.#load());
  }

  /** Nobody of the tree is left to report: the rest is taken. Never rejects; safe to repeat. */
  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  /** After `finish`, or where none was started. A file that stays a later run removes. */
  remove(): void {
    this.#timer?.cancel();
    if (this.#file === undefined) return;
    try {
      removeProgressFile(this.#file);
    } catch (error) {
      this.#course.ledger.noteBug(error);
    }
  }

  async #finish(): Promise<void> {
    this.#timer?.cancel();
    if (this.#file === undefined) return;
    if (this.#watch === undefined && isEmpty(this.#file.path)) return;
    await (await this.#load())?.finish();
  }

  #load(): Promise<ProgressWatch | undefined> {
    this.#watch ??= this.#begin();
    return this.#watch;
  }

  async #begin(): Promise<ProgressWatch | undefined> {
    const { ledger } = this.#course;
    try {
      const { ProgressWatch: Watch } = await import("./progress-watch.ts");
      if (this.#scene === undefined) return undefined;
      const { path, fd } = this.#file ?? { path: undefined, fd: -1 };
      const file = path === undefined ? undefined : { path, fd };
      this.#loaded = new Watch(this.#course, file, { ...this.#scene, before: this.#before });
      this.#loaded.begin();
    } catch (error) {
      ledger.noteBug(error);
    }
    return this.#loaded;
  }
}

function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Trouble with it is told where a bound was to be held, and recorded in any case. */
function makeFile(course: Course): ProgressFile | undefined {
  const { hasState, stateDirectory, identity, ledger, options } = course;
  if (!hasState) return undefined;
  try {
    return makeProgressFile(stateDirectory, identity.runId);
  } catch (error) {
    ledger.noteDegraded("no-progress-file");
    const { maxFailRate, maxConsecutiveFails } = options;
    const hasLimit = maxFailRate !== undefined || maxConsecutiveFails !== undefined;
    if (hasLimit) ledger.tellOnce(messages.noProgressFile(textOf(error)));
    return undefined;
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
