/**
 * The last bytes of what was kept of a run's output, also of one that was killed while it wrote.
 *
 * Refuses to know what is secret in them: that is told by the mask. Clock: none. State after a
 * crash: none, nothing is changed.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, dirname } from "node:path";
import { maskTail } from "../core/masking.ts";
import type { RunRecord } from "../core/run-record.ts";
import { parseSegmentName, renderOmission, type Segment } from "../output/log-segments.ts";
import { ownMask } from "../os/mask.ts";
import { encodeName } from "../os/state-dir.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** More of the output is in the log. */
export const TAIL_BYTES = 10_000;

/** Without what is secret in it. Null: nothing was kept, or it cannot be read. Never throws. */
export function readMaskedTail(path: string | null): string | null {
  const tail = path === null ? null : readLogTail(path, TAIL_BYTES);
  return tail === null ? null : maskTail(tail, Buffer.byteLength(tail) >= TAIL_BYTES, ownMask());
}

/** Where the log of a run stands that could not say so any more. */
export function logPathOf(stateDirectory: string, run: Pick<RunRecord, "job" | "run_id">): string {
  return `${stateDirectory}/logs/${encodeName(run.job)}/${run.run_id}.log`;
}

export function readLogTail(path: string, mostBytes: number): string | null {
  try {
    const parts: Buffer[] = [];
    let room = mostBytes;
    const segments = listSegments(path);
    const oldest = segments.at(-1);
    for (const { name } of segments) {
      if (room <= 0) break;
      const bytes = readEnd(`${dirname(path)}/${name}`, room);
      parts.unshift(bytes);
      room -= bytes.length;
    }
    if (room > 0) {
      const omitted = oldest === undefined ? 0 : oldest.offset - oldest.headBytes;
      // Two halves of a secret are not one: the mask looks for the mark between them.
      if (omitted > 0) parts.unshift(Buffer.from(renderOmission(omitted)));
      parts.unshift(readEnd(path, room));
    }
    const tail = Buffer.concat(parts);
    return tail.length === 0 ? null : new TextDecoder().decode(tail);
  } catch {
    return null; // ENOENT: pruned. EACCES, EIO: the notice goes without it.
  }
}

/** The newest first. */
function listSegments(path: string): Segment[] {
  return readdirSync(dirname(path))
    .flatMap((name) => parseSegmentName(name) ?? [])
    .filter(({ logName }) => logName === basename(path))
    .toSorted((one, other) => other.offset - one.offset);
}

function readEnd(path: string, mostBytes: number): Buffer {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) return Buffer.alloc(0);
    const length = Math.min(found.size, mostBytes);
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(fd, bytes, 0, length, found.size - length));
  } finally {
    closeSync(fd);
  }
}
