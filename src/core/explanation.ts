/**
 * All that is known about a lease and all that follows from it, as one piece of data: each signal
 * as it was read, each rule with what of it is not so, and what a newcomer and a repair may do.
 * Pure; decides nothing itself, and refuses to know words for people and how facts are read.
 *
 * Always: verdict, newcomer and repair are those of the decisions that everybody else acts on
 * (core/lease-verdict.ts, newcomer.ts, repair-plan.ts); what could not be read is `unread`, and
 * never told as a no.
 */
import { endedOwnerMarkOf, type Fact, type LeaseEvidence, type TreeFinding } from "./evidence.ts";
import { type ExplainedRule, explainRules } from "./explained-rules.ts";
import type { LeaseKey } from "./lease-key.ts";
import { decideVerdict, type Verdict } from "./lease-verdict.ts";
import { decideNewcomer, type NewcomerDecision } from "./newcomer.ts";
import { planIdOf } from "./plan-id.ts";
import { decideRepair, type RepairFacts, type RepairOption } from "./repair-plan.ts";
import { DEFAULT_REPAIR_COOLDOWN_MS, type SurvivorPolicy } from "./run-options.ts";
import { remainingCooldown } from "./second-look.ts";

/** In the order in which they are told. */
export type SignalName =
  | "lock-taken"
  | "fence-taken"
  | "generation-known"
  | "released"
  | "released-by-journal"
  | "used-before"
  | "same-boot"
  | "same-machine"
  | "same-lock-file"
  | "owner-alive"
  | "namespace-contained"
  | "pids-comparable"
  | "beat-fresh"
  | "tree-empty"
  | "note-old";

export interface Signal {
  readonly name: SignalName;
  readonly says: Fact;
  /** What was read, for people. */
  readonly raw: string;
}

/** Who asks, as far as what is recorded is held against it. */
export interface Here {
  readonly bootId: string;
  readonly machineId: string | null;
  readonly host: string;
  readonly pidNamespace: string;
  readonly timeNamespace: string | null;
  /** CLOCK_MONOTONIC. */
  readonly monotonicMs: number;
  /** Ids of the runs around the one who asks. */
  readonly runsAround: readonly string[];
}

export interface ExplainedOption extends RepairOption {
  /** Null: nothing is done, or the number that belongs to it is not given yet. */
  readonly planId: string | null;
}

export interface Explanation {
  readonly key: LeaseKey;
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
  readonly signals: readonly Signal[];
  readonly rules: readonly ExplainedRule[];
  /** By `--on-survivors`. */
  readonly newcomer: Readonly<Record<SurvivorPolicy, NewcomerDecision>>;
  /** Milliseconds that nobody is granted it, as usual, after a repair has ended its owner. */
  readonly cooldownMs: number;
  readonly options: readonly ExplainedOption[];
}

export interface ExplanationView {
  readonly evidence: LeaseEvidence;
  readonly facts: RepairFacts;
  readonly here: Here;
}

export function explainLease({ evidence, facts, here }: ExplanationView): Explanation {
  const verdict = decideVerdict(evidence);
  const view = { evidence, verdict, facts };
  return {
    key: evidence.key,
    evidence,
    verdict,
    signals: listSignals(evidence, facts, here),
    rules: explainRules(evidence),
    newcomer: {
      kill: decideFor("kill", evidence, here),
      wait: decideFor("wait", evidence, here),
      refuse: decideFor("refuse", evidence, here),
    },
    cooldownMs: remainingCooldown(endedOwnerMarkOf(evidence), DEFAULT_REPAIR_COOLDOWN_MS, here),
    options: decideRepair(view).options.map((option) => {
      const hasId = option.action !== "none" && option.action !== "set-generation";
      return { ...option, planId: hasId ? planIdOf(view, option.action) : null };
    }),
  };
}

function decideFor(
  onSurvivors: SurvivorPolicy,
  evidence: LeaseEvidence,
  { runsAround }: Here,
): NewcomerDecision {
  const { source, note } = evidence;
  const isHeldByRunAround =
    source.kind === "read" && !source.isReleased && runsAround.includes(source.runId);
  const facts = { isHeldByRunAround, note, evidence, onSurvivors };
  return decideNewcomer(decideVerdict(evidence), facts);
}

function listSignals(evidence: LeaseEvidence, facts: RepairFacts, here: Here): Signal[] {
  const { hasHistory, isReleasedByJournal } = evidence;
  return [
    tellLock(evidence, facts),
    tellFence(evidence),
    ...tellSource(evidence),
    tell("released-by-journal", isReleasedByJournal, JOURNAL[isReleasedByJournal]),
    tell("used-before", hasHistory, HISTORY[hasHistory]),
    ...tellPlace(evidence, facts, here),
    ...tellOwner(evidence, facts, here),
    tellBeat(evidence),
    tellTree(evidence.tree),
    tellNote(evidence),
  ];
}

function tell(name: SignalName, says: Fact, raw: string): Signal {
  return { name, says, raw };
}

const JOURNAL: Readonly<Record<Fact, string>> = {
  yes: "the journal says that this generation was given back",
  no: "the journal does not say so",
  unread: "not asked, or no answer in time",
};

const HISTORY: Readonly<Record<Fact, string>> = {
  yes: "something of an earlier grant is there",
  no: "nothing of an earlier grant is there",
  unread: "the directory of the key could not be read",
};

function tellLock({ lock }: LeaseEvidence, { lockFile, lockInode }: RepairFacts): Signal {
  const file = `${lockFile}${lockInode === null ? "" : ` ${lockInode}`}`;
  if (lock.kind === "unaskable") return tell("lock-taken", "unread", `${lock.reason} (${file})`);
  return lock.kind === "held"
    ? tell("lock-taken", "yes", `the kernel refuses it: somebody has it (${file})`)
    : tell("lock-taken", "no", `the kernel gives it: nobody has it (${file})`);
}

function tellFence({ fence }: LeaseEvidence): Signal {
  if (fence === undefined) return tell("fence-taken", "unread", "not asked");
  const { isTaken, by, reason } = fence;
  if (isTaken === "unread") return tell("fence-taken", "unread", reason ?? "not to be asked");
  if (isTaken === "no") return tell("fence-taken", "no", "nobody has it");
  const named = by.map(({ pid, command }) => `${pid} ${command}`).join(", ");
  return tell("fence-taken", "yes", named === "" ? "somebody has it, not seen from here" : named);
}

function tellSource({ source, record }: LeaseEvidence): Signal[] {
  if (source.kind !== "read") {
    const isNone = source.kind === "none";
    const raw = isNone ? "no record, no beat, nothing in the journal" : source.reason;
    return [
      tell("generation-known", isNone ? "no" : "unread", raw),
      tell("released", "unread", "no generation is known"),
    ];
  }
  const { generation, runId, from, isReleased } = source;
  const at = record?.released_at ?? undefined;
  const raw = `${from} says ${isReleased ? "released" : "held"}`;
  return [
    tell("generation-known", "yes", `${generation} of run ${runId}, from the ${from}`),
    tell("released", isReleased ? "yes" : "no", at === undefined ? raw : `${raw} at ${at}`),
  ];
}

function tellPlace(evidence: LeaseEvidence, facts: RepairFacts, here: Here): Signal[] {
  const { record, slot, sameBoot, sameMachine, sameLockInode } = evidence;
  const boot = record?.boot_id ?? slot?.head.bootId;
  const machine = record === undefined ? undefined : `${record.machine_id} ${record.host}`;
  const inode = record?.lock_inode ?? slot?.body?.lockInode;
  return [
    tell("same-boot", sameBoot, compare(boot, here.bootId)),
    tell("same-machine", sameMachine, compare(machine, `${here.machineId} ${here.host}`)),
    tell("same-lock-file", sameLockInode, compare(inode, facts.lockInode)),
  ];
}

function compare(recorded: string | undefined, here: string | null): string {
  return `recorded ${recorded ?? "nothing"}, here ${here ?? "nothing"}`;
}

function tellOwner(evidence: LeaseEvidence, { owner }: RepairFacts, here: Here): Signal[] {
  const { ownerAlive, namespaceContained, recordedPids } = evidence;
  const { named, pidNamespace, time } = nameOwner(evidence);
  const pids = `${COUNTED[recordedPids]}; time namespace ${compare(time, here.timeNamespace)}`;
  return [
    tell("owner-alive", ownerAlive, `${named}, state ${owner.state}`),
    tell("namespace-contained", namespaceContained, compare(pidNamespace, here.pidNamespace)),
    tell("pids-comparable", recordedPids === "incomparable" ? "no" : "yes", pids),
  ];
}

interface NamedOwner {
  readonly named: string;
  readonly pidNamespace?: string;
  readonly time?: string;
}

/** From the record, or else from its slot. */
function nameOwner({ record, slot }: LeaseEvidence): NamedOwner {
  const body = slot?.body;
  if (record !== undefined) {
    const named = `pid ${record.pid} started at ${record.pid_start_time}`;
    const time = record.time_namespace;
    return { named, pidNamespace: record.pid_namespace, ...(time === null ? {} : { time }) };
  }
  if (body === undefined) return { named: "nobody is recorded" };
  const { owner, pidNamespace, timeNamespace: time } = body;
  const named = `pid ${owner.pid} started at ${owner.start_time}`;
  return { named, pidNamespace, ...(time === null ? {} : { time }) };
}

const COUNTED: Readonly<Record<LeaseEvidence["recordedPids"], string>> = {
  ours: "counted as here",
  "below-ours": "counted in a pid namespace below this one",
  incomparable: "they cannot be held against those seen here",
};

function tellBeat({ beatAgeMs, staleAfterMs, slot }: LeaseEvidence): Signal {
  const limit = `stale after ${staleAfterMs} ms`;
  const isAge = beatAgeMs !== undefined && beatAgeMs >= 0;
  if (!isAge) {
    const why = beatAgeMs === undefined ? "age unread" : `of the future (${beatAgeMs} ms)`;
    return tell("beat-fresh", "unread", `${why}, ${limit}`);
  }
  const raw = `beat ${slot?.head.sequence ?? "?"} is ${Math.round(beatAgeMs)} ms old, ${limit}`;
  return tell("beat-fresh", beatAgeMs > staleAfterMs ? "no" : "yes", raw);
}

function tellTree(tree: TreeFinding | "unread"): Signal {
  if (tree === "unread") return tell("tree-empty", "unread", "not needed, or not to be read");
  const { members, suspects, isBlind } = tree;
  const raw = `${members.length} proven, ${suspects.length} suspected`;
  if (members.length + suspects.length > 0) return tell("tree-empty", "no", raw);
  return isBlind === true
    ? tell("tree-empty", "unread", `${raw}; not all of the last beat could be compared`)
    : tell("tree-empty", "yes", raw);
}

function tellNote({ note, staleAfterMs }: LeaseEvidence): Signal {
  if (note === "unread") return tell("note-old", "unread", "the note could not be read");
  if (note === "none") return tell("note-old", "no", "no newcomer has left a note");
  const raw = `an earlier newcomer's note is ${note}: the limit is ${staleAfterMs} ms`;
  return tell("note-old", note === "old" ? "yes" : "no", raw);
}
