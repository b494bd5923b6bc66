/**
 * A look over all processes in a Worker of its own, alone or with the places where they work, seen
 * from the thread that needs it: reading the environment of a process whose memory lock is stuck
 * never comes back, and whoever waits for signals must not wait with it.
 *
 * Guarantees: an answer within the limit; nothing rejects; a Worker that hangs keeps nobody alive
 * and ends with the process. Clock: a timer of the calling thread. State after a crash: none.
 */
import { wakeAfter } from "../os/timers.ts";
import type { ScanResult } from "./scan.ts";
import type { WorktreeOrder, WorktreeScan } from "./worktree-places.ts";

export const SCAN_LIMIT_MS = 5_000;

/** What the Worker is asked for: all processes, or those at work in a checkout with them. */
export type ScanOrder = "scan" | WorktreeOrder;

/** What the Worker tells. */
export interface ScanMessage<Result = ScanResult | WorktreeScan> {
  readonly kind: "doubtful" | "whole";
  readonly result: Result | "unread";
}

/**
 * @param url  of tree/scan-worker.ts, known to the program's front door only
 * @param limitMs  milliseconds
 * @returns the whole look; where a process hangs the reader, the look as far as it had come, with
 *   this one and its like `unread`; `unread` where there is none in time, or no Worker to be had
 */
export function scanInWorker(
  url: string | URL,
  limitMs: number = SCAN_LIMIT_MS,
): Promise<ScanResult> {
  return askWorker<Exclude<ScanResult, "unread">>(url, "scan", limitMs);
}

/** The same with the places of those that matter; a file server that hangs is one more reason. */
export function scanWorktreeInWorker(
  url: string | URL,
  order: WorktreeOrder,
  limitMs: number = SCAN_LIMIT_MS,
): Promise<WorktreeScan> {
  return askWorker<Exclude<WorktreeScan, "unread">>(url, order, limitMs);
}

/**
 * A look of one start, once more where it could not be done in time: on a machine that is busy for
 * a moment a second look costs seconds, a refusal may cost a night.
 *
 * @param look  signals nobody, so that it may be repeated
 * @returns `unread` where both were
 */
export async function tryTwice<Found>(
  look: () => Promise<Found | "unread">,
): Promise<Found | "unread"> {
  const found = await look();
  return found === "unread" ? look() : found;
}

function askWorker<Result>(
  url: string | URL,
  order: ScanOrder,
  limitMs: number,
): Promise<Result | "unread"> {
  return new Promise((resolve) => {
    const worker = makeWorker(url);
    if (worker === undefined) return resolve("unread");
    let sofar: Result | "unread" = "unread";
    const timer = wakeAfter(limitMs, () => settle(sofar));
    const settle = (result: Result | "unread"): void => {
      timer.cancel();
      worker.unref();
      resolve(result);
    };
    worker.addEventListener("message", (event: MessageEvent<ScanMessage<Result>>) => {
      sofar = event.data.result;
      if (event.data.kind === "whole") settle(sofar);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      settle(sofar);
    });
    worker.addEventListener("close", () => settle(sofar));
    worker.postMessage(order);
  });
}

/** EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). */
function makeWorker(url: string | URL): Worker | undefined {
  try {
    return new Worker(url);
  } catch {
    return undefined; // told by the result: `unread`
  }
}
