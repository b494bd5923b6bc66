/**
 * `watchdog fence -- COMMAND`: runs an operation that no grant of the fenced keys overlaps, and
 * `watchdog fence` alone, which only looks. A list of steps; what is decided is in core/fence.ts.
 *
 * Always: nothing is started unless every fence is held; whatever goes wrong before that ends with
 * a status other than 0. Clock: CLOCK_MONOTONIC. State after a crash: design of hold.ts and
 * tree/operation.ts.
 */
import { keyOf, splitRunPath, valueOf } from "../core/environment-entries.ts";
import { EXIT, WatchdogError } from "../core/errors.ts";
import { decideFenceLeaving } from "../core/fence.ts";
import type { FenceOptions } from "../core/fence-options.ts";
import { renderKey } from "../core/lease-key.ts";
import { type Leaving, outcomeOfRefusal } from "../core/outcome.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { faultPoint, isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { say } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { nameErrno } from "../os/sys.ts";
import { type FenceRefusal, type HeldFences, holdFences } from "./hold.ts";
import { messages } from "./messages.ts";
import { type OperationEnd, runOperation } from "../tree/operation.ts";

/** What is `watchdog keep`'s among the processes below this one (run/kept-registry.ts). */
export type FindKept = (
  rows: readonly ProcessRow[],
  stateDirectory: string,
  runId: string,
) => ReadonlySet<number>;

/** What the front door hands in, the same for every command that runs something under a fence. */
export interface FenceSurroundings {
  readonly inherited: Inheritance;
  /** Whether a variable stands for an option: a nested watchdog starts fresh. */
  readonly isOptionVariable: (name: string) => boolean;
  readonly findKept: FindKept;
}

export interface FenceRequest extends FenceSurroundings {
  readonly options: FenceOptions;
  /** The operation as bytes; undefined: the bare check. */
  readonly argv: readonly Uint8Array[] | undefined;
}

/**
 * @returns how watchdog itself must leave: as the operation did; 76 or 75 where it was refused, 124
 *   at the limit, 126 and 127 as a shell
 * @throws WatchdogError as `holdFences`
 */
export async function fenceCommand(request: FenceRequest): Promise<Leaving> {
  const { options, argv, inherited } = request;
  const { environment } = inherited;
  const { keys, waitMs } = options;
  const stateDirectory = findFenceState(options.stateDir, environment);
  const held = await attempting(() => holdFences({ stateDirectory, environment, keys, waitMs }));
  if (held.kind === "refused") return leaveFenceRefused(held);
  try {
    if (argv === undefined) {
      say(messages.checked(held.keys));
      return { kind: "status", code: EXIT.ok };
    }
    if (options.isVerbose) say(messages.held(held.keys));
    return await runFenced(request, { held, argv, stateDirectory });
  } finally {
    held.release();
  }
}

/** Where the leases of the runs around are: as asked, else as their environment says. */
export function findFenceState(
  asked: string | undefined,
  environment: readonly Uint8Array[],
): string {
  return resolveStateDirectory(asked ?? valueOf(environment, "WATCHDOG_STATE_DIR"));
}

/** Says why, and leaves with the number that belongs to it. */
export function leaveFenceRefused(refusal: FenceRefusal): Leaving {
  say(messages.refused(refusal.text));
  return { kind: "status", code: EXIT[refusal.exit] };
}

export interface Fenced {
  readonly held: HeldFences;
  readonly argv: readonly Uint8Array[];
  readonly stateDirectory: string;
}

/** F4: the operation under fences that are held, to its end. */
export async function runFenced(
  request: FenceSurroundings & { readonly options: Pick<FenceOptions, "timeoutMs" | "isVerbose"> },
  { held, argv, stateDirectory }: Fenced,
): Promise<Leaving> {
  const { inherited, options } = request;
  const runId = splitRunPath(valueOf(inherited.environment, "WATCHDOG_RUN_PATH")).at(-1) ?? "";
  const keys = held.keys.map(({ key, generation }) => ({ key: renderKey(key), generation }));
  const ended = await attempting(() => {
    faultPoint("fence.F4", { leases: keys, isFenced: true });
    return runOperation({
      argv,
      environment: makeOperationEnvironment(request),
      inherited,
      descriptors: held.descriptors,
      timeoutMs: options.timeoutMs,
      findKept: (rows) => request.findKept(rows, stateDirectory, runId),
      onTimeout: () => say(messages.timedOut()),
      onBug: (error) => say(messages.bug(error)),
    });
  });
  if (ended.kind === "refused") return leaveUnstarted(argv, ended);
  if (ended.unended.length > 0) say(messages.unended(ended.unended));
  if (options.isVerbose && ended.left.length > 0) say(messages.left(ended.left));
  return decideFenceLeaving(ended, EXIT.timeout);
}

/** The caller's own bytes; what stands for options of ours goes no further. */
export function makeOperationEnvironment(request: FenceSurroundings): Uint8Array[] {
  return request.inherited.environment.filter((entry) => {
    const key = keyOf(entry);
    return !request.isOptionVariable(key) && !isFaultVariable(key);
  });
}

function leaveUnstarted(
  argv: readonly Uint8Array[],
  refused: Extract<OperationEnd, { kind: "refused" }>,
): Leaving {
  const name = Buffer.from(argv[0] ?? "").toString("utf8");
  say(messages.notStarted(name, nameErrno(refused.errorNumber)));
  return outcomeOfRefusal(refused.because).leaving;
}

/** An error of the system is a failure of the machine (125); anything else is a bug of ours. */
export async function attempting<T>(act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new WatchdogError("fence.unusable", `the fence cannot be had: ${error.message}`, {
      hint: "watchdog lease list",
      cause: error,
    });
  }
}

function isOfSystem(error: unknown): error is Error {
  return !(error instanceof WatchdogError) && error instanceof Error && "code" in error;
}
