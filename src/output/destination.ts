/**
 * The caller's descriptor: every byte goes out in order, blocking as long as its reader makes it
 * wait.
 *
 * Always: the descriptor's flags are never changed (they belong to an open file that the caller
 * shares with others). If the caller had made it non-blocking, EAGAIN is waited out by poll(2).
 * While a write waits, `writeStartedAt` says so to main.
 */
import { readlinkSync } from "node:fs";
import { monotonicNow } from "../os/clock.ts";
import { EAGAIN, EINTR, POLLOUT } from "../os/sys.ts";
import { injectedError, writeFrom } from "./memory-io.ts";
import type { StreamState } from "./shared-state.ts";
import { WaitSet } from "./wait-set.ts";

const EIO = 5;

/** Where chunks go: the destination itself, or a spool in front of it. */
export interface Sink {
  /** @returns 0 when all was taken, else -errno */
  deliver(address: number, length: number): number;
}

export class Destination implements Sink {
  readonly fd: number;
  readonly #state: StreamState;
  readonly #waiting: WaitSet;

  constructor(fd: number, state: StreamState) {
    this.fd = fd;
    this.#state = state;
    this.#waiting = new WaitSet([[fd, POLLOUT]]);
  }

  deliver(address: number, length: number): number {
    this.#state.startWrite(monotonicNow());
    const outcome = injectedError("copy.write", this.fd, length) || this.#writeAll(address, length);
    this.#state.endWrite();
    return outcome;
  }

  #writeAll(address: number, length: number): number {
    let done = 0;
    while (done < length) {
      const count = writeFrom(this.fd, address + done, length - done);
      if (count > 0) {
        done += count;
        this.#state.noteWritten(count);
        continue;
      }
      if (count === -EAGAIN) this.#waiting.wait();
      // A device that takes nothing and names no error would spin here for ever (write(2)).
      else if (count === 0) return -EIO;
      else if (count !== -EINTR) return count;
    }
    return 0;
  }

  /**
   * Whether poll(2) tells that nobody can read any more: then the command's pipe is closed at once
   * and its very next write meets SIGPIPE, as without us. A named pipe may get a new reader, a
   * terminal or socket is told by its write.
   */
  get tellsReaderGone(): boolean {
    try {
      return readlinkSync(`/proc/self/fd/${this.fd}`).startsWith("pipe:[");
    } catch {
      // ENOENT: no /proc here; the next write will tell.
      return false;
    }
  }
}
