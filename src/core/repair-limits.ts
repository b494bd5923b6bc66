/**
 * When a repair that nobody looks at has to stop: not twice on one key within a span, and not again
 * and again on a key whose runs never end by themselves. Pure; `now` is handed in.
 *
 * What is counted are acts that end somebody or settle a generation. To continue an owner or to
 * note the time settles nothing, and what was interrupted or has changed nothing has to be done
 * yet: none of these counts. An act that a person has approved is the person's decision: it is
 * counted, and not limited.
 */
import type { RepairAction } from "./repair-plan.ts";

/** An act of the past on the key. */
export interface PastAct {
  readonly action: string;
  /**
   * `repaired`: it was done. `tried`: it has failed after somebody was signalled. `none`: nothing
   * was changed, or its end was not written down.
   */
  readonly end: "repaired" | "tried" | "none";
  /** Wall clock. */
  readonly at: number;
  readonly bootId: string;
  /** CLOCK_MONOTONIC of that boot. */
  readonly monotonicMs: number;
}

export interface LimitFacts {
  /** On this key, oldest first. */
  readonly acts: readonly PastAct[];
  readonly now: { readonly at: number; readonly bootId: string; readonly monotonicMs: number };
  /** When a run of this key last ended by itself (wall clock); undefined: none is known. */
  readonly lastOwnEndAt: number | undefined;
  readonly intervalMs: number;
  readonly mostInARow: number;
}

export type LimitDecision =
  | { readonly kind: "go" }
  | {
      readonly kind: "stop";
      readonly because: "repair-interval";
      readonly remainingMs: number;
      /** Of the youngest act. */
      readonly end: "repaired" | "tried";
    }
  | { readonly kind: "stop"; readonly because: "max-repairs"; readonly count: number };

const COUNTED: ReadonlySet<string> = new Set([
  "end-owner",
  "end-survivors",
  "end-suspects",
  "mark",
  "set-generation",
] satisfies RepairAction[]);

/** Whether an act of this kind is counted, and can be stopped. */
export function isLimited(action: RepairAction): boolean {
  return COUNTED.has(action);
}

export function decideLimit(facts: LimitFacts): LimitDecision {
  const counted = facts.acts.filter(({ action }) => COUNTED.has(action));
  const stop = stopByAge(counted, facts);
  if (stop !== undefined) return stop;
  const since = facts.lastOwnEndAt ?? Number.NEGATIVE_INFINITY;
  const inARow = counted.filter(({ at, end }) => end === "repaired" && at > since).length;
  if (inARow >= facts.mostInARow) return { kind: "stop", because: "max-repairs", count: inARow };
  return { kind: "go" };
}

function stopByAge(
  acts: readonly PastAct[],
  { now, intervalMs }: LimitFacts,
): LimitDecision | undefined {
  const aged = acts.flatMap((act) =>
    act.end === "none" ? [] : [{ end: act.end, ageMs: ageOf(act, now) }],
  );
  const [youngest] = aged.toSorted((one, other) => one.ageMs - other.ageMs);
  if (youngest === undefined || youngest.ageMs >= intervalMs) return undefined;
  const remainingMs = intervalMs - youngest.ageMs;
  return { kind: "stop", because: "repair-interval", remainingMs, end: youngest.end };
}

/** Within one boot the wall clock has no say; an act of the future has just been. */
function ageOf(act: PastAct, now: LimitFacts["now"]): number {
  const ageMs = act.bootId === now.bootId ? now.monotonicMs - act.monotonicMs : now.at - act.at;
  return Math.max(0, ageMs);
}
