/**
 * Front door of a copy Worker: one stream from its pipe to its destination, with blocking calls,
 * until the command's side is closed or main says that the tree is gone. Decides nothing: it wires
 * the parts for one task.
 *
 * Always: the pipe's read end is ours from the start and closed when copying ends, whatever the
 * reason, so a command that goes on writing to nobody gets SIGPIPE. A few messages, none per chunk.
 */
import { ptr } from "bun:ffi";
import { monotonicNow } from "../os/clock.ts";
import { makeStateDirectory } from "../os/state-sharing.ts";
import { EPIPE, F_GETFL, F_SETFL, O_NONBLOCK, sys } from "../os/sys.ts";
import { blockTerminalStop } from "../os/terminal-stop.ts";
import { CHUNK_BYTES, ChunkRing } from "./chunk-ring.ts";
import { Destination } from "./destination.ts";
import { LogFeed } from "./log-feed.ts";
import { MatchFeed } from "./match-feed.ts";
import { MatchState } from "./match-state.ts";
import { LogState, StreamState } from "./shared-state.ts";
import { Spool } from "./spool.ts";
import { copyStream, type Feed } from "./stream-copy.ts";
import type { CopyTask, WorkerMessage } from "./worker-messages.ts";

declare const self: {
  onmessage: ((event: MessageEvent<CopyTask>) => void) | null;
  postMessage(message: WorkerMessage): void;
};

self.onmessage = (event) => {
  self.onmessage = null;
  perform(event.data);
  self.postMessage("ended");
};

function perform(task: CopyTask): void {
  const state = new StreamState(task.state);
  const log = task.feed === undefined ? undefined : new LogState(task.feed.log);
  const match =
    task.match === undefined
      ? undefined
      : new MatchState(task.match.patternCount, task.match.state);
  const destination = new Destination(task.destinationFd, state);
  blockTerminalStop();
  // Only our end: a pipe's two ends are two open files, so the command's is as it was (pipe(7)).
  sys.fcntl(task.pipeFd, F_SETFL, sys.fcntl(task.pipeFd, F_GETFL, 0) | O_NONBLOCK);
  const spool = openSpool(task, destination, state);
  const buffer = new Uint8Array(CHUNK_BYTES);
  const ended = copyStream({
    pipeFd: task.pipeFd,
    wakeFd: task.wakeFd,
    watchedFd: destination.tellsReaderGone ? destination.fd : undefined,
    state,
    sink: spool ?? destination,
    feed: openFeed(task, { log, match }, state),
    buffer: ptr(buffer),
  });
  sys.close(task.pipeFd);
  state.errno = ended.errno;
  state.setEnd(ended.end);
  log?.signal();
  match?.signal();
  if (match !== undefined || spool !== undefined) self.postMessage("read");
  // The buffer's address was in use until here: it may not be collected before.
  buffer.fill(0, 0, 1);
  if (spool !== undefined) settleSpool(spool, state);
}

interface FeedStates {
  readonly log: LogState | undefined;
  readonly match: MatchState | undefined;
}

function openFeed(task: CopyTask, states: FeedStates, state: StreamState): Feed | undefined {
  const onFirst = () => self.postMessage("started");
  const log = openLogFeed(task, states.log, state, onFirst);
  if (task.match === undefined || states.match === undefined) return log;
  return new MatchFeed({
    ring: new ChunkRing(task.match.ring),
    state: states.match,
    log,
    onFirst,
  });
}

function openLogFeed(
  task: CopyTask,
  log: LogState | undefined,
  state: StreamState,
  onFirst: () => void,
): LogFeed | undefined {
  if (task.feed === undefined || log === undefined) return undefined;
  return new LogFeed({
    ring: new ChunkRing(task.feed.ring),
    log,
    state,
    now: monotonicNow,
    onFirst,
  });
}

function openSpool(
  task: CopyTask,
  destination: Destination,
  state: StreamState,
): Spool | undefined {
  const directory = task.spoolDirectory;
  if (directory === undefined) return undefined;
  makeSpoolDirectory(directory);
  return new Spool({ directory, destination, state });
}

/** The spool's verdict comes when the whole run has been judged, so this thread waits for main. */
function settleSpool(spool: Spool, state: StreamState): void {
  const verdict = state.awaitVerdict();
  if (verdict === "discard") return spool.discard();
  const outcome = spool.replay();
  if (outcome === -EPIPE) return; // its reader has left, as it may
  if (outcome < 0) state.failReplay(-outcome);
}

function makeSpoolDirectory(path: string): void {
  try {
    makeStateDirectory(path);
  } catch {
    // EACCES, ENOSPC, EROFS: opening the spool fails next, and the run goes on loud.
  }
}
