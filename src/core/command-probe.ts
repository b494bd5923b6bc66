/**
 * The words between a watchdog that asks a command how a dependency is, and the helper that runs
 * the command: how it is started, what follows from the command's end, and the line that it
 * answers. Pure; knows no process.
 *
 * Always: a line that is read is a whole result of the command or none; what a command has printed
 * becomes part of a sentence in printable characters, and never more of it than KEPT_BYTES from
 * either end.
 */
import { unprintable, withoutFirstWord, withoutLastWord } from "./printable.ts";
import { PROBE_FAILURES, type ProbeResult, type ProbeVerdict } from "./probe-result.ts";
import type { CommandEnd } from "./run-state.ts";
import { nameSignal } from "./signals.ts";

/** The word by which it is started: `watchdog __probe-command`. */
export const PROBE_COMMAND = "__probe-command";

/** Of the first and of the last bytes that the command prints. */
export const KEPT_BYTES = 512;
/** Between TERM and KILL at the limit. */
export const COMMAND_GRACE_MS = 500;
/** A line holds twice KEPT_BYTES, escaped, and a few words. */
export const LONGEST_ANSWER_BYTES = 16_384;

/** What a command has printed on both streams, in its order. */
export interface CommandOutput {
  readonly head: Uint8Array;
  /** What came behind the head, as far as it was kept. */
  readonly tail: Uint8Array;
  /** Between the two. */
  readonly droppedBytes: number;
}

export type CommandEnding =
  /** Reason for people. */
  | { readonly kind: "not-started"; readonly reason: string }
  | {
      readonly kind: "ended";
      /** Undefined: it outlived even KILL. */
      readonly end: CommandEnd | undefined;
      readonly isTimedOut: boolean;
    };

/** @param timeoutMs  the limit that the command had */
export function decideCommandVerdict(
  ending: CommandEnding,
  { timeoutMs, output }: { readonly timeoutMs: number; readonly output: CommandOutput },
): ProbeVerdict {
  if (ending.kind === "not-started") {
    return { because: "command-not-started", detail: ending.reason };
  }
  const { end, isTimedOut } = ending;
  if (isTimedOut || end === undefined) {
    const detail = `the command had no end within ${showSpan(timeoutMs)}`;
    return { because: "command-timeout", detail: addOutput(detail, output) };
  }
  if (end.kind === "exited" && end.code === 0) return { because: "good", detail: "status 0" };
  const found = end.kind === "exited" ? sayStatus(end.code) : `signal ${nameSignal(end.signal)}`;
  return { because: "command-failed", detail: addOutput(`${found}, expected status 0`, output) };
}

function sayStatus(code: number): string {
  return `status ${code}`;
}

/** Whether the command said so itself; the detail is the one place where its status stands. */
export function hasLeftWith({ because, detail }: ProbeResult, code: number): boolean {
  return because === "command-failed" && detail.startsWith(`${sayStatus(code)},`);
}

function showSpan(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

function addOutput(text: string, output: CommandOutput): string {
  const said = renderOutput(output);
  return said === "" ? text : `${text}; it said: ${said}`;
}

/** One line; `…` stands where something was left out. */
export function renderOutput({ head, tail, droppedBytes }: CommandOutput): string {
  if (droppedBytes > 0) {
    return `${withoutLastWord(showBytes(head))} … ${withoutFirstWord(showBytes(tail))}`.trim();
  }
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return showBytes(whole);
}

/** A letter that was cut in two at either end is left out. */
function showBytes(bytes: Uint8Array): string {
  return new TextDecoder()
    .decode(bytes)
    .replace(/^\uFFFD+|\uFFFD+$/g, "")
    .replace(/\s+/g, " ")
    .replace(unprintable(), "")
    .trim();
}

/** The line of the helper, ended. */
export function renderAnswer({ isGood, because, detail, stages }: ProbeResult): string {
  return `${JSON.stringify({ isGood, because, detail, stages })}\n`;
}

/** What only a command can end with: everything else is said by whoever has asked. */
const OF_COMMANDS = ["good", ...PROBE_FAILURES.filter((word) => word.startsWith("command-"))];

/** Undefined: it is no such line, or not all of one. */
export function parseAnswer(text: string): ProbeResult | undefined {
  if (!text.endsWith("\n") || text.length > LONGEST_ANSWER_BYTES) return undefined;
  const fields = parseObject(text);
  if (fields === undefined) return undefined;
  const { because, detail, stages } = fields;
  const word = OF_COMMANDS.find((one) => one === because) as ProbeResult["because"] | undefined;
  if (word === undefined || typeof detail !== "string" || !Array.isArray(stages)) return undefined;
  const times = stages.flatMap((stage: unknown) => readMs(stage) ?? []);
  if (times.length !== stages.length) return undefined;
  return {
    isGood: word === "good",
    because: word,
    detail: detail.replace(unprintable(), ""),
    stages: times.map((ms) => ({ stage: "command", ms })),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined; // SyntaxError: cut short, or nothing of ours
  }
}

function readMs(stage: unknown): number | undefined {
  if (typeof stage !== "object" || stage === null || !("ms" in stage)) return undefined;
  const { ms } = stage;
  return typeof ms === "number" && Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}
