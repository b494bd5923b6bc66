/**
 * What is started for a step: its words, its environment, its directory. Pure.
 *
 * A step that has options of `watchdog run`, and every step of a job that runs several at a time,
 * is a nested `watchdog run --no-lease`: what its command leaves behind comes up below that one,
 * and never among the processes of another step. Any other is started directly, because a nested
 * run costs forty times as much as a command that does nothing.
 */
import { DEADLINE, renderDeadline } from "../core/deadline.ts";
import { keyOf } from "../core/environment-entries.ts";
import { STEP_COMMAND } from "../core/job-order.ts";
import type { StepCommand, StepSpec } from "../core/job-spec.ts";
import type { WallAt } from "../core/time.ts";
import { isFaultVariable } from "../os/faults.ts";

/** Watchdog itself, also after an upgrade or an uninstall (proc(5)). */
export const OURSELVES = "/proc/self/exe";
const SHELL = "/bin/sh";
const ATTEMPT = "WATCHDOG_ATTEMPT";

export interface NestedRun {
  /** Options of `watchdog run` that the step has. */
  readonly words: readonly string[];
  /** The run's name: `nightly/upload`. */
  readonly name: string;
  readonly resultFile: string;
}

export function wordsOf(command: StepCommand): readonly string[] {
  return command.kind === "shell" ? [SHELL, "-c", command.text] : command.words;
}

/** Where it works. @param directory  of the job, absolute */
export function directoryOf(directory: string, { cwd }: Pick<StepSpec, "cwd">): string {
  if (cwd === undefined) return directory;
  return cwd.startsWith("/") ? cwd : `${directory}/${cwd}`;
}

/** Bytes: of the name of a run. */
const LONGEST_NAME = 200;

/** `nightly/upload`; of names that are too long for one together the end, which tells the step. */
export function nameOfNestedRun(job: string, step: string): string {
  const name = `${job}/${step}`;
  if (encode(name).length <= LONGEST_NAME) return name;
  const kept = [...name];
  while (encode(`…${kept.join("")}`).length > LONGEST_NAME) kept.shift();
  return `…${kept.join("")}`;
}

/** The words of a nested run around the step. */
export function wordsOfNestedRun(step: StepSpec, nested: NestedRun): readonly string[] {
  const { timeoutMs, killAfterMs, command } = step;
  return [
    OURSELVES,
    STEP_COMMAND,
    "--no-lease",
    `--name=${nested.name}`,
    `--result-file=${nested.resultFile}`,
    ...(timeoutMs === undefined ? [] : [`--timeout=${timeoutMs}ms`]),
    `--kill-after=${killAfterMs}ms`,
    ...nested.words,
    "--",
    ...wordsOf(command),
  ];
}

/**
 * The caller's bytes, with the variables of the step in the place of any of the same name.
 * @param attempt  from 1
 * @param deadlineAt  when its time limit ends it; undefined: it has none, or a run around it has it
 */
export function environmentOf(
  caller: readonly Uint8Array[],
  env: StepSpec["env"],
  { attempt, deadlineAt }: { readonly attempt: number; readonly deadlineAt: WallAt | undefined },
): readonly Uint8Array[] {
  const own = new Map([...env].filter(([, value]) => value !== null));
  own.set(ATTEMPT, String(attempt));
  if (deadlineAt !== undefined) own.set(DEADLINE, renderDeadline(caller, deadlineAt));
  const kept = caller.filter((entry) => {
    const key = keyOf(entry);
    return !own.has(key) && !isFaultVariable(key);
  });
  return [...kept, ...[...own].map(([key, value]) => encode(`${key}=${value}`))];
}

export function encode(word: string): Uint8Array {
  return new TextEncoder().encode(word);
}
