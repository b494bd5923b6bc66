/**
 * A state directory with a journal, entries to put into it, and programs beside that use the same
 * one: real processes and real locks.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GrantedLease, JournalEntry } from "../../src/core/journal-entry.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import { type JournalRun, readHistory } from "../../src/journal/queries.ts";
import { waitFor } from "./wait-for.ts";

const AT = Date.parse("2025-03-04T05:06:07.089Z");

export function runId(number: number): string {
  return `0195600a-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

export function lease(name: string, generation: number): GrantedLease {
  return { kind: "job", name, generation };
}

export function runningRecord(number: number, changes: Partial<RunRecord> = {}): RunRecord {
  return {
    format: 1,
    run_id: runId(number),
    run_path: runId(number),
    job: "nightly",
    state: "running",
    outcome: null,
    because: null,
    exit_status: null,
    status_of: null,
    exit_code: null,
    signal: null,
    command: ["sh", "-c", "exit 3"],
    cwd: "/",
    pid: 4711,
    child_pid: 4712,
    started_at: new Date(AT).toISOString(),
    ended_at: null,
    duration_ms: null,
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
      stdout_bytes: null,
      stderr_bytes: null,
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
    watchdog: { version: "0.1.0", commit: "unknown" },
    ...changes,
  };
}

export function endedRecord(number: number, changes: Partial<RunRecord> = {}): RunRecord {
  return runningRecord(number, {
    state: "ended",
    outcome: "failed",
    because: "exited",
    exit_status: 3,
    status_of: "command",
    exit_code: 3,
    ended_at: new Date(AT + 1000).toISOString(),
    duration_ms: 1000,
    ...changes,
  });
}

export function started(
  number: number,
  leases: readonly GrantedLease[] = [],
  changes: Partial<RunRecord> = {},
): JournalEntry {
  return {
    kind: "run-started",
    at: AT,
    run: runningRecord(number, changes),
    runPath: runId(number),
    owner: { pid: 4711, start_time: 100 },
    child: { pid: 4712, start_time: 101 },
    leases,
  };
}

export function ended(
  number: number,
  leases: readonly GrantedLease[] = [],
  changes: Partial<RunRecord> = {},
): JournalEntry {
  return {
    kind: "run-ended",
    at: AT + 1000,
    run: endedRecord(number, changes),
    runPath: runId(number),
    leases,
    isReleased: true,
  };
}

export function abandoned(
  number: number,
  leases: readonly GrantedLease[] = [],
  run: RunRecord | null = null,
): JournalEntry {
  return {
    kind: "run-abandoned",
    at: AT + 2000,
    runId: runId(number),
    by: "guard",
    run,
    leases,
    because: "watchdog-killed",
  };
}

export function refusal(number: number): JournalEntry {
  return {
    kind: "event",
    at: AT,
    name: "refused",
    runId: runId(number),
    job: "nightly",
    key: { kind: "job", name: "nightly" },
    because: "held",
    data: { waited_ms: 0 },
  };
}

export interface JournalScene {
  /** A new state directory. */
  newState(): string;
  /** Removes them all. */
  close(): void;
}

export function openJournalScene(): JournalScene {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "watchdog-journal-")));
  return {
    newState: () => mkdtempSync(join(root, "state-")),
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** The history as reading commands see it; throws where it is none. */
export function historyOf(state: string): JournalRun[] {
  const answer = readHistory(state, { limit: 10_000 });
  if (answer.kind !== "read") throw new Error(`found no history: ${JSON.stringify(answer)}`);
  return answer.value;
}

/** `outcome` of each run, newest first. */
export function outcomesOf(state: string): (string | null)[] {
  return historyOf(state).map((run) => run.outcome);
}

/** SQL against the database, from outside of what is tested. */
export function inspect(state: string, sql: string): unknown[][] {
  const db = new Database(`${state}/journal.db`, { readwrite: true });
  try {
    return db.query(sql).values();
  } finally {
    db.close(true);
  }
}

export interface Ended {
  readonly status: number | null;
  readonly signal: string | number | null;
  readonly lines: readonly string[];
  readonly stderr: string;
}

const PROGRAM = join(import.meta.dir, "journal-program.ts");

export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** Words that stand before the program: `prlimit --fsize=0`. */
  readonly under?: readonly string[];
}

/** A process of its own that starts and ends one run: its lines are the troubles that it heard. */
export async function recordInProcess(
  state: string,
  words: readonly string[],
  { env = {}, under = [] }: Surroundings = {},
): Promise<Ended> {
  const child = Bun.spawn([...under, process.execPath, PROGRAM, state, ...words], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  const lines = text.split("\n").filter((line) => line !== "");
  return { status: child.exitCode, signal: child.signalCode, lines, stderr };
}

export interface Holder {
  /** Commits and leaves. */
  release(): Promise<void>;
}

/** Another process that holds the database exclusively, as `sqlite3` does after BEGIN EXCLUSIVE. */
export async function holdExclusively(state: string): Promise<Holder> {
  const shell = Bun.spawn(["sqlite3", `${state}/journal.db`], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  let heard = "";
  const reading = (async () => {
    for await (const part of shell.stdout) heard += Buffer.from(part).toString();
  })();
  shell.stdin.write("BEGIN EXCLUSIVE;\nSELECT 'holds';\n");
  await shell.stdin.flush();
  await waitFor(() => heard.includes("holds"), "sqlite3 to hold the database");
  return {
    release: async () => {
      shell.stdin.write("COMMIT;\n");
      await shell.stdin.end();
      await shell.exited;
      await reading;
    },
  };
}
