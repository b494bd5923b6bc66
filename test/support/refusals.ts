/**
 * Starts that are refused, and the proof that they have left everything as it was: holders of one
 * key in a state directory of their own, alive, orphaned or dead, and one refused start beside
 * them.
 */
import { afterAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import { guardOf, killWithGuard } from "./killing.ts";
import { placeOf, readLease, type SeenPlace, waitForBeat } from "./lease-seen.ts";
import { PYTHON } from "./outside.ts";
import { inState, query } from "./own-state.ts";
import { compare, type Difference, lookAt, NO_DIFFERENCE, pictureOf } from "./pictures.ts";
import { readLines, waitForText } from "./processes.ts";
import { type Ended, FIXTURES, type Scene, type Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const LOCKED = 75;
export const CONFIG_ERROR = 78;
/** After the first beat of the thread the slot stands still. */
export const RARE = ["--heartbeat-interval", "1h"];
/** A healthy holder is no news. */
export const QUIET = /^$/;
/** A pipe would be open until the last one of the tree is gone. */
export const NO_PIPES = { stdout: "ignore", stderr: "ignore" } as const;
const HEARD = "TERM,INT,HUP,QUIT,USR1,USR2,CONT,WINCH";

const started: number[] = [];

/** Whoever is still there when a file has ended was started by a test that has failed. */
export function endAfterwards(): void {
  afterAll(() => {
    for (const pid of started) endIfThere(pid);
  });
}

export function rememberToEnd(...pids: readonly number[]): void {
  started.push(...pids);
}

function endIfThere(pid: number): void {
  if (isThere(pid)) process.kill(pid, "SIGKILL");
}

export function isThere(pid: number): boolean {
  return lookAt([pid])[pid] !== undefined;
}

export interface Holding {
  readonly state: Scene;
  readonly place: SeenPlace;
  readonly run: Started;
  readonly runId: string;
  /** Watchdog, its guard and its command. */
  readonly pids: readonly number[];
  readonly command: number;
  /** What the command has heard since it was started. */
  readonly heard: () => string[];
}

/** A run under `job:key`, in a state directory of its own, whose command notes each signal. */
export async function hold(
  scene: Scene,
  name: string,
  args: readonly string[] = RARE,
): Promise<Holding> {
  const state = inState(scene, name);
  const notes = scene.path(`${name}.heard`);
  const fixture = [PYTHON, `${FIXTURES}/notes-signals.py`, notes, "main", HEARD];
  const run = state.start(["--name", "key", "--log", "off", ...args, "--", ...fixture], NO_PIPES);
  await waitForText(notes);
  const place = placeOf(state.stateDirectory, "key");
  await waitForBeat(place, 3);
  const command = await waitFor(() => commandOf(state), "the command in the record");
  const guard = guardOf(run.pid) ?? 0;
  rememberToEnd(run.pid, command);
  return {
    state,
    place,
    run,
    runId: String(readLease(place)["run_id"]),
    pids: [run.pid, guard, command],
    command,
    heard: () => readLines(notes),
  };
}

/** Once the journal has the run, nothing more is written before its end. */
export function commandOf(state: Scene): number | undefined {
  try {
    const rows = query(state, "SELECT child_pid FROM runs WHERE job = 'key'");
    return Number(rows.at(-1)?.[0] ?? 0) || undefined;
  } catch {
    return undefined; // SQLITE_CANTOPEN, no such table: it is just being made
  }
}

export async function endHolding({ run, command }: Holding): Promise<void> {
  for (const pid of [run.pid, command]) endIfThere(pid);
  await run.ended;
}

/** Watchdog and guard are dead at once; the command goes on. */
export async function leaveOrphaned(scene: Scene, name: string): Promise<Holding> {
  const holding = await hold(scene, name);
  await killWithGuard(holding.run);
  expect(isThere(holding.command)).toBe(true);
  return holding;
}

/** The same, and nobody of it is left. */
export async function leaveDead(scene: Scene, name: string): Promise<Holding> {
  const holding = await leaveOrphaned(scene, name);
  process.kill(holding.command, "SIGKILL");
  await waitFor(() => !isThere(holding.command), "no command");
  return holding;
}

export interface Refusal {
  readonly status?: number;
  /** As the journal has it. Undefined: nothing of the kind is in the journal. */
  readonly because: string | undefined;
  readonly args?: readonly string[];
  readonly pids?: readonly number[];
  readonly heard?: () => string[];
  /** What may have come into being. */
  readonly added?: readonly string[];
  readonly start?: (words: readonly string[]) => Promise<Ended>;
  /** What a line on stderr must say; by default there must be one that says why. */
  readonly stderr?: RegExp;
}

/** What the command of a start would have made. */
export function markOf(state: Scene): string {
  return `${state.stateDirectory}.ran`;
}

/** One start, refused, and what it has left of everything. */
export async function expectRefused(state: Scene, refusal: Refusal): Promise<Difference> {
  const { status = LOCKED, args = [], pids = [], heard = () => [] } = refusal;
  const mark = markOf(state);
  const before = { files: pictureOf(state.stateDirectory), lives: lookAt(pids), heard: heard() };
  const words = ["--name", "key", ...args, "--", "touch", mark];
  const ended = await (refusal.start ?? ((all) => state.run(all)))(words);
  const difference = compare(before.files, pictureOf(state.stateDirectory));
  expect([ended.status, ended.stdout.toString(), existsSync(mark)]).toEqual([status, "", false]);
  expect(ended.stderr).toMatch(
    refusal.stderr ?? /^watchdog: (not started|error): job:key [^\n]+\n/m,
  );
  expect(difference).toEqual({ ...NO_DIFFERENCE, added: refusal.added ?? [] });
  expect([lookAt(pids), heard()]).toEqual([before.lives, before.heard]);
  expect(Object.values(before.lives)).not.toContain(undefined);
  if (refusal.because !== undefined) expect(lastReason(state)).toEqual([refusal.because, status]);
  return difference;
}

/** Of the last refused start: its reason, and the status in the history. */
function lastReason(state: Scene): unknown[] {
  const [[because, runId] = []] = query(
    state,
    "SELECT because, run_id FROM events WHERE name = 'refused' ORDER BY id DESC LIMIT 1",
  );
  const rows = query(state, `SELECT exit_status FROM runs WHERE run_id = '${String(runId)}'`);
  return [because, rows[0]?.[0]];
}
