/**
 * What the guard must know when its watchdog is killed, and how it stands in the memory file that
 * both hold: watchdog writes at any time, the guard reads once, after watchdog's death.
 *
 * Knows nothing about processes or time. Always: of a note that was being written when the writer
 * died nothing is believed, and the one before it is still there: notes go by turns into two areas,
 * each with its own length and checksum. State after a crash: the file is gone with the last
 * process that holds it.
 */
import { fstatSync, readSync, writeSync } from "node:fs";
import { GUARD_DESCRIPTOR } from "../core/burial.ts";
import type { ProcessIdentity, SlotRunState } from "../core/lease-record.ts";
import type { Mask } from "../core/masking.ts";
import type { NoticePart } from "../core/notice-part.ts";
import type { LeftoverPolicy } from "../core/run-options.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { DeclaredSchedule } from "../core/schedule.ts";
import type { SinkSpec } from "../core/sink.ts";
import type { RecordedProcess } from "../core/survivors-view.ts";
import type { CommandEnd } from "../core/run-state.ts";

/** Where the guard finds the memory file, and the program that it becomes. */
export const NOTES_DESCRIPTOR = GUARD_DESCRIPTOR;
export const PROGRAM_DESCRIPTOR = 9;

export interface GuardNotes {
  /**
   * The record of the running run, with its run path and leases; the guard turns it into that of an
   * abandoned one. That of an ended run, where watchdog had concluded: the guard writes it as it
   * is.
   */
  readonly record: RunRecord;
  /** Whether an ended run gives its leases back: nobody was left whom watchdog was to end. */
  readonly isReleased: boolean;
  readonly owner: ProcessIdentity;
  /** When the run began, on CLOCK_MONOTONIC, in milliseconds. */
  readonly startedMonotonicMs: number;
  /** The path of the owner's cgroup in the unified hierarchy; null where it has none. */
  readonly cgroup: string | null;
  /** Known adopters of orphans among the owner's ancestors. */
  readonly adopters: readonly ProcessIdentity[];
  /** Children from before the run: never members. */
  readonly inborn: readonly ProcessIdentity[];
  /** The main command; null before its spawn. */
  readonly mainChild: RecordedProcess | null;
  /** Whether it is started as the leader of a group of its own: not so at a terminal. */
  readonly hasOwnGroup: boolean;
  /** The session of the owner. */
  readonly sessionId: number;
  /** How the main command ended; null while it lives. */
  readonly mainEnd: CommandEnd | null;
  /** Whom watchdog has stopped for a pause, or was about to stop, and has not continued. */
  readonly frozen: readonly ProcessIdentity[];
  /** `stopping`: watchdog is ending the tree, so the policy for leftovers does not count. */
  readonly phase: SlotRunState;
  readonly leftovers: LeftoverPolicy;
  /** `--guard-grace`, in milliseconds; 0: KILL at once. */
  readonly guardGraceMs: number;
  /** Absolute path; null: none was asked for. */
  readonly resultFile: string | null;
  /** Permission bits of a result file that goes away meanwhile; one that is there keeps its own. */
  readonly resultFileMode: number;
  /** What the run has declared about its job; undefined: it had not come to that. */
  readonly schedule?: DeclaredSchedule | null | undefined;
  /** What must not be told of: the guard has none of the environment. In memory alone. */
  readonly mask: Mask["known"];
  /** Whom to tell; null or missing: nobody. */
  readonly telling?: GuardTelling | null;
}

/** It holds secrets, which stand in no file. */
export interface GuardTelling {
  readonly part: NoticePart;
  readonly sinks: readonly SinkSpec[];
  /** That of the caller, in latin1: variables of sinks and hooks. */
  readonly environment: readonly string[];
}

/** "WDGN" as a little-endian number. */
const MAGIC = 0x4e474457;
const FORMAT = 1;
/** Magic, format, sequence (8 bytes), length, checksum. */
const HEAD_BYTES = 24;
/** Room for any usual command line (ARG_MAX: 2 MiB); of the file only used pages count. */
export const AREA_BYTES = 16 * 1024 * 1024;
const AREAS = 2;

/** One note as it stands in its area. A command line beyond all measure is cut to one word. */
export function encodeNotes(notes: GuardNotes, sequence: number): Uint8Array {
  const whole = Buffer.from(JSON.stringify(notes));
  const fits = whole.length + HEAD_BYTES <= AREA_BYTES;
  const text = fits ? whole : Buffer.from(JSON.stringify(withoutArguments(notes)));
  const bytes = new Uint8Array(HEAD_BYTES + text.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, FORMAT, true);
  view.setBigUint64(8, BigInt(sequence), true);
  view.setUint32(16, text.length, true);
  bytes.set(text, HEAD_BYTES);
  view.setUint32(20, checksumOf(bytes), true);
  return bytes;
}

function withoutArguments(notes: GuardNotes): GuardNotes {
  const { command_bytes: _, ...record } = notes.record;
  const command = record.command.slice(0, 1).map((word) => word.slice(0, LONGEST_WORD));
  return { ...notes, record: { ...record, command } };
}

const LONGEST_WORD = 4096;

/** Over everything but itself. */
function checksumOf(bytes: Uint8Array): number {
  const head = Bun.hash.crc32(bytes.subarray(0, 20));
  return Bun.hash.crc32(bytes.subarray(HEAD_BYTES), head);
}

export interface NumberedNotes {
  readonly sequence: number;
  readonly notes: GuardNotes;
}

/** The note of an area; undefined where none was written, or not to its end. */
export function decodeNotes(area: Uint8Array): NumberedNotes | undefined {
  if (area.length < HEAD_BYTES) return undefined;
  const view = new DataView(area.buffer, area.byteOffset, area.byteLength);
  if (view.getUint32(0, true) !== MAGIC || view.getUint32(4, true) !== FORMAT) return undefined;
  const end = HEAD_BYTES + view.getUint32(16, true);
  if (end > area.length) return undefined;
  const note = area.subarray(0, end);
  if (checksumOf(note) !== view.getUint32(20, true)) return undefined;
  // Written by this very program: a right checksum vouches for the shape.
  const notes = JSON.parse(Buffer.from(note.subarray(HEAD_BYTES)).toString("utf8")) as GuardNotes;
  return { sequence: Number(view.getBigUint64(8, true)), notes };
}

/**
 * Writes a note into the area whose turn it is; where that one cannot be written (EFBIG: a limit of
 * file sizes counts for memory too), into the first.
 *
 * State after a crash in between: this note or the one before it.
 * @throws the error of the system call
 */
export function writeNotes(fd: number, notes: GuardNotes, sequence: number): void {
  const bytes = encodeNotes(notes, sequence);
  const turn = sequence % AREAS;
  try {
    writeAt(fd, bytes, turn * AREA_BYTES);
  } catch (error) {
    if (turn === 0) throw error;
    writeAt(fd, bytes, 0);
  }
}

function writeAt(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}

/** The last note that was written to its end; undefined: none. @throws EBADF, EIO */
export function readNotes(fd: number): GuardNotes | undefined {
  const { size } = fstatSync(fd);
  const found: NumberedNotes[] = [];
  for (let area = 0; area < AREAS; area += 1) {
    const note = decodeNotes(readArea(fd, area * AREA_BYTES, size));
    if (note !== undefined) found.push(note);
  }
  return found.toSorted((one, other) => other.sequence - one.sequence)[0]?.notes;
}

function readArea(fd: number, position: number, size: number): Uint8Array {
  const head = readAt(fd, position, Math.min(HEAD_BYTES, size - position));
  if (head.length < HEAD_BYTES) return head;
  const length = HEAD_BYTES + new DataView(head.buffer).getUint32(16, true);
  return readAt(fd, position, Math.min(length, AREA_BYTES, size - position));
}

function readAt(fd: number, position: number, length: number): Uint8Array {
  if (length <= 0) return new Uint8Array();
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, readSync(fd, bytes, 0, length, position));
}
