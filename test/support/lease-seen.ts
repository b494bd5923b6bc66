/**
 * The files of a lease as they lie on the disk, read and changed from outside: a decoder of the
 * slot after the layout that `src/lease/files/slot.ts` documents, written without looking at its
 * code, and the hand of a stranger who writes over a record. Knows no verdict, and trusts nothing
 * that watchdog says.
 */
import { Database } from "bun:sqlite";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import { askLines } from "./ask.ts";
import { RELEASE, type RunOptions, type Scene, type Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever the file holds: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

export interface SeenPlace {
  readonly directory: string;
  readonly lock: string;
  readonly fence: string;
  readonly record: string;
  slot(generation: number): string;
}

/** Where the lease of a job lies; the name must be one that needs no encoding. */
export function placeOf(stateDirectory: string, name: string, kind = "job"): SeenPlace {
  const directory = `${stateDirectory}/leases/${kind}/${name}`;
  return {
    directory,
    lock: `${directory}/lock`,
    fence: `${directory}/fence`,
    record: `${directory}/lease.json`,
    slot: (generation) => `${directory}/beat.${generation}`,
  };
}

export interface SeenSlot {
  readonly format: number;
  readonly runState: number;
  readonly generation: number;
  readonly sequence: number;
  readonly mainLoopSequence: number;
  readonly monotonicMs: number;
  readonly boottimeMs: number;
  readonly wallMs: number;
  readonly mainLoopMs: number;
  readonly staleAfterMs: number;
  readonly bootId: string;
  readonly runId: string;
  readonly lockInode: string;
  readonly ownerPid: number;
}

const SLOT_BYTES = 4096;
const HEAD_CRC_AT = 124;
const BODY_AT = 128;
const BODY_CRC_AT = 4092;
/** Where the instants stand: MONOTONIC, BOOTTIME, wall, main loop. */
const INSTANTS_AT = [32, 40, 48, 56] as const;

/** Undefined while it is no whole slot: missing, empty, or just being written. */
export function readSlot(path: string): SeenSlot | undefined {
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  return isWhole(bytes) ? decode(bytes) : undefined;
}

function isWhole(bytes: Buffer): boolean {
  return (
    bytes.length === SLOT_BYTES &&
    bytes.toString("latin1", 0, 4) === "WDB1" &&
    crc32(bytes.subarray(0, HEAD_CRC_AT)) === bytes.readUInt32LE(HEAD_CRC_AT) &&
    crc32(bytes.subarray(BODY_AT, BODY_CRC_AT)) === bytes.readUInt32LE(BODY_CRC_AT)
  );
}

function decode(bytes: Buffer): SeenSlot {
  const number = (at: number): number => Number(bytes.readBigUInt64LE(at));
  const [runId, inodeAt] = textAt(bytes, BODY_AT);
  const [lockInode, namespaceAt] = textAt(bytes, inodeAt);
  const [, timeNamespaceAt] = textAt(bytes, namespaceAt);
  const [, sessionAt] = textAt(bytes, timeNamespaceAt);
  return {
    format: bytes.readUInt16LE(4),
    runState: bytes.readUInt8(6),
    generation: number(8),
    sequence: number(16),
    mainLoopSequence: number(24),
    monotonicMs: bytes.readDoubleLE(32),
    boottimeMs: bytes.readDoubleLE(40),
    wallMs: bytes.readDoubleLE(48),
    mainLoopMs: bytes.readDoubleLE(56),
    staleAfterMs: bytes.readDoubleLE(64),
    bootId: bytes.toString("latin1", 72, 108).replace(/\0+$/, ""),
    runId,
    lockInode,
    // Behind four texts and the session.
    ownerPid: bytes.readUInt32LE(sessionAt + 4),
  };
}

/** A text, and where the next field stands. */
function textAt(bytes: Buffer, at: number): readonly [string, number] {
  const end = at + 2 + bytes.readUInt16LE(at);
  return [bytes.toString("utf8", at + 2, end), end];
}

/** Moves every instant of a slot, as a clock that was wrong would have; the checksum fits again. */
export function shiftSlot(path: string, byMs: number): void {
  const bytes = readFileSync(path);
  for (const at of INSTANTS_AT) bytes.writeDoubleLE(bytes.readDoubleLE(at) + byMs, at);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEAD_CRC_AT)), HEAD_CRC_AT);
  writeFileSync(path, bytes, { flag: "r+" });
}

/** Resolves with a slot that is at least so far. */
export function waitForBeat(place: SeenPlace, sequence: number, generation = 1): Promise<SeenSlot> {
  return waitFor(
    () => {
      const slot = readSlot(place.slot(generation));
      return slot !== undefined && slot.sequence >= sequence && slot;
    },
    `beat ${sequence} in ${place.slot(generation)}`,
  );
}

export function readLease(place: SeenPlace): Record<string, Parsed> {
  return JSON.parse(readFileSync(place.record, "utf8"));
}

/** Longer than any record: what is of such a size is not read. */
const HUGE_BYTES = 1_048_576;

/** The record, or undefined while it is missing, no JSON or no file that ends. */
export function tryReadLease(place: SeenPlace): Record<string, Parsed> | undefined {
  try {
    const { size, isRecord } = sizeOf(place.record);
    return isRecord && size < HUGE_BYTES ? readLease(place) : undefined;
  } catch {
    return undefined; // ENOENT, SyntaxError, EISDIR: that is the answer
  }
}

function sizeOf(path: string): { readonly size: number; readonly isRecord: boolean } {
  const found = lstatSync(path);
  return { size: found.size, isRecord: found.isFile() };
}

/** As a program would that took the key: another run, another owner, five generations on. */
export function stealRecord(place: SeenPlace): string {
  const record = readLease(place);
  const stolen = {
    ...record,
    generation: record["generation"] + 5,
    run_id: "someone-else",
    pid: 1,
  };
  writeFileSync(`${place.record}.stolen`, JSON.stringify(stolen));
  renameSync(`${place.record}.stolen`, place.record);
  return readFileSync(place.record, "utf8");
}

/** `device:inode`, as a record names its lock file. */
export function inodeOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Numbers that have a slot, smallest first. */
export function listGenerations(place: SeenPlace): number[] {
  return readdirSync(place.directory)
    .flatMap((name) => /^beat\.(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Names of what the journal tells of a job beside its runs, in order. What a busy journal could not
 * take at once is in its spool; a command that only reads has it read in first.
 */
export async function eventsOf(scene: Scene, job: string): Promise<string[]> {
  await askLines(scene, ["history", job]);
  const journal = new Database(`${scene.stateDirectory}/journal.db`, { readonly: true });
  journal.run("PRAGMA busy_timeout = 5000");
  try {
    const rows = journal.query("SELECT name FROM events WHERE job = ? ORDER BY rowid").all(job);
    return (rows as { name: string }[]).map(({ name }) => name);
  } finally {
    journal.close();
  }
}

/** The last run of a job, as the journal has it; nothing while the journal is made. */
function lastRun(stateDirectory: string, job: string): { state?: string; outcome?: string } {
  if (!existsSync(`${stateDirectory}/journal.db`)) return {};
  try {
    const journal = new Database(`${stateDirectory}/journal.db`, { readonly: true });
    journal.run("PRAGMA busy_timeout = 5000");
    try {
      const rows = "SELECT state, outcome FROM runs WHERE job = ? ORDER BY seq DESC";
      return (journal.query(rows).get(job) ?? {}) as { state?: string; outcome?: string };
    } finally {
      journal.close();
    }
  } catch {
    return {}; // SQLITE_CANTOPEN, SQLITE_BUSY, no such table: it is just being made
  }
}

/** Resolves when the journal knows a run of the job, which takes a moment after its start. */
export async function waitForJournal(stateDirectory: string, job: string): Promise<void> {
  const isThere = (): boolean => lastRun(stateDirectory, job).state !== undefined;
  await waitFor(isThere, `a run of ${job} in the journal`);
}

/** Resolves when the guard of a killed watchdog has written that down, and left the journal. */
export async function waitForBurial(stateDirectory: string, job: string): Promise<void> {
  // The last writer takes the side files away, and a look from here may make them again.
  const isBuried = (): boolean =>
    !existsSync(`${stateDirectory}/journal.db-wal`) &&
    lastRun(stateDirectory, job).outcome === "abandoned";
  await waitFor(isBuried, `the guard of ${job} to be done`);
}

export interface Holder {
  readonly run: Started;
  readonly place: SeenPlace;
  /** Lets the command end with its own status. */
  release(): void;
}

/** The status of a holder's command once it was released. */
export const RELEASED = 5;

/**
 * A run that holds `job:NAME` until it is released; resolves when its command runs, the thread of
 * the heartbeat beats and the journal knows it.
 */
export async function holdJob(
  scene: Scene,
  name: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Holder> {
  const [gate, ready] = [scene.path(`${name}.gate`), scene.path(`${name}.ready`)];
  const waits = `until [ -e '${gate}' ]; do sleep 0.05; done`;
  const script = `echo ready >'${ready}'; ${waits}; exit ${RELEASED}`;
  const words = ["--name", name, "--log", "off", ...args, "--", "sh", "-c", script];
  const run = scene.start(words, options);
  const stateDirectory = options.env?.["WATCHDOG_STATE_DIR"] ?? scene.stateDirectory;
  const place = placeOf(stateDirectory, name);
  await waitFor(() => existsSync(ready), `the command of ${name}`);
  // 1 is written by the grant, 2 at the spawn by main, 3 by the thread.
  await waitForBeat(place, 3, readLease(place)["generation"]);
  await waitForJournal(stateDirectory, name);
  return { run, place, release: () => writeFileSync(gate, "") };
}

/** A newcomer of the same name, whose command says that it ran. */
export function newcomer(
  scene: Scene,
  name: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): ReturnType<Scene["run"]> {
  const words = ["--name", name, "--log", "off", ...args, "--", "echo", "STOLEN"];
  return scene.run(words, { binary: RELEASE, ...options });
}
