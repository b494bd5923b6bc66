/**
 * Looking at the processes of a scene from outside, for tests of the tree. Signals nobody but what
 * a test names, and trusts nothing that watchdog says.
 *
 * Always holds: only processes that carry the scene's cookie are seen, so a marker of another test
 * or of the machine itself never counts; `findAnywhere` is for those that dropped it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { FIXTURES, readCommandLine, RELEASE } from "./scene.ts";
import type { RunOptions, Scene, Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Pids of living processes of the scene with exactly this command line. */
export function findByCommand(scene: Scene, command: string): number[] {
  return scene
    .findProcesses()
    .filter((pid) => readCommandLine(pid) === command && !isDead(pid))
    .sort((a, b) => a - b);
}

/** The same among all processes of the machine: the command must be one of a kind. */
export function findAnywhere(command: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readCommandLine(pid) === command && !isDead(pid));
}

/** The shell that waits for the end of this watchdog; it carries no cookie of the scene. */
export function findGuardOf(pid: number): number | undefined {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find(
      (one) =>
        readStatusLine(one, "PPid") === String(pid) && readCommandLine(one).includes("__bury"),
    );
}

/** Waits until there are that many of them. */
export async function waitForCommand(scene: Scene, command: string, count = 1): Promise<number[]> {
  return waitFor(() => {
    const found = findByCommand(scene, command);
    return found.length >= count && found;
  }, `${count} times '${command}'`);
}

/** What a fixture has announced: the text of the file, once it is there and ends with a newline. */
export async function waitForText(path: string): Promise<string> {
  return waitFor(() => {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    return text.endsWith("\n") && text;
  }, `a line in ${path}`);
}

/** Lines of a file that may not exist. */
export function readLines(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

/** Those that end: the last one may be in the midst of being written. */
export function readWholeLines(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8").split("\n").slice(0, -1);
}

/** One line of `/proc/PID/status`; undefined if the process is gone. */
export function readStatusLine(pid: number, name: string): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(text)?.[1];
  } catch {
    return undefined; // ENOENT, ESRCH: gone
  }
}

/** Gone, or a zombie that nobody has collected yet. */
export function isDead(pid: number): boolean {
  const state = readStatusLine(pid, "State");
  return state === undefined || state.startsWith("Z") || state.startsWith("X");
}

/** `watchdog run ARGS…` without a controlling terminal, whoever runs the tests. */
export function startWithoutTerminal(
  scene: Scene,
  args: readonly string[],
  options: RunOptions = {},
): Started {
  // setsid(1) does not fork here: a process that Bun has started never leads its group.
  return scene.startProgram(["setsid", options.binary ?? RELEASE, "run", ...args], options);
}

/** The words that run a Python fixture. */
export function python(fixture: string, ...words: readonly string[]): string[] {
  return ["python3", `${FIXTURES}/${fixture}`, ...words];
}
