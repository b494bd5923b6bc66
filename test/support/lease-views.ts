/** Views of leases and rows of runs as `inspect/` hands them out: for tests of facts and words. */
import type { LeaseEvidence } from "../../src/core/evidence.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import type { LeaseView } from "../../src/inspect/leases.ts";
import type { JournalRun } from "../../src/journal/queries.ts";
import { sampleRecord, sampleSlot } from "./lease-samples.ts";

/** A healthy holder; what is changed is changed in the evidence, and the verdict follows. */
export function sampleView(changes: Partial<LeaseEvidence> = {}): LeaseView {
  const record = "record" in changes ? changes.record : sampleRecord();
  const evidence: LeaseEvidence = {
    key: { kind: "job", name: "backup" },
    lock: { kind: "held" },
    source: {
      kind: "read",
      from: "record",
      generation: record?.generation ?? 7,
      isReleased: record?.state === "released",
      runId: record?.run_id ?? "run-7",
    },
    record,
    slot: sampleSlot(),
    hasHistory: "yes",
    isReleasedByJournal: "unread",
    ownerAlive: "yes",
    sameBoot: "yes",
    sameMachine: "yes",
    sameLockInode: "yes",
    namespaceContained: "yes",
    recordedPids: "ours",
    beatAgeMs: 2_000,
    staleAfterMs: 40_000,
    note: "none",
    tree: "unread",
    ...changes,
  };
  return { key: evidence.key, evidence, verdict: decideVerdict(evidence) };
}

/** Given back at the end of its run. */
export function releasedView(): LeaseView {
  const record = sampleRecord({ state: "released", released_at: "2026-01-01T01:00:00.000Z" });
  return sampleView({ lock: { kind: "free" }, record, ownerAlive: "no" });
}

/** Its watchdog was killed. */
export function deadView(tree: LeaseEvidence["tree"]): LeaseView {
  return sampleView({ lock: { kind: "free" }, ownerAlive: "no", tree });
}

const STARTED_AT = Date.UTC(2026, 0, 1, 2, 0, 0);

/** A run that ended well, after five minutes and three seconds. */
export function sampleRun(changes: Partial<JournalRun> = {}): JournalRun {
  return {
    runId: "run-7",
    runPath: "run-7",
    job: "backup",
    state: "ended",
    outcome: "ok",
    because: "exited",
    abandonedBy: null,
    exitStatus: 0,
    statusOf: "command",
    startedAt: STARTED_AT,
    endedAt: STARTED_AT + 303_000,
    durationMs: 303_000,
    pid: 4711,
    pidStartTime: 123_456,
    childPid: 4712,
    childStartTime: 123_460,
    logPath: null,
    leases: [],
    record: undefined,
    ...changes,
  };
}

export function runningRun(changes: Partial<JournalRun> = {}): JournalRun {
  const open = { outcome: null, because: null, exitStatus: null, statusOf: null };
  return sampleRun({ state: "running", ...open, endedAt: null, durationMs: null, ...changes });
}

/** The fields of a record that the words of a run look at. */
export function sampleRunRecord(changes: Partial<RunRecord> = {}): RunRecord {
  return {
    format: 1,
    run_id: "run-7",
    run_path: "run-7",
    job: "backup",
    state: "ended",
    outcome: "ok",
    because: "exited",
    exit_status: 0,
    status_of: "command",
    exit_code: 0,
    signal: null,
    command: ["./backup.sh", "--all"],
    cwd: "/srv",
    pid: 4711,
    child_pid: 4712,
    started_at: "2026-01-01T02:00:00.000Z",
    ended_at: "2026-01-01T02:05:03.000Z",
    duration_ms: 303_000,
    suspended_ms: 0,
    paused_ms: 0,
    leases: [],
    held_by: null,
    guard: true,
    limits: { timeout_ms: null, idle_timeout_ms: null, not_after: null },
    dependencies: [],
    signals: [],
    leftovers: [],
    kept: [],
    left_alone: [],
    unsignalable: [],
    items: null,
    steps: null,
    output: {
      stdout_bytes: 0,
      stderr_bytes: 0,
      last_output_at: null,
      is_copied: false,
      write_error: null,
    },
    log: null,
    checks: [],
    artifacts: [],
    suspicions: [],
    degraded: [],
    dropped_lines: 0,
    watchdog: { version: "0.0.0", commit: "none" },
    ...changes,
  };
}
