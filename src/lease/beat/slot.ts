/**
 * What a beat writes down, put together from what is fixed for a generation and what is true at
 * this moment. Pure; the bytes are a matter of `slot.ts`.
 */
import type {
  ProcessIdentity,
  SlotCounts,
  SlotOwner,
  SlotRunState,
  SlotWork,
} from "../../core/lease-record.ts";
import type { Progress } from "../../core/progress.ts";
import type { BeatLease } from "./events.ts";
import type { WholeSlot } from "../files/slot.ts";

/** One moment on the three clocks, in milliseconds. */
export interface BeatMoment {
  readonly monotonicMs: number;
  readonly boottimeMs: number;
  readonly wallMs: number;
}

/** What the slots of all leases say alike. */
export interface BeatFacts {
  readonly owner: SlotOwner;
  readonly sessionId: number;
  readonly mainGroup: ProcessIdentity | null;
  readonly mainChild: SlotOwner | null;
  readonly guard: ProcessIdentity | null;
  readonly runState: SlotRunState;
  readonly mainLoopSequence: number;
  readonly mainLoopMs: number;
  readonly members: readonly ProcessIdentity[];
  readonly memberCount: number;
  readonly progress: Progress;
}

export interface SlotParts {
  readonly lease: BeatLease;
  /** Of the lock file that is held now: a restored one is another than the record of the grant. */
  readonly lockInode: string;
  readonly sequence: number;
  readonly moment: BeatMoment;
  readonly facts: BeatFacts;
}

export function composeSlot(parts: SlotParts): WholeSlot {
  const { lease, lockInode, sequence, moment } = parts;
  const { generation, record } = lease;
  const { mainLoopSequence, mainLoopMs, runState, progress, ...processes } = parts.facts;
  return {
    head: {
      generation,
      sequence,
      mainLoopSequence,
      bootId: record.boot_id,
      ...moment,
      mainLoopMs,
      staleAfterMs: record.stale_after_ms,
      runState,
      counts: countsOf(progress),
    },
    body: {
      runId: record.run_id,
      lockInode,
      pidNamespace: record.pid_namespace,
      timeNamespace: record.time_namespace,
      ...processes,
      work: workOf(progress),
    },
  };
}

function countsOf({ items }: Progress): SlotCounts | null {
  if (items === null) return null;
  const { ok, failed, total } = items;
  return { ok, failed, total };
}

function workOf({ items, ...signs }: Progress): SlotWork | null {
  if (items === null)
    return Object.values(signs).every((one) => one === null) ? null : { ...signs, told: null };
  const { checkpoint, lastMessage, ratePerMinute, reportedMs } = items;
  return { ...signs, told: { checkpoint, lastMessage, ratePerMinute, reportedMs } };
}
