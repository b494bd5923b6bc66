/**
 * The table `circuits`: the record of a circuit under its name, and beside it what a person asks
 * for with sqlite3. Refuses to know what a record says. Clock: the wall clock of the writer, handed
 * in, by which retention goes.
 */
import type { Database } from "bun:sqlite";
import { cutForPeople } from "../core/circuit-record.ts";
import type { SharedCircuit } from "../core/shared-circuit.ts";

/** Above what retention leaves. */
const MOST_LISTED = 20_000;

export interface CircuitRow {
  readonly name: string;
  readonly record: string;
}

/** A database of an older version, which asking does not change. */
export function hasCircuits(db: Database): boolean {
  const found = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'circuits'");
  return found.get() !== null;
}

export function selectCircuit(db: Database, name: string): CircuitRow | undefined {
  const query = db.query<CircuitRow, [string]>("SELECT name, record FROM circuits WHERE name = ?");
  return query.get(name) ?? undefined;
}

export function selectCircuits(db: Database): CircuitRow[] {
  return db
    .query<CircuitRow, [number]>("SELECT name, record FROM circuits ORDER BY name LIMIT ?")
    .all(MOST_LISTED);
}

export interface CircuitWriting extends CircuitRow {
  readonly circuit: SharedCircuit;
  readonly at: number;
}

/** By column name, so that columns of a newer minor keep their defaults or what they hold. */
export function writeCircuit(db: Database, { name, record, circuit, at }: CircuitWriting): void {
  const { target } = circuit;
  const cells = {
    name,
    state: circuit.state.kind,
    settings_hash: circuit.settingsHash,
    target: target === null ? null : cutForPeople(target),
    job: circuit.job,
    changed_at: Math.round(circuit.changedAt),
    updated_at: Math.round(at),
    record,
  };
  const names = Object.keys(cells);
  const updates = names.slice(1).map((column) => `${column} = excluded.${column}`);
  db.query(
    `INSERT INTO circuits (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")}) ` +
      `ON CONFLICT (name) DO UPDATE SET ${updates.join(", ")}`,
  ).run(...Object.values(cells));
}
