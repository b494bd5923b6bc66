/**
 * Records of runs as columns, and back. Pure text and numbers; no SQL.
 *
 * Always: a record takes at most LONGEST_RECORD characters of the journal, however long the command
 * line was; what was cut ends in `…`.
 */
import type { GrantedLease } from "../core/journal-entry.ts";
import { ONE_STEP } from "../core/one-step.ts";
import type { RunRecord } from "../core/run-record.ts";

export const LONGEST_RECORD = 65_536;
const LONGEST_COMMAND = 4096;
const MOST_LISTED = 50;
const LONGEST_CHECK = 200;

/** The columns of `runs` that follow from the record alone, in the order of RECORD_COLUMNS. */
export const RECORD_COLUMNS = [
  "job",
  "state",
  "outcome",
  "because",
  "exit_status",
  "status_of",
  "started_at",
  "ended_at",
  "duration_ms",
  "pid",
  "log_path",
  "record",
] as const;

/** As `isOfOneStep` (core/one-step.ts). */
export const IS_OF_ONE_STEP = `because IS '${ONE_STEP}'`;

export type Cell = string | number | null;

/** @param at  the wall clock of the entry, where the record's own instant cannot be read */
export function cellsOf(run: RunRecord, at: number): Cell[] {
  return [
    run.job,
    run.state,
    run.outcome,
    run.because,
    run.exit_status,
    run.status_of,
    parseInstant(run.started_at) ?? at,
    run.state === "ended" ? (parseInstant(run.ended_at) ?? at) : null,
    run.duration_ms === null ? null : Math.round(run.duration_ms),
    run.pid,
    run.log?.path ?? null,
    renderRecord(run),
  ];
}

function parseInstant(text: string | null): number | undefined {
  const at = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

export function renderRecord(run: RunRecord): string {
  const whole = JSON.stringify(run);
  if (whole.length <= LONGEST_RECORD) return whole;
  const { command_bytes: _, ...rest } = run;
  return JSON.stringify({
    ...rest,
    command: cutCommand(run.command),
    cwd: run.cwd === null ? null : cut(run.cwd, LONGEST_COMMAND),
    signals: run.signals.slice(0, MOST_LISTED),
    leftovers: run.leftovers.slice(0, MOST_LISTED),
    kept: run.kept.slice(0, MOST_LISTED),
    left_alone: run.left_alone.slice(0, MOST_LISTED),
    unsignalable: run.unsignalable.slice(0, MOST_LISTED),
    checks: run.checks.slice(0, MOST_LISTED).map(cutCheck),
    artifacts: run.artifacts.slice(0, MOST_LISTED),
  });
}

function cutCheck(check: RunRecord["checks"][number]): RunRecord["checks"][number] {
  const { target, found } = check;
  const shown = target === null ? null : cut(target, LONGEST_CHECK);
  return { ...check, target: shown, found: cut(found, LONGEST_CHECK) };
}

function cutCommand(words: readonly string[]): string[] {
  const shown: string[] = [];
  let room = LONGEST_COMMAND;
  for (const word of words.slice(0, MOST_LISTED)) {
    if (room <= 0) break;
    shown.push(cut(word, room));
    room -= word.length;
  }
  return shown.length < words.length ? [...shown, "…"] : shown;
}

function cut(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

/** The record of a run whose supervisor died, where only that of the running one is known. */
export function markAbandoned(run: RunRecord, because: string, at: number): RunRecord {
  if (run.state === "ended") return run;
  return {
    ...run,
    state: "ended",
    outcome: "abandoned",
    because,
    ended_at: new Date(at).toISOString(),
  };
}

/** undefined: nothing that was written here. */
export function parseRecord(text: string): RunRecord | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return isRecord(found) ? found : undefined;
  } catch {
    return undefined; // SyntaxError: a row that somebody else has written
  }
}

/** As far as code relies on it: a newer minor may have more fields, an older one fewer. */
export function isRecord(found: unknown): found is RunRecord {
  if (typeof found !== "object" || found === null) return false;
  const { run_id, job, state, pid, started_at } = found as Partial<Record<string, unknown>>;
  return (
    typeof run_id === "string" &&
    typeof job === "string" &&
    (state === "running" || state === "ended") &&
    typeof pid === "number" &&
    typeof started_at === "string"
  );
}

export function renderLeases(leases: readonly GrantedLease[]): string {
  return JSON.stringify(leases.map(({ kind, name, generation }) => ({ kind, name, generation })));
}

export function parseLeases(text: string): GrantedLease[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.filter(isLease) : [];
  } catch {
    return []; // SyntaxError: a row that somebody else has written
  }
}

export function isLease(found: unknown): found is GrantedLease {
  if (typeof found !== "object" || found === null) return false;
  const { kind, name, generation } = found as Partial<Record<string, unknown>>;
  return typeof kind === "string" && typeof name === "string" && Number.isSafeInteger(generation);
}
