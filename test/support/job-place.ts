/**
 * A job of many steps in a directory and a state of its own: written as JSON, run by the compiled
 * binary, and seen from outside, in the journal and in what its steps have left.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { inState, query } from "./own-state.ts";
import { readLines } from "./processes.ts";
import { type Ended, FAULTS, readCommandLine, RELEASE, type Scene, type Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export interface JobPlace {
  readonly scene: Scene;
  readonly directory: string;
  readonly file: string;
  path(...parts: readonly string[]): string;
  /** Written over, as a person would edit it. */
  write(steps: Readonly<Record<string, object>>, more?: object): void;
  /** `watchdog job VERB [OPTION...] FILE`, to its end. */
  job(verb: string, ...options: readonly string[]): Promise<Ended>;
  start(verb: string, ...options: readonly string[]): Started;
  /** The same with the fault build. @param evidence  where the fault leaves what it saw */
  fail(
    fault: string,
    evidence: string,
    verb: string,
    ...options: readonly string[]
  ): Promise<Ended>;
  /** Of the newest job, in the order of the file: `one done exited 1`. */
  steps(): string[];
  /** Of the newest job: `done`. */
  state(): string | undefined;
  /** What steps have written into a file below the directory, a line each. */
  lines(name: string): string[];
}

/** @param name  of the job, and of its directory and state within the scene */
export function makeJob(
  scene: Scene,
  name: string,
  steps: Readonly<Record<string, object>>,
  more: object = {},
): JobPlace {
  const directory = scene.path(`job-${name}`);
  mkdirSync(directory);
  const own = inState(scene, `state-${name}`);
  const file = `${directory}/${name}.json`;
  const write: JobPlace["write"] = (all, others = {}) =>
    writeFileSync(file, JSON.stringify({ name, ...others, steps: all }));
  write(steps, more);
  const words = (verb: string, options: readonly string[]) => ["job", verb, ...options, file];
  return {
    scene: own,
    directory,
    file,
    path: (...parts) => [directory, ...parts].join("/"),
    write,
    job: (verb, ...options) => own.startProgram([RELEASE, ...words(verb, options)]).ended,
    start: (verb, ...options) => own.startProgram([RELEASE, ...words(verb, options)]),
    fail: (fault, evidence, verb, ...options) =>
      own.startProgram([FAULTS, ...words(verb, options)], {
        env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: evidence },
      }).ended,
    steps: () => query(own, STEPS).map((row) => row.join(" ")),
    state: () => query(own, "SELECT state FROM jobs ORDER BY rowid DESC LIMIT 1")[0]?.[0] as string,
    lines: (path) => readLines(`${directory}/${path}`),
  };
}

const STEPS =
  "SELECT step, state, ifnull(because, '-'), attempt FROM steps WHERE job_id = " +
  "(SELECT job_id FROM jobs ORDER BY rowid DESC LIMIT 1) ORDER BY position";

/** A step that may run twice. */
export const harmless = (command: string, more: object = {}) => ({
  command,
  side_effects: "none",
  ...more,
});

/** A step that must not run twice. */
export const unsafe = (command: string, more: object = {}) => ({
  command,
  side_effects: "unsafe",
  ...more,
});

/** Children of a watchdog that are the runner of its job. */
export function findRunners(parent: number): number[] {
  const children = readLines(`/proc/${parent}/task/${parent}/children`).join(" ");
  return children
    .split(" ")
    .filter((pid) => pid !== "")
    .map(Number)
    .filter((pid) => readCommandLine(pid).includes("__job"));
}

/** Kills watchdog; its guard ends the rest. */
export async function killAndWait(scene: Scene, run: Started): Promise<void> {
  run.kill("SIGKILL");
  await run.ended;
  await waitFor(() => scene.findProcesses().length === 0, "the guard to have ended all");
}

/** Each file below a directory, as bytes one to one. */
export function* readFilesBelow(directory: string): Generator<readonly [string, string]> {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = `${entry.parentPath}/${entry.name}`;
    if (entry.isFile()) yield [path, readFileSync(path, "latin1")];
  }
}
