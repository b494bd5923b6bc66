/**
 * `watchdog retry` without its front door (fixtures/retries.ts), and commands that tell how often
 * they were started.
 */
import type { RetryPlan } from "../fixtures/retries.ts";
import { readLines } from "./processes.ts";
import { FIXTURES, type RunOptions, type Scene, type Started } from "./scene.ts";

let scripts = 0;

export interface Counted {
  /** `sh -c …`: appends its number to the file, then does as it is told. */
  readonly command: readonly string[];
  /** The numbers of the attempts that were begun. */
  attempts(): string[];
}

/** @param script  what it does then, as a shell; `$N` is the number of the attempt */
export function makeCounted(scene: Scene, script: string): Counted {
  scripts += 1;
  const path = scene.path(`attempts-${scripts}`);
  const whole = `N=$WATCHDOG_ATTEMPT; echo $N >>'${path}'; ${script}`;
  return { command: ["sh", "-c", whole], attempts: () => readLines(path) };
}

/** The words of a retry, for whoever puts others before them. */
export function retryWords(plan: RetryPlan): string[] {
  return [process.execPath, `${FIXTURES}/retries.ts`, JSON.stringify(plan)];
}

export function startRetry(scene: Scene, plan: RetryPlan, options: RunOptions = {}): Started {
  return scene.startProgram(retryWords(plan), options);
}

/** A wait in which a test can do something: shorter than a second once in four thousand. */
export const LONG_WAIT = { initialMs: 3_600_000, capMs: 3_600_000, maxElapsedMs: 7_200_000 };
