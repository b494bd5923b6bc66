/**
 * The name of one plan of a repair: ten hex digits over everything that it rests on. What a person
 * has approved is carried out only while the same evidence gives the same name. Pure.
 *
 * Always: ages and readings that change by themselves are not in it, or nothing could ever be
 * approved; whatever tells one owner, process or file from another is. Of a lock that is taken the
 * beats count too: one more beat, and the owner is not what the person has seen.
 */
import type { FoundProcess } from "./evidence.ts";
import { renderKey } from "./lease-key.ts";
import type { RepairAction, RepairView } from "./repair-plan.ts";

const DIGITS = 10;

/** What is stable of the evidence; stored in the audit as it is. */
export interface StableEvidence {
  readonly key: string;
  readonly verdict: string;
  readonly rule: string;
  readonly because: string;
  readonly generation: number | null;
  readonly run_id: string | null;
  /** `pid@start state`; null: nobody is recorded. */
  readonly owner: string | null;
  /** `held`, `free` or `unaskable`, and which file that is. */
  readonly lock: string;
  readonly fence: string;
  readonly record: string;
  readonly recorded_boot: string | null;
  readonly boot: string;
  readonly heartbeat_seq: number | null;
  /** `pid@start`, sorted; null: not looked for, or unread. */
  readonly members: readonly string[] | null;
  readonly suspects: readonly string[] | null;
  readonly note: string;
}

export function stableEvidenceOf(view: RepairView): StableEvidence {
  const { evidence, verdict, facts } = view;
  const { source, record, slot, tree, lock } = evidence;
  const sequence = slot?.head.sequence ?? null;
  return {
    key: renderKey(evidence.key),
    verdict: verdict.name,
    rule: verdict.rule,
    because: verdict.because,
    generation: source.kind === "read" ? source.generation : null,
    run_id: source.kind === "read" ? source.runId : null,
    owner: describeOwner(view),
    lock: describeLock(view),
    fence: nameKind(facts.fenceFile),
    record: facts.recordFile,
    recorded_boot: record?.boot_id ?? slot?.head.bootId ?? null,
    boot: facts.bootId,
    heartbeat_seq: lock.kind === "held" ? sequence : null,
    members: tree === "unread" ? null : nameAll(tree.members),
    suspects: tree === "unread" ? null : nameAll(tree.suspects),
    note: evidence.note,
  };
}

/**
 * Of a free lock it counts whether it is the recorded one: the file itself is made by whoever looks
 * under it, where it was missing.
 */
function describeLock({ evidence, facts }: RepairView): string {
  const { lock, sameLockInode } = evidence;
  if (lock.kind === "free") return `free, recorded: ${sameLockInode}`;
  return `${lock.kind} ${facts.lockFile} ${facts.lockInode ?? "-"}`;
}

/** The same for the fence. */
function nameKind(kind: RepairView["facts"]["fenceFile"]): string {
  return kind === "missing" ? "regular" : kind;
}

function describeOwner({ evidence, facts }: RepairView): string | null {
  const { record, slot } = evidence;
  const owner = ownerOf(record ?? null, slot?.body?.owner ?? null);
  return owner === null ? null : `${owner} ${facts.owner.state}`;
}

/** @param generation  the number of `--set-generation`, which belongs to what is approved */
export function planIdOf(view: RepairView, action: RepairAction, generation?: number): string {
  const content = { evidence: stableEvidenceOf(view), action, generation: generation ?? null };
  return new Bun.CryptoHasher("sha256")
    .update(renderCanonical(content))
    .digest("hex")
    .slice(0, DIGITS);
}

/** JSON with the fields of every object in the order of their names. */
export function renderCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderCanonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const rendered = fields.map(([name, one]) => `${JSON.stringify(name)}:${renderCanonical(one)}`);
  return `{${rendered.join(",")}}`;
}

function ownerOf(
  record: { readonly pid: number; readonly pid_start_time: number } | null,
  owner: { readonly pid: number; readonly start_time: number } | null,
): string | null {
  if (record !== null) return `${record.pid}@${record.pid_start_time}`;
  return owner === null ? null : `${owner.pid}@${owner.start_time}`;
}

function nameAll(found: readonly FoundProcess[]): string[] {
  return found.map(({ pid, start_time }) => `${pid}@${start_time}`).toSorted();
}
