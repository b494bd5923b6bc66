/**
 * What is written down of the attempts: the result file. One that cannot be written is told once,
 * and changes nothing else.
 *
 * State after a crash: the file says `running`, or what it said before.
 */
import type { Outcome } from "../core/outcome.ts";
import {
  type AttemptNotes,
  keepAttempts,
  recordAttempt,
  type RecordedAttempt,
  type RetryRecord,
} from "../core/retry-record.ts";
import { describeCommand, shownStatus } from "../core/run-record.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { deliverFile, isReplaceable } from "../os/files.ts";
import { ownMask } from "../os/mask.ts";
import { say } from "../os/say.ts";
import { messages } from "./messages.ts";

const RESULT_FILE_MODE = 0o666;

export interface ReportRequest {
  readonly argv: readonly Uint8Array[];
  readonly path: string | undefined;
  readonly build: { readonly version: string; readonly commit: string };
  /** As it is now; null: without `--breaker`. */
  readonly circuit: () => RetryRecord["circuit"];
}

export class RetryReport {
  readonly #request: ReportRequest;
  readonly #startedAt: MonotonicAt = monotonicNow();
  readonly #startedWall = new Date(wallNow()).toISOString();
  readonly #mode = RESULT_FILE_MODE & ~process.umask();
  #attempts: readonly RecordedAttempt[] = [];
  #count = 0;
  #hasTold = false;

  constructor(request: ReportRequest) {
    this.#request = request;
  }

  /** Attempts that have ended. */
  get count(): number {
    return this.#count;
  }

  get spentMs(): number {
    return spanMs(this.#startedAt, monotonicNow());
  }

  begin(): void {
    this.#write(this.#running());
  }

  note(notes: AttemptNotes): void {
    this.#count += 1;
    this.#attempts = keepAttempts(this.#attempts, recordAttempt(notes));
  }

  end(outcome: Outcome): void {
    this.#write({
      ...this.#running(),
      state: "ended",
      outcome: outcome.name,
      because: outcome.because,
      exit_status: shownStatus(outcome.leaving),
      status_of: outcome.statusOf,
      ended_at: new Date(wallNow()).toISOString(),
      duration_ms: Math.round(this.spentMs),
    });
  }

  #running(): RetryRecord {
    const { argv, build, circuit } = this.#request;
    return {
      format: 1,
      state: "running",
      outcome: null,
      because: null,
      exit_status: null,
      status_of: null,
      ...describeCommand(argv, ownMask()),
      pid: process.pid,
      started_at: this.#startedWall,
      ended_at: null,
      duration_ms: null,
      attempt_count: this.#count,
      attempts: this.#attempts,
      circuit: circuit(),
      watchdog: build,
    };
  }

  /** Atomic where there is a file to replace. */
  #write(record: RetryRecord): void {
    const { path } = this.#request;
    if (path === undefined) return;
    try {
      if (record.state === "running" && !isReplaceable(path)) return;
      deliverFile(path, `${JSON.stringify(record, null, 2)}\n`, this.#mode);
    } catch (error) {
      // EACCES, ENOSPC, EROFS, ENOENT: the promise to report cannot be kept; the attempts can.
      const text = error instanceof Error ? error.message : String(error);
      if (!this.#hasTold) say(messages.noResultFile(path, text.replace(/, \w+ '.*$/s, "")));
      this.#hasTold = true;
    }
  }
}
