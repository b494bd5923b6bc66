/**
 * What a guard sends after it has buried its run: loaded only then, because the tree did not wait
 * for it.
 *
 * Always: nothing is printed, and nothing is waited for longer than GUARD_LIMIT_MS; what is left
 * waits for the next run. Clock: MONOTONIC. State after a crash: that of the outbox.
 */
import { readVariables } from "../core/environment-entries.ts";
import type { NoticePart } from "../core/notice-part.ts";
import type { RunRecord } from "../core/run-record.ts";
import { readInheritance } from "../os/inheritance.ts";
import { Courier } from "./courier.ts";
import { tellWithoutOutbox } from "./direct-telling.ts";
import type { GuardTelling } from "./guard-notes.ts";

/** Nobody waits for a guard, and there may be no next run for long. */
const GUARD_LIMIT_MS = 30_000;

export interface GuardDelivery {
  readonly run: RunRecord;
  readonly stateDirectory: string;
  /** What the journal has not taken, which is told past it; undefined: it has. */
  readonly unwritten: { readonly part: NoticePart; readonly isInSpool: boolean } | undefined;
}

export async function deliverForGuard(
  { sinks, environment: latin }: GuardTelling,
  { run, stateDirectory, unwritten }: GuardDelivery,
): Promise<void> {
  const environment = latin.map((entry) => Buffer.from(entry, "latin1"));
  const courier = new Courier({
    stateDirectory,
    runId: run.run_id,
    sinks,
    variables: readVariables(environment),
    version: run.watchdog.version,
    helpers: { inherited: readInheritance(), environment: () => environment },
    onTrouble: () => undefined,
  });
  try {
    if (unwritten === undefined || isReadIn(courier, unwritten)) {
      await courier.deliver({ limitMs: GUARD_LIMIT_MS });
      return;
    }
    const stopping = new AbortController().signal;
    const end = { run, part: unwritten.part, limitMs: GUARD_LIMIT_MS, stopping };
    await tellWithoutOutbox(courier, sinks, end);
  } finally {
    courier.close();
  }
}

/** Or will be, as soon as whoever holds the journal has gone. */
function isReadIn(courier: Courier, { isInSpool }: NonNullable<GuardDelivery["unwritten"]>) {
  return isInSpool && courier.readSpoolIn() !== "unusable";
}
