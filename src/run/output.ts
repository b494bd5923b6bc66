/**
 * The command's output during one run: makes the pipes that `core/output-plan.ts` decided on, hands
 * them to the Workers of `output/`, and says what came of it. Copies no byte itself.
 */
import type { OutputFactsOfRun } from "../core/checks.ts";
import { assert } from "../core/errors.ts";
import type { OutputPlan, StreamName } from "../core/output-plan.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { LogSummary, OutputSummary } from "../core/run-record.ts";
import type { MonotonicAt } from "../core/time.ts";
import { encodeName } from "../os/state-dir.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { say } from "../os/say.ts";
import type { Redirection } from "../os/spawn.ts";
import { nameErrno, sys } from "../os/sys.ts";
import type { Copy, CopyPlan, StreamCounters } from "../output/copy.ts";
import type { Course } from "./course.ts";
import { messages } from "./messages.ts";
import {
  makePipes,
  type Pipe,
  planOutput,
  reserveDescriptors,
  STDERR,
  STDOUT,
} from "./output-pipes.ts";
import { stuckLog } from "./stuck-log.ts";
import { watchTerminals } from "./terminal-output.ts";

/** Ends of a stream by which output is lost that the command believes to be written. */
const FAILED: ReadonlySet<string> = new Set(["write-failed", "read-failed", "worker-failed"]);

export class RunOutput {
  readonly #course: Course;
  readonly #plan: OutputPlan;
  readonly #pipes: readonly Pipe[];
  readonly #terminalOutputAt: () => MonotonicAt | undefined;
  /** Held for the Workers: a Worker without descriptors takes the whole process with it. */
  readonly #reserve: readonly number[];
  #copy: Promise<Copy> | undefined;
  #running: Copy | undefined;
  #lost: string | undefined;

  /**
   * Makes the pipes. @throws WatchdogError "spawn.failed" where none are to be had (EMFILE, ENFILE)
   */
  constructor(course: Course) {
    this.#course = course;
    this.#plan = planOutput(course.options);
    this.#pipes = makePipes(this.#plan);
    const copied = new Set(this.#pipes.flatMap((pipe) => pipe.descriptors));
    const terminals = [STDOUT, STDERR].filter((fd) => !copied.has(fd) && sys.isTerminal(fd));
    this.#terminalOutputAt = watchTerminals(terminals);
    const isMatching = patternsOf(course.options).length > 0;
    this.#reserve = this.#pipes.length === 0 ? [] : reserveDescriptors(isMatching);
  }

  /** The streams that are copied; none if the command has the descriptors themselves. */
  get names(): readonly StreamName[] {
    return this.#pipes.map((pipe) => pipe.name);
  }

  redirections(): Redirection[] {
    return this.#pipes.flatMap((pipe) =>
      pipe.descriptors.map((target) => ({ target, source: pipe.writeEnd })),
    );
  }

  /**
   * The command has its ends: ours of them are closed, so that the last writer's end is the end of
   * the pipe.
   */
  release(): void {
    for (const pipe of this.#pipes) sys.close(pipe.writeEnd);
  }

  /** Starts the Workers; their code is loaded only now, while the command already runs. */
  start(): void {
    if (this.#pipes.length === 0) return;
    this.#copy = import("../output/copy.ts").then(({ startCopy }) => {
      for (const fd of this.#reserve) sys.close(fd);
      this.#running = startCopy(this.#copyPlan());
      return this.#running;
    });
    this.#copy.catch((error: unknown) => this.#giveUp(error));
  }

  /** Without Workers nobody reads the pipes: closed, they give the command SIGPIPE, not a hang. */
  #giveUp(error: unknown): void {
    for (const pipe of this.#pipes) sys.close(pipe.readEnd);
    this.#lost = error instanceof Error ? error.message : String(error);
    say(messages.outputLost("the output", this.#lost));
  }

  #copyPlan(): CopyPlan {
    const { options, request, stateDirectory } = this.#course;
    return {
      streams: this.#pipes.map((pipe) => ({
        name: pipe.name,
        pipeFd: pipe.readEnd,
        destinationFd: pipe.descriptors[0] ?? STDOUT,
      })),
      log: this.#logPlan(),
      patterns: patternsOf(options),
      spoolDirectory: options.isQuiet ? `${stateDirectory}/spool` : undefined,
      workerUrls: request.workerUrls,
    };
  }

  #logPlan(): CopyPlan["log"] {
    const { stateDirectory, identity, options, hasState } = this.#course;
    if (!this.#plan.keepsLog || !hasState) return undefined;
    const logsRoot = `${stateDirectory}/logs`;
    return {
      logsRoot,
      directory: `${logsRoot}/${encodeName(identity.jobName)}`,
      fileName: `${identity.runId}.log`,
      maxBytes: options.logMaxBytes,
      keepBytes: options.logKeepBytes,
    };
  }

  /**
   * The tree is gone: copies what is still in the pipes and resolves when it has reached its
   * reader, and the run was judged.
   * @param isGood  judges the run; `--quiet` prints nothing of a good one, else everything
   */
  async end(isGood: () => Promise<boolean>): Promise<void> {
    assert(
      this.#pipes.length === 0 || this.#copy !== undefined,
      "output ended before its copy began",
    );
    const copy = await this.#copy?.catch(() => undefined);
    if (copy === undefined) return void (await isGood()); // nothing to copy, or given up and told
    copy.drain();
    const judged = isGood();
    if (this.#course.options.isQuiet) copy.finish((await judged) ? "discard" : "replay");
    await Promise.race([copy.ended, stuckLog(copy)]);
    await judged;
  }

  /**
   * What was found in the output, when it was read to its end or nobody waits for it any more.
   * Undefined: it is not copied.
   */
  async read(): Promise<OutputFactsOfRun | undefined> {
    const copy = await this.#copy?.catch(() => undefined);
    if (copy === undefined) return undefined;
    const { isComplete, patterns } = await copy.matched;
    return { bytes: copy.counters().readBytes, isComplete, patterns };
  }

  /** Does not wait for readers any more; the log is still finished. */
  abandon(): void {
    this.#running?.abandon("readers");
  }

  /**
   * When the last byte was seen; for a terminal that the command writes to itself, when its device
   * changed.
   */
  lastOutputAt(): MonotonicAt | undefined {
    const instants = [this.#running?.counters().lastOutputAt, this.#terminalOutputAt()].filter(
      (at) => at !== undefined,
    );
    return instants.length === 0 ? undefined : (Math.max(...instants) as MonotonicAt);
  }

  summary(): OutputSummary {
    const lastAt = this.#running?.counters().lastOutputAt;
    const bytes = (name: StreamName): number | null =>
      this.#running?.counters().streams.find((one) => one.name === name)?.readBytes ?? null;
    return {
      stdout_bytes: bytes("stdout") ?? bytes("both"),
      stderr_bytes: bytes("stderr"),
      last_output_at: lastAt === undefined ? null : showInstant(lastAt),
      is_copied: this.#pipes.length > 0,
      write_error: this.writeError() ?? null,
    };
  }

  /** What the destination said when it did not take the output, as the command would have heard. */
  writeError(): string | undefined {
    const failed = this.#running?.counters().streams.find((stream) => FAILED.has(stream.end));
    if (failed === undefined) return this.#lost;
    return failed.end === "worker-failed" ? "its Worker died" : nameErrno(failed.errno);
  }

  logSummary(): LogSummary | null {
    const plan = this.#logPlan();
    const log = this.#running?.counters().log;
    if (plan === undefined || log === undefined) return null;
    return {
      path: log.path ?? null,
      kept_bytes: log.keptBytes,
      omitted_bytes: log.omittedBytes,
      dropped_bytes: log.droppedBytes,
      because: log.errno === 0 ? null : nameErrno(log.errno),
    };
  }

  /** What a person must know about the output, as lines. */
  troubles(): string[] {
    const counters = this.#running?.counters();
    if (counters === undefined) return [];
    const lines = counters.streams.flatMap((stream) => this.#troublesOf(stream));
    const { log } = counters;
    if (log !== undefined && log.droppedBytes > 0) {
      lines.push(
        messages.logIncomplete(
          log.droppedBytes,
          log.errno === 0 ? "slow disk" : nameErrno(log.errno),
        ),
      );
    }
    return lines;
  }

  #troublesOf(stream: StreamCounters): string[] {
    if (stream.end === "worker-failed")
      return [messages.outputLost(stream.name, "its Worker died")];
    if (stream.end === "write-failed" || stream.end === "read-failed") {
      return [messages.outputFailed(stream.name, nameErrno(stream.errno))];
    }
    if (stream.isQuietAbandoned) return [messages.quietAbandoned(stream.name)];
    const missingBytes = stream.readBytes - stream.writtenBytes;
    const isExpected = stream.end === "reader-gone" || this.#course.options.isQuiet;
    return missingBytes > 0 && !isExpected ? [messages.undelivered(missingBytes)] : [];
  }
}

/** In the order in which they are judged. */
function patternsOf({ expectMatches, failMatches }: RunOptions): readonly string[] {
  return [...expectMatches, ...failMatches];
}

/** A monotonic instant as a wall time of now's clock, for people. */
function showInstant(at: MonotonicAt): string {
  return new Date(wallNow() - (monotonicNow() - at)).toISOString();
}
