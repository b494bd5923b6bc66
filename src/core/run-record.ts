/**
 * The record of a run as `--result-file` holds it: its shape and how it is filled. Pure. The zod
 * schema of the same record, for readers and documentation, is `cli/result-schema.ts`; a test holds
 * the two together.
 */
import type { JobSteps } from "./job-verdict.ts";
import type { CheckResult } from "./checks.ts";
import type { LeaseKey } from "./lease-key.ts";
import type { Suspicion } from "./suspicion.ts";
import type { Mask } from "./masking.ts";
import type { SignalReason } from "./run-state.ts";
import type { Outcome } from "./outcome.ts";

export interface SentSignal {
  readonly signal: string;
  readonly at_ms: number;
  readonly to: "command" | "tree";
  readonly count: number;
  readonly why: SignalReason;
}

export interface NamedProcess {
  readonly pid: number;
  readonly command: string;
}

export interface Leftover extends NamedProcess {
  readonly ended_by: "TERM" | "KILL" | null;
}

export interface LogSummary {
  readonly path: string | null;
  readonly kept_bytes: number;
  readonly omitted_bytes: number;
  readonly dropped_bytes: number;
  readonly because: string | null;
}

export interface OutputSummary {
  readonly stdout_bytes: number | null;
  readonly stderr_bytes: number | null;
  readonly last_output_at: string | null;
  readonly is_copied: boolean;
  readonly write_error: string | null;
}

/** A lease that the run was granted. */
export interface RecordedLease extends LeaseKey {
  readonly generation: number;
}

/** Who had the key that the run was refused, or what else was in the way; null: it is not known. */
export interface HolderSummary {
  /** `kind:name`. */
  readonly key: string;
  /** As the newcomer was refused: `beat-fresh`, `survivors-alive`, `worktree-in-use` … */
  readonly because: string;
  readonly run_id: string | null;
  /** `user@host`. */
  readonly runner: string | null;
  readonly pid: number | null;
  /** When it was granted the lease (wall clock, UTC). */
  readonly since: string | null;
}

/** A dependency that the run was told to probe, as it was known at the end. */
export interface RecordedDependency {
  /** Of its circuit; of a readiness probe its name, or what is asked. */
  readonly name: string;
  readonly role: "liveness" | "readiness";
  /** What is asked, without credentials and query. */
  readonly target: string;
  /** What is done where it is away. */
  readonly policy: "stop" | "pause" | "notify";
  readonly state: "unknown" | "closed" | "open" | "half-open" | "permanent" | "ready" | "unready";
  /** Those that this run has made, and how many of them were not good. */
  readonly probes: number;
  readonly failed_probes: number;
  /** Of the last one that is known, of whichever run. */
  readonly last_because: string | null;
  readonly last_detail: string | null;
  readonly last_at: string | null;
}

/** What an expected file, directory or pattern held at the end of a run that went well. */
export interface RecordedArtifact {
  /** Absolute. */
  readonly path: string;
  /** As it was asked for: by this it is compared with earlier runs. */
  readonly target: string;
  /** Those that count: of a pattern only what has changed. */
  readonly files: number;
  readonly bytes: number;
  /** Modification of the newest of them (wall clock, UTC). */
  readonly changed_at: string | null;
}

/** What the job has told of its items (product.md, 6); `ok` and `failed` are those done. */
export interface RecordedItems {
  readonly ok: number;
  readonly failed: number;
  readonly total: number | null;
  readonly checkpoint: string | null;
  /** Lines of the progress file that say nothing of this. */
  readonly ignored: number;
  /** Over the whole run, without the time that it was paused. */
  readonly rate_per_minute: number | null;
  readonly last_message: string | null;
}

export interface RunRecord {
  readonly format: 1;
  readonly run_id: string;
  /** Ids of all runs around, outermost first, `/`-separated, own id last. */
  readonly run_path: string;
  readonly job: string;
  readonly state: "running" | "ended";
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exit_status: number | null;
  readonly status_of: "command" | "watchdog" | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly command: readonly string[];
  readonly command_bytes?: readonly string[];
  readonly cwd: string | null;
  readonly pid: number;
  readonly child_pid: number | null;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
  readonly suspended_ms: number;
  /** For how long the tree stood still because of a dependency. */
  readonly paused_ms: number;
  readonly leases: readonly RecordedLease[];
  /** Only where the outcome is `locked`. */
  readonly held_by: HolderSummary | null;
  /** Whether a guard stood by that ends the tree when watchdog itself is killed. */
  readonly guard: boolean;
  readonly limits: {
    readonly timeout_ms: number | null;
    readonly idle_timeout_ms: number | null;
    readonly not_after: string | null;
  };
  readonly dependencies: readonly RecordedDependency[];
  readonly signals: readonly SentSignal[];
  readonly leftovers: readonly Leftover[];
  readonly kept: readonly NamedProcess[];
  readonly left_alone: readonly (NamedProcess & { readonly why: string })[];
  readonly unsignalable: readonly NamedProcess[];
  /** Null where the job has reported nothing. */
  readonly items: RecordedItems | null;
  /** Of a job of many steps, once it has ended by itself; else null. */
  readonly steps: JobSteps | null;
  readonly output: OutputSummary;
  readonly log: LogSummary | null;
  /** Empty where the command itself has not ended well. */
  readonly checks: readonly CheckResult[];
  readonly artifacts: readonly RecordedArtifact[];
  readonly suspicions: readonly Suspicion[];
  readonly degraded: readonly string[];
  readonly dropped_lines: number;
  readonly watchdog: { readonly version: string; readonly commit: string };
}

/** The number that the shell shows for a way of leaving. */
export function shownStatus(leaving: Outcome["leaving"]): number {
  return leaving.kind === "status" ? leaving.code : 128 + leaving.signal;
}

/**
 * Arguments as text without secrets, and as base64 beside it where the text would not give the
 * bytes back; of an argument with a secret the bytes are those of the masked text.
 */
export function describeCommand(
  argv: readonly Uint8Array[],
  mask: Pick<Mask, "command">,
): Pick<RunRecord, "command" | "command_bytes"> {
  const texts = argv.map((word) => Buffer.from(word).toString("utf8"));
  const command = mask.command(texts);
  const isExact = texts.every((text, index) => Buffer.from(text).equals(argv[index] ?? NO_BYTES));
  if (isExact) return { command };
  const bytes = argv.map((word, index) =>
    command[index] === texts[index] ? word : command[index],
  );
  return {
    command,
    command_bytes: bytes.map((word) => Buffer.from(word ?? NO_BYTES).toString("base64")),
  };
}

const NO_BYTES = new Uint8Array();
