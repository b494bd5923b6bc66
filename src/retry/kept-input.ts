/**
 * The standard input of attempts: the caller's for the first one and nothing for the others, or all
 * of it for each (`--buffer-stdin`), kept in memory.
 *
 * Always: each attempt reads from the beginning, at a position of its own, and none can change what
 * the next one gets, as far as the kernel seals a memory file (fcntl(2), F_ADD_SEALS). Clock: none.
 * State after a crash: none.
 */
import { closeSync, constants, readSync, writeSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { moveHigh, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Redirection } from "../os/spawn.ts";
import { POLLIN, sys } from "../os/sys.ts";

const { O_RDONLY } = constants;
const STDIN = 0;
const CHUNK_BYTES = 65_536;
/** Memory of this machine; what is longer belongs into a file. */
export const MOST_BUFFERED_BYTES = 64 * 1_048_576;

const F_ADD_SEALS = 1033;
/** SEAL, SHRINK, GROW, WRITE (linux/fcntl.h). */
const ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8;

export interface AttemptInput {
  /** How descriptor 0 of this attempt is made; the caller of this closes the sources. */
  redirect(attempt: number): readonly Redirection[];
  close(): void;
}

/** The caller's own for the first attempt, nothing for those that follow. */
export function passInputOnce(): AttemptInput {
  return {
    redirect: (attempt) => (attempt === 1 ? [] : [redirectFrom("/dev/null")]),
    close: () => undefined,
  };
}

/**
 * Reads all of the standard input. Blocks until its end: meant for the time before any handler of a
 * signal is there, when each does what it does by default.
 * @throws WatchdogError "retry.input-too-long" (78); "retry.unusable" (125): EIO, EISDIR …
 */
export function keepInput(mostBytes = MOST_BUFFERED_BYTES): AttemptInput {
  const fd = moveHigh(sys.memoryFile("watchdog-input"));
  if (fd === NONE) throw unusable("there is no memory file for it");
  try {
    copyInput(fd, mostBytes);
  } catch (cause) {
    closeSync(fd);
    if (cause instanceof WatchdogError) throw cause;
    throw unusable(cause instanceof Error ? cause.message : String(cause), cause);
  }
  sys.fcntl(fd, F_ADD_SEALS, ALL_SEALS); // EPERM: a kernel that cannot; it works without
  return {
    redirect: () => [redirectFrom(`/proc/self/fd/${fd}`)],
    close: () => closeSync(fd),
  };
}

function copyInput(to: number, mostBytes: number): void {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let total = 0; ;) {
    const count = readChunk(chunk);
    if (count === 0) return;
    total += count;
    if (total > mostBytes) {
      throw new WatchdogError(
        "retry.input-too-long",
        `standard input has more than ${mostBytes} bytes, which is the most that ` +
          "--buffer-stdin keeps; expected a file that the command reads itself",
        { hint: "watchdog help retry" },
      );
    }
    for (let at = 0; at < count;) at += writeSync(to, chunk, at, count - at);
  }
}

/** Waits where the caller's descriptor does not. */
function readChunk(chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(STDIN, chunk, 0, chunk.length, null);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code !== "EAGAIN" && code !== "EINTR") throw error;
      if (code === "EAGAIN") sys.poll([[STDIN, POLLIN]], -1, []);
    }
  }
}

/** An open file description of its own, with a position of its own. */
function redirectFrom(path: string): Redirection {
  const source = openHigh(path, O_RDONLY);
  if (source === NONE) throw unusable(`${path} cannot be opened`);
  return { target: STDIN, source };
}

function unusable(reason: string, cause?: unknown): WatchdogError {
  return new WatchdogError(
    "retry.unusable",
    `the standard input of the command cannot be had: ${reason}`,
    { hint: "ulimit -a", cause },
  );
}
