/**
 * What the record says about a lease that we hold: still ours, to be written again, or somebody
 * else's. Pure: a reading in, a decision out.
 *
 * Always: only a record that can be read and names another generation or run is a loss. Time is no
 * reason, and neither is damage: on one machine the kernel's lock is ours until we close it.
 */
import type { LeaseRecord } from "../../core/lease-record.ts";
import type { FoundOwner } from "./events.ts";
import type { RecordReading } from "../files/record-file.ts";

/** How our own record would read now. */
export type OwnRecord = Pick<LeaseRecord, "generation" | "run_id" | "lock_inode">;

export type Standing =
  | { readonly kind: "ours"; readonly because: "named" }
  | {
      readonly kind: "rewrite";
      readonly because: "missing" | "unreadable" | "marked-released" | "other-lock";
    }
  | {
      readonly kind: "lost";
      readonly because: "other-generation" | "other-run";
      readonly found: FoundOwner;
    }
  /** Written by a newer version, which we may not overwrite and cannot understand. */
  | { readonly kind: "unknown"; readonly because: "newer-format" };

export function decideStanding(reading: RecordReading, own: OwnRecord): Standing {
  switch (reading.kind) {
    case "none":
      return { kind: "rewrite", because: "missing" };
    case "unreadable":
      return { kind: "rewrite", because: "unreadable" };
    case "newer":
      return { kind: "unknown", because: "newer-format" };
    case "read":
      return decideRead(reading.record, own);
  }
}

function decideRead(record: LeaseRecord, own: OwnRecord): Standing {
  const found = { generation: record.generation, run_id: record.run_id };
  if (record.generation !== own.generation) {
    return { kind: "lost", because: "other-generation", found };
  }
  if (record.run_id !== own.run_id) return { kind: "lost", because: "other-run", found };
  // Our own release comes after the last beat (R0), so this mark is of another hand.
  if (record.state === "released") return { kind: "rewrite", because: "marked-released" };
  if (record.lock_inode !== own.lock_inode) return { kind: "rewrite", because: "other-lock" };
  return { kind: "ours", because: "named" };
}
