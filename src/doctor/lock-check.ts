/**
 * Proves that a lock excludes here, as leases need it: between two descriptors of one process,
 * between two processes, held on by a process that inherited it, and given back by the kernel at
 * the death of the last one. Knows no lease; it has a file of its own.
 *
 * Guarantees: `ok` only where each of the five answers was seen. Non-guarantees: other machines on
 * the same file system. Clock: MONOTONIC, for the limits of the child. Crash behaviour: an empty
 * `.doctor-….tmp` may remain, which is nobody's lock.
 */
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import {
  decideLockProbe,
  LOCK_PROBE_COMMAND,
  LOCK_PROBE_DESCRIPTOR,
  type LockAnswer,
  type LockJudgement,
} from "../core/lock-probe.ts";
import { close, moveHigh, NONE } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { createStateFile } from "../os/state-sharing.ts";
import { EAGAIN, EINTR, LOCK_EX, LOCK_NB, nameErrno, sys } from "../os/sys.ts";
import { hearChild, killChild, makePipe, startChild } from "./children.ts";
import { type Finding, finding, ok, textOf, unknown } from "./request.ts";

const ADVICE = "put the state directory on a local file system (--state-dir)";
const PROVEN =
  "refused to a second descriptor and a second process, kept by whoever inherits it, free at death";
const OURSELVES = "/proc/self/exe";
const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;

export function checkLocks(directory: string, inherited: Inheritance): Finding {
  const path = `${directory}/.doctor-${crypto.randomUUID()}.tmp`;
  let made: number;
  try {
    made = createStateFile(path);
  } catch (error) {
    return unknown(`no file can be made to try it: ${textOf(error)}`);
  }
  try {
    const held = moveHigh(made);
    if (held === NONE) return unknown("no descriptors are left to try it");
    return tryLocks(path, { held, inherited });
  } finally {
    unlinkSync(path);
  }
}

interface Trial {
  readonly held: number;
  readonly inherited: Inheritance;
}

function tryLocks(path: string, trial: Trial): Finding {
  const second = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  try {
    const trouble = tryAlone(trial.held, second);
    if (trouble === undefined) return tryWithChild(path, { ...trial, second });
    close(trial.held);
    return trouble;
  } finally {
    closeSync(second);
  }
}

function tryAlone(held: number, second: number): Finding | undefined {
  const had = lock(held);
  if (had !== "granted") return finding(`flock(2) fails there: ${describe(had)}`, ADVICE);
  const other = lock(second);
  return other === "refused" ? undefined : notExclusive("to a second descriptor", other);
}

/** `held` is closed here: first the other process is heard, so that it is refused by us. */
function tryWithChild(path: string, trial: Trial & { readonly second: number }): Finding {
  const input = makePipe();
  const output = makePipe();
  try {
    const child = startChild(
      {
        argv: [OURSELVES, LOCK_PROBE_COMMAND, path],
        redirections: [
          { target: 0, source: input.readEnd },
          { target: 1, source: output.writeEnd },
          { target: LOCK_PROBE_DESCRIPTOR, source: trial.held },
        ],
      },
      trial.inherited,
    );
    output.writeEnd = close(output.writeEnd);
    if (child.kind === "refused") {
      return unknown(`no second process can be started: ${nameErrno(child.errorNumber)}`);
    }
    const said = hearChild(output.readEnd, 1);
    close(trial.held);
    const whileItLives = lock(trial.second);
    killChild(child.pid);
    const afterwards = lock(trial.second);
    return describeProbe(decideLockProbe({ said, whileItLives, afterwards }));
  } finally {
    for (const fd of [input.readEnd, input.writeEnd, output.readEnd, output.writeEnd]) close(fd);
  }
}

function describeProbe(judgement: LockJudgement): Finding {
  switch (judgement) {
    case "proven":
      return ok(PROVEN);
    case "unanswered":
      return unknown("a second process did not answer");
    case "given-to-a-second-process":
      return notExclusive("to a second process", "granted");
    case "ends-while-inherited":
      return finding("a lock ends although a process that inherited it lives", ADVICE);
    case "outlives-its-process":
      return finding("a lock is not given back at the death of its process", ADVICE);
  }
}

/** EINTR says nothing about the lock: asked again, so often at most. */
const MOST_INTERRUPTIONS = 100;

function lock(fd: number): LockAnswer {
  let result = -EINTR;
  for (let tried = 0; result === -EINTR && tried < MOST_INTERRUPTIONS; tried += 1) {
    result = sys.flock(fd, LOCK_EX | LOCK_NB);
  }
  if (result >= 0) return "granted";
  return result === -EAGAIN ? "refused" : result;
}

function notExclusive(whom: string, answer: LockAnswer): Finding {
  if (typeof answer === "number")
    return finding(`flock(2) fails there: ${describe(answer)}`, ADVICE);
  return finding(`a lock that is held was given ${whom}`, ADVICE);
}

function describe(answer: LockAnswer): string {
  return typeof answer === "number" ? nameErrno(answer) : answer;
}
