/**
 * Hands a notice to a program of this machine: a hook of the user's, or the one that takes mail.
 * Refuses to know how a process is started and collected: that is a seam which whoever sends hands
 * in (tree/own-processes.ts: in a run beside its one reaper, elsewhere alone).
 *
 * Always: the notice is on standard input and in variables, and nothing of it on a command line.
 * Clock: the helper's. State after a crash: the helper hears of it, and ends the program.
 */
import { decideSent, type Sent } from "../core/delivery.ts";
import {
  HOOK_COMMAND,
  HOOK_GRACE_MS,
  type HookOrder,
  nameScript,
  renderOrder,
} from "../core/hook-order.ts";
import { parseAnswer } from "../core/command-probe.ts";
import type { Notice } from "../core/notice.ts";
import { listVariables, renderNotice } from "../core/notice-text.ts";

/** As `Helpers.run` of tree/own-processes.ts. */
export interface HookRunner {
  run(order: {
    readonly words: readonly string[];
    readonly order: Uint8Array;
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<HookEnd>;
}

export type HookEnd =
  | { readonly kind: "ended"; readonly answer: string; readonly found: string }
  | { readonly kind: "not-started" | "late"; readonly found: string }
  | { readonly kind: "stopped" };

export interface HookTerms {
  /** Of the program. */
  readonly hookTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Runs the command with the notice. Never rejects. */
export function runHook(
  command: string,
  notice: Notice,
  { hooks, ...terms }: HookTerms & { readonly hooks: HookRunner },
): Promise<Sent> {
  return runProgram(
    {
      run: { kind: "shell", command },
      input: renderNotice(notice),
      cwd: notice.cwd ?? "/",
      variables: listVariables(notice),
    },
    decideSent,
    { hooks, ...terms },
  );
}

/** What the end of a program comes to, of decideSent and decideMailed. */
export type Decide = typeof decideSent;

function nameHook(sent: Sent): Sent {
  return sent.kind === "delivered" ? sent : { ...sent, detail: nameScript(sent.detail, "hook") };
}

/** Never rejects. */
export async function runProgram(
  what: Omit<HookOrder, "timeoutMs" | "graceMs">,
  decide: Decide,
  { hooks, hookTimeoutMs, signal }: HookTerms & { readonly hooks: HookRunner },
): Promise<Sent> {
  const timeoutMs = Math.ceil(hookTimeoutMs);
  const order = renderOrder({ ...what, timeoutMs, graceMs: HOOK_GRACE_MS });
  const end = await hooks.run({
    words: [HOOK_COMMAND],
    order,
    timeoutMs: timeoutMs + HOOK_GRACE_MS,
    signal,
  });
  switch (end.kind) {
    case "ended":
      return nameHook(decide(parseAnswer(end.answer), end.found));
    case "not-started":
      return { kind: "failed", because: "hook-not-started", detail: end.found };
    case "late":
      return { kind: "failed", because: "hook-timeout", detail: end.found };
    case "stopped":
      return { kind: "failed", because: "stopped", detail: "stopped before it was over" };
  }
}
