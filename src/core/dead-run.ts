/**
 * Whose tree is to be looked for where an owner is dead, and what its record and its last beat tell
 * of it. Pure; who of the processes belongs to it is decided in core/survivors.ts.
 */
import type { LeaseEvidence } from "./evidence.ts";
import type { LeaseRecord, ProcessIdentity, Slot, SlotBody } from "./lease-record.ts";
import type { DeadRun, RecordedProcess } from "./survivors-view.ts";

/**
 * Where the cgroup of a run cannot be read any more. No path is like it: a bearer can then not be
 * proven by its place.
 */
export const UNREAD_CGROUP = "unread";

/**
 * The run whose owner is dead, as far as the evidence tells who it was; undefined where nobody's
 * tree is to be looked for: the lock is not free, released, of another boot, or nothing is known.
 *
 * Pids are taken only where they can be compared with ours, in the end; where somebody is named by
 * the last beat and they cannot, the run is blind. Without the record a bearer of the cookie cannot
 * be proven by its place and stays a suspect.
 */
export function deadRunOf(evidence: LeaseEvidence): DeadRun | undefined {
  const runId = runIdOfDead(evidence);
  if (runId === undefined) return undefined;
  const record = evidence.record?.run_id === runId ? evidence.record : undefined;
  const slot = evidence.slot?.body?.runId === runId ? evidence.slot : undefined;
  const cgroup = record === undefined ? UNREAD_CGROUP : record.cgroup;
  const uid = record === undefined ? {} : { ownerUid: record.uid };
  const known = { runId, owner: ownerOf(record, slot?.body), ...uid, cgroup };
  const named = namedBy(slot);
  if (evidence.recordedPids === "incomparable") {
    const owner = { ...known.owner, pid: NOBODY };
    const from = record === undefined ? {} : { unlistedFrom: 0 };
    return { ...known, owner, ...NOBODY_NAMED, ...from, isBlind: namesSomebody(named) };
  }
  const adopters = record?.adopters ?? [];
  const countedIn = evidence.recordedPids === "ours" ? null : namespaceOf(record, slot);
  const from = unlistedFrom(known.owner, slot);
  const between = provenBetween(from.unlistedFrom, slot);
  return { ...known, ...named, ...from, ...between, adopters, countedIn, isBlind: false };
}

/**
 * Whether its last beat says that the owner had made the tree stand still: then nobody is left who
 * would let it go on.
 */
export function wasPaused(run: DeadRun, { slot }: LeaseEvidence): boolean {
  return slot?.body?.runId === run.runId && slot.head.runState === "paused";
}

/**
 * As the subreaper of its tree an owner sees all of it: who was there at the last beat is listed,
 * and where the list is whole nobody who is older and not in it is of the run. A double fork that
 * is going on may hide one for a moment, so that the last second is left out.
 */
function unlistedFrom(
  owner: ProcessIdentity,
  slot: Slot | undefined,
): Pick<DeadRun, "unlistedFrom"> {
  if (owner.pid === NOBODY) return {};
  const { body, head } = slot ?? {};
  const isWhole = body !== undefined && body.memberCount === body.members.length;
  const listed =
    isWhole && head !== undefined ? Math.floor((head.boottimeMs - DOUBLE_FORK_MS) / TICK_MS) : 0;
  return { unlistedFrom: Math.max(owner.start_time, listed) };
}

/**
 * An owner that lives beats again before its last beat is stale; what carries its cookie and is
 * born later was started by somebody who has kept its environment (`at`, `env > file`), as far as
 * anything tells.
 */
function provenBetween(from: number | undefined, slot: Slot | undefined) {
  if (from === undefined || slot === undefined) return {};
  const { boottimeMs, staleAfterMs } = slot.head;
  const until = Math.ceil((boottimeMs + Math.max(staleAfterMs, SHORTEST_SPAN_MS)) / TICK_MS);
  // A head that was written by a broken program tells no span.
  return Number.isFinite(until) ? ({ provenBetween: [from, until] } as const) : {};
}

function namespaceOf(record: LeaseRecord | undefined, slot: Slot | undefined): string | null {
  return record?.pid_namespace ?? slot?.body?.pidNamespace ?? null;
}

/** No process has this pid. */
const NOBODY = 0;

function ownerOf(record: LeaseRecord | undefined, body: SlotBody | undefined): ProcessIdentity {
  if (record !== undefined) return { pid: record.pid, start_time: record.pid_start_time };
  if (body === undefined) return { pid: NOBODY, start_time: 0 };
  return { pid: body.owner.pid, start_time: body.owner.start_time };
}

function runIdOfDead(evidence: LeaseEvidence): string | undefined {
  const { source } = evidence;
  if (evidence.lock.kind !== "free" || evidence.sameBoot === "no") return undefined;
  if (source.kind !== "read" || source.isReleased) return undefined;
  return evidence.isReleasedByJournal === "yes" ? undefined : source.runId;
}

type Named = Omit<
  DeadRun,
  "runId" | "owner" | "ownerUid" | "unlistedFrom" | "provenBetween" | "cgroup" | "isBlind"
>;

const NOBODY_NAMED: Named = {
  recorded: [],
  guard: null,
  adopters: [],
  mainGroup: null,
  unrecordedIn: [],
  countedIn: null,
};

/** Whom the last beat names, or leaves open. */
function namedBy(slot: Slot | undefined): Named {
  if (slot?.body === undefined) return NOBODY_NAMED;
  const { mainChild, members, mainGroup, sessionId, guard } = slot.body;
  const isUnrecorded = slot.head.runState === "starting" && mainChild === null;
  return {
    ...NOBODY_NAMED,
    recorded: listRecorded(mainChild, members),
    guard,
    mainGroup: mainGroup === null ? null : { ...toRecorded(mainGroup, mainChild), sessionId },
    unrecordedIn: isUnrecorded ? [sessionId] : [],
    ...(isUnrecorded ? { unrecordedBetween: spawnWindow(slot.head.boottimeMs) } : {}),
  };
}

/** The main command and the members, each once; whoever is the command has its inode. */
export function listRecorded(
  main: RecordedProcess | null,
  members: readonly ProcessIdentity[],
): readonly RecordedProcess[] {
  const others = members.filter((one) => !isSame(main, one));
  return [...(main === null ? [] : [main]), ...others].map((one) => toRecorded(one, main));
}

function toRecorded(one: ProcessIdentity, main: RecordedProcess | null): RecordedProcess {
  const { pid, start_time } = one;
  const inode = isSame(main, one) ? (main?.pidfd_inode ?? 0) : 0;
  return inode === 0 ? { pid, start_time } : { pid, start_time, pidfd_inode: inode };
}

function isSame(one: ProcessIdentity | null, other: ProcessIdentity): boolean {
  return one?.pid === other.pid && one.start_time === other.start_time;
}

/** The spawn follows the first beat at once; a loaded machine may take its time. */
const LONGEST_TO_SPAWN_MS = 5_000;
const TICK_MS = 10;
const DOUBLE_FORK_MS = 1_000;
/** A loaded machine may take its time between two beats. */
const SHORTEST_SPAN_MS = 10_000;

function spawnWindow(beatMs: number): readonly [number, number] {
  const first = Math.floor(beatMs / TICK_MS) - 1;
  return [first, first + LONGEST_TO_SPAWN_MS / TICK_MS];
}

function namesSomebody({ recorded, mainGroup, unrecordedIn }: Named): boolean {
  return recorded.length > 0 || mainGroup !== null || unrecordedIn.length > 0;
}
