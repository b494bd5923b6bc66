/**
 * The loop of one stream: read what the command wrote, show it to log and patterns, deliver it.
 * Knows nothing of Workers, of where the bytes go, or of why main wants it to stop.
 *
 * Always: bytes are delivered in order, all of them or the stream says why not; the log is shown a
 * chunk before its delivery, so that it has also what a stalled reader never took. Blocks in
 * poll(2) and in the sink, nowhere else.
 *
 * After the order "drain" (the tree is gone) at most the bytes that are in the pipe at that moment
 * are copied: a stranger that holds the other end may write for ever.
 */
import { monotonicNow } from "../os/clock.ts";
import { EAGAIN, EINTR, POLLERR, POLLIN, sys } from "../os/sys.ts";
import { CHUNK_BYTES } from "./chunk-ring.ts";
import type { Sink } from "./destination.ts";
import { injectedError, readInto } from "./memory-io.ts";
import type { SourceEnd, StreamState } from "./shared-state.ts";
import { WaitSet } from "./wait-set.ts";

const EPIPE = 32;
/** Places in the wait set; the wake descriptor between them only ends the wait. */
const PIPE = 0;
const READER = 2;
const ERRORS_ONLY = 0;

/** Who is shown each chunk before it is delivered: the log, the patterns. */
export interface Feed {
  /** Where the next chunk is to be read to, or `elsewhere`. */
  claim(elsewhere: number): number;
  publish(length: number): void;
}

export interface StreamParts {
  readonly pipeFd: number;
  readonly wakeFd: number;
  /** The destination where poll(2) can tell that its reader is gone; undefined where it cannot. */
  readonly watchedFd: number | undefined;
  readonly state: StreamState;
  readonly sink: Sink;
  readonly feed: Feed | undefined;
  /** The address of CHUNK_BYTES of the caller's memory, for chunks that the log does without. */
  readonly buffer: number;
}

interface Ended {
  readonly end: SourceEnd;
  readonly errno: number;
}

export function copyStream(parts: StreamParts): Ended {
  const waiting = new WaitSet([
    [parts.pipeFd, POLLIN],
    [parts.wakeFd, POLLIN],
    [parts.watchedFd ?? -1, ERRORS_ONLY],
  ]);
  let remaining = Number.POSITIVE_INFINITY;
  for (;;) {
    if (remaining === Number.POSITIVE_INFINITY && parts.state.order !== "copy") {
      remaining = Math.max(0, sys.readableBytes(parts.pipeFd));
    }
    const address = parts.feed?.claim(parts.buffer) ?? parts.buffer;
    const limit = Math.min(CHUNK_BYTES, remaining);
    const count = limit === 0 ? -EAGAIN : readInto(parts.pipeFd, address, limit);
    if (count === 0) return { end: "eof", errno: 0 };
    if (count > 0) {
      const outcome = passOn(parts, address, count);
      if (outcome < 0) return failedDelivery(outcome);
      remaining -= count;
      continue;
    }
    if (count === -EINTR) continue;
    if (count !== -EAGAIN) return { end: "read-failed", errno: -count };
    if (remaining !== Number.POSITIVE_INFINITY) return { end: "drained", errno: 0 };
    if (isReaderGone(waiting)) return { end: "reader-gone", errno: EPIPE };
  }
}

function passOn(parts: StreamParts, address: number, count: number): number {
  // First the place in the log's order, then the count: who sees the count relies on the place.
  parts.feed?.publish(count);
  parts.state.noteRead(count, monotonicNow());
  const injected = injectedError("copy.chunk", parts.pipeFd, count);
  return injected < 0 ? injected : parts.sink.deliver(address, count);
}

function failedDelivery(outcome: number): Ended {
  return { end: outcome === -EPIPE ? "reader-gone" : "write-failed", errno: -outcome };
}

/** Waits for something to read, an order, or the reader's departure; true for the last. */
function isReaderGone(waiting: WaitSet): boolean {
  if (waiting.wait() <= 0) return false;
  return waiting.ready(PIPE) === 0 && (waiting.ready(READER) & POLLERR) !== 0;
}
