/**
 * The output of one run, seen from main: starts the Workers, reads their counters, passes main's
 * orders on. No byte of output ever passes through main, and nothing here blocks.
 *
 * Always: the pipes' read ends belong to this room from `startCopy` on. A stalled reader stalls its
 * copy Worker and by that the command, never main: `drain` and `abandon` return at once, and
 * `writeStartedAt` tells who is waiting.
 */
import type { MonotonicAt } from "../core/time.ts";
import { sys } from "../os/sys.ts";
import { ChunkRing } from "./chunk-ring.ts";
import { type MatchedPattern, Matching } from "./matching.ts";
import type { Order, SourceEnd } from "./shared-state.ts";
import { LogState, StreamState } from "./shared-state.ts";
import type { CopyTask, LogTask, WorkerMessage } from "./worker-messages.ts";

export interface CopyStream {
  readonly name: "stdout" | "stderr" | "both";
  /**
   * The read end, close-on-exec; ours from now on (its Worker makes it non-blocking and closes it).
   */
  readonly pipeFd: number;
  readonly destinationFd: number;
}

export interface LogPlan {
  /** The job's directory below `logsRoot`; made when the first byte comes. */
  readonly directory: string;
  readonly fileName: string;
  readonly maxBytes: number;
  readonly keepBytes: number;
  readonly logsRoot: string;
}

export interface CopyPlan {
  readonly streams: readonly CopyStream[];
  readonly log: LogPlan | undefined;
  /** Expressions that are tried on each line; none: nobody looks. */
  readonly patterns: readonly string[];
  /**
   * Present for a quiet run, which prints nothing before `finish`: where its nameless spool files
   * may lie (made 0700 if it is missing).
   */
  readonly spoolDirectory: string | undefined;
  readonly workerUrls: WorkerUrls;
}

/** Where the Workers' front doors are; known to the program's own front door only. */
export interface WorkerUrls {
  readonly copy: string | URL;
  readonly log: string | URL;
  readonly match: string | URL;
}

export interface StreamCounters {
  readonly name: CopyStream["name"];
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly lastOutputAt: MonotonicAt | undefined;
  /** Since when a write waits for the destination's reader; undefined while none is in progress. */
  readonly writeStartedAt: MonotonicAt | undefined;
  readonly end: SourceEnd;
  /** Why, for "write-failed" and "read-failed" (and a replay that failed); 0 for none. */
  readonly errno: number;
  readonly isQuietAbandoned: boolean;
}

export interface LogCounters {
  /** Undefined while nothing has been kept. */
  readonly path: string | undefined;
  readonly keptBytes: number;
  readonly omittedBytes: number;
  /** Lost to a disk that was too slow or full. */
  readonly droppedBytes: number;
  /** The last error of the log's disk; 0 for none. */
  readonly errno: number;
}

export interface OutputCounters {
  readonly streams: readonly StreamCounters[];
  readonly readBytes: number;
  readonly lastOutputAt: MonotonicAt | undefined;
  readonly log: LogCounters | undefined;
}

export interface Copy {
  counters(): OutputCounters;
  /** The tree is gone: copy what is in the pipes now, then end. */
  drain(): void;
  /** The verdict on a quiet run; only after `drain`. */
  finish(how: "replay" | "discard"): void;
  /**
   * Stop waiting; blocked Workers stay behind. "readers": what they did not take is lost, the log
   * is finished and then `ended` resolves. "everything": not for the log's disk either.
   */
  abandon(what: "readers" | "everything"): void;
  /**
   * What was found in the output, when all of it was looked at (or abandoned); never rejects. Of a
   * quiet run before `finish`, too.
   */
  readonly matched: Promise<MatchReport>;
  /** When everything is delivered (or abandoned) and the log is one file. Never rejects. */
  readonly ended: Promise<OutputCounters>;
}

export interface MatchReport {
  /** False: a stream was not read to its end, and "not found" says nothing. */
  readonly isComplete: boolean;
  readonly patterns: readonly MatchedPattern[];
}

/** Ends of a stream up to which everything was seen that the command could write. */
const SEEN_TO_THE_END: readonly SourceEnd[] = ["eof", "drained", "reader-gone"];

const WAKE_UP = new Uint8Array(new BigUint64Array([1n]).buffer);

interface RunningStream {
  readonly plan: CopyStream;
  readonly state: StreamState;
  readonly ring: ChunkRing | undefined;
}

/** @throws nothing of the disk: a log or spool that cannot be had is counted, the copy goes on */
export function startCopy(plan: CopyPlan): Copy {
  const log = plan.log === undefined ? undefined : new LogState();
  const eventFd = sys.eventfd();
  let wakeFd: number | undefined = eventFd;
  const streams = plan.streams.map((stream) => ({
    plan: stream,
    state: new StreamState(),
    ring: log === undefined ? undefined : new ChunkRing(),
  }));
  const matching = makeMatching(plan, streams);
  const counters = () => countOutput(plan, streams, log);
  const wake = (order: Order) => {
    for (const stream of streams) stream.state.setOrder(order);
    if (wakeFd !== undefined) sys.write(wakeFd, WAKE_UP, WAKE_UP.length);
  };
  const readers = Promise.withResolvers<void>();
  const everything = Promise.withResolvers<void>();
  let logged: Promise<boolean> | undefined;
  const reads = streams.map(() => Promise.withResolvers<void>());
  const copies = streams.map((stream, index) => {
    const task = copyTask(plan, stream, { log, matching, wakeFd: eventFd });
    const worker = startWorker(plan.workerUrls.copy, task, (message) => {
      if (message === "read") return reads[index]?.resolve();
      logged ??= startLog(plan, streams, log);
      matching?.start();
    });
    return worker.then((isClean) => {
      endStream(stream, isClean);
      log?.signal();
      matching?.signal();
      return reads[index]?.resolve();
    });
  });
  // Closed only when no Worker waits on it any more; a late order has nobody to wake then.
  const copied = Promise.all(copies).then(() => {
    wakeFd = undefined;
    return sys.close(eventFd);
  });
  const finished = Promise.race([copied, readers.promise]).then(() => logged);
  const ended = Promise.race([finished, everything.promise]).then(() => counters());
  const read = Promise.all(reads.map(({ promise }) => promise));
  const looked = Promise.race([read, readers.promise]).then(() => matching?.ended());
  return {
    counters,
    ended,
    matched: looked.then(() => reportMatches(streams, matching)),
    drain: () => wake("drain"),
    finish: (how) => wake(how),
    abandon(what) {
      for (const stream of streams) stream.state.setEnd("abandoned");
      // A Worker's "started" may still be on its way to us.
      if (counters().readBytes > 0) logged ??= startLog(plan, streams, log);
      log?.signal();
      matching?.abandon("nobody waited for the output any more");
      readers.resolve();
      if (what === "everything") everything.resolve();
    },
  };
}

function makeMatching(plan: CopyPlan, streams: readonly RunningStream[]): Matching | undefined {
  if (plan.patterns.length === 0) return undefined;
  const states = streams.map(({ state }) => state);
  return new Matching(plan.workerUrls.match, plan.patterns, states);
}

function reportMatches(
  streams: readonly RunningStream[],
  matching: Matching | undefined,
): MatchReport {
  return {
    isComplete: streams.every(({ state }) => SEEN_TO_THE_END.includes(state.end)),
    patterns: matching?.report() ?? [],
  };
}

function copyTask(
  plan: CopyPlan,
  stream: RunningStream,
  shared: { log: LogState | undefined; matching: Matching | undefined; wakeFd: number },
): CopyTask {
  const feed =
    shared.log === undefined || stream.ring === undefined
      ? undefined
      : { ring: stream.ring.memory, log: shared.log.memory };
  return {
    kind: "copy",
    pipeFd: stream.plan.pipeFd,
    destinationFd: stream.plan.destinationFd,
    wakeFd: shared.wakeFd,
    state: stream.state.memory,
    feed,
    match: shared.matching?.taskOf(stream.state),
    spoolDirectory: plan.spoolDirectory,
  };
}

/** A Worker that died has left its pipe open: the command would wait for ever on a full one. */
function endStream(stream: RunningStream, isClean: boolean): void {
  if (isClean || stream.state.end !== "open") return;
  sys.close(stream.plan.pipeFd);
  stream.state.setEnd("worker-failed");
}

/** A thread and its memory (2 MB and more) only for a run that has something to keep. */
function startLog(
  plan: CopyPlan,
  streams: readonly RunningStream[],
  log: LogState | undefined,
): Promise<boolean> | undefined {
  if (plan.log === undefined || log === undefined) return undefined;
  const sources = streams.flatMap(({ state, ring }) =>
    ring === undefined ? [] : [{ state: state.memory, ring: ring.memory }],
  );
  return startWorker(plan.workerUrls.log, { kind: "log", log: log.memory, sources, ...plan.log });
}

/** Resolves when the Worker has said that it ended (true), or has died without (false). */
function startWorker(
  url: string | URL,
  task: CopyTask | LogTask,
  onNews?: (message: Exclude<WorkerMessage, "ended">) => void,
): Promise<boolean> {
  return new Promise((resolve) => {
    const worker = makeWorker(url);
    if (worker === undefined) return resolve(false);
    worker.addEventListener("message", (event: MessageEvent<WorkerMessage>) => {
      if (event.data !== "ended") return onNews?.(event.data);
      worker.unref();
      resolve(true);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      resolve(false);
    });
    worker.addEventListener("close", () => resolve(false));
    worker.postMessage(task);
  });
}

/** EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). */
function makeWorker(url: string | URL): Worker | undefined {
  try {
    return new Worker(url);
  } catch {
    return undefined; // told by the end of its stream: "worker-failed"
  }
}

function countOutput(
  plan: CopyPlan,
  streams: readonly RunningStream[],
  log: LogState | undefined,
): OutputCounters {
  const counted = streams.map(({ plan: { name }, state }) => ({
    name,
    readBytes: state.readBytes,
    writtenBytes: state.writtenBytes,
    lastOutputAt: state.lastOutputAt,
    writeStartedAt: state.writeStartedAt,
    end: state.end,
    errno: state.errno,
    isQuietAbandoned: state.isQuietAbandoned,
  }));
  const lost = streams.reduce((sum, stream) => sum + stream.state.logDroppedBytes, 0);
  return {
    streams: counted,
    readBytes: counted.reduce((sum, stream) => sum + stream.readBytes, 0),
    lastOutputAt: latest(counted.map((stream) => stream.lastOutputAt)),
    log: plan.log === undefined || log === undefined ? undefined : countLog(plan.log, log, lost),
  };
}

function countLog(plan: LogPlan, log: LogState, lostBytes: number): LogCounters {
  return {
    path: log.keptBytes > 0 ? `${plan.directory}/${plan.fileName}` : undefined,
    keptBytes: log.keptBytes,
    omittedBytes: log.omittedBytes,
    droppedBytes: log.droppedBytes + lostBytes,
    errno: log.errno,
  };
}

function latest(instants: readonly (MonotonicAt | undefined)[]): MonotonicAt | undefined {
  return instants.reduce(
    (last, at) => (at !== undefined && (last === undefined || at > last) ? at : last),
    undefined,
  );
}
