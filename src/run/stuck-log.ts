/**
 * A disk that hangs must not hold the end of a run: the command is gone, its output has arrived,
 * only the log is not finished. It stays as it is then, as after a kill.
 */
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { wakeEvery } from "../os/timers.ts";
import type { Copy } from "../output/copy.ts";

/** A log that is not finished this long after the last byte was delivered is left. */
const STUCK_AFTER_MS = 5_000;
const LOOK_MS = 250;

/** Resolves when everything was delivered, and yet the log's disk does not answer. */
export function stuckLog(copy: Copy): Promise<void> {
  return new Promise((resolve) => {
    let deliveredAt: MonotonicAt | undefined;
    const timer = wakeEvery(LOOK_MS, () => {
      if (copy.counters().streams.some((stream) => stream.end === "open")) return;
      deliveredAt ??= monotonicNow();
      if (spanMs(deliveredAt, monotonicNow()) < STUCK_AFTER_MS) return;
      timer.cancel();
      copy.abandon("everything");
      resolve();
    });
    void copy.ended.then(() => timer.cancel());
  });
}
