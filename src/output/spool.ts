/**
 * The spool of a quiet run: what would have been printed, kept until the verdict, then replayed or
 * forgotten.
 *
 * Always: no output is lost to the spool. If it cannot be made, cannot be written or grows beyond
 * SPOOL_MAX_BYTES, everything so far is replayed at once, the rest passes straight through, and the
 * stream says "quiet abandoned".
 * The file has no name (O_TMPFILE, or unlinked at once), so nothing remains after any death. Mode
 * 0600.
 */
import { closeSync, constants, openSync, readSync, unlinkSync } from "node:fs";
import type { Destination, Sink } from "./destination.ts";
import { CHUNK_BYTES } from "./chunk-ring.ts";
import { EINTR } from "../os/sys.ts";
import { ptr } from "bun:ffi";
import { errnoOf, injectedError, writeFrom } from "./memory-io.ts";
import type { StreamState } from "./shared-state.ts";

/** A quiet run may not fill the disk: beyond this it is loud. */
export const SPOOL_MAX_BYTES = 1_073_741_824;

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;
/** O_TMPFILE is __O_TMPFILE with O_DIRECTORY, whose value differs between machines (open(2)). */
const O_TMPFILE = 0o20000000 | O_DIRECTORY;
const O_CLOEXEC = 0o2000000;

export class Spool implements Sink {
  readonly #destination: Destination;
  readonly #state: StreamState;
  readonly #maxBytes: number;
  #fd: number | undefined;
  #bytes = 0;

  constructor(parts: {
    directory: string;
    destination: Destination;
    state: StreamState;
    maxBytes?: number;
  }) {
    this.#destination = parts.destination;
    this.#state = parts.state;
    this.#maxBytes = parts.maxBytes ?? SPOOL_MAX_BYTES;
    this.#fd = openNameless(parts.directory);
    if (this.#fd === undefined) this.#state.abandonQuiet();
  }

  deliver(address: number, length: number): number {
    if (this.#fd === undefined) return this.#destination.deliver(address, length);
    const done = this.#keep(this.#fd, address, length);
    if (done === length) return 0;
    this.#state.abandonQuiet();
    const outcome = this.replay();
    return outcome < 0 ? outcome : this.#destination.deliver(address + done, length - done);
  }

  /** How many bytes of the chunk were kept; fewer than all means that the spool is at its end. */
  #keep(fd: number, address: number, length: number): number {
    if (this.#bytes + length > this.#maxBytes) return 0;
    if (injectedError("spool.write", fd, length) < 0) return 0;
    let done = 0;
    while (done < length) {
      const count = writeFrom(fd, address + done, length - done);
      if (count === -EINTR) continue;
      if (count <= 0) break;
      done += count;
    }
    this.#bytes += done;
    return done;
  }

  /**
   * Prints everything that was kept, once. @returns 0, or -errno of the destination or of reading
   * the spool
   */
  replay(): number {
    const fd = this.#fd;
    if (fd === undefined) return 0;
    const buffer = new Uint8Array(CHUNK_BYTES);
    let outcome = 0;
    for (let position = 0; position < this.#bytes && outcome === 0;) {
      const count = readAt(fd, buffer, position);
      outcome = count > 0 ? this.#destination.deliver(ptr(buffer), count) : count || -EIO;
      position += Math.max(count, 0);
    }
    this.discard();
    return outcome;
  }

  discard(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

const EIO = 5;

function readAt(fd: number, buffer: Uint8Array, position: number): number {
  try {
    return readSync(fd, buffer, 0, buffer.length, position);
  } catch (error) {
    return -errnoOf(error);
  }
}

function openNameless(directory: string): number | undefined {
  try {
    return openSync(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0o600);
  } catch {
    // EOPNOTSUPP, EISDIR, ENOENT: not every file system knows O_TMPFILE; any other error comes back
    // below.
    return openUnlinked(`${directory}/.spool-${Bun.randomUUIDv7()}`);
  }
}

function openUnlinked(path: string): number | undefined {
  try {
    const fd = openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0o600);
    unlinkSync(path);
    return fd;
  } catch {
    // ENOSPC, EROFS, EACCES: without a spool the run is loud, and says so by "quiet abandoned".
    return undefined;
  }
}
