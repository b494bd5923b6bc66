/**
 * Front door of the log Worker: takes the chunks of all streams in their one order and appends them
 * to the run's log; prunes old logs while there is nothing to write. Decides nothing about what is
 * kept.
 *
 * Always: a slow disk blocks this thread only. Ends when every stream has ended and its ring is
 * empty. One message at the end, none in between.
 */
import { BoundedLog } from "./bounded-log.ts";
import { ChunkRing } from "./chunk-ring.ts";
import { pruneLogs } from "./log-pruning.ts";
import { MAX_LOG_FILES } from "./log-retention.ts";
import { LogState, StreamState } from "./shared-state.ts";
import type { LogTask, WorkerMessage } from "./worker-messages.ts";

declare const self: {
  onmessage: ((event: MessageEvent<LogTask>) => void) | null;
  postMessage(message: WorkerMessage): void;
};

interface LogSource {
  readonly state: StreamState;
  readonly ring: ChunkRing;
}

self.onmessage = (event) => {
  self.onmessage = null;
  perform(event.data);
  self.postMessage("ended");
};

function perform(task: LogTask): void {
  const state = new LogState(task.log);
  const sources = task.sources.map((source) => ({
    state: new StreamState(source.state),
    ring: new ChunkRing(source.ring),
  }));
  const log = new BoundedLog({ ...task, state });
  const pruning = pruneLogs(task.logsRoot, {
    keepBytes: task.keepBytes,
    maxFiles: MAX_LOG_FILES,
  });
  writeUntilEnded({ sources, state, log, pruning });
  const wasKept = log.isOpen;
  const lost = sources.reduce((sum, source) => sum + source.state.logDroppedBytes, 0);
  log.finish(lost + state.droppedBytes);
  // A run that kept nothing adds nothing, so it need not wait for the rest of the pruning.
  if (wasKept) finishPruning(pruning);
}

type Pruning = Generator<undefined, number>;

function writeUntilEnded(parts: {
  sources: readonly LogSource[];
  state: LogState;
  log: BoundedLog;
  pruning: Pruning;
}): void {
  let expected = 0;
  let isPruned = false;
  for (;;) {
    const seen = parts.state.signals;
    // Asked before the rings are looked at: what was published before an end is found after it.
    const hasEnded = haveAllEnded(parts.sources);
    const next = findNext(parts.sources, expected, hasEnded);
    if (next !== undefined) {
      expected = (next.sequence + 1) | 0;
      parts.log.append(next.address(next.offset), next.length);
      next.release();
    } else if (hasEnded) {
      return;
    } else if (isPruned) {
      parts.state.awaitSignal(seen);
    } else {
      isPruned = parts.pruning.next().done === true;
    }
  }
}

function haveAllEnded(sources: readonly LogSource[]): boolean {
  for (const { state } of sources) if (state.end === "open") return false;
  return true;
}

/**
 * The ring whose oldest chunk is the expected one. Numbers are dense, so a missing one is on its
 * way; only when all streams have ended (one may have died between number and chunk) the smallest
 * that is there goes on.
 */
function findNext(
  sources: readonly LogSource[],
  expected: number,
  hasEnded: boolean,
): ChunkRing | undefined {
  // Loops, not lists: this runs for every chunk, and its garbage would be most of the peak memory.
  let smallest: ChunkRing | undefined;
  for (const { ring } of sources) {
    if (ring.isEmpty) continue;
    if (ring.sequence === expected) return ring;
    if (smallest === undefined || isEarlier(ring, smallest)) smallest = ring;
  }
  return hasEnded ? smallest : undefined;
}

/** Numbers wrap at 2^32 and are never half of that apart. */
function isEarlier(one: ChunkRing, other: ChunkRing): boolean {
  return ((one.sequence - other.sequence) | 0) < 0;
}

function finishPruning(pruning: Pruning): void {
  while (pruning.next().done !== true);
}
