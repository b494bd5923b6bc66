/**
 * A lease as `--json` shows it: record and slot under the names of one list. A contract; ignore
 * unknown fields. Decides nothing.
 *
 * Always: every name is there, null where it is not known.
 */
import { type LeaseEvidence, repairMarkOf } from "../core/evidence.ts";
import { describeProgress } from "../core/described-progress.ts";
import type { LeaseRecord, ProcessIdentity, Slot } from "../core/lease-record.ts";

/** In the order in which they are shown. */
const RECORD_FIELDS = [
  "run_path",
  "job",
  "runner",
  "host",
  "machine_id",
  "boot_id",
  "pid",
  "pid_start_time",
  "pid_namespace",
  "time_namespace",
  "lock_inode",
  "uid",
  "session_started_at",
  "acquired_at",
  "released_at",
  "heartbeat_interval_ms",
  "stale_after_ms",
  "lane",
  "task_id",
  "worktree",
  "branch",
  "command",
  "cgroup",
] as const satisfies readonly (keyof LeaseRecord)[];

/** The farthest instant that a Date holds (ECMA-262, time values). */
const FARTHEST_MS = 8.64e15;

export function mergeShown(evidence: LeaseEvidence): Record<string, unknown> {
  const { key, record, slot, source } = evidence;
  const isKnown = source.kind === "read";
  return {
    format: record?.format ?? null,
    kind: key.kind,
    name: key.name,
    generation: isKnown ? source.generation : null,
    state: stateOf(evidence),
    run_id: isKnown ? source.runId : null,
    ...Object.fromEntries(RECORD_FIELDS.map((name) => [name, record?.[name] ?? null])),
    previous: showPrevious(record),
    repair: repairMarkOf(evidence) ?? null,
    ...(record === undefined && slot !== undefined ? ownerOf(slot) : {}),
    ...beatOf(slot),
    progress: showProgress(slot),
  };
}

function showPrevious(record: LeaseRecord | undefined): unknown {
  const previous = record?.previous ?? null;
  return previous === null ? null : { ...previous, repair: previous.repair ?? null };
}

function beatOf(slot: Slot | undefined): Record<string, unknown> {
  return {
    heartbeat_at: instantOf(slot?.head.wallMs),
    heartbeat_seq: slot?.head.sequence ?? null,
    main_loop_seq: slot?.head.mainLoopSequence ?? null,
    run_state: slot?.head.runState ?? null,
    children: childrenOf(slot),
    member_count: slot?.body?.memberCount ?? null,
  };
}

/** A generation is released if either the record or the journal says so. */
function stateOf({ source, isReleasedByJournal }: LeaseEvidence): "held" | "released" | null {
  if (source.kind !== "read") return null;
  return source.isReleased || isReleasedByJournal === "yes" ? "released" : "held";
}

/** What a slot alone tells of its owner. */
function ownerOf({ head, body }: Slot): Record<string, unknown> {
  return {
    boot_id: head.bootId,
    stale_after_ms: head.staleAfterMs,
    ...(body === undefined
      ? {}
      : {
          pid: body.owner.pid,
          pid_start_time: body.owner.start_time,
          pid_namespace: body.pidNamespace,
          time_namespace: body.timeNamespace,
          lock_inode: body.lockInode,
        }),
  };
}

/** The main command first, then the other members as of the last beat. */
function childrenOf(slot: Slot | undefined): ProcessIdentity[] | null {
  if (slot?.body === undefined) return null;
  const { mainChild, members } = slot.body;
  const all = mainChild === null ? members : [mainChild, ...members];
  const byIdentity = new Map(
    all.map(({ pid, start_time }) => [`${pid}@${start_time}`, { pid, start_time }]),
  );
  return [...byIdentity.values()];
}

/** As of the last time that the run has shown it. Null: it tells nothing of it. */
function showProgress(slot: Slot | undefined): Record<string, unknown> | null {
  const found = describeProgress(slot);
  if (found === undefined || slot === undefined) return null;
  const at = (ms: number | null): string | null =>
    ms === null ? null : instantOf(slot.head.wallMs - (slot.head.monotonicMs - ms));
  return {
    ok: found.ok,
    failed: found.failed,
    done: found.done,
    total: found.total,
    checkpoint: found.checkpoint,
    last_message: found.lastMessage,
    rate_per_minute: rounded(found.ratePerMinute, 2),
    time_left_ms: rounded(found.timeLeftMs, 0),
    reported_at: at(found.reportedMs),
    last_output_at: at(found.lastOutputMs),
    files_changed_at: at(found.filesChangedMs),
    cpu_ms: found.cpuMs,
    cpu_percent: rounded(found.cpuPercent, 1),
    io_bytes: found.ioBytes,
    io_bytes_per_minute: rounded(found.ioBytesPerMinute, 0),
    measured_at: at(found.measuredMs),
  };
}

function rounded(value: number | null, digits: number): number | null {
  if (value === null || !Number.isFinite(value)) return null;
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

function instantOf(wallMs: number | undefined): string | null {
  const isDate = wallMs !== undefined && Math.abs(wallMs) <= FARTHEST_MS;
  return isDate ? new Date(wallMs).toISOString() : null;
}
