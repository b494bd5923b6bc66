/**
 * The record of a run as `--result-file` holds it: its shape and how it is filled. Pure. The zod
 * schema of the same record, for readers and documentation, is `cli/result-schema.ts`; a test holds
 * the two together.
 */
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

export interface RunRecord {
  readonly format: 1;
  readonly run_id: string;
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
  readonly limits: {
    readonly timeout_ms: number | null;
    readonly idle_timeout_ms: number | null;
    readonly not_after: string | null;
  };
  readonly signals: readonly SentSignal[];
  readonly leftovers: readonly Leftover[];
  readonly kept: readonly NamedProcess[];
  readonly left_alone: readonly (NamedProcess & { readonly why: string })[];
  readonly unsignalable: readonly NamedProcess[];
  readonly output: OutputSummary;
  readonly log: LogSummary | null;
  readonly degraded: readonly string[];
  readonly dropped_lines: number;
  readonly watchdog: { readonly version: string; readonly commit: string };
}

/** The number that the shell shows for a way of leaving. */
export function shownStatus(leaving: Outcome["leaving"]): number {
  return leaving.kind === "status" ? leaving.code : 128 + leaving.signal;
}

/** Arguments as text, and as base64 beside it where the text would not give the bytes back. */
export function describeCommand(
  argv: readonly Uint8Array[],
): Pick<RunRecord, "command" | "command_bytes"> {
  const texts = argv.map((word) => Buffer.from(word).toString("utf8"));
  const isExact = texts.every((text, index) => Buffer.from(text).equals(argv[index] ?? NO_BYTES));
  if (isExact) return { command: texts };
  return {
    command: texts,
    command_bytes: argv.map((word) => Buffer.from(word).toString("base64")),
  };
}

const NO_BYTES = new Uint8Array();
