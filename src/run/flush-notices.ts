/**
 * Delivers whatever waits in the outbox of a state directory, for whoever looks after it: a person
 * (`notify flush`) or `patrol`. Reads the spool in first, reminds of what lasts, and gives up what
 * nobody could deliver for long.
 *
 * Guarantees: nothing is thrown; it ends with its limit. Clock: MONOTONIC for the limit, the wall
 * clock for what stands in the outbox. State after a crash: that of the outbox.
 */
import { keyOf, readVariables } from "../core/environment-entries.ts";
import type { OutboxRow, StoreTrouble } from "../core/outbox.ts";
import type { SinkSpec } from "../core/sink.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { pauseThread } from "../os/timers.ts";
import { Courier } from "./courier.ts";

export interface CourierAround {
  readonly stateDirectory: string;
  /** Known here, by the line, the environment and the configuration. */
  readonly sinks: readonly SinkSpec[];
  readonly inherited: Inheritance;
  /** A hook does not get the variables that stand for options. */
  readonly isOptionVariable: (name: string) => boolean;
  /** Of watchdog. */
  readonly version: string;
  readonly onTrouble: (line: string) => void;
}

/** For a command that is no run. */
export function makeCourier(around: CourierAround): Courier {
  const { stateDirectory, sinks, inherited, isOptionVariable, version, onTrouble } = around;
  const environment = inherited.environment.filter((entry) => {
    const key = keyOf(entry);
    return !isOptionVariable(key) && !isFaultVariable(key);
  });
  return new Courier({
    stateDirectory,
    runId: null,
    sinks,
    variables: readVariables(inherited.environment),
    version,
    helpers: { inherited, environment: () => environment },
    onTrouble,
  });
}

export interface FlushAsked {
  readonly limitMs: number;
  /** Also what waits for its next attempt: a person asks. */
  readonly isForced: boolean;
  /** What was given up is tried again. */
  readonly isWithDead: boolean;
  /** Of those that wait at the end, the newest. */
  readonly mostListed: number;
}

export interface Flushed {
  readonly kind: "flushed";
  readonly delivered: number;
  readonly failed: number;
  /** Given up now. */
  readonly buried: number;
  /** All that wait, and all that were given up, at the end. */
  readonly waiting: number;
  readonly dead: number;
  readonly left: readonly OutboxRow[];
  /** Those that were tried. */
  readonly triedIds: ReadonlySet<number>;
}

export async function flushNotices(
  courier: Courier,
  asked: FlushAsked,
): Promise<Flushed | StoreTrouble> {
  const { outbox } = courier;
  courier.readSpoolIn();
  const tended = insist(() => outbox.tend(wallNow()));
  if (isTrouble(tended)) return tended;
  const revived = asked.isWithDead ? insist(() => outbox.revive(wallNow())) : 0;
  if (isTrouble(revived)) return revived;
  const { limitMs, isForced } = asked;
  const { attempted, trouble } = await courier.deliver({ limitMs, isForced });
  if (trouble !== undefined && attempted.length === 0) return trouble;
  const left = insist(() => outbox.list(["waiting"], asked.mostListed));
  if (isTrouble(left)) return left;
  const counted = insist(() => outbox.count());
  if (isTrouble(counted)) return counted;
  const of = (kind: string): number =>
    attempted.filter(({ settlement }) => settlement.kind === kind).length;
  const delivered = of("delivered");
  return {
    kind: "flushed",
    delivered,
    failed: attempted.length - delivered,
    buried: of("dead"),
    ...counted,
    left,
    triedIds: new Set(attempted.map(({ row }) => row.id)),
  };
}

const INSIST_MS = 5_000;
const INSIST_PAUSE_MS = 10;

/** Somebody else may write for a moment; there is no run here that a wait could hold up. */
export function insist<T>(ask: () => T | StoreTrouble): T | StoreTrouble {
  const until = monotonicNow() + INSIST_MS;
  let found = ask();
  while (isTrouble(found) && found.kind === "busy" && monotonicNow() < until) {
    pauseThread(INSIST_PAUSE_MS);
    found = ask();
  }
  return found;
}

export function isTrouble<T>(found: T | StoreTrouble): found is StoreTrouble {
  return typeof found === "object" && found !== null && "reason" in found;
}
