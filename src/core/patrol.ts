/**
 * What a patrol finds, and what of it is news. Plain data and pure decisions; knows no file, no
 * clock and no other machine's patrol.
 *
 * Always: a finding is told when it comes, once; what could not be looked at is neither found nor
 * gone. That it still lasts is told by the outbox (told-state.ts).
 */
import type { LeaseKey } from "./lease-key.ts";
import type { OverdueReason } from "./overdue.ts";
import type { ConfiguredJob, ScheduleBasis } from "./schedule.ts";

export type FindingKind = "lease" | "circuit" | "room" | "outbox" | "journal";

/** Something that is wrong now. Of jobs see `JudgedJob`. */
export interface PatrolFinding {
  readonly kind: FindingKind;
  /** A key, the name of a circuit; else the kind once more. */
  readonly subject: string;
  /** The verdict, the state of the circuit, or another word of a closed list. */
  readonly state: string;
  readonly because: string;
  /** The run that it is about: of another one it is another finding. */
  readonly runId: string | null;
  readonly job: string | null;
  readonly key: LeaseKey | null;
}

/** What the journal remembers of a finding. */
export interface KnownFinding extends PatrolFinding {
  readonly since: number;
  /** When it was put as an event last; null: it never was. */
  readonly toldAt: number | null;
}

/** A job with a schedule, and what a patrol has decided about it. */
export interface JudgedJob {
  readonly job: string;
  readonly basis: ScheduleBasis;
  /** Null: it is not overdue. */
  readonly because: OverdueReason | null;
  readonly dueAt: number | null;
  readonly since: number | null;
  /** For the event: the last success, the last failure and so on, for people. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** All that one patrol has seen: one transaction. */
export interface PatrolledEntry {
  readonly kind: "patrolled";
  readonly at: number;
  readonly pid: number;
  readonly bootId: string;
  /** CLOCK_MONOTONIC of that boot. */
  readonly monotonicMs: number;
  /** How often a patrol is meant to come; null: nobody has said so. */
  readonly periodMs: number | null;
  readonly findings: readonly PatrolFinding[];
  /** Kinds that were looked at as a whole: what is not among the findings is gone. */
  readonly looked: readonly FindingKind[];
  /** Subjects of findings that are gone because all is well again. */
  readonly recovered: readonly string[];
  readonly jobs: readonly JudgedJob[];
  /** Jobs that are expected by the configuration, and of which nothing was known. */
  readonly declared?: readonly ConfiguredJob[];
  /** False: no patrol is expected from here on (`patrol --retire`). */
  readonly isExpected: boolean;
}

/** The same thing, whatever has become of its details. */
export function nameFinding({ kind, subject, state, runId }: PatrolFinding): string {
  return JSON.stringify([kind, subject, state, runId]);
}

export interface FindingNews {
  readonly opened: readonly PatrolFinding[];
  readonly lasting: readonly KnownFinding[];
  readonly closed: readonly KnownFinding[];
}

export interface NewsFacts {
  readonly known: readonly KnownFinding[];
  readonly found: readonly PatrolFinding[];
  readonly looked: readonly FindingKind[];
}

export function decideNews({ known, found, looked }: NewsFacts): FindingNews {
  const names = new Set(found.map(nameFinding));
  const before = new Set(known.map(nameFinding));
  const lasting = known.filter((one) => names.has(nameFinding(one)) || !looked.includes(one.kind));
  return {
    opened: found.filter((one) => !before.has(nameFinding(one))),
    lasting,
    closed: known.filter((one) => !lasting.includes(one)),
  };
}

/** When patrols have come, as the journal has it. */
export interface PatrolRow {
  readonly at: number;
  readonly pid: number;
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly periodMs: number | null;
  readonly isExpected: boolean;
  /** Instants of the patrols before, oldest first. */
  readonly earlier: readonly number[];
}

export interface PatrolMoment {
  readonly now: number;
  readonly bootId: string;
  readonly monotonicMs: number;
}

export type PatrolStanding =
  /** None was ever here, or none is expected, or nobody knows how often. */
  | { readonly kind: "unwatched" }
  | { readonly kind: "on-time"; readonly periodMs: number }
  | { readonly kind: "stopped"; readonly periodMs: number; readonly ageMs: number };

/** So many periods may pass, and this long. */
const MISSED_PERIODS = 2;
const SLACK_MS = 60_000;

/**
 * Whether patrols have stopped. Their age is measured on CLOCK_MONOTONIC, which stands still while
 * the machine sleeps; after a start of the machine, from that start at the earliest.
 */
export function decidePatrolStanding(
  row: PatrolRow | undefined,
  { now, bootId, monotonicMs }: PatrolMoment,
): PatrolStanding {
  if (row === undefined || !row.isExpected) return { kind: "unwatched" };
  const periodMs = row.periodMs ?? learnPeriod([...row.earlier, row.at]);
  if (periodMs === undefined) return { kind: "unwatched" };
  const ageMs =
    row.bootId === bootId
      ? monotonicMs - row.monotonicMs
      : Math.min(Math.max(0, now - row.at), monotonicMs);
  const isLate = ageMs > periodMs * MISSED_PERIODS + SLACK_MS;
  return isLate ? { kind: "stopped", periodMs, ageMs } : { kind: "on-time", periodMs };
}

/** So many gaps between patrols tell how often they come. */
export const FEWEST_GAPS = 4;
export const MOST_INSTANTS = 12;
/** Of them so large a part lies this near the middle one, or nobody knows. */
const MAJORITY = 0.75;
const NEARNESS = 0.25;
/** Shorter ones are a person at the keyboard. */
const SHORTEST_PERIOD_MS = 30_000;

/** How often patrols come where nobody has said so, as from a crontab; undefined: it varies. */
export function learnPeriod(instants: readonly number[]): number | undefined {
  const gaps = instants.slice(1).map((at, index) => at - (instants[index] ?? at));
  if (gaps.length < FEWEST_GAPS) return undefined;
  const middle = gaps.toSorted((one, other) => one - other)[Math.floor(gaps.length / 2)] ?? 0;
  const near = gaps.filter((gap) => Math.abs(gap - middle) <= middle * NEARNESS);
  const isRegular = near.length >= gaps.length * MAJORITY && middle >= SHORTEST_PERIOD_MS;
  return isRegular ? middle : undefined;
}
