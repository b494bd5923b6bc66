/**
 * What the watchdog around a job and its runner tell each other: one file in memory, in which the
 * order stands first and the verdict at the end. It has no name that anybody else could open, and
 * nothing of it is on a command line.
 *
 * State after a crash of the runner: the order, or a half of a verdict, and neither is a verdict.
 */
import { fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { ORDER_DESCRIPTOR } from "../core/hook-order.ts";
import { type JobOrder, parseJobOrder, renderJobOrder } from "../core/job-order.ts";
import { type JobVerdict, parseVerdict, renderVerdict } from "../core/job-verdict.ts";
import { close, moveHigh, NONE } from "../os/high-descriptors.ts";
import type { Redirection } from "../os/spawn.ts";
import { sys } from "../os/sys.ts";

const MEMORY = "watchdog-job";
/** The steps of the largest job that a file of ours may hold. */
const LONGEST_BYTES = 64 * 1024 * 1024;

/** The end of the watchdog around the job. */
export class OrderEnd {
  #fd: number;

  /** @throws WatchdogError "job.unusable": no memory or no descriptor is left */
  constructor(order: JobOrder) {
    this.#fd = moveHigh(sys.memoryFile(MEMORY));
    try {
      if (this.#fd === NONE) throw new Error("no descriptor is left");
      writeAll(this.#fd, renderJobOrder(order));
    } catch (cause) {
      this.close();
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new WatchdogError("job.unusable", `the job cannot be started: ${reason}`, { cause });
    }
  }

  get redirections(): readonly Redirection[] {
    return [{ target: ORDER_DESCRIPTOR, source: this.#fd }];
  }

  /** Once the runner is gone. */
  readVerdict(): JobVerdict | undefined {
    return this.#fd === NONE ? undefined : parseVerdict(readAll(this.#fd) ?? "");
  }

  close(): void {
    this.#fd = close(this.#fd);
  }
}

/** The runner's end. */
export class VerdictEnd {
  readonly order: JobOrder;
  readonly #fd: number;

  private constructor(order: JobOrder, fd: number) {
    this.order = order;
    this.#fd = fd;
  }

  /** @returns undefined: nobody has told what to run, a person has typed the word */
  static open(): VerdictEnd | undefined {
    const text = readAll(ORDER_DESCRIPTOR);
    if (text === undefined) return undefined;
    try {
      return new VerdictEnd(parseJobOrder(text), moveHigh(ORDER_DESCRIPTOR));
    } catch {
      return undefined; // SyntaxError: a file of somebody else's
    }
  }

  /** Never throws: the exit status says the same with fewer words. */
  tell(verdict: JobVerdict): void {
    try {
      ftruncateSync(this.#fd);
      writeAll(this.#fd, renderVerdict(verdict));
    } catch {
      close(this.#fd); // EFBIG: the caller's limit for files holds in memory, too
    }
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, done);
  }
}

function readAll(fd: number): string | undefined {
  try {
    const { size } = fstatSync(fd);
    if (size === 0 || size > LONGEST_BYTES) return undefined;
    const bytes = new Uint8Array(size);
    const length = readSync(fd, bytes, { position: 0 });
    return new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return undefined; // EBADF
  }
}
