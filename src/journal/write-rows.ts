/**
 * Writes rows of runs and attempts, and gives each new run its place in the history.
 *
 * That place, `sort_at`, is when the run was started. Where the wall clock has been set back since
 * an earlier run it is the place of the last one, so that runs stay in the order in which they were
 * written down; what comes late through the spool cannot tell, and goes where its start says.
 *
 * Always: a run keeps its place. Clock: the wall clock of whoever writes, handed in.
 */
import type { Database } from "bun:sqlite";
import type { Cell } from "./rows.ts";

export interface Writing {
  readonly isKnown: boolean;
  readonly directAt: number | undefined;
}

/** By column name, so that columns of a newer minor keep their defaults or what they hold. */
export function writeRun(
  db: Database,
  { isKnown, directAt }: Writing,
  given: Readonly<Record<string, Cell>>,
): void {
  const row = isKnown ? given : { ...given, sort_at: placeInOrder(db, given, directAt) };
  const names = Object.keys(row);
  const sql = isKnown
    ? `UPDATE runs SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE run_id = ?`
    : insertion("runs", names);
  const cells = Object.values(row);
  db.query(sql).run(...(isKnown ? [...cells, row["run_id"] ?? null] : cells));
}

/** The clock was set back where an earlier run has started later than now. */
function placeInOrder(
  db: Database,
  row: Readonly<Record<string, Cell>>,
  directAt: number | undefined,
): number {
  const startedAt = Number(row["started_at"]);
  if (directAt === undefined) return startedAt;
  const found = db.query<{ last: number | null }, []>("SELECT max(sort_at) AS last FROM runs");
  const last = found.get()?.last ?? startedAt;
  return directAt < last ? Math.max(startedAt, last) : startedAt;
}

export interface AttemptRow extends Readonly<Record<string, Cell>> {
  readonly run_id: string;
}

/** There is one attempt of each run so far. */
export function writeAttempt(db: Database, row: AttemptRow): void {
  const names = Object.keys(row);
  const kept = names.filter((name) => name !== "run_id" && name !== "started_at");
  const sql =
    `${insertion("attempts", ["attempt", ...names])} ON CONFLICT (run_id, attempt) ` +
    `DO UPDATE SET ${kept.map((name) => `${name} = excluded.${name}`).join(", ")}`;
  db.query(sql).run(1, ...Object.values(row));
}

function insertion(table: string, names: readonly string[]): string {
  const places = names.map(() => "?").join(", ");
  return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places})`;
}
