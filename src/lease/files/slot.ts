/**
 * The bytes of a beat slot. Knows the layout, and nothing of files, clocks and ages.
 *
 * Guarantees: what `encodeSlot` made, `decodeSlot` gives back, and of a slot that was read while it
 * was written each part is whole or is not given at all. Non-guarantees: that both parts are of the
 * same beat. Clock: none; the instants in it are the writer's. Crash behaviour: none, no file.
 *
 * Layout, little endian, SLOT_BYTES in all:
 *
 *       0  u32  magic "WDB1"             4  u16  format     6  u8  run state    7  u8  0
 *       8  u64  generation              16  u64  sequence  24  u64 main-loop sequence
 *      32  f64  MONOTONIC ms            40  f64  BOOTTIME  48  f64 wall   56  f64 main loop
 *      64  f64  stale after, ms         72  36 bytes boot id (ASCII, zeros behind it)
 *     108  16 bytes progress: u48 items that went well, u40 that failed, u40 one more than there
 *          are in all, or 0; all 0: none reported
 *     124  u32  crc32 of bytes 0–123
 *     128  body: four texts (u16 length, UTF-8): run id, lock inode, pid namespace, time namespace
 *          (empty: none); u32 session; owner; u8 1 and the leader of the main group, or u8 0; the
 *          same of the main child, and of the guard; u32 all members; u16 listed members and each
 *          of them; u16 bytes of work and work itself (slot-work.ts); zeros
 *    4092  u32  crc32 of bytes 128–4091
 *
 * A process is u32 pid and u64 start ticks; owner and main child have a u64 pidfd inode behind it.
 */
import { assert } from "../../core/errors.ts";
import {
  MOST_SLOT_MEMBERS,
  type ProcessIdentity,
  type Slot,
  type SlotBody,
  type SlotHead,
  type SlotOwner,
  SLOT_RUN_STATES,
} from "../../core/lease-record.ts";
import { SlotReader, SlotWriter } from "./slot-bytes.ts";
import { decodeCounts, encodeCounts } from "./slot-counts.ts";
import { decodeWork, encodeWork } from "./slot-work.ts";

export const SLOT_BYTES = 4096;
export const SLOT_HEAD_BYTES = 128;
export const SLOT_FORMAT = 1;

const MAGIC = 0x31424457; // "WDB1"
const BOOT_ID_AT = 72;
const BOOT_ID_BYTES = 36;
const COUNTS_AT = 108;
const HEAD_CRC_AT = SLOT_HEAD_BYTES - 4;
const BODY_CRC_AT = SLOT_BYTES - 4;
const MEMBER_BYTES = 12;

/** What is written: always with a body. */
export interface WholeSlot extends Slot {
  readonly head: SlotHead;
  readonly body: SlotBody;
}

/**
 * Members beyond MOST_SLOT_MEMBERS, or beyond what long texts leave room for, are only counted.
 */
export function encodeSlot(slot: WholeSlot): Uint8Array {
  const bytes = new Uint8Array(SLOT_BYTES);
  const view = new DataView(bytes.buffer);
  encodeHead(bytes, view, slot.head);
  encodeBody(new SlotWriter(bytes, SLOT_HEAD_BYTES, BODY_CRC_AT), slot.body);
  view.setUint32(HEAD_CRC_AT, checksum(bytes, 0, HEAD_CRC_AT), true);
  view.setUint32(BODY_CRC_AT, checksum(bytes, SLOT_HEAD_BYTES, BODY_CRC_AT), true);
  return bytes;
}

function encodeHead(bytes: Uint8Array, view: DataView, head: SlotHead): void {
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, SLOT_FORMAT, true);
  view.setUint8(6, SLOT_RUN_STATES.indexOf(head.runState));
  view.setBigUint64(8, BigInt(head.generation), true);
  view.setBigUint64(16, BigInt(head.sequence), true);
  view.setBigUint64(24, BigInt(head.mainLoopSequence), true);
  view.setFloat64(32, head.monotonicMs, true);
  view.setFloat64(40, head.boottimeMs, true);
  view.setFloat64(48, head.wallMs, true);
  view.setFloat64(56, head.mainLoopMs, true);
  view.setFloat64(64, head.staleAfterMs, true);
  const bootId = new TextEncoder().encode(head.bootId);
  assert(bootId.length <= BOOT_ID_BYTES, "a boot id has at most 36 bytes");
  bytes.set(bootId, BOOT_ID_AT);
  encodeCounts(view, COUNTS_AT, head.counts);
}

function encodeBody(writer: SlotWriter, body: SlotBody): void {
  writer.text(body.runId);
  writer.text(body.lockInode);
  writer.text(body.pidNamespace);
  writer.text(body.timeNamespace ?? "");
  writer.u32(body.sessionId);
  encodeOwner(writer, body.owner);
  encodeOptional(writer, body.mainGroup, encodeProcess);
  encodeOptional(writer, body.mainChild, encodeOwner);
  encodeOptional(writer, body.guard, encodeProcess);
  writer.u32(body.memberCount);
  const work = encodeWork(body.work);
  const room = Math.floor((writer.room - 2 - 2 - work.length) / MEMBER_BYTES);
  const listed = body.members.slice(0, Math.min(MOST_SLOT_MEMBERS, room));
  writer.u16(listed.length);
  for (const member of listed) encodeProcess(writer, member);
  writer.bytes(work);
}

function encodeOptional<Value>(
  writer: SlotWriter,
  value: Value | null,
  encode: (writer: SlotWriter, value: Value) => void,
): void {
  writer.u8(value === null ? 0 : 1);
  if (value !== null) encode(writer, value);
}

function encodeProcess(writer: SlotWriter, one: ProcessIdentity): void {
  writer.u32(one.pid);
  writer.u64(one.start_time);
}

function encodeOwner(writer: SlotWriter, owner: SlotOwner): void {
  encodeProcess(writer, owner);
  writer.u64(owner.pidfd_inode);
}

function checksum(bytes: Uint8Array, from: number, to: number): number {
  return Bun.hash.crc32(bytes.subarray(from, to)) >>> 0;
}

/**
 * @returns undefined where the head is not whole or of another format; a slot without a body where
 *   only that is not
 */
export function decodeSlot(bytes: Uint8Array): Slot | undefined {
  if (bytes.length < SLOT_HEAD_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const head = decodeHead(bytes, view);
  if (head === undefined) return undefined;
  const isWhole =
    bytes.length >= SLOT_BYTES &&
    view.getUint32(BODY_CRC_AT, true) === checksum(bytes, SLOT_HEAD_BYTES, BODY_CRC_AT);
  return { head, body: isWhole ? decodeBody(bytes) : undefined };
}

function decodeHead(bytes: Uint8Array, view: DataView): SlotHead | undefined {
  if (view.getUint32(HEAD_CRC_AT, true) !== checksum(bytes, 0, HEAD_CRC_AT)) return undefined;
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(4, true) !== SLOT_FORMAT) {
    return undefined;
  }
  const runState = SLOT_RUN_STATES[view.getUint8(6)];
  if (runState === undefined) return undefined;
  const bootId = bytes.subarray(BOOT_ID_AT, BOOT_ID_AT + BOOT_ID_BYTES);
  return {
    generation: Number(view.getBigUint64(8, true)),
    sequence: Number(view.getBigUint64(16, true)),
    mainLoopSequence: Number(view.getBigUint64(24, true)),
    bootId: new TextDecoder().decode(bootId).replace(/\0+$/, ""),
    monotonicMs: view.getFloat64(32, true),
    boottimeMs: view.getFloat64(40, true),
    wallMs: view.getFloat64(48, true),
    mainLoopMs: view.getFloat64(56, true),
    staleAfterMs: view.getFloat64(64, true),
    runState,
    counts: decodeCounts(view, COUNTS_AT),
  };
}

/** Undefined where a length leads out of the body: a checksum that fits by chance, or a bug. */
function decodeBody(bytes: Uint8Array): SlotBody | undefined {
  const reader = new SlotReader(bytes, SLOT_HEAD_BYTES, BODY_CRC_AT);
  const [runId, lockInode, pidNamespace] = [reader.text(), reader.text(), reader.text()];
  const timeNamespace = reader.text();
  const sessionId = reader.u32();
  const owner = decodeOwner(reader);
  const mainGroup = reader.u8() === 1 ? decodeProcess(reader) : null;
  const mainChild = reader.u8() === 1 ? decodeOwner(reader) : null;
  const guard = reader.u8() === 1 ? decodeProcess(reader) : null;
  const memberCount = reader.u32();
  const members = Array.from({ length: reader.u16() }, () => decodeProcess(reader));
  // In a slot of an earlier version there are zeros here, of a later one more than we know.
  const work = decodeWork(reader.bytes());
  if (reader.isBeyond) return undefined;
  return {
    runId,
    lockInode,
    pidNamespace,
    timeNamespace: timeNamespace === "" ? null : timeNamespace,
    sessionId,
    owner,
    mainGroup,
    mainChild,
    guard,
    members,
    memberCount,
    work,
  };
}

function decodeProcess(reader: SlotReader): ProcessIdentity {
  return { pid: reader.u32(), start_time: reader.u64() };
}

function decodeOwner(reader: SlotReader): SlotOwner {
  return { ...decodeProcess(reader), pidfd_inode: reader.u64() };
}
