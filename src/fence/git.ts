/**
 * Starts git: to do something, as the operation that it is, or to be asked, when what it prints is
 * for us. One at a time. Knows what git prints, and nothing of leases.
 *
 * Always: git gets the caller's terminal, descriptors and environment, so that it asks for
 * passwords and finds its configuration as ever, and what it says goes to the caller's standard
 * error. Clock: CLOCK_MONOTONIC. State after a crash of this process: what was started goes on.
 */
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { EXIT, WatchdogError } from "../core/errors.ts";
import { decideFenceLeaving } from "../core/fence.ts";
import { type Leaving, outcomeOfRefusal } from "../core/outcome.ts";
import { spanMs } from "../core/time.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { moveHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { say } from "../os/say.ts";
import type { Redirection } from "../os/spawn.ts";
import { nameErrno, sys } from "../os/sys.ts";
import { messages } from "./messages.ts";
import { runOperation } from "../tree/operation.ts";

const { O_RDWR } = constants;
/** What is asked for has few lines; more than this is not what we asked. */
const LONGEST_ANSWER = 1_048_576;

export interface GitSurroundings {
  readonly inherited: Inheritance;
  /** Of git, as bytes. */
  readonly environment: readonly Uint8Array[];
  readonly findKept: (rows: readonly ProcessRow[]) => ReadonlySet<number>;
  /** For everything together, from now on; undefined: no limit. */
  readonly timeoutMs: number | undefined;
}

export type GitAnswer =
  /** Status 0. */
  | { readonly kind: "answered"; readonly text: string }
  /** Anything else: git has said why, unless it was to be quiet. */
  | { readonly kind: "failed"; readonly leaving: Leaving };

export interface AskOptions {
  /** For its standard input. */
  readonly input?: string;
  /** That it fails is an answer, too. */
  readonly isQuiet?: boolean;
}

export class Git {
  readonly #around: GitSurroundings;
  readonly #began = monotonicNow();

  constructor(around: GitSurroundings) {
    this.#around = around;
  }

  /**
   * Something that git does, with its own output.
   * @param descriptors  it inherits these beside the caller's
   */
  act(words: readonly string[], descriptors: readonly number[]): Promise<Leaving> {
    return this.#run(words, { descriptors, redirections: [] });
  }

  /** @throws WatchdogError "git.unusable" */
  async ask(words: readonly string[], options: AskOptions = {}): Promise<GitAnswer> {
    const { input, isQuiet = false } = options;
    const files: number[] = [];
    const open = (fd: number): number => {
      files.push(fd);
      return fd;
    };
    try {
      const answer = open(makeFile());
      const redirections: Redirection[] = [{ target: 1, source: answer }];
      if (input !== undefined) {
        const given = open(makeFile());
        writeWhole(given, input);
        redirections.push({ target: 0, source: given });
      }
      if (isQuiet) redirections.push({ target: 2, source: open(openNothing()) });
      const leaving = await this.#run(words, { descriptors: [], redirections });
      const isDone = leaving.kind === "status" && leaving.code === 0;
      return isDone ? { kind: "answered", text: readWhole(answer) } : { kind: "failed", leaving };
    } finally {
      for (const fd of files) closeSync(fd);
    }
  }

  async #run(
    words: readonly string[],
    how: {
      readonly descriptors: readonly number[];
      readonly redirections: readonly Redirection[];
    },
  ): Promise<Leaving> {
    const { inherited, environment, findKept } = this.#around;
    const ended = await runOperation({
      argv: ["git", ...words].map((word) => Buffer.from(word)),
      environment,
      inherited,
      descriptors: how.descriptors,
      redirections: how.redirections,
      timeoutMs: this.#leftMs(),
      findKept,
      onTimeout: () => say(messages.timedOut()),
      onBug: (error) => say(messages.bug(error)),
    });
    if (ended.kind === "refused") {
      say(messages.notStarted("git", nameErrno(ended.errorNumber)));
      return outcomeOfRefusal(ended.because).leaving;
    }
    if (ended.unended.length > 0) say(messages.unended(ended.unended));
    return decideFenceLeaving(ended, EXIT.timeout);
  }

  #leftMs(): number | undefined {
    const { timeoutMs } = this.#around;
    if (timeoutMs === undefined) return undefined;
    return Math.max(0, timeoutMs - spanMs(this.#began, monotonicNow()));
  }
}

/** Under a number that is none of those which git gets. */
function makeFile(): number {
  const fd = sys.memoryFile("watchdog-git");
  const moved = fd < 0 ? fd : moveHigh(fd);
  if (moved < 0) throw new WatchdogError("git.unusable", "git cannot be asked: no file for it");
  return moved;
}

function openNothing(): number {
  return moveHigh(openSync("/dev/null", O_RDWR));
}

/** At a position of its own: whoever inherits the descriptor reads from the beginning. */
function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, at);
}

function readWhole(fd: number): string {
  const { size } = fstatSync(fd);
  if (size > LONGEST_ANSWER) {
    throw new WatchdogError("git.unusable", `git has answered with ${size} bytes, too many`);
  }
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    const count = readSync(fd, bytes, at, size - at, at);
    if (count === 0) break;
    at += count;
  }
  return bytes.toString("utf8");
}
