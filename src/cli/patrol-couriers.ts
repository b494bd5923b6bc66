/**
 * What of a patrol goes out of this machine: notices that wait in the outbox, and the ping that
 * tells that patrols go on. Done in `run/`; decides nothing.
 *
 * Guarantees: nothing is thrown but bugs; each ends with its limit; trouble is a line for people.
 * Clock: the wall clock, in the ping. State after a crash: that of the outbox.
 */
import { noticeOfTest } from "../core/make-notice.ts";
import type { Notice } from "../core/notice.ts";
import type { RunRecord } from "../core/run-record.ts";
import { wallNow } from "../os/clock.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { readMachine } from "../os/machine.ts";
import type { Patrolled, PatrolRequest } from "../patrol/request.ts";
import {
  type FlushAsked,
  flushNotices,
  insist,
  isTrouble,
  makeCourier,
} from "../run/flush-notices.ts";
import type { PatrolCut } from "./cut.ts";
import { renderCount } from "./render-words.ts";
import { isOptionVariable } from "./variables-table.ts";

/** As long as notices may take in one patrol; what is left waits for the next one. */
const FLUSH: FlushAsked = { limitMs: 20_000, isForced: false, isWithDead: false, mostListed: 1 };
const PING_MS = 10_000;

interface CourierPlace {
  readonly stateDirectory: string;
  readonly inherited: Inheritance;
  readonly build: RunRecord["watchdog"];
}

export function couriersOf(
  { sinks, ping }: PatrolCut,
  { inherited, build, stateDirectory }: CourierPlace,
): Pick<PatrolRequest, "readOutbox" | "flush" | "ping"> {
  const open = (onTrouble: (line: string) => void) => {
    const about = { stateDirectory, sinks, inherited, isOptionVariable, onTrouble };
    return makeCourier({ ...about, version: build.version });
  };
  return {
    readOutbox: () => {
      const courier = open(() => undefined);
      try {
        const counted = insist(() => courier.outbox.count());
        return isTrouble(counted) ? undefined : counted;
      } finally {
        courier.close();
      }
    },
    flush: async () => {
      const troubles: string[] = [];
      const courier = open((line) => troubles.push(`journal: ${line}`));
      try {
        const flushed = await flushNotices(courier, FLUSH);
        return flushed.kind === "flushed" ? troubles : [...troubles, `outbox: ${flushed.reason}`];
      } finally {
        courier.close();
      }
    },
    ping:
      ping === undefined
        ? undefined
        : async (report) => {
            const courier = open(() => undefined);
            try {
              const sent = await courier.send(ping, noticeOfPatrol(ping.id, report), {
                timeoutMs: PING_MS,
              });
              return sent.kind === "delivered" ? undefined : `${ping.shown}: ${sent.detail}`;
            } finally {
              courier.close();
            }
          },
  };
}

/** A good end without a run: the plain address of the check. */
function noticeOfPatrol(sinkId: string, { found, stateDirectory }: Patrolled): Notice {
  const { host, user } = readMachine();
  const at = wallNow();
  const origin = { host, runner: `${user}@${host}` };
  const findings = renderCount(found, "finding", "findings");
  const summary = `watchdog patrol of ${stateDirectory} on ${host}: ${findings}`;
  return { ...noticeOfTest({ sinkId, at, origin }), event: "success", summary, details: {} };
}
