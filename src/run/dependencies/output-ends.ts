/**
 * Both ends of what a command prints, through a pipe of which everything else is read and dropped.
 *
 * Always: no read waits, so that neither a silent writer nor one that never ends holds anybody up;
 * what is kept is KEPT_BYTES from either end, however much comes. The pipe is only non-blocking on
 * our side: the command finds a stream as it always has one. Clock: MONOTONIC, for one bound. State
 * after a crash: the kernel closes the pipe.
 */
import { type CommandOutput, KEPT_BYTES } from "../../core/command-probe.ts";
import { spanMs } from "../../core/time.ts";
import { monotonicNow } from "../../os/clock.ts";
import { close, moveHigh, NONE } from "../../os/high-descriptors.ts";
import { F_SETFL, F_SETPIPE_SZ, O_NONBLOCK, sys } from "../../os/sys.ts";

const CHUNK_BYTES = 65_536;
/** What an unprivileged user may ask for (pipe(7), pipe-max-size); a smaller one is only slower. */
const PIPE_BYTES = 1_048_576;
/** The main loop stands still for so long at most, as long as somebody writes. */
const DRAIN_MS = 5;

export class OutputEnds {
  readonly #chunk = new Uint8Array(CHUNK_BYTES);
  readonly #head = new Uint8Array(KEPT_BYTES);
  #headLength = 0;
  #tail = new Uint8Array(0);
  #droppedBytes = 0;
  #readEnd: number;
  #writeEnd: number;

  private constructor(readEnd: number, writeEnd: number) {
    this.#readEnd = readEnd;
    this.#writeEnd = writeEnd;
  }

  /** @returns undefined where no pipe is to be had (EMFILE, ENFILE) */
  static open(): OutputEnds | undefined {
    const ends = sys.pipe();
    if (typeof ends === "number") return undefined;
    const output = new OutputEnds(moveHigh(ends.readEnd), moveHigh(ends.writeEnd));
    if (output.#readEnd === NONE || output.#writeEnd === NONE) {
      output.close();
      return undefined;
    }
    sys.fcntl(output.#readEnd, F_SETFL, O_NONBLOCK);
    sys.fcntl(output.#readEnd, F_SETPIPE_SZ, PIPE_BYTES);
    return output;
  }

  /** For the command's descriptors 1 and 2. */
  get writeEnd(): number {
    return this.#writeEnd;
  }

  /** The command has its own copy by now: ours would keep the pipe open. */
  closeWriteEnd(): void {
    this.#writeEnd = close(this.#writeEnd);
  }

  close(): void {
    this.#readEnd = close(this.#readEnd);
    this.closeWriteEnd();
  }

  /** Reads what is there, for DRAIN_MS at most. @returns whether anything was */
  drain(): boolean {
    const began = monotonicNow();
    let hasRead = false;
    while (this.#readEnd !== NONE && spanMs(began, monotonicNow()) < DRAIN_MS) {
      const count = sys.read(this.#readEnd, this.#chunk, CHUNK_BYTES);
      // 0: nobody writes any more. EAGAIN: nobody has written.
      if (count <= 0) return hasRead;
      hasRead = true;
      this.#take(this.#chunk.subarray(0, count));
    }
    return hasRead;
  }

  get kept(): CommandOutput {
    return {
      head: this.#head.slice(0, this.#headLength),
      tail: this.#tail,
      droppedBytes: this.#droppedBytes,
    };
  }

  #take(bytes: Uint8Array): void {
    const begin = bytes.subarray(0, KEPT_BYTES - this.#headLength);
    this.#head.set(begin, this.#headLength);
    this.#headLength += begin.length;
    const rest = bytes.subarray(begin.length);
    if (rest.length === 0) return;
    const last = rest.subarray(-KEPT_BYTES);
    const before = this.#tail.subarray(Math.max(0, this.#tail.length - KEPT_BYTES + last.length));
    this.#droppedBytes += this.#tail.length - before.length + rest.length - last.length;
    const tail = new Uint8Array(before.length + last.length);
    tail.set(before);
    tail.set(last, before.length);
    this.#tail = tail;
  }
}
