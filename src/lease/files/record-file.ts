/**
 * `lease.json`: what a lease's last grant was, as JSON padded with blanks to whole blocks. Knows
 * how it is read, checked and written, and nothing of who may write it.
 *
 * Guarantees: a reader gets a whole record that fits the type, or the word that it got none; a
 * writer leaves the old record or the new one. Non-guarantees: on a full disk the new record is
 * written over the old one in place, and a reader in that moment, or after a crash in it, may find
 * neither (it looks again; the slot and the journal know the same). Clock: none. Crash behaviour: a
 * `.lease.json.*.tmp` may remain beside it and is nobody's record.
 */
import { closeSync, constants, fsyncSync, writeSync } from "node:fs";
import { assert } from "../../core/errors.ts";
import type { LeaseRecord, ProcessIdentity, RepairMark } from "../../core/lease-record.ts";
import { replaceFile } from "../../os/files.ts";
import { fileModeAt } from "../../os/state-sharing.ts";
import { pauseThread } from "../../os/timers.ts";
import { codeOf, openOwnFile, readOwnFile } from "./own-file.ts";

const { O_WRONLY } = constants;
export const RECORD_FORMAT = 1;
export const LONGEST_RECORD_BYTES = 65_536;
const BLOCK_BYTES = 4096;
const MOST_ADOPTERS = 64;
/** As for slots: a record that is being written in place is whole again at once. */
const MOST_READS = 5;
const PAUSE_MS = 2;

export type RecordReading =
  | { readonly kind: "none" }
  /** Something is there, and nothing of it can be used: reason for people. */
  | { readonly kind: "unreadable"; readonly reason: string }
  /** Written by a newer version: not to be understood, and never to be written over. */
  | { readonly kind: "newer"; readonly format: number }
  | { readonly kind: "read"; readonly record: LeaseRecord };

/** Reads and checks a record. Fields that this version does not know are kept. */
export function readRecord(path: string): RecordReading {
  for (let reads = 1; ; reads += 1) {
    const file = readOwnFile(path, LONGEST_RECORD_BYTES);
    if (file.kind === "missing") return { kind: "none" };
    if (file.kind !== "read") return { kind: "unreadable", reason: file.reason };
    const reading = parseRecord(new TextDecoder().decode(file.bytes));
    if (reading.kind !== "unreadable" || reads >= MOST_READS) return reading;
    pauseThread(PAUSE_MS);
  }
}

export function parseRecord(text: string): Exclude<RecordReading, { kind: "none" }> {
  const value = parseJson(text);
  if (value === undefined) return { kind: "unreadable", reason: describeBroken(text) };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { kind: "unreadable", reason: "it is no JSON object" };
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const format = fields["format"];
  if (isCount(format) && format > RECORD_FORMAT) return { kind: "newer", format };
  const wrong = Object.entries(CHECKS).find(([name, fits]) => !fits(fields[name]));
  if (wrong !== undefined) {
    return { kind: "unreadable", reason: `field '${wrong[0]}' is missing or of the wrong shape` };
  }
  return { kind: "read", record: value as LeaseRecord };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // SyntaxError: `undefined` is no JSON value, so it can say just that
  }
}

function describeBroken(text: string): string {
  if (text.trim() === "") return "it is empty";
  return /^\0+$/.test(text) ? "it holds only zero bytes" : "it is no JSON";
}

type Check = (value: unknown) => boolean;

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

const isPositive: Check = (value) => isCount(value) && value > 0;
const isSpan: Check = (value) => typeof value === "number" && Number.isFinite(value) && value > 0;
const isText: Check = (value) => typeof value === "string";
const isWord: Check = (value) => typeof value === "string" && value !== "";
const isTextOrNull: Check = (value) => value === null || isText(value);

function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== "object" || value === null) return false;
  const { pid, start_time } = value as Readonly<Record<string, unknown>>;
  return isPositive(pid) && isCount(start_time);
}

function isPrevious(value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== "object") return false;
  const previous = value as Readonly<Record<string, unknown>>;
  return (
    isCount(previous["generation"]) &&
    isTextOrNull(previous["run_id"]) &&
    isText(previous["how_it_ended"]) &&
    isText(previous["evidence"]) &&
    isRepairOrAbsent(previous["repair"])
  );
}

/** Absent: no repair has touched this generation, or none that the writer's version knows. */
function isRepairOrAbsent(value: unknown): boolean {
  return value === undefined || isRepairMark(value);
}

export function isRepairMark(value: unknown): value is RepairMark {
  if (typeof value !== "object" || value === null) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.entries(REPAIR_CHECKS).every(([name, fits]) => fits(fields[name]));
}

const REPAIR_CHECKS = {
  plan_id: isWord,
  // A later version may know more of them; a lease is not unreadable because of that.
  action: isWord,
  at: isText,
  boot_id: isText,
  time_namespace: isTextOrNull,
  monotonic_ms: (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
  by: isText,
} as const satisfies Record<keyof RepairMark, Check>;

/** A field of the type that has no check does not compile. */
const CHECKS = {
  format: (value) => value === RECORD_FORMAT,
  kind: isWord,
  name: isWord,
  generation: isPositive,
  state: (value) => value === "held" || value === "released",
  run_id: isWord,
  run_path: isText,
  job: isText,
  runner: isText,
  host: isText,
  machine_id: isTextOrNull,
  boot_id: isText,
  pid: isPositive,
  pid_start_time: isCount,
  pid_namespace: isText,
  time_namespace: isTextOrNull,
  lock_inode: isText,
  uid: isCount,
  session_started_at: isText,
  acquired_at: isText,
  released_at: isTextOrNull,
  heartbeat_interval_ms: isSpan,
  stale_after_ms: isSpan,
  lane: isTextOrNull,
  task_id: isTextOrNull,
  worktree: isTextOrNull,
  branch: isTextOrNull,
  command: isText,
  cgroup: isTextOrNull,
  adopters: (value) =>
    Array.isArray(value) && value.length <= MOST_ADOPTERS && value.every(isIdentity),
  previous: isPrevious,
  repair: isRepairOrAbsent,
} as const satisfies Record<keyof LeaseRecord, Check>;

/** The record as it lies in the file: whole blocks, so that a full disk can take the next one. */
export function renderRecord(record: LeaseRecord): string {
  const text = JSON.stringify(record, undefined, 2);
  const length = Buffer.byteLength(text) + 1;
  const padded = Math.ceil(length / BLOCK_BYTES) * BLOCK_BYTES;
  assert(padded <= LONGEST_RECORD_BYTES, "a lease record can be read back");
  return `${text}${" ".repeat(padded - length)}\n`;
}

/**
 * Step A8 (and R2): gives the lease its record. The caller holds the lock.
 *
 * Written beside the target, fsynced, renamed, the directory fsynced (rename(2), fsync(2)). On
 * ENOSPC or EDQUOT an existing record that is large enough is written over in place and fsynced.
 *
 * @throws the error of the system call; the old record is whole then, unless the disk was full and
 *   writing in place failed halfway (EIO)
 * Blocks: two fsyncs. Safe to repeat: yes.
 */
export function writeRecord(path: string, record: LeaseRecord): void {
  const content = renderRecord(record);
  try {
    replaceFile(path, content, fileModeAt(path));
  } catch (cause) {
    const isFull = ["ENOSPC", "EDQUOT"].includes(codeOf(cause));
    if (!isFull || !overwriteRecord(path, content)) throw cause;
  }
}

/** False where no record of ours with blocks enough is there: growing it could tear it. */
function overwriteRecord(path: string, content: string): boolean {
  const opened = openOwnFile(path, O_WRONLY);
  if (opened.kind !== "open") return false;
  try {
    const bytes = Buffer.from(content);
    const size = Number(opened.found.size);
    if (size < bytes.length || size > LONGEST_RECORD_BYTES) return false;
    const whole = Buffer.concat([bytes, Buffer.alloc(size - bytes.length, " ")]);
    for (let offset = 0; offset < size;) {
      offset += writeSync(opened.fd, whole, offset, size - offset, offset);
    }
    fsyncSync(opened.fd);
    return true;
  } finally {
    closeSync(opened.fd);
  }
}
