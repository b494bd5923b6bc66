/**
 * A run that has a guard and nothing else of watchdog's (fixtures/guards-a-command.ts), for tests
 * that kill it. What its guard becomes is a script: one that tells, or the true burial.
 *
 * Always: whatever was started is dead at the end of the test that calls `end`.
 */
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import type { GuardNotes } from "../../src/run/guard-notes.ts";
import type { GuardPlan } from "../fixtures/guards-a-command.ts";
import { makeNotes, RUNNING_RECORD } from "./guard-notes.ts";
import { readStatusLine, readWholeLines } from "./processes.ts";
import { FIXTURES, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export interface GuardedOptions {
  readonly command?: readonly string[];
  readonly notes?: Partial<GuardNotes>;
  readonly program?: string;
  readonly openFiles?: number;
  /** Words before those of the run itself: `sh -c … sh`. It leaves with the status of the run. */
  readonly wrapper?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface Guarded {
  readonly runId: string;
  readonly pid: number;
  readonly child: number;
  readonly guard: ProcessIdentity;
  readonly resultFile: string;
  readonly exited: Promise<number>;
  /** What it told: lines of JSON. */
  told(): Record<string, unknown>[];
  send(line: string): void;
  kill(): Promise<void>;
}

/** The true burial as a program. */
export function buryingProgram(scene: Scene): string {
  return writeProgram(scene, "buries", `exec ${process.execPath} ${FIXTURES}/buries.ts "$@"`);
}

/** A program of the guard that only says so, in a file of the state directory. */
export function tellingProgram(scene: Scene): string {
  return writeProgram(scene, "tells", `echo "$@" >>"$3/buried-$2"; exit 0`);
}

export function buriedPath(scene: Scene, run: Guarded): string {
  return `${scene.stateDirectory}/buried-${run.runId}`;
}

function writeProgram(scene: Scene, name: string, line: string): string {
  const path = scene.path(`${name}-${Bun.randomUUIDv7()}.sh`);
  writeFileSync(path, `#!/bin/sh\n${line}\n`);
  chmodSync(path, 0o700);
  return path;
}

/** Starts it and waits until guard and command are there. */
export async function startGuarded(scene: Scene, options: GuardedOptions = {}): Promise<Guarded> {
  mkdirSync(scene.stateDirectory, { recursive: true, mode: 0o700 });
  const runId = Bun.randomUUIDv7();
  const [told, resultFile] = [scene.path(`told-${runId}`), scene.path(`result-${runId}.json`)];
  const noted = options.notes?.record ?? RUNNING_RECORD;
  const record = { ...noted, run_id: runId, run_path: runId };
  const plan: GuardPlan = {
    runId,
    stateDirectory: scene.stateDirectory,
    program: options.program ?? buryingProgram(scene),
    command: options.command ?? ["sleep", "300"],
    notes: makeNotes({ resultFile, ...options.notes, record }),
    told,
    ...(options.openFiles === undefined ? {} : { openFiles: options.openFiles }),
  };
  writeFileSync(scene.path(`plan-${runId}`), JSON.stringify(plan));
  writeFileSync(resultFile, `${JSON.stringify(plan.notes.record)}\n`);
  const words = [process.execPath, `${FIXTURES}/guards-a-command.ts`, scene.path(`plan-${runId}`)];
  const started = Bun.spawn([...(options.wrapper ?? []), ...words], {
    env: { ...scene.env, ...options.env },
    cwd: options.cwd ?? scene.directory,
    stdin: "pipe",
    stdout: "inherit",
    stderr: "inherit",
  });
  const lines = (): Record<string, unknown>[] =>
    readWholeLines(told).map((line) => JSON.parse(line));
  const ready = await waitFor(() => lines().find((line) => "ready" in line), "a guarded run");
  const run: Guarded = {
    runId,
    pid: ready["pid"] as number,
    child: (ready["ready"] as { pid: number }).pid,
    guard: lines().find((line) => "guard" in line)?.["guard"] as ProcessIdentity,
    resultFile,
    exited: started.exited,
    told: lines,
    send: (line) => {
      void started.stdin.write(`${line}\n`);
      void started.stdin.flush();
    },
    kill: async () => {
      process.kill(ready["pid"] as number, "SIGKILL");
      await waitUntilGone(ready["pid"] as number, "watchdog");
    },
  };
  return run;
}

export async function waitUntilGone(pid: number, what: string): Promise<void> {
  await waitFor(() => !isThere(pid), `${what} ${pid} gone`, { stepMs: 2 });
}

/** Alive, or a zombie that its parent has not collected. */
export function isThere(pid: number): boolean {
  const state = readStatusLine(pid, "State");
  return state !== undefined && !state.startsWith("Z") && !state.startsWith("X");
}

/** Kills the run and waits for the end of its burial. */
export async function killAndBury(run: Guarded): Promise<Record<string, unknown>> {
  await run.kill();
  await waitUntilGone(run.guard.pid, "the guard");
  return readResult(run);
}

export function readResult(run: Guarded): Record<string, unknown> {
  expect(existsSync(run.resultFile)).toBe(true);
  return JSON.parse(readFileSync(run.resultFile, "utf8"));
}
