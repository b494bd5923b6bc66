/**
 * One attempt of a step as a real process with its tree: started, waited for, and told how it
 * ended. Decides nothing (core/step-outcome.ts).
 *
 * Always: the step has /dev/null for its input, our own output and error, the umask and the signals
 * of whoever has started the job; nobody of its tree is left when it is told as ended. Clock:
 * MONOTONIC; the wall clock for what the step is told of its limit. State after a crash of ours:
 * the watchdog around us ends what is left.
 */
import { constants, readFileSync, unlinkSync } from "node:fs";
import type { StepSpec } from "../core/job-spec.ts";
import { isObject, isText } from "../core/shapes.ts";
import type { CommandEnd } from "../core/run-state.ts";
import { numberOfSignal } from "../core/signals.ts";
import {
  endOfNestedRun,
  type NestedRun as NestedOutcome,
  type StepEnd,
} from "../core/step-outcome.ts";
import type { WallAt } from "../core/time.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { wallNow } from "../os/clock.ts";
import { close, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { nameErrno } from "../os/sys.ts";
import { type OperationEnd, runOperation } from "../tree/operation.ts";
import type { NamedProcess } from "../tree/tree.ts";
import {
  encode,
  environmentOf,
  type NestedRun,
  wordsOf,
  wordsOfNestedRun,
} from "./step-command.ts";

export interface StepRunRequest {
  readonly step: StepSpec;
  /** From 1. */
  readonly attempt: number;
  /** Where it works; absolute. */
  readonly directory: string;
  /** Undefined: it is started directly. */
  readonly nested: NestedRun | undefined;
  readonly inherited: Inheritance;
  readonly findKept: (rows: readonly ProcessRow[]) => ReadonlySet<number>;
  /** Told before what its command has left behind is ended. */
  readonly onLeftovers: (rows: readonly NamedProcess[]) => void;
  readonly onBug: (error: unknown) => void;
}

export interface StepRunEnd {
  readonly end: StepEnd;
  /** Those that came to us meanwhile and were passed on. */
  readonly signals: ReadonlySet<number>;
  /** For people: why it was not started; undefined: it was. */
  readonly reason: string | undefined;
  /** Members that outlived even KILL: then nothing may be started after it. */
  readonly unended: readonly NamedProcess[];
}

/** Starts it at once. Never rejects. */
export async function runStep(request: StepRunRequest): Promise<StepRunEnd> {
  const { step, nested } = request;
  const words = nested === undefined ? wordsOf(step.command) : wordsOfNestedRun(step, nested);
  if (nested !== undefined) forget(nested.resultFile);
  // A nested run has the limit itself, and time to tell what has become of it.
  const timeoutMs = nested === undefined ? step.timeoutMs : undefined;
  const ended = await operate(request, words, timeoutMs);
  if (ended.kind === "refused" || nested === undefined) return describe(ended);
  const told = describe(ended);
  const end = readNestedEnd(nested.resultFile, told.end);
  forget(nested.resultFile);
  return { ...told, end };
}

/** `settle`, or any other question about a step. Never rejects. */
export async function runQuestion(
  request: Omit<StepRunRequest, "nested">,
  words: readonly string[],
  timeoutMs: number,
): Promise<StepRunEnd> {
  return describe(await operate(request, words, timeoutMs));
}

type Refused = { readonly kind: "refused"; readonly end: StepEnd; readonly reason: string };

async function operate(
  request: Omit<StepRunRequest, "nested">,
  words: readonly string[],
  timeoutMs: number | undefined,
): Promise<OperationEnd | Refused> {
  const { step, attempt, directory, inherited, findKept, onLeftovers, onBug } = request;
  // The spawn is over when this returns: of two steps none starts in the directory of the other.
  const refusal = enter(directory);
  if (refusal !== undefined) return refusal;
  const nowhere = openHigh("/dev/null", constants.O_RDONLY);
  const deadlineAt = timeoutMs === undefined ? undefined : ((wallNow() + timeoutMs) as WallAt);
  try {
    if (nowhere === NONE) return refuse("no descriptor is left");
    const running = runOperation({
      argv: words.map(encode),
      environment: environmentOf(inherited.environment, step.env, { attempt, deadlineAt }),
      inherited: { ...inherited, descriptors: [] },
      descriptors: [],
      timeoutMs,
      graceMs: step.killAfterMs,
      leftovers: "ask",
      onLeftovers,
      redirections: [{ target: 0, source: nowhere }],
      findKept,
      onTimeout: () => undefined,
      onBug,
    });
    close(nowhere);
    return await running;
  } catch (error) {
    close(nowhere);
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function enter(directory: string): Refused | undefined {
  try {
    process.chdir(directory);
    return undefined;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const isGone = code === "ENOENT";
    return refuse(`its directory ${directory} ${isGone ? "is not there" : `(${code})`}`);
  }
}

function refuse(reason: string): Refused {
  return { kind: "refused", end: { kind: "not-started", because: "system" }, reason };
}

function describe(ended: OperationEnd | Refused): StepRunEnd {
  const nobody = { signals: new Set<number>(), unended: [] };
  if (ended.kind === "refused") {
    if ("end" in ended) return { ...nobody, end: ended.end, reason: ended.reason };
    const { because, errorNumber } = ended;
    return { ...nobody, end: { kind: "not-started", because }, reason: nameErrno(errorNumber) };
  }
  const { signals, unended } = ended;
  const isTimedOut = ended.isTimedOut || ended.end === undefined;
  const end: StepEnd = isTimedOut ? { kind: "timed-out" } : ended.end;
  return { end, signals, unended, reason: undefined };
}

/** What `watchdog run` says of its command; where it says nothing, it was killed. */
function readNestedEnd(path: string, told: StepEnd): StepEnd {
  if (told.kind === "not-started") return told;
  const record = readRecord(path);
  const status =
    told.kind === "exited" ? told.code : 128 + (told.kind === "signaled" ? told.signal : 0);
  const outcome = isText(record["outcome"])
    ? (record["outcome"] as NestedOutcome["outcome"])
    : undefined;
  const wasStarted = record["child_pid"] !== null && record["child_pid"] !== undefined;
  return endOfNestedRun({ outcome, status, wasStarted, end: readCommandEnd(record) });
}

function readRecord(path: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isObject(value) ? value : {};
  } catch {
    return {}; // ENOENT: it was refused before it could write; SyntaxError: a full disk
  }
}

function readCommandEnd(record: Readonly<Record<string, unknown>>): CommandEnd | undefined {
  const { exit_code: code, signal } = record;
  if (typeof code === "number") return { kind: "exited", code };
  const number = isText(signal) ? numberOfSignal(signal) : undefined;
  return number === undefined ? undefined : { kind: "signaled", signal: number };
}

function forget(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // ENOENT; EROFS: what is read later is not taken for that of a run that was not killed
  }
}
