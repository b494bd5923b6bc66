/**
 * `watchdog retry -- COMMAND`: runs a command again until it succeeds, as often and as long as was
 * asked for, and not at all while a circuit that it shares with others is open. A list of steps.
 *
 * Always: the command is what it would be without us, each time; how it has ended last is how we
 * end. Clock: CLOCK_MONOTONIC. State after a crash: attempt.ts, breaker.ts, report.ts.
 */
import { PAUSES_ON, splitNames } from "../core/environment-names.ts";
import { splitRunPath, valueOf } from "../core/environment-entries.ts";
import { WatchdogError } from "../core/errors.ts";
import type { Leaving, Outcome } from "../core/outcome.ts";
import type { RetryOptions } from "../core/retry-options.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { wallNow } from "../os/clock.ts";
import { say } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { sharingOf } from "../os/state-sharing.ts";
import { runAttempt } from "./attempt.ts";
import { Attempts } from "./attempts.ts";
import { BetweenAttempts } from "./between.ts";
import { Breaker, type OpenStore } from "./breaker.ts";
import { EarlierAttempts } from "./earlier-attempts.ts";
import { type AttemptInput, keepInput, passInputOnce } from "./kept-input.ts";
import { messages } from "./messages.ts";
import { RetryReport } from "./report.ts";
import { MovingClock } from "./standstill.ts";

/** How long the journal may take for the one line about a call. */
const JOURNAL_LIMIT_MS = 500;

export interface RetryRequest {
  readonly options: RetryOptions;
  /** Program and arguments as bytes. */
  readonly argv: readonly Uint8Array[];
  readonly inherited: Inheritance;
  readonly build: { readonly version: string; readonly commit: string };
  readonly openStore: OpenStore;
  /** What is `watchdog keep`'s among the processes below this one (run/kept-registry.ts). */
  readonly findKept: (
    rows: readonly ProcessRow[],
    stateDirectory: string,
    runId: string,
  ) => ReadonlySet<number>;
}

/**
 * @returns how watchdog itself must leave: as the last attempt did; 124 where its limit ended it,
 *   69 where the circuit refuses, 126 and 127 as a shell, by the signal that came during a wait
 * @throws WatchdogError "retry.input-too-long" (78), "retry.unusable", "os.no-ffi" (125)
 */
export async function retryCommand(request: RetryRequest): Promise<Leaving> {
  const { options, inherited } = request;
  // Before the first handler of a signal: until its end nothing but the kernel answers for us.
  const input = options.buffersStdin ? keepInput() : passInputOnce();
  const between = new BetweenAttempts(inherited);
  const breaker = openBreaker(request);
  const report = new RetryReport({
    argv: request.argv,
    path: options.resultFile,
    build: request.build,
    circuit: () => (breaker === undefined ? null : { name: breaker.name, state: breaker.state }),
  });
  report.begin();
  try {
    const outcome = await runAll(request, { input, between, breaker, report });
    report.end(outcome);
    if (report.count > 1) await noteRetried(request, outcome, report.count).catch(ignoreUntold);
    return outcome.leaving;
  } catch (error) {
    report.end(UNUSABLE);
    throw asUnusable(error);
  } finally {
    breaker?.leave();
    between.end();
    input.close();
  }
}

/** A state directory that cannot be resolved any more: the call has ended, and its status holds. */
function ignoreUntold(): void {}

/** For the report of the job that called. Outside any run there is none to tell of. */
async function noteRetried(
  request: RetryRequest,
  outcome: Outcome,
  attempts: number,
): Promise<void> {
  const { environment } = request.inherited;
  const runId = splitRunPath(valueOf(environment, "WATCHDOG_RUN_PATH")).at(-1);
  const job = valueOf(environment, "WATCHDOG_JOB");
  if (runId === undefined || job === undefined) return;
  const { Journal } = await import("../journal/journal.ts");
  const asked = request.options.stateDir ?? valueOf(environment, "WATCHDOG_STATE_DIR");
  const stateDirectory = resolveStateDirectory(asked);
  process.umask(sharingOf(stateDirectory).umask); // nothing is started any more
  // Its trouble is none of the call's, and is told by the run.
  const journal = new Journal(stateDirectory, () => undefined);
  const about = { at: wallNow(), runId, job, key: null, because: outcome.because };
  journal.put({ kind: "event", name: "retried", ...about, data: { attempts, ...outcome.leaving } });
  journal.close(JOURNAL_LIMIT_MS);
}

interface Parts {
  readonly input: AttemptInput;
  readonly between: BetweenAttempts;
  readonly breaker: Breaker | undefined;
  readonly report: RetryReport;
}

function runAll(request: RetryRequest, parts: Parts): Promise<Outcome> {
  const { options, argv, inherited } = request;
  const { breaker, between, report } = parts;
  const earlier = new EarlierAttempts();
  const findKept = keptBy(request);
  const around = {
    argv,
    inherited,
    input: parts.input,
    timeoutMs: options.attemptTimeoutMs,
    findSpared: (rows: readonly ProcessRow[]) =>
      new Set([...earlier.find(rows), ...findKept(rows)]),
    onBug: (error: unknown) => say(messages.bug(error)),
  };
  const waitsForRun = breaker !== undefined && isPausedOn(inherited.environment, breaker.name);
  return new Attempts({
    options,
    program: Buffer.from(argv[0] ?? "").toString("utf8"),
    between,
    breaker,
    waitsForRun,
    clock: new MovingClock(waitsForRun),
    report,
    run: (attempt) => {
      earlier.note();
      return runAttempt(around, attempt);
    },
  }).run();
}

function openBreaker({ options, inherited, openStore }: RetryRequest): Breaker | undefined {
  const { breaker: name, stateDir } = options;
  if (name === undefined) return undefined;
  return new Breaker({ name, stateDir, environment: inherited.environment, openStore, tell: say });
}

function isPausedOn(environment: readonly Uint8Array[], name: string): boolean {
  return splitNames(valueOf(environment, PAUSES_ON)).includes(name);
}

/** Outside any run nothing is kept. */
function keptBy({ options, inherited, findKept }: RetryRequest) {
  const { environment } = inherited;
  const runId = splitRunPath(valueOf(environment, "WATCHDOG_RUN_PATH")).at(-1);
  if (runId === undefined) return () => NOBODY;
  const asked = options.stateDir ?? valueOf(environment, "WATCHDOG_STATE_DIR");
  const stateDirectory = resolveStateDirectory(asked);
  return (rows: readonly ProcessRow[]) => findKept(rows, stateDirectory, runId);
}

const NOBODY: ReadonlySet<number> = new Set();

const UNUSABLE: Outcome = {
  name: "wrapper_error",
  because: "command-not-started",
  statusOf: "watchdog",
  leaving: { kind: "status", code: 125 },
};

/** An error of the system is a failure of the machine (125); anything else is a bug of ours. */
function asUnusable(error: unknown): unknown {
  const isOfSystem = !(error instanceof WatchdogError) && error instanceof Error && "code" in error;
  if (!isOfSystem) return error;
  return new WatchdogError("retry.unusable", `no attempt can be made: ${error.message}`, {
    hint: "watchdog doctor",
    cause: error,
  });
}
