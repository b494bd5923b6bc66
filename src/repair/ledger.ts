/**
 * The audit in the words of a repair: what it means to do is written down before, what came of it
 * after, and what an earlier one has left without an end is found here. Decides nothing.
 *
 * Guarantees: an act has begun only after its intention is on the disk. Non-guarantees: an end that
 * could not be written leaves the act open, which the next repair tells. Clock: MONOTONIC and the
 * wall clock, in the lines. Crash behaviour: an intention without an end.
 */
import type { AuditEntry } from "../core/journal-entry.ts";
import { type LeaseKey, parseKey, renderKey } from "../core/lease-key.ts";
import { type StableEvidence, stableEvidenceOf } from "../core/plan-id.ts";
import { decideLimit, isLimited, type LimitDecision, type PastAct } from "../core/repair-limits.ts";
import type { RepairAction, RepairView } from "../core/repair-plan.ts";
import { type AuditAct, AuditLog } from "../journal/audit.ts";
import { readHistory } from "../journal/queries.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { findAskedRun, forgetIntended, isEndedByPlan } from "./announce.ts";
import type { RepairLooker } from "./gather.ts";
import type { InterruptedAct, RepairOptions } from "./request.ts";

/** Closes an act that somebody else has begun. */
const INTERRUPTED = "interrupted";
const FINISHED_LATER = "finished-later";
/** Reasons of acts that have failed after somebody was signalled. */
const SIGNALLED: ReadonlySet<string> = new Set(["survivors-remain", "owner-still-there"]);
/** Runs of a key that are looked at for one that ended by itself. */
const LOOK_BACK = 50;
/** How a run ends that was one, and that nobody has ended (core/outcome-table.ts). */
const BY_ITSELF: ReadonlySet<string> = new Set([
  "ok",
  "failed",
  "signaled",
  "timeout",
  "idle_timeout",
]);

/** What is about to be done. */
export interface Intention {
  readonly actId: string;
  readonly planId: string;
  readonly key: LeaseKey;
  readonly action: RepairAction;
  readonly generation: number | null;
}

export class RepairLedger {
  readonly #looker: RepairLooker;
  readonly #audit: AuditLog;
  #acts: readonly AuditAct[] | undefined;

  constructor(looker: RepairLooker) {
    this.#looker = looker;
    this.#audit = new AuditLog(looker.stateDirectory);
  }

  get notes(): readonly string[] {
    return this.#audit.notes;
  }

  close(): void {
    this.#audit.close();
  }

  /** @throws WatchdogError "repair.unusable": nothing may be done then */
  intend(
    view: RepairView,
    option: { readonly action: RepairAction; readonly planId: string; readonly because: string },
  ): Intention {
    const evidence = stableEvidenceOf(view);
    const { key } = view.evidence;
    const { planId, action, because } = option;
    const intention: Intention = {
      actId: crypto.randomUUID(),
      planId,
      key,
      action,
      generation: evidence.generation,
    };
    faultPoint("repair.intend", { key: renderKey(key), action, planId });
    this.#append(intention, { phase: "intended", because, evidence });
    return intention;
  }

  /** @throws WatchdogError "repair.unusable": what was done stays without its line */
  end(intention: Intention, phase: "done" | "failed", because: string): void {
    const { key, action, planId } = intention;
    faultPoint("repair.record", { key: renderKey(key), action, planId, end: phase });
    this.#append(intention, { phase, because, evidence: {} });
  }

  /** An approval whose evidence is not that of now: nothing was begun. */
  refuse(view: RepairView, asked: { action: RepairAction; planId: string; because: string }): void {
    const evidence = stableEvidenceOf(view);
    const { action, planId, because } = asked;
    const { key } = view.evidence;
    const { generation } = evidence;
    const intention = { actId: crypto.randomUUID(), planId, key, action, generation };
    this.#append(intention, { phase: "refused", because, evidence });
  }

  /**
   * An approval of a plan that nothing has now. Of which key it was nobody knows, if not one alone
   * was asked for.
   */
  refuseUnknown(planId: string, keys: readonly LeaseKey[]): void {
    const [only] = keys;
    const key = keys.length === 1 && only !== undefined ? only : { kind: "plan", name: planId };
    const about = { actId: crypto.randomUUID(), planId, key, action: "none" } as const;
    this.#append(
      { ...about, generation: null },
      { phase: "refused", because: "plan-unknown", evidence: {} },
    );
  }

  /** Acts without an end; nobody is at them, if the lock of repairs is ours. */
  listOpen(): AuditAct[] {
    return this.#all().filter(({ phase }) => phase === "intended");
  }

  /**
   * Gives each of them an end. Where all was done but the last line, the journal is told once more.
   * @param tellJournal  safe to repeat
   */
  closeOpen(tellJournal: (key: LeaseKey) => void): InterruptedAct[] {
    this.#audit.prepare();
    return this.listOpen().map((act) => {
      const key = parseKey(act.key);
      const isCompleted = key !== undefined && isEndedByPlan(this.#looker.placeOf(key), act.planId);
      if (isCompleted) tellJournal(key);
      if (key !== undefined) {
        if (act.action === "end-owner") forgetIntended(this.#looker, act.planId);
        const { actId, planId, generation } = act;
        const intention = { actId, planId, key, action: act.action as RepairAction, generation };
        this.#append(intention, {
          phase: isCompleted ? "done" : "failed",
          because: isCompleted ? FINISHED_LATER : INTERRUPTED,
          evidence: {},
        });
      }
      const settled = isCompleted ? "completed" : "given-up";
      return { act, settled, askedRun: this.findAsked(act) };
    });
  }

  /** The run whose owner an interrupted act has asked to end, where it still holds its key. */
  findAsked({ key: name, planId, action }: AuditAct): string | undefined {
    const key = action === "end-owner" ? parseKey(name) : undefined;
    return key === undefined ? undefined : findAskedRun(this.#looker.placeOf(key), planId);
  }

  /** Whether an act that nobody has approved may be done on this key now. */
  decideLimit(key: LeaseKey, action: RepairAction, options: RepairOptions): LimitDecision {
    if (!isLimited(action)) return { kind: "go" };
    const acts = this.#all().filter((act) => act.key === renderKey(key));
    return decideLimit({
      acts: acts.map((act) => ({ ...act, end: endOf(act) })),
      now: { at: wallNow(), bootId: this.#looker.machine.bootId, monotonicMs: monotonicNow() },
      lastOwnEndAt: acts.length === 0 ? undefined : this.#findOwnEnd(key),
      intervalMs: options.repairIntervalMs,
      mostInARow: options.maxRepairs,
    });
  }

  #all(): readonly AuditAct[] {
    this.#acts ??= this.#audit.acts();
    return this.#acts;
  }

  #findOwnEnd(key: LeaseKey): number | undefined {
    const target = renderKey(key);
    const answer = readHistory(this.#looker.stateDirectory, { target, limit: LOOK_BACK });
    const runs = answer.kind === "read" ? answer.value : [];
    const ends = runs.flatMap(({ outcome, endedAt, leases }) => {
      // Of `job:NAME` there are runs that never had the key: --no-lease.
      const hadIt = leases.some((lease) => renderKey(lease) === target);
      const isOwnEnd = outcome !== null && BY_ITSELF.has(outcome) && hadIt;
      return isOwnEnd && endedAt !== null ? [endedAt] : [];
    });
    return ends.length === 0 ? undefined : Math.max(...ends);
  }

  #append(
    intention: Intention,
    line: {
      readonly phase: AuditEntry["phase"];
      readonly because: string;
      readonly evidence: StableEvidence | Readonly<Record<string, never>>;
    },
  ): void {
    const { machine } = this.#looker;
    this.#audit.append({
      kind: "audit",
      at: wallNow(),
      ...intention,
      phase: line.phase,
      because: line.because,
      evidence: { ...line.evidence },
      who: `${machine.user}@${machine.host}`,
      uid: machine.uid,
      pid: process.pid,
      bootId: machine.bootId,
      monotonicMs: monotonicNow(),
    });
    this.#acts = undefined;
  }
}

/** What was begun and came to nothing is done again at once; who did not end is left a while. */
function endOf({ phase, because }: AuditAct): PastAct["end"] {
  if (phase === "done") return "repaired";
  return phase === "failed" && SIGNALLED.has(because) ? "tried" : "none";
}
