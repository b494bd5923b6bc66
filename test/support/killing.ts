/**
 * SIGKILL to a watchdog, alone or together with its guard, and what is to be seen of both from
 * outside. Trusts nothing that watchdog says: guards are known by their command line and their
 * parent, members by an entry of the environment that each round has of its own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { readStatusLine } from "./processes.ts";
import { findCarriers, findGuards, readCommandLine, type Scene, type Started } from "./scene.ts";
import { waitFor, waitForNobody } from "./wait-for.ts";

/** No test proves a promptness by this: it bounds the wait on a loaded machine. */
export const GONE_LIMIT_MS = 30_000;
/** Printed by test/run.sh, so that a run can be repeated. */
export const SEED = Number(process.env["SEED"] ?? 1);

/** Numbers in [0, 1) that the seed decides (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** So many moments that each part of the span has one, in an order that the seed decides. */
export function spreadMoments(count: number, spanMs: number, random: () => number): number[] {
  const moments = Array.from({ length: count }, (_, i) => ((i + random()) / count) * spanMs);
  return moments
    .map((moment) => ({ moment, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ moment }) => moment);
}

/** A variable that all processes of one round have, and no others of the machine. */
export function roundVariable(mark: string): Record<string, string> {
  return { TEST_ROUND: `${mark}@${process.pid}` };
}

export function roundEntry(mark: string): string {
  return `TEST_ROUND=${roundVariable(mark)["TEST_ROUND"]}`;
}

export async function waitUntilNobodyCarries(entry: string, since = performance.now()) {
  const limitMs = GONE_LIMIT_MS - (performance.now() - since);
  const find = () => findCarriers(entry).map((pid) => `${pid} ${readCommandLine(pid)}`);
  let seen: string[] = [];
  await waitForNobody(() => (seen = find()), `nobody with ${entry}`, {
    limitMs,
    stepMs: 4,
  }).catch((error: unknown) => {
    throw new Error(`left alive: ${seen.join("; ")}`, { cause: error });
  });
}

/** The guard of a watchdog; undefined: it has none, or not yet. */
export function guardOf(watchdog: number): number | undefined {
  return readChildren(watchdog).find((pid) => readCommandLine(pid).includes("__bury"));
}

export function waitForGuard(watchdog: number, other?: number): Promise<number> {
  return waitFor(() => {
    const guard = guardOf(watchdog);
    return guard !== other && guard;
  }, `a guard of ${watchdog}`);
}

export function readChildren(pid: number): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks
      .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "latin1").split(" "))
      .filter((word) => word !== "")
      .map(Number);
  } catch {
    return []; // ENOENT, ESRCH: gone
  }
}

/** SIGKILL; resolves when the kernel has taken everything from it, its locks too. */
export async function killAlone(run: Started): Promise<void> {
  run.kill("SIGKILL");
  await run.ended;
}

/** Both at once: a stopped watchdog cannot start another guard, and a dead guard buries nobody. */
export async function killWithGuard(run: Started): Promise<void> {
  run.kill("SIGSTOP");
  await waitFor(() => isStoppedOrGone(run.pid), "a stopped watchdog", { stepMs: 1 });
  for (const pid of readChildren(run.pid)) {
    if (readCommandLine(pid).includes("__bury")) process.kill(pid, "SIGKILL");
  }
  await killAlone(run);
}

/** The guard some milliseconds after its watchdog, while it buries or before or after that. */
export async function killThenGuard(run: Started, laterMs: number): Promise<void> {
  const guard = guardOf(run.pid);
  await killAlone(run);
  await Bun.sleep(laterMs);
  try {
    if (readCommandLine(guard ?? 0).includes("__bury")) process.kill(guard ?? 0, "SIGKILL");
  } catch {
    // ESRCH: it had done its work a moment ago, and left.
  }
}

function isStoppedOrGone(pid: number): boolean {
  const state = readStatusLine(pid, "State");
  return state === undefined || /^[TZX]/.test(state);
}

/** What `titles-itself.py` announces. */
export interface Announced {
  readonly pid: number;
  readonly startTicks: number;
}

export function isStillThere({ pid, startTicks }: Announced): boolean {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return Number(fields[19]) === startTicks && !/^[ZX]/.test(fields[0] ?? "X");
  } catch {
    return false; // ENOENT, ESRCH: gone
  }
}

/** No guard of the scene is left, whatever became of its run. */
export async function waitUntilNoGuard(scene: Scene): Promise<void> {
  await waitFor(
    () => findGuards(scene.stateDirectory).length === 0,
    `no guard of ${scene.stateDirectory}`,
    { limitMs: GONE_LIMIT_MS },
  );
}
