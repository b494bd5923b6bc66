/**
 * Patrols again and again, a period apart, until the process is ended: by a signal at its default,
 * because a patrol that dies at any step leaves nothing half done.
 *
 * Always: a round that fails is told, and the next one comes all the same. The period counts from
 * start to start, and a round that takes longer is followed by the next one after a short pause.
 * What a process has gathered in memory over weeks is given back by beginning anew. Clock:
 * MONOTONIC.
 */
import { monotonicNow } from "../os/clock.ts";
import { LONGEST_WAIT_MS, wakeAfter } from "../os/timers.ts";

const SHORTEST_PAUSE_MS = 100;

export interface Rounds {
  readonly periodMs: number;
  /** Must not throw. */
  readonly round: () => Promise<void>;
  /** Whether this process holds more memory than a patrol needs. */
  readonly isWorn: () => boolean;
  /** Puts a new one in its place; comes back where that was not to be had. */
  readonly renew: () => void;
}

/** Never comes back. */
export async function patrolForEver({ periodMs, round, isWorn, renew }: Rounds): Promise<never> {
  for (;;) {
    const began = monotonicNow();
    await round();
    const until = Math.max(began + periodMs, monotonicNow() + SHORTEST_PAUSE_MS);
    await waitUntil(until);
    if (isWorn()) renew();
  }
}

async function waitUntil(until: number): Promise<void> {
  for (let rest = until - monotonicNow(); rest > 0; rest = until - monotonicNow()) {
    const waitMs = Math.min(rest, LONGEST_WAIT_MS);
    await new Promise<void>((resolve) => wakeAfter(waitMs, resolve));
  }
}

/**
 * A patrol has 55 to 65 MB; each look at all processes of the machine, of which there is one a
 * round while anything of a dead owner lives, leaves about 55 kB that the runtime does not give
 * back (measured over 380 rounds).
 */
const MOST_RESIDENT_BYTES = 160 * 1024 ** 2;

export function isWornOut(): boolean {
  return process.memoryUsage.rss() > MOST_RESIDENT_BYTES;
}
