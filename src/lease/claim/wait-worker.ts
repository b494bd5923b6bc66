/**
 * Front door of the Worker that waits for one lock at a time: a blocking flock(2), so that the
 * kernel queues those who wait, first come first served. Decides nothing.
 *
 * The descriptor is main's, and stays open: a lock belongs to the open file, whichever thread has
 * asked for it. Main may give a wait up while it lasts, which cannot be interrupted; a lock that
 * comes after that is given back here at once.
 */
import { EINTR, LOCK_EX, LOCK_UN, sys } from "../../os/sys.ts";
import { ABANDONED, GRANTED, WAITING, type WaitAnswer, type WaitTask } from "./lock-queue.ts";

declare const self: {
  onmessage: ((event: MessageEvent<WaitTask>) => void) | null;
  postMessage(answer: WaitAnswer): void;
};

self.onmessage = (event) => {
  self.postMessage(waitFor(event.data));
};

function waitFor(task: WaitTask): WaitAnswer {
  const state = new Int32Array(task.state);
  const result = lockBlocking(task.fd, state);
  if (result < 0) return { ticket: task.ticket, errno: -result };
  if (Atomics.compareExchange(state, 0, WAITING, GRANTED) === WAITING) {
    return { ticket: task.ticket, errno: 0 };
  }
  sys.flock(task.fd, LOCK_UN);
  sys.close(task.fd);
  return { ticket: task.ticket, errno: 0 };
}

/** A signal that this thread happens to take ends the call (EINTR) and not the wait. */
function lockBlocking(fd: number, state: Int32Array): number {
  for (;;) {
    const result = sys.flock(fd, LOCK_EX);
    if (result !== -EINTR || Atomics.load(state, 0) === ABANDONED) return result;
  }
}
