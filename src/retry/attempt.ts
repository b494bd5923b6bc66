/**
 * One attempt: the command with its tree, from its start to its end. Decides nothing.
 *
 * Always: the command has the caller's environment but for WATCHDOG_ATTEMPT, and the caller's
 * descriptors but for the standard input of later attempts. Clock: none of its own. State after a
 * crash of this process: the command goes on.
 */
import { closeSync } from "node:fs";
import { keyOf } from "../core/environment-entries.ts";
import { type EndedAttempt, findAsking } from "../core/retry.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { faultPoint, isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { nameErrno } from "../os/sys.ts";
import { type OperationEnd, runOperation } from "../tree/operation.ts";
import type { NamedProcess } from "../tree/tree.ts";
import type { AttemptInput } from "./kept-input.ts";

export const ATTEMPT_VARIABLE = "WATCHDOG_ATTEMPT";

export interface AttemptRequest {
  readonly argv: readonly Uint8Array[];
  readonly inherited: Inheritance;
  readonly input: AttemptInput;
  /** `--attempt-timeout` */
  readonly timeoutMs: number | undefined;
  /** Who below this process is none of the attempt. */
  readonly findSpared: (rows: readonly ProcessRow[]) => ReadonlySet<number>;
  readonly onBug: (error: unknown) => void;
}

export interface AttemptResult extends EndedAttempt {
  /** Why it was not started; undefined: it was. */
  readonly reason: string | undefined;
  /** Members that outlived KILL at the limit. */
  readonly unended: readonly NamedProcess[];
}

/**
 * @param attempt  from 1
 * @throws WatchdogError "os.no-ffi"; "retry.unusable": no descriptor for its input
 */
export async function runAttempt(request: AttemptRequest, attempt: number): Promise<AttemptResult> {
  const { argv, inherited, timeoutMs } = request;
  faultPoint("retry.attempt", { attempt });
  const redirections = request.input.redirect(attempt);
  let running: Promise<OperationEnd>;
  try {
    running = runOperation({
      argv,
      environment: makeAttemptEnvironment(inherited.environment, attempt),
      inherited,
      descriptors: [],
      redirections,
      timeoutMs,
      findKept: request.findSpared,
      onTimeout: () => undefined,
      onBug: request.onBug,
    });
  } finally {
    for (const { source } of redirections) closeSync(source);
  }
  return describeEnd(await running);
}

/** The caller's own bytes, with the number of this attempt in place of any other. */
export function makeAttemptEnvironment(
  environment: readonly Uint8Array[],
  attempt: number,
): Uint8Array[] {
  const kept = environment.filter((entry) => {
    const key = keyOf(entry);
    return key !== ATTEMPT_VARIABLE && !isFaultVariable(key);
  });
  return [...kept, new TextEncoder().encode(`${ATTEMPT_VARIABLE}=${attempt}`)];
}

function describeEnd(ended: OperationEnd): AttemptResult {
  if (ended.kind === "refused") {
    const { because, errorNumber } = ended;
    const end = { kind: "not-started", because } as const;
    return { end, askedBy: undefined, reason: nameErrno(errorNumber), unended: [] };
  }
  const { unended, signals } = ended;
  const isTimedOut = ended.isTimedOut || ended.end === undefined;
  const end = isTimedOut ? ({ kind: "timed-out" } as const) : ended.end;
  return { end, askedBy: findAsking(end, signals), reason: undefined, unended };
}
