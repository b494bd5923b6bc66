/**
 * The same program with watchdog in front of it and without, and surroundings that no shell can
 * make: how a test sees what watchdog changes, which should be nothing.
 */
import { existsSync, writeFileSync } from "node:fs";
import { type Ended, FIXTURES, RELEASE, type RunOptions, type Scene } from "./scene.ts";

/** The system's own where it is there: a version manager's shim starts shells of its own first. */
export const PYTHON: string = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

/** `fixtures/prepares-and-runs.py` tells what each key does. */
export interface Surroundings {
  readonly block?: readonly number[];
  readonly ignore?: readonly number[];
  readonly umask?: number;
  readonly nice?: number;
  readonly limits?: Readonly<Record<string, readonly [number, number]>>;
  readonly raise_limits?: Readonly<Record<string, readonly [number, number]>>;
  readonly environment?: readonly string[];
  readonly words?: readonly string[];
  readonly open?: readonly string[];
  readonly close?: readonly number[];
  readonly cwd?: string;
  readonly fresh_session?: boolean;
  readonly exec?: boolean;
}

let written = 0;

/** A program in prepared surroundings; its path is absolute or looked up by the test's own PATH. */
export function runPrepared(
  scene: Scene,
  surroundings: Surroundings,
  argv: readonly string[],
  options?: RunOptions,
): Promise<Ended> {
  const [program = "", ...rest] = argv;
  const words = [program.includes("/") ? program : findProgram(program), ...rest];
  const script = `${FIXTURES}/prepares-and-runs.py`;
  const wishes = scene.path(`surroundings-${(written += 1)}.json`);
  writeFileSync(wishes, JSON.stringify(surroundings));
  return scene.startProgram([PYTHON, script, wishes, ...words], options).ended;
}

export function findProgram(name: string): string {
  const found = Bun.which(name);
  if (found === null) throw new Error(`no ${name} on this machine`);
  return found;
}

export interface Pair {
  readonly without: Ended;
  readonly with: Ended;
}

/** The program in these surroundings without watchdog, and then with it. */
export async function runBoth(
  scene: Scene,
  surroundings: Surroundings,
  argv: readonly string[],
  runArguments: readonly string[] = ["--log", "off"],
): Promise<Pair> {
  const without = await runPrepared(scene, surroundings, argv);
  const wrapped = [RELEASE, "run", ...runArguments, "--", ...argv];
  return { without, with: await runPrepared(scene, surroundings, wrapped) };
}

export type HowItEnded = readonly [code: number | null, signal: number | null, hasCore: boolean];

/** How each command line ended, as wait4(2) tells it. */
export async function waitForEach(
  scene: Scene,
  lines: readonly (readonly string[])[],
): Promise<HowItEnded[]> {
  const { ended } = scene.startProgram([PYTHON, `${FIXTURES}/waits-for-each.py`], {
    stdin: Buffer.from(JSON.stringify(lines)),
    stderr: "ignore",
  });
  return JSON.parse((await ended).stdout.toString()) as HowItEnded[];
}

/** What `/bin/sh` makes of a line: its `$?` and its words, with the binary in `$W`. */
export function runShell(scene: Scene, script: string, options: RunOptions = {}): Promise<Ended> {
  const env = { W: RELEASE, ...options.env };
  return scene.startProgram(["/bin/sh", "-c", script], { ...options, env }).ended;
}

export function base64(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString("base64");
}
