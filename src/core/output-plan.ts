/**
 * What happens to descriptors 1 and 2 of the command: inherited as they are, or copied through a
 * pipe. Pure.
 *
 * Inherited unless somebody has to see the bytes (a log, `--quiet`, idleness, a check). A terminal
 * stays a terminal under `--log auto`, because a program behaves differently without one; `--log
 * on`, `--quiet` and checks of the output are a person's word.
 */
import type { LogMode } from "./run-options.ts";

export interface OutputFacts {
  readonly log: LogMode;
  readonly isQuiet: boolean;
  readonly watchesIdle: boolean;
  /** Something was asked of the output: somebody must see it, on a terminal too. */
  readonly isChecked: boolean;
  readonly isStdoutTerminal: boolean;
  readonly isStderrTerminal: boolean;
  /** Both descriptors are the same open file, as under cron or with `2>&1`. */
  readonly isOneFile: boolean;
}

export type StreamName = "stdout" | "stderr" | "both";

export interface OutputPlan {
  /** Streams that go through a pipe, with the descriptors that they stand for. */
  readonly copied: readonly {
    readonly name: StreamName;
    readonly descriptors: readonly number[];
  }[];
  readonly keepsLog: boolean;
}

export function decideOutputPlan(facts: OutputFacts): OutputPlan {
  const isForced = facts.log === "on" || facts.isQuiet || facts.isChecked;
  const wantsBytes = isForced || facts.log === "auto" || facts.watchesIdle;
  if (!wantsBytes) return { copied: [], keepsLog: false };
  const isCopied = (isTerminal: boolean): boolean => isForced || !isTerminal;
  const hasStdout = isCopied(facts.isStdoutTerminal);
  const hasStderr = isCopied(facts.isStderrTerminal);
  if (facts.log === "auto" && !isForced && !hasStdout) return decideIdleOnly(facts, hasStderr);
  const keepsLog = facts.log !== "off" && !isForCheckAlone(facts);
  if (facts.isOneFile && hasStdout) {
    return { copied: [{ name: "both", descriptors: [1, 2] }], keepsLog };
  }
  return { copied: separate(hasStdout, hasStderr), keepsLog };
}

/** `auto` keeps no log of what goes to a terminal, where nothing else has asked for it. */
function isForCheckAlone({ log, isQuiet, isStdoutTerminal }: OutputFacts): boolean {
  return log === "auto" && !isQuiet && isStdoutTerminal;
}

/**
 * `auto` with a terminal as stdout keeps no log; a redirected stderr is still watched for idleness.
 */
function decideIdleOnly(facts: OutputFacts, hasStderr: boolean): OutputPlan {
  return { copied: separate(false, facts.watchesIdle && hasStderr), keepsLog: false };
}

function separate(hasStdout: boolean, hasStderr: boolean): OutputPlan["copied"] {
  return [
    ...(hasStdout ? [{ name: "stdout", descriptors: [1] } as const] : []),
    ...(hasStderr ? [{ name: "stderr", descriptors: [2] } as const] : []),
  ];
}
