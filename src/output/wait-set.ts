/**
 * A fixed set of descriptors to wait for with poll(2), made once: waiting allocates nothing,
 * because a copy waits as often as it reads. No policy, no retries.
 */
import { errno, libc } from "../os/libc.ts";

const ENTRY_BYTES = 8;
const EVENTS_AT = 4;
const READY_AT = 6;
const WAIT_FOR_EVER = -1;

export class WaitSet {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #count: number;

  /** @param entries  descriptor and events; a negative descriptor is passed over (poll(2)) */
  constructor(entries: readonly (readonly [fd: number, events: number])[]) {
    this.#count = entries.length;
    this.#bytes = new Uint8Array(entries.length * ENTRY_BYTES);
    this.#view = new DataView(this.#bytes.buffer);
    for (const [index, [fd, events]] of entries.entries()) {
      this.#view.setInt32(index * ENTRY_BYTES, fd, true);
      this.#view.setInt16(index * ENTRY_BYTES + EVENTS_AT, events, true);
    }
  }

  /** Blocks until one is ready. @returns how many are, or -errno */
  wait(): number {
    const count = libc().poll(this.#bytes, this.#count, WAIT_FOR_EVER);
    return count === -1 ? -errno() : count;
  }

  /** The events of the entry at this place, as the last `wait` found them. */
  ready(index: number): number {
    return this.#view.getInt16(index * ENTRY_BYTES + READY_AT, true);
  }
}
