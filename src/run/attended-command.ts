/**
 * A command that a helper of watchdog's runs for it (tree/own-processes.ts): with a limit, with
 * everything that it has started, and with what it prints. Refuses to know what the command is for.
 *
 * A process of its own, because it is the subreaper of the command: whatever that leaves, forks
 * twice or moves into another session comes up here, and never among the processes of a job.
 *
 * Guarantees: it is over soon after the limit, whatever the command does (TERM to all, KILL to all
 * a grace later); nothing of the command is left then, nor when it has ended by itself; its memory
 * does not grow with what the command prints. Whoever asks holds the other end of the pipe that is
 * our standard input: where that end is closed, because it was, or because its process is dead,
 * everything gets KILL and there is no answer. (A pipe, and not PR_SET_PDEATHSIG: that one hears of
 * the death of a thread, and not of one before it was asked for.) Non-guarantees: members that
 * outlive KILL. Clock: MONOTONIC. State after a crash: the command goes on, as a child of whoever
 * is the next subreaper; a burial finds it by the cookie in its environment.
 */
import { constants, fstatSync, ftruncateSync, writeSync } from "node:fs";
import {
  type CommandEnding,
  type CommandOutput,
  decideCommandVerdict,
  renderAnswer,
} from "../core/command-probe.ts";
import type { Leaving } from "../core/outcome.ts";
import { isGoodVerdict } from "../core/probe-result.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { close, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { killChildren } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import type { Redirection } from "../os/spawn.ts";
import { nameErrno, POLLERR, POLLHUP, sys } from "../os/sys.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { runOperation } from "../tree/operation.ts";
import { OutputEnds } from "./dependencies/output-ends.ts";
import { messages } from "./messages.ts";

export interface AttendedRequest {
  readonly argv: readonly Uint8Array[];
  readonly environment: readonly Uint8Array[];
  /** Of the command; what it has started may live `graceMs` longer. */
  readonly timeoutMs: number;
  readonly graceMs: number;
  /** What it leaves behind; `end` unless given. */
  readonly leftovers?: "end" | "await";
  /** Its standard input; undefined: /dev/null. */
  readonly input?: number;
  /** Beside the three standard ones. */
  readonly redirections?: readonly Redirection[];
  readonly inherited: Inheritance;
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
/** Between two looks at the pipes, doubled while nothing comes. */
const FIRST_LOOK_MS = 1;
const LONGEST_LOOK_MS = 20;
/** What is left in the pipe when all writers are dead needs one or two. */
const MOST_DRAINS = 100;
const ANSWERED: Leaving = { kind: "status", code: 0 };
/** Nobody is there any more to be answered. */
const UNHEARD: Leaving = { kind: "status", code: 1 };

/**
 * Runs the command and answers how it went, with one line on standard output.
 *
 * @returns 0 with an answer, whatever it is
 */
export async function attendCommand(request: AttendedRequest): Promise<Leaving> {
  const began = monotonicNow();
  const output = OutputEnds.open();
  const nowhere = openHigh("/dev/null", constants.O_RDWR);
  if (output === undefined || nowhere === NONE) {
    return answer(notStarted(NO_DESCRIPTORS), { request, began, output });
  }
  const operation = run(request, output, nowhere);
  close(nowhere);
  output.closeWriteEnd();
  const attention = new Attention(output);
  const ending = await Promise.race([operation, attention.abandoned]);
  attention.end();
  if (ending === "abandoned") {
    killChildren(request.inherited.inbornChildren);
    return UNHEARD;
  }
  for (let drained = 0; drained < MOST_DRAINS && output.drain(); drained += 1) continue;
  return answer(ending, { request, began, output });
}

const NO_DESCRIPTORS = "no descriptors are left";

/** Spawns at once. Never rejects. */
async function run(
  request: AttendedRequest,
  output: OutputEnds,
  nowhere: number,
): Promise<CommandEnding> {
  const { argv, environment, timeoutMs, graceMs, inherited, redirections = [] } = request;
  try {
    const end = await runOperation({
      argv,
      environment,
      inherited,
      descriptors: [],
      timeoutMs,
      graceMs,
      // `kill 0` in the command is not for us.
      group: "own-session",
      leftovers: request.leftovers ?? "end",
      redirections: [
        { target: STDIN, source: request.input ?? nowhere },
        { target: STDOUT, source: output.writeEnd },
        { target: STDERR, source: output.writeEnd },
        ...redirections,
      ],
      findKept: () => NOBODY,
      onTimeout: () => undefined,
      onBug: (error) => say(messages.bug(error)),
    });
    if (end.kind === "ended") return end;
    const name = Buffer.from(argv[0] ?? "").toString("utf8");
    return notStarted(`${name}: ${nameErrno(end.errorNumber)}`);
  } catch (error) {
    return notStarted(error instanceof Error ? error.message : String(error));
  }
}

const NOBODY: ReadonlySet<number> = new Set();

function notStarted(found: string): CommandEnding {
  return { kind: "not-started", reason: `the command cannot be started: ${found}` };
}

/** Answers without having run anything. */
export function answerNotStarted(request: AttendedRequest, found: string): Leaving {
  return answer(notStarted(found), { request, began: monotonicNow(), output: undefined });
}

/** Reads what the command prints, and sees whether anybody still waits for the answer. */
class Attention {
  readonly #output: OutputEnds;
  readonly #isAsked = isPipe(STDIN);
  readonly #abandoned = Promise.withResolvers<"abandoned">();
  #pauseMs = FIRST_LOOK_MS;
  #timer: Timer | undefined;

  constructor(output: OutputEnds) {
    this.#output = output;
    this.#look();
  }

  get abandoned(): Promise<"abandoned"> {
    return this.#abandoned.promise;
  }

  end(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    if (this.#isAsked && isAbandoned()) return this.#abandoned.resolve("abandoned");
    const isBusy = this.#output.drain();
    this.#pauseMs = isBusy ? FIRST_LOOK_MS : Math.min(2 * this.#pauseMs, LONGEST_LOOK_MS);
    this.#timer = wakeAfter(isBusy ? 0 : this.#pauseMs, () => this.#look());
  }
}

function isPipe(fd: number): boolean {
  try {
    return fstatSync(fd).isFIFO();
  } catch {
    return false; // EBADF: closed, so that nobody can tell us anything by it
  }
}

/** All writers of the pipe are gone (poll(2), POLLHUP). */
function isAbandoned(): boolean {
  const ready: number[] = [];
  return sys.poll([[STDIN, 0]], 0, ready) > 0 && ((ready[0] ?? 0) & (POLLHUP | POLLERR)) !== 0;
}

interface Asked {
  readonly request: Pick<AttendedRequest, "timeoutMs">;
  readonly began: MonotonicAt;
  readonly output: OutputEnds | undefined;
}

function answer(ending: CommandEnding, { request, began, output }: Asked): Leaving {
  const ms = Math.round(spanMs(began, monotonicNow()) * 10) / 10;
  const { timeoutMs } = request;
  const render = (said: CommandOutput): string => {
    const verdict = decideCommandVerdict(ending, { timeoutMs, output: said });
    const stages = [{ stage: "command", ms }] as const;
    return renderAnswer({ ...verdict, isGood: isGoodVerdict(verdict), stages });
  };
  // The caller's limit for files (ulimit -f) holds in memory, too: a short answer has its place.
  if (!write(render(output?.kept ?? NOTHING))) write(render(NOTHING));
  return ANSWERED;
}

/** From the beginning of the file; anything else takes a line as it comes. */
function write(line: string): boolean {
  const isFile = fstatSync(STDOUT).isFile();
  try {
    if (isFile) ftruncateSync(STDOUT);
    const bytes = Buffer.from(line);
    return writeSync(STDOUT, bytes, 0, bytes.length, isFile ? 0 : null) === bytes.length;
  } catch {
    return false; // EFBIG, EPIPE: whoever asked finds no whole line
  }
}

const NOTHING: CommandOutput = {
  head: new Uint8Array(0),
  tail: new Uint8Array(0),
  droppedBytes: 0,
};
