/**
 * A run that holds its keys until the test lets it go, and what the kernel says about who waits for
 * them (proc(5), /proc/locks). Asks watchdog nothing.
 */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { livingIn } from "./life-log.ts";
import { waitForText } from "./processes.ts";
import type { Ended, Scene, Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export interface Holder {
  readonly started: Started;
  /** Of the command. */
  readonly pid: number;
  /** Where the command writes its life down. */
  readonly log: string;
  /** Lets the command end, and waits for its run. */
  finish(): Promise<Ended>;
}

let count = 0;
const unfinished = new Set<Holder>();

/** For `afterEach`: a test that failed holds no key of the next one. */
export async function letHoldersGo(): Promise<void> {
  for (const holder of unfinished) {
    holder.started.kill("SIGCONT");
    await holder.finish();
  }
}

/** `watchdog run ARGS… --` a command that lives until `finish`; it lives when this resolves. */
export async function startHolder(scene: Scene, args: readonly string[]): Promise<Holder> {
  count += 1;
  const [log, gate] = [scene.path(`holder-${count}.lives`), scene.path(`holder-${count}.gate`)];
  const started = scene.start([...args, "--", ...livingIn(log, { gate })]);
  const [, , pid] = (await waitForText(log)).split(" ");
  const finish = (): Promise<Ended> => {
    unfinished.delete(holder);
    writeFileSync(gate, "");
    return started.ended;
  };
  const holder: Holder = { started, pid: Number(pid), log, finish };
  unfinished.add(holder);
  return holder;
}

/** The lock file of a key whose name needs no encoding. */
export function lockOf(scene: Scene, key: string): string {
  return `${placeOf(scene, key)}/lock`;
}

function placeOf(scene: Scene, key: string): string {
  return `${scene.stateDirectory}/leases/${key.replace(":", "/")}`;
}

/** What there is of a key: names and sizes of its files. */
export function filesOf(scene: Scene, key: string): Record<string, number> {
  const directory = placeOf(scene, key);
  if (!existsSync(directory)) return {};
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, statSync(`${directory}/${name}`).size]),
  );
}

/** How many stand in the kernel's queue for a file. */
export function countWaiting(path: string): number {
  if (!existsSync(path)) return 0;
  const inode = statSync(path).ino;
  return readFileSync("/proc/locks", "utf8")
    .split("\n")
    .filter((line) => line.includes("-> FLOCK") && line.includes(`:${inode} `)).length;
}

export function waitForWaiting(path: string, waiting = 1): Promise<unknown> {
  return waitFor(() => countWaiting(path) === waiting, `${waiting} to wait for ${path}`);
}
