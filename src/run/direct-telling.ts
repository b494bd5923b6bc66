/**
 * Tells the end of a run past the outbox, where the journal could not take it: a disk that is full
 * or nearly so, a state directory that cannot be written. Once, to each sink that hears of such an
 * end.
 *
 * Non-guarantees: durability, where the spool could not take it either. What was told before is not
 * known here, so that each bad end counts as a change. Always: the key is that of the same notice
 * in an outbox, should the end get there after all. Clock: that of the limit. State after a crash:
 * none; the notice is lost, or waits in the spool.
 */
import { entryIdOfEnd, happeningOfEnd } from "../core/happening.ts";
import type { WatchdogError } from "../core/errors.ts";
import { noticeOfEvent, noticeOfRun } from "../core/make-notice.ts";
import type { NoticeOrigin, NoticePart } from "../core/notice-part.ts";
import type { RunRecord } from "../core/run-record.ts";
import { type SinkSpec, wantsEvent } from "../core/sink.ts";
import { type DecidedNotice, decideNotices } from "../core/told-state.ts";
import { wallNow } from "../os/clock.ts";
import { ownMask } from "../os/mask.ts";
import type { Courier } from "./courier.ts";
import type { RunRequest } from "./course.ts";
import { makeCourier } from "./flush-notices.ts";
import { makeIdentity } from "./identity.ts";
import { readOwnSelf } from "./own-self.ts";

export interface DirectTelling {
  readonly run: RunRecord;
  readonly part: NoticePart;
  readonly limitMs: number;
  readonly stopping: AbortSignal;
}

export interface LostNotices {
  readonly count: number;
  /** Of the first one. */
  readonly shown: string;
  readonly because: string;
}

/**
 * The same of a start for which there is no state directory to be had, and no right: nobody can
 * know whether it was told before. Never rejects; no line about a notice that is lost beside the
 * error itself.
 */
export async function tellRefusedStart(request: RunRequest, error: WatchdogError): Promise<void> {
  const { options, inherited, isOptionVariable, build } = request;
  const courier = makeCourier({
    stateDirectory: "/nowhere",
    sinks: options.sinks,
    inherited,
    isOptionVariable,
    version: build.version,
    onTrouble: () => undefined,
  });
  const origin = readOrigin();
  const { runId, jobName } = makeIdentity(options.name, request.argv);
  const { code, exitStatus, message } = error;
  const event = {
    job: jobName,
    runId: null,
    because: code,
    data: { status: exitStatus, message: ownMask().text(message) },
  };
  const timeoutMs = Math.max(1, options.notifyTimeoutMs);
  await Promise.all(
    options.sinks
      .filter((sink) => wantsEvent(sink, REFUSED.event))
      .map((sink) => {
        const key = { entryId: `refused:${runId}`, sinkId: sink.id, at: wallNow() };
        const notice = noticeOfEvent(key, event, REFUSED, origin);
        const summary = `${jobName} on ${origin.host} was not started: ${event.data.message}`;
        return courier.send(sink, { ...notice, summary }, { timeoutMs });
      }),
  );
}

const REFUSED: DecidedNotice = {
  event: "failure",
  isReminder: false,
  since: null,
  failuresInRow: 1,
};

function readOrigin(): NoticeOrigin {
  try {
    const { host, user } = readOwnSelf().machine;
    return { host, runner: `${user}@${host}` };
  } catch {
    return { host: "localhost", runner: "unknown" }; // no /proc
  }
}

/** @returns undefined: whoever hears of it has heard. Never rejects */
export async function tellWithoutOutbox(
  courier: Courier,
  sinks: readonly SinkSpec[],
  { run, part, limitMs, stopping }: DirectTelling,
): Promise<LostNotices | undefined> {
  const at = wallNow();
  const happening = happeningOfEnd(run, part.verdict);
  if (happening === undefined) return undefined;
  const lost = await Promise.all(
    sinks.map(async (sink) => {
      const options = { sink, remindEveryMs: part.remindEveryMs, at };
      const [decided] = decideNotices(undefined, happening, options).notices;
      if (decided === undefined) return [];
      const key = { entryId: entryIdOfEnd(run), sinkId: sink.id, at };
      const masked = ownMask().value(run);
      const notice = noticeOfRun(key, masked, decided, { origin: part, tail: part.logTail });
      const sent = await courier.send(sink, notice, { timeoutMs: limitMs, signal: stopping });
      if (sent.kind === "delivered") return [];
      return [{ shown: sink.shown, because: `${sent.because}: ${sent.detail}` }];
    }),
  );
  const [first] = lost.flat();
  return first === undefined ? undefined : { count: lost.flat().length, ...first };
}
