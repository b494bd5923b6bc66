/**
 * The harness of exclusion: fifty processes that become one command line in the same instant, and
 * how each of them ended. Refuses to know what keeps them apart, and who is right; the judge is
 * `life-log.ts`.
 */
import { expect } from "bun:test";
import { PYTHON } from "./outside.ts";
import { readLines } from "./processes.ts";
import { FIXTURES, type Scene, type Started } from "./scene.ts";

export const STARTERS = 50;
export const LOCKED = 75;
/** Where a machine of two cores is busy, fifty at once are not so much at once. */
export const MOST_RUSHES = 500;
/** Long enough to be met by others, short enough for several in one rush. */
export const SHORT_MS = 30;

export interface Rush {
  readonly started: Started;
  readonly statuses: () => number[];
}

let rushes = 0;

/** Fifty processes become this command line in the same instant. */
export function rush(scene: Scene, argv: readonly string[]): Rush {
  const statuses = scene.path(`rush-${(rushes += 1)}.statuses`);
  const words = [PYTHON, `${FIXTURES}/starts-at-once.py`, String(STARTERS), statuses, ...argv];
  return { started: scene.startProgram(words), statuses: () => readLines(statuses).map(Number) };
}

/** The statuses of fifty that had nothing to say. */
export async function rushSilently(scene: Scene, argv: readonly string[]): Promise<number[]> {
  const { started, statuses } = rush(scene, argv);
  const ended = await started.ended;
  expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "", ""]);
  expect(statuses()).toHaveLength(STARTERS);
  return statuses();
}

export function countOf(statuses: readonly number[], status: number): number {
  return statuses.filter((one) => one === status).length;
}
