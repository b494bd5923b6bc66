/**
 * Signals that come before the command is started, while a lease is waited for: a request to end is
 * carried out at once, a stop of the job stops us, and everything else waits for the command.
 */
import { type Leaving, outcomeOfEarlyStop } from "../core/outcome.ts";
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU } from "../core/signals.ts";
import { stopAs } from "../os/signal-handlers.ts";
import type { Course } from "./course.ts";
import { writeUnstarted } from "./leave-refused.ts";
import type { SignalInbox } from "./signal-inbox.ts";

const STOPS: readonly number[] = [SIGTERM, SIGINT, SIGQUIT, SIGHUP];
const JOB_CONTROL: readonly number[] = [SIGTSTP, SIGTTIN, SIGTTOU];
/** Resolves when the run is asked to end, after that was written down. Until `inbox.open`. */
export function untilStopped(
  course: Course,
  inbox: SignalInbox,
): Promise<{ readonly kind: "refused"; readonly leaving: Leaving }> {
  const stopped = Promise.withResolvers<{ kind: "refused"; leaving: Leaving }>();
  inbox.watchEarly((signal) => {
    if (JOB_CONTROL.includes(signal)) stopAs(signal);
    if (STOPS.includes(signal)) stopped.resolve({ kind: "refused", leaving: stop(course, signal) });
    return JOB_CONTROL.includes(signal) || STOPS.includes(signal);
  });
  return stopped.promise;
}

function stop(course: Course, signal: number): Leaving {
  const outcome = outcomeOfEarlyStop(signal);
  writeUnstarted(course, outcome);
  return outcome.leaving;
}
