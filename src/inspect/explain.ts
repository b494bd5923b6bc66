/**
 * One lease, explained: the evidence as `lease show` gathers it, with what a repair has to know
 * beside it. Gathers; decides nothing (core/explanation.ts).
 *
 * Guarantees: read only; nobody is signalled. Non-guarantees: that the facts are of one instant;
 * the processes of a dead owner are looked for once, where newcomer and repair look three times.
 * Clock: MONOTONIC, by the gathering. Crash behaviour: none, nothing is written.
 */
import { type Explanation, explainLease } from "../core/explanation.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { FoundProcess } from "../core/evidence.ts";
import type { NewcomerDecision } from "../core/newcomer.ts";
import { lookAtFence } from "../lease/fence-look.ts";
import { placeOf } from "../lease/files/places.ts";
import { kindAt, readRepairFacts } from "../lease/repair-facts.ts";
import { monotonicNow } from "../os/clock.ts";
import { readMachine } from "../os/machine.ts";
import { maySignal } from "../tree/signal.ts";
import { protectionOf } from "../tree/signal-supervisor.ts";
import { troubleOf } from "./lease-facts.ts";
import { type LeaseView, readLeases, type TreeLook } from "./leases.ts";

export interface ExplainQuestion {
  readonly stateDirectory: string;
  readonly key: LeaseKey;
  /** Ids of the runs around whoever asks: a newcomer of theirs cannot wait for them. */
  readonly runsAround: readonly string[];
}

/**
 * @returns "unknown": nothing of the key is there, and the journal knows no grant of it
 * @throws WatchdogError as `readLeases`
 */
export async function readExplanation(
  { stateDirectory, key, runsAround }: ExplainQuestion,
  look: TreeLook,
): Promise<Explanation | "unknown"> {
  const [view] = await readLeases({ stateDirectory, keys: [key] }, look);
  const place = placeOf(stateDirectory, key);
  if (view === undefined || isUnknown(view, place.directory)) return "unknown";
  const fence = view.evidence.fence ?? lookAtFence(place, view.evidence.lock);
  const evidence = { ...view.evidence, fence };
  const machine = readMachine();
  const facts = readRepairFacts(place, evidence, { machine, sight: { protectionOf, maySignal } });
  const here = { ...machine, monotonicMs: monotonicNow(), runsAround };
  return explainLease({ evidence, facts, here });
}

/** With `--on-survivors wait` survivors are waited for without `--wait`, and so is an operation. */
function isWait(onSurvivors: string, decision: NewcomerDecision): boolean {
  const those: readonly string[] = ["survivors-alive", "fenced-operation"];
  const isForThem = decision.kind === "refuse" && those.includes(decision.because);
  return onSurvivors === "wait" && isForThem;
}

function isUnknown({ verdict }: LeaseView, directory: string): boolean {
  const isUnheard = verdict.because === "never-held" || verdict.because === "nothing-recorded";
  return isUnheard && kindAt(directory) === "missing";
}

/** As `lease explain --json` shows it. A contract; ignore unknown fields. */
export function showExplanation(explanation: Explanation): Record<string, unknown> {
  const { key, evidence, verdict, signals, rules, newcomer, options } = explanation;
  const { tree } = evidence;
  return {
    format: 1,
    key: renderKey(key),
    verdict: verdict.name,
    rule: verdict.rule,
    because: verdict.because,
    trouble: troubleOf({ key, evidence, verdict }) ?? null,
    signals: signals.map(({ name, says, raw }) => ({ name, says, raw })),
    rules: rules.map(({ rule, state, misses }) => ({ rule, state, misses })),
    newcomer: Object.entries(newcomer).map(([onSurvivors, decision]) => ({
      on_survivors: onSurvivors,
      does: isWait(onSurvivors, decision) ? "wait" : decision.kind,
      because: decision.kind === "end-survivors" ? verdict.because : decision.because,
      outcome:
        decision.kind === "refuse" && !isWait(onSurvivors, decision) ? decision.status : null,
      can_wait: decision.kind === "refuse" ? decision.canWait : null,
      leaves_note: decision.kind === "refuse" && decision.leavesNote,
    })),
    cooldown_ms: Math.ceil(explanation.cooldownMs),
    plans: options.map(({ planId, action, needs, because }) => ({
      plan_id: planId,
      action,
      needs,
      because,
    })),
    survivors: tree === "unread" ? null : tree.members.map(showProcess),
    suspects: tree === "unread" ? null : tree.suspects.map(showProcess),
  };
}

function showProcess({ pid, start_time, command, isSignalable, isAncestor }: FoundProcess): object {
  return {
    pid,
    start_time,
    command,
    is_signalable: isSignalable,
    is_ancestor: isAncestor,
  };
}
