/**
 * `watchdog status --watch`: what runs now, drawn anew each second. Reads only, as `status`.
 */

import { readStatus, type StatusQuestion } from "../inspect/status.ts";
import type { Answer } from "./answer.ts";
import { renderWatch } from "./render-watch.ts";
import { watch, type WatchRequest } from "./watch.ts";

export interface StatusWatchRequest extends Pick<
  WatchRequest<unknown>,
  "ignoredSignals" | "terminalKind"
> {
  readonly question: StatusQuestion;
}

/** @throws WatchdogError "usage" without a terminal; as `readStatus` */
export async function watchStatus({ question, ...request }: StatusWatchRequest): Promise<Answer> {
  return watch({
    ...request,
    command: "status",
    look: () => readStatus(question),
    draw: (view, size, clock) => renderWatch({ view, size, clock }),
  });
}
