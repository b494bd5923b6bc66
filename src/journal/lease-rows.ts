/**
 * What the journal knows of the generations of keys: one row a key, the largest number that it was
 * told, and whether that one was released.
 *
 * Guarantees: the number of a row never falls. Non-guarantees: it is the third source after the
 * record and the slots, and gives nobody the right to run. Clock: none.
 */
import type { Database } from "bun:sqlite";
import type { JournalLease } from "../core/evidence.ts";
import type { GrantedLease } from "../core/journal-entry.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";

interface LeaseRow {
  readonly generation: number;
  readonly run_id: string;
  readonly released_at: number | null;
}

export interface Fence {
  readonly kind: "fenced";
  readonly reason: string;
}

/** The first key of which a larger generation is known. @throws an error of SQLite */
export function findFence(db: Database, leases: readonly GrantedLease[]): Fence | undefined {
  for (const lease of leases) {
    const known = readRow(db, lease);
    if (known !== undefined && known.generation > lease.generation) {
      const reason =
        `${renderKey(lease)} has generation ${known.generation} of run ${known.run_id}, ` +
        `found an entry of generation ${lease.generation}`;
      return { kind: "fenced", reason };
    }
  }
  return undefined;
}

/** Runs that the journal has for a smaller generation of these keys: they are over. */
export function findPredecessors(
  db: Database,
  leases: readonly GrantedLease[],
  runId: string,
): string[] {
  const before = leases.flatMap((lease) => {
    const known = readRow(db, lease);
    const isBefore = known !== undefined && known.generation < lease.generation;
    return isBefore && known.run_id !== runId ? [known.run_id] : [];
  });
  return [...new Set(before)];
}

/** Writes the numbers that are missing or smaller. @throws an error of SQLite */
export function raiseLeases(
  db: Database,
  leases: readonly GrantedLease[],
  runId: string,
  at: number,
): void {
  for (const { kind, name, generation } of leases) {
    db.query(
      "INSERT INTO leases (kind, name, generation, run_id, granted_at) VALUES (?, ?, ?, ?, ?) " +
        "ON CONFLICT (kind, name) DO UPDATE SET generation = excluded.generation, " +
        "run_id = excluded.run_id, granted_at = excluded.granted_at, released_at = NULL " +
        "WHERE excluded.generation > leases.generation",
    ).run(kind, name, generation, runId, at);
  }
}

/** @throws an error of SQLite */
export function releaseLeases(
  db: Database,
  leases: readonly GrantedLease[],
  runId: string,
  at: number,
): void {
  for (const { kind, name, generation } of leases) {
    db.query(
      "UPDATE leases SET released_at = ? " +
        "WHERE kind = ? AND name = ? AND generation = ? AND run_id = ?",
    ).run(at, kind, name, generation, runId);
  }
}

/** @throws an error of SQLite, also where there is no such table yet */
export function readLease(db: Database, key: LeaseKey): JournalLease | undefined {
  const row = readRow(db, key);
  if (row === undefined) return undefined;
  return {
    generation: row.generation,
    runId: row.run_id,
    isReleased: row.released_at !== null,
  };
}

function readRow(db: Database, { kind, name }: LeaseKey): LeaseRow | undefined {
  return (
    db
      .query<LeaseRow, [string, string]>(
        "SELECT generation, run_id, released_at FROM leases WHERE kind = ? AND name = ?",
      )
      .get(kind, name) ?? undefined
  );
}
