/**
 * Looks at what a job reports while it runs: counts it, holds its bounds, and shows it with the
 * heartbeat. Ends nobody itself: a bound that was passed is an event of the run's machine.
 *
 * Always: a look never lasts much longer than LOOK_BUDGET_MS, whatever the job writes; what is left
 * is taken in the next turn of the loop, and at the end for FINISH_MS. Clock: MONOTONIC for looks;
 * the rate is told on the clock of the run's pauses. State after a crash: none.
 */
import { doneOf, hasReported, type ItemsFailure } from "../../core/item-counts.ts";
import type { Mask } from "../../core/masking.ts";
import type { ItemsProgress, Progress, TreeUse } from "../../core/progress.ts";
import { addSample, itemsPerMinute, type ProgressSample } from "../../core/progress-rate.ts";
import { recordItems } from "../../core/recorded-items.ts";
import type { RecordedItems } from "../../core/run-record.ts";
import { type MonotonicAt, spanMs } from "../../core/time.ts";
import { monotonicNow } from "../../os/clock.ts";
import { ownMask } from "../../os/mask.ts";
import { type Timer, wakeAfter } from "../../os/timers.ts";
import { ProgressFollower } from "../../progress/follower.ts";
import { type ProgressFile, sweepProgress } from "../../progress/place.ts";
import type { Look } from "../checks/expected-files.ts";
import type { Course } from "../course.ts";
import { messages } from "../messages.ts";
import { TreeMeter } from "../tree-use.ts";
import { FileWatch } from "./file-watch.ts";
import type { ProgressScene } from "./run-progress.ts";

/** A job that reports, or has bounds to keep. */
const LOOK_MS = 1_000;
/** Any other: each wake-up of an idle run costs it CPU time. */
const IDLE_LOOK_MS = 10_000;
/** Without a report for so long a job counts as such another, if it has no bounds. */
const QUIET_AFTER_MS = 600_000;
/**
 * So often the CPU time and I/O of the tree are looked at: each costs more than any other look,
 * about 2 ms on a loaded machine.
 */
const MEASURE_MS = 10_000;
const IDLE_MEASURE_MS = 30_000;
const LOOK_BUDGET_MS = 50;
const FINISH_MS = 1_000;

export class ProgressWatch {
  readonly #course: Course;
  readonly #follower: ProgressFollower | undefined;
  readonly #scene: ProgressScene;
  /** Takes the secrets out of what the job has told. */
  readonly #mask: Mask;
  readonly #meter: TreeMeter;
  readonly #files: FileWatch;
  #use: TreeUse | null = null;
  #samples: readonly ProgressSample[];
  #reportedAt: MonotonicAt | undefined;
  #lastReport = "";
  #timer: Timer | undefined;
  #isOver = false;
  #hasFailed = false;
  /** The file cannot be read any more. */
  #isBroken = false;

  constructor(
    course: Course,
    file: ProgressFile | undefined,
    scene: ProgressScene & { readonly before: readonly Look[] },
  ) {
    this.#course = course;
    this.#scene = scene;
    this.#mask = ownMask();
    this.#follower = file === undefined ? undefined : new ProgressFollower(file, course.options);
    this.#meter = new TreeMeter(scene.tree, course.identity.startedAt);
    const { identity, options } = course;
    this.#files = new FileWatch(identity.cwd, options.expectFiles, scene.before);
    this.#samples = [{ at: scene.clock.at(course.identity.startedAt), done: 0 }];
  }

  get failure(): ItemsFailure | undefined {
    return this.#follower?.failure;
  }

  begin(): void {
    this.#look();
    if (this.#course.hasState) attempt(() => sweepProgress(this.#course.stateDirectory));
  }

  /** The rest is taken, as far as FINISH_MS go. */
  async finish(): Promise<void> {
    this.#isOver = true;
    this.#timer?.cancel();
    const until = monotonicNow() + FINISH_MS;
    while (this.#read() === "behind") {
      if (monotonicNow() > until) {
        this.#course.ledger.noteDegraded("progress-unread");
        this.#course.ledger.tellOnce(messages.progressUnread());
        break;
      }
      await new Promise<void>((resolve) => wakeAfter(0, resolve));
    }
    this.#follower?.end();
    this.#tellOverwritten();
    this.#follower?.close();
  }

  /** As the record holds it; null: nothing was reported. */
  summary(): RecordedItems | null {
    const counts = this.#follower?.counts;
    if (counts === undefined) return null;
    const mask = (text: string): string => this.#mask.text(text);
    return recordItems(counts, { elapsedMs: this.#elapsedMs(), mask });
  }

  #masked(text: string | undefined): string | undefined {
    return text === undefined ? undefined : this.#mask.text(text);
  }

  #elapsedMs(): number {
    const { clock } = this.#scene;
    return spanMs(clock.at(this.#course.identity.startedAt), clock.now());
  }

  #look(): void {
    if (this.#isOver) return;
    const reading = this.#read();
    this.#tellOverwritten();
    const hasReported = this.#noteReport();
    // The first time too: whoever has just started a job looks at it.
    const isNews = hasReported || this.#use === null;
    attempt(() => this.#scene.onProgress(this.#progress(), isNews));
    this.#tellFailure();
    if (this.#isOver) return;
    this.#timer = wakeAfter(reading === "behind" ? 0 : this.#pauseMs(), () => this.#look());
  }

  #read(): "caught-up" | "behind" {
    if (this.#isBroken || this.#follower === undefined) return "caught-up";
    try {
      return this.#follower.look(LOOK_BUDGET_MS);
    } catch (error) {
      // EIO: what was counted stays; what comes is not seen any more.
      this.#isBroken = true;
      this.#course.ledger.noteDegraded("progress-unread");
      const reason = error instanceof Error ? error.message : String(error);
      this.#course.ledger.tellOnce(messages.progressUnreadable(reason));
      return "caught-up";
    }
  }

  #tellOverwritten(): void {
    if (this.#follower?.wasOverwritten !== true) return;
    this.#course.ledger.noteDegraded("progress-overwritten");
    this.#course.ledger.tellOnce(messages.progressOverwritten());
  }

  #tellFailure(): void {
    const failure = this.#follower?.failure;
    if (failure === undefined || this.#hasFailed) return;
    this.#hasFailed = true;
    this.#scene.onFailure(failure);
  }

  /** @returns whether the job has reported since the last look */
  #noteReport(): boolean {
    const counts = this.#follower?.counts;
    if (counts === undefined || !hasReported(counts)) return false;
    const { ok, failed, total, checkpoint, lastMessage } = counts;
    const report = JSON.stringify([ok, failed, total, checkpoint, lastMessage]);
    if (report === this.#lastReport) return false;
    this.#lastReport = report;
    this.#reportedAt = monotonicNow();
    const sample = { at: this.#scene.clock.now(), done: doneOf(counts) };
    this.#samples = addSample(this.#samples, sample);
    return true;
  }

  #progress(): Progress {
    return {
      items: this.#shownItems(),
      lastOutputMs: this.#scene.lastOutputAt() ?? null,
      use: this.#measured(),
      filesChangedMs: this.#files.changedAt ?? null,
    };
  }

  /** Each process of the tree costs a look into `/proc`. */
  #measured(): TreeUse | null {
    const now = monotonicNow();
    const pauseMs = this.#isIdle ? IDLE_MEASURE_MS : MEASURE_MS;
    const isDue = this.#use === null || now - this.#use.measuredMs >= pauseMs;
    if (!isDue) return this.#use;
    // What it finds is shown at one of the next looks.
    void this.#files.look();
    this.#use = this.#meter.measure(now);
    return this.#use;
  }

  #shownItems(): ItemsProgress | null {
    const counts = this.#follower?.counts;
    if (counts === undefined || this.#reportedAt === undefined) return null;
    const { ok, failed, total, checkpoint, lastMessage } = counts;
    const now = { at: this.#scene.clock.now(), done: doneOf(counts) };
    return {
      ok,
      failed,
      total: total ?? null,
      checkpoint: this.#masked(checkpoint) ?? null,
      lastMessage: this.#masked(lastMessage) ?? null,
      ratePerMinute: itemsPerMinute(this.#samples, now) ?? null,
      reportedMs: this.#reportedAt,
    };
  }

  #pauseMs(): number {
    return this.#isIdle ? IDLE_LOOK_MS : LOOK_MS;
  }

  /** It has no bounds to keep, and does not report. */
  get #isIdle(): boolean {
    const { maxFailRate, maxConsecutiveFails } = this.#course.options;
    if (maxFailRate !== undefined || maxConsecutiveFails !== undefined) return false;
    const since = this.#reportedAt;
    return since === undefined || spanMs(since, monotonicNow()) > QUIET_AFTER_MS;
  }
}

/** What is only shown or cleared away must not cost the rest. */
function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // Any error: the next look tries again.
  }
}
