/**
 * The tick of the kernel's clock of changes: a file that was written in this very tick and is
 * written again, with as many bytes, would look unchanged to whoever compares times.
 *
 * Clock: the kernel's clock of changes (CLOCK_REALTIME_COARSE). State after a crash: none.
 */
import { fileClockNow } from "./clock.ts";
import { wakeAfter } from "./timers.ts";

/** A change later than this is of a clock that was set back, or of another machine. */
const LONGEST_TICK_NS = 20_000_000n;
const SECOND_NS = 1_000_000_000n;

export interface TickClock {
  /** What a file system would write as the time of a change now; undefined: not to be had. */
  readonly now: () => bigint | undefined;
  readonly pause: () => Promise<void>;
}

const REAL_CLOCK: TickClock = {
  now: fileClockNow,
  pause: () => new Promise((done) => wakeAfter(1, done)),
};

/**
 * Waits until a change that comes now gets a time other than `newest`: a file that was written in
 * this very tick of the kernel's clock (1 to 10 ms; whole seconds on old file systems, two on FAT)
 * and is written again, with as many bytes, would look unchanged.
 *
 * Hardly ever waits: the start of a run takes longer than a tick.
 */
export async function awaitNextTick(newest: bigint, clock = REAL_CLOCK): Promise<void> {
  const unit = unitOf(newest);
  for (;;) {
    const now = clock.now();
    if (now === undefined || newest > now + LONGEST_TICK_NS + unit) return;
    if (now - (now % unit) > newest) return;
    await clock.pause();
  }
}

function unitOf(at: bigint): bigint {
  if (at % SECOND_NS !== 0n) return 1n;
  return at % (2n * SECOND_NS) === 0n ? 2n * SECOND_NS : SECOND_NS;
}
