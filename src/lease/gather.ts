/**
 * Gathers the evidence about one lease. Refuses to know what follows from it
 * (core/lease-verdict.ts), and does not look at the processes of a dead owner's tree: that is
 * `tree: "unread"` until whoever wants to know has looked.
 *
 * Guarantees: read only, and a fact that could not be had is `unread`, never a guess; pids are
 * looked up only where they are of our boot and our pid namespace. Non-guarantees: that the facts
 * are of one instant; who acts on them holds the lock and looks again. Clock: MONOTONIC, compared
 * with the beat's only within one boot and one time namespace. Crash behaviour: none.
 */
import { WatchdogError } from "../core/errors.ts";
import type {
  Fact,
  JournalLease,
  LeaseEvidence,
  LockAnswer,
  RecordSource,
} from "../core/evidence.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import { monotonicNow } from "../os/clock.ts";
import { isAlive, type Machine } from "../os/machine.ts";
import { readFloor } from "./files/floors.ts";
import { type LastGeneration, readLastGeneration } from "./last-generation.ts";
import { askLock, inodeAt } from "./files/lock-file.ts";
import { compareOwner, findRecordedOwner } from "./recorded-owner.ts";
import { findOwnerEnding } from "./files/owner-ending.ts";
import { findRepairerOf } from "./files/repairer.ts";
import { type LeasePlace, placeOf } from "./files/places.ts";
import { readNote } from "./files/seen-note.ts";
import { findWaitingStart } from "./files/starting.ts";

export { mergeShown } from "./shown-lease.ts";

/** Where neither record nor slot tells the limit: the default of `--stale-after`. */
const USUAL_STALE_AFTER_MS = 40_000;

/** Who looks, and from where. */
export interface Looker {
  readonly stateDirectory: string;
  readonly machine: Machine;
  /** "unread": it did not answer in time. Asked only where the files leave something open. */
  readonly journal: (key: LeaseKey) => JournalLease | undefined | "unread";
  /** A repair looks for no other: it has their common lock itself. */
  readonly isRepair?: true;
}

/**
 * @param lock  the kernel's answer if the caller has it already: who holds the lock itself asks
 *   about it as `free`. Without it the lock is asked for a moment (LOCK_SH).
 */
export function gatherEvidence(looker: Looker, key: LeaseKey, lock?: LockAnswer): LeaseEvidence {
  const { machine } = looker;
  const place = placeOf(looker.stateDirectory, key);
  const answer = lock ?? askLock(place.lock);
  const last = readLastGeneration(place);
  const journal = answer.kind === "free" ? askJournal(looker, place, last) : NOT_ASKED;
  const { record, slot, hasHistory } = last;
  const lockInode = inodeAt(place.lock);
  const nowMs = monotonicNow();
  const facts = compareOwner(findRecordedOwner(last), slot, {
    machine,
    lockInode,
    nowMs,
    isAlive,
  });
  const source = journal.source ?? last.source;
  const staleAfterMs = record?.stale_after_ms ?? slot?.head.staleAfterMs ?? USUAL_STALE_AFTER_MS;
  return {
    key,
    lock: answer,
    source,
    record,
    slot,
    hasHistory,
    isReleasedByJournal: journal.isReleased,
    ...facts,
    staleAfterMs,
    note:
      source.kind === "read"
        ? noteOf(place, source.generation, { machine, nowMs, staleAfterMs })
        : "none",
    tree: "unread",
    ...readHands(looker, place, { answer, source, facts }),
  };
}

interface Answered {
  readonly answer: LockAnswer;
  readonly source: RecordSource;
  readonly facts: Pick<LeaseEvidence, "ownerAlive">;
}

/** Of a lock that its living owner has, none is asked: nothing follows from it. */
function readHands(
  { machine, stateDirectory, isRepair }: Looker,
  place: LeasePlace,
  { answer, source, facts }: Answered,
): Pick<LeaseEvidence, "repairer" | "waitingStart" | "ownerEnding"> {
  if (answer.kind === "held") {
    if (facts.ownerAlive === "yes" && !isOver(source)) return {};
    const repairer = isRepair ? undefined : findRepairerOf(stateDirectory, place.lock);
    if (repairer !== undefined) return { repairer };
    const waitingStart = findWaitingStart(stateDirectory, place.lock);
    return waitingStart === undefined ? {} : { waitingStart };
  }
  if (source.kind !== "read") return {};
  const { generation, runId } = source;
  const ownerEnding = findOwnerEnding(place, { generation, runId, machine });
  return ownerEnding === undefined ? {} : { ownerEnding };
}

function isOver(source: RecordSource): boolean {
  return source.kind !== "read" || source.isReleased;
}

function noteOf(
  place: LeasePlace,
  generation: number,
  { machine, nowMs, staleAfterMs }: { machine: Machine; nowMs: number; staleAfterMs: number },
): LeaseEvidence["note"] {
  const { bootId, timeNamespace } = machine;
  return readNote(place, { generation, bootId, timeNamespace, nowMs, staleAfterMs });
}

interface JournalFinding {
  readonly isReleased: Fact;
  /** Where the files tell nothing and the journal does. */
  readonly source: RecordSource | undefined;
}

const NOT_ASKED: JournalFinding = { isReleased: "unread", source: undefined };

/** A released record leaves nothing open, and then the journal costs nothing. */
function askJournal(looker: Looker, place: LeasePlace, last: LastGeneration): JournalFinding {
  const isOpen = last.source.kind !== "read" || !last.source.isReleased;
  if (!isOpen || last.leastElsewhere === undefined) return NOT_ASKED;
  const found = looker.journal(place.key);
  if (found === "unread") return NOT_ASKED;
  if (found === undefined || found.generation < last.leastElsewhere) {
    return { isReleased: "no", source: undefined };
  }
  if (last.source.kind === "read") {
    return { isReleased: found.isReleased ? "yes" : "no", source: undefined };
  }
  const isReleased = found.isReleased || found.generation <= knownFloor(place);
  const { generation, runId } = found;
  return {
    isReleased: isReleased ? "yes" : "no",
    source: { kind: "read", from: "journal", generation, isReleased, runId },
  };
}

/**
 * A directory is removed only when its last generation is over (lease/sweep.ts), so that a floor
 * says of all numbers up to it that they are.
 */
function knownFloor(place: LeasePlace): number {
  try {
    return readFloor(place);
  } catch (cause) {
    if (cause instanceof WatchdogError) return 0; // it cannot be read: then it proves nothing
    throw cause;
  }
}
