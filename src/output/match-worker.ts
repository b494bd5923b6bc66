/**
 * Front door of the match Worker: takes the chunks of all streams out of their rings and has the
 * patterns tried on their lines. Decides nothing about what a match means.
 *
 * Always: an expression that does not come back blocks this thread only; whoever was given up by
 * main touches nothing any more. Ends when every pattern has its answer, or every stream has ended
 * and its ring is empty. One message per pattern that was found and one at the end, none per chunk.
 */
import { compileLinePattern } from "../core/line-pattern.ts";
import { threadCpuMs } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { sys } from "../os/sys.ts";
import { ChunkRing } from "./chunk-ring.ts";
import { LineWindow } from "./line-window.ts";
import { MatchState } from "./match-state.ts";
import { Matcher } from "./matcher.ts";
import { StreamState } from "./shared-state.ts";
import type { MatchMessage, MatchTask } from "./worker-messages.ts";

declare const self: {
  onmessage: ((event: MessageEvent<MatchTask>) => void) | null;
  postMessage(message: MatchMessage): void;
};

/** Of a found line; a message must stay small, and whoever shows it cuts it again. */
const LONGEST_LINE = 2_000;

/**
 * Every window is a text, so garbage. Left to itself the engine lets a peak of 127 MiB come for the
 * whole process; collected this often, 97 (measured, 2 GB of log lines; 77 without expressions).
 */
const COLLECT_BYTES = 16_777_216;

interface Source {
  readonly state: StreamState;
  readonly ring: ChunkRing;
  readonly window: LineWindow;
}

self.onmessage = (event) => {
  self.onmessage = null;
  if (perform(event.data)) self.postMessage({ kind: "ended" });
};

/** @returns false: this thread was given up */
function perform(task: MatchTask): boolean {
  const state = new MatchState(task.patterns.length, task.state);
  state.threadId = sys.threadId();
  const sources = task.sources.map((source) => ({
    state: new StreamState(source.state),
    ring: new ChunkRing(source.ring),
    window: new LineWindow(source.window),
  }));
  const matcher = new Matcher({
    patterns: task.patterns.map(compileKnown),
    state,
    cpuMs: threadCpuMs,
    onFound: ({ pattern, line }) => {
      self.postMessage({ kind: "found", pattern, line: line.slice(0, LONGEST_LINE) });
    },
  });
  return matchUntilEnded({ sources, state, matcher });
}

/** They were compiled when the command line was read, by the same engine. */
function compileKnown(source: string) {
  const pattern = compileLinePattern(source);
  if (pattern === undefined) throw new Error(`no expression: ${source}`);
  return pattern;
}

function matchUntilEnded(parts: {
  readonly sources: readonly Source[];
  readonly state: MatchState;
  readonly matcher: Matcher;
}): boolean {
  const { sources, state, matcher } = parts;
  // Who takes over from one that was given up finds a region that nobody has finished.
  for (const { window } of sources) if (!matcher.look(window, false)) return false;
  let collectedBytes = 0;
  for (;;) {
    const seen = state.signals;
    // Asked before the rings are looked at: what was published before an end is found after it.
    const hasEnded = sources.every((source) => source.state.end !== "open");
    let hasTaken = false;
    for (const source of sources) {
      if (takeChunks(source)) hasTaken = true;
      else if (!hasEnded) continue;
      if (!matcher.look(source.window, hasEnded && source.ring.isEmpty)) return false;
    }
    if (state.isSettled) break;
    const readBytes = sources.reduce((sum, source) => sum + source.state.readBytes, 0);
    if (readBytes - collectedBytes > COLLECT_BYTES) {
      Bun.gc(true);
      collectedBytes = readBytes;
    }
    if (hasTaken) continue;
    if (hasEnded) break;
    state.awaitSignal(seen);
  }
  state.close();
  return true;
}

/** As many as there is room for. @returns whether there were any */
function takeChunks({ ring, window }: Source): boolean {
  let hasTaken = false;
  while (!ring.isEmpty && window.hasRoomFor(ring.length)) {
    faultPoint("match.take", { bytes: ring.length });
    window.append(ring.bytes.subarray(ring.offset, ring.offset + ring.length));
    ring.release();
    hasTaken = true;
  }
  return hasTaken;
}
