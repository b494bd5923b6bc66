/**
 * Probes by a command, from the side of whoever wants to know: each is run by a helper
 * (tree/own-processes.ts, hook-command.ts), and what that answers is the result of the probe.
 * Refuses to know what the command does.
 *
 * Guarantees: those of the helpers; what is no line of ours is no answer. Clock: theirs. State
 * after a crash of ours: each helper hears of it by its pipe, and ends its command.
 */
import { COMMAND_GRACE_MS, parseAnswer, PROBE_COMMAND } from "../../core/command-probe.ts";
import { nameScript, renderOrder } from "../../core/hook-order.ts";
import type { ProbeFailure, ProbeResult } from "../../core/probe-result.ts";
import type { ChildChange } from "../../os/reaper.ts";
import { type HelperEnd, Helpers, type HelpersRequest } from "../../tree/own-processes.ts";

export { ANSWER_LIMIT_MS, LEAVING_MS } from "../../tree/own-processes.ts";
export type CommandProbesRequest = HelpersRequest;

export class CommandProbes {
  readonly #helpers: Helpers;

  constructor(request: CommandProbesRequest) {
    this.#helpers = new Helpers(request);
  }

  /** Children of ours that are no members of any job. As of now, each time. */
  get pids(): ReadonlySet<number> {
    return this.#helpers.pids;
  }

  /**
   * @param timeoutMs  of the command
   * @param signal  ends the probe: `stopped`, at once; the helper is gone a moment later
   */
  async probe(command: string, timeoutMs: number, signal?: AbortSignal): Promise<ProbeResult> {
    const order = renderOrder({
      run: { kind: "shell", command },
      input: null,
      cwd: null,
      variables: {},
      timeoutMs: Math.ceil(timeoutMs),
      graceMs: COMMAND_GRACE_MS,
    });
    const words = [PROBE_COMMAND];
    const result = readEnd(await this.#helpers.run({ words, order, timeoutMs, signal }));
    return { ...result, detail: nameScript(result.detail, "sh") };
  }

  /** Told of every child that the one reaper has collected; others do not matter. */
  onEnded(change: ChildChange): void {
    this.#helpers.onEnded(change);
  }

  /** While there is no reaper: whether one of ours has ended. Never blocks. */
  collectOwn(): void {
    this.#helpers.collectOwn();
  }
}

function readEnd(end: HelperEnd): ProbeResult {
  switch (end.kind) {
    case "ended":
      return parseAnswer(end.answer) ?? notStarted(end.found);
    case "not-started":
      return notStarted(end.found);
    case "late":
      return fail("command-timeout", end.found);
    case "stopped":
      return fail("stopped", "stopped before it was over");
  }
}

function notStarted(found: string): ProbeResult {
  return fail("command-not-started", `the command cannot be started: ${found}`);
}

function fail(because: ProbeFailure, detail: string): ProbeResult {
  return { isGood: false, because, stages: [], detail };
}
