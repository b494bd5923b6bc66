/**
 * The rows of the audit: what repairs have meant to do, and what came of it. Appended and read,
 * never changed or removed: the table itself refuses that (schema.ts), and retention passes it by.
 *
 * Always: a row that holds something strange is still a row. Clock: none.
 */
import type { Database } from "bun:sqlite";
import type { AuditEntry } from "../core/journal-entry.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";

/** One act, from its intention to its end, as far as it came. */
export interface AuditAct {
  readonly actId: string;
  readonly planId: string;
  /** `kind:name`. */
  readonly key: string;
  readonly generation: number | null;
  readonly action: string;
  /** Of the last line: why it was meant, or how it ended. */
  readonly because: string;
  /** `intended`: nobody has written an end. */
  readonly phase: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly who: string;
  /** Of the repair that has begun it. */
  readonly pid: number;
  /** Of the first line: wall clock, boot and CLOCK_MONOTONIC. */
  readonly at: number;
  readonly bootId: string;
  readonly monotonicMs: number;
}

interface AuditRow {
  readonly entry_id: string;
  readonly uid: number;
  readonly pid: number;
  readonly at: number;
  readonly act_id: string;
  readonly phase: string;
  readonly plan_id: string;
  readonly lease_key: string;
  readonly generation: number | null;
  readonly action: string;
  readonly because: string;
  readonly evidence: string;
  readonly who: string;
  readonly boot_id: string;
  readonly monotonic_ms: number;
}

const COLUMNS =
  "entry_id, uid, pid, at, act_id, phase, plan_id, lease_key, generation, action, because, " +
  "evidence, who, boot_id, monotonic_ms";
/** Older ones are in the table, and no limit of a repair looks so far back. */
const MOST_ROWS = 10_000;

/** @returns 0 where it is there already. @throws an error of SQLite */
export function insertAudit(db: Database, id: string, entry: AuditEntry): number {
  if (hasAuditEntry(db, id)) return 0;
  return db
    .query(`INSERT INTO audit (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run(
      id,
      entry.uid,
      entry.pid,
      Math.round(entry.at),
      entry.actId,
      entry.phase,
      entry.planId,
      renderKey(entry.key),
      entry.generation,
      entry.action,
      entry.because,
      JSON.stringify(entry.evidence),
      entry.who,
      entry.bootId,
      entry.monotonicMs,
    ).changes;
}

export function hasAuditEntry(db: Database, id: string): boolean {
  return db.query("SELECT 1 FROM audit WHERE entry_id = ?").get(id) !== null;
}

/** A line with the name by which a second time is noticed. */
export interface NamedAudit {
  readonly id: string;
  readonly entry: Omit<AuditEntry, "kind" | "key" | "phase"> & {
    readonly key: LeaseKey | string;
    readonly phase: string;
  };
}

/** Among the last lines, which are all that a patrol could have left a moment ago. */
const LATEST_ROWS = 200;

/** Whether an act that was begun lately has no end. @throws an error of SQLite */
export function hasOpenAct(db: Database): boolean {
  const lines = db
    .query<{ act_id: string; phase: string }, [number]>(
      "SELECT act_id, phase FROM audit ORDER BY id DESC LIMIT ?",
    )
    .all(LATEST_ROWS);
  const ended = new Set(lines.flatMap((line) => (line.phase === "intended" ? [] : [line.act_id])));
  return lines.some((line) => line.phase === "intended" && !ended.has(line.act_id));
}

/** Oldest first. None where the database has no such table yet. @throws an error of SQLite */
export function readAuditEntries(db: Database): NamedAudit[] {
  const table = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'audit'");
  if (table.get() === null) return [];
  return db
    .query<AuditRow, [number]>(`SELECT ${COLUMNS} FROM audit ORDER BY id DESC LIMIT ?`)
    .all(MOST_ROWS)
    .toReversed()
    .map((row) => ({ id: row.entry_id, entry: entryOf(row) }));
}

function entryOf(row: AuditRow): NamedAudit["entry"] {
  return {
    at: row.at,
    actId: row.act_id,
    phase: row.phase,
    planId: row.plan_id,
    key: row.lease_key,
    generation: row.generation,
    action: row.action,
    because: row.because,
    evidence: parseEvidence(row.evidence),
    who: row.who,
    uid: row.uid,
    pid: row.pid,
    bootId: row.boot_id,
    monotonicMs: row.monotonic_ms,
  };
}

/** The acts that lines of the journal and of the spool tell of, oldest first. Pure. */
export function joinActs(...parts: readonly (readonly NamedAudit[])[]): AuditAct[] {
  const byId = new Map(parts.flat().map((line) => [line.id, line.entry]));
  return [...Map.groupBy(byId.values(), ({ actId }) => actId).values()].flatMap(actOf);
}

function actOf(lines: readonly NamedAudit["entry"][]): AuditAct[] {
  const [first] = lines;
  const last = lines.at(-1);
  if (first === undefined || last === undefined) return [];
  const { actId, planId, key, generation, action, evidence, who, pid } = first;
  const { at, bootId, monotonicMs } = first;
  const { because, phase } = last;
  const name = typeof key === "string" ? key : renderKey(key);
  const about = { actId, planId, key: name, generation, action, evidence, who, pid };
  return [{ ...about, because, phase, at, bootId, monotonicMs }];
}

function parseEvidence(text: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {}; // SyntaxError: a row that somebody else has written
  }
}
