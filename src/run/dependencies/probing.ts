/**
 * Asks one dependency, whatever kind of target it is: over the network from this thread, an
 * expression that may not come to an end in a Worker, a command as a process of its own. Decides
 * nothing about the answer. Loaded only where there is something to probe.
 */
import type { ProbeReason, ProbeResult } from "../../core/probe-result.ts";
import type { ProbeSettings } from "../../core/probe-settings.ts";
import { spanMs } from "../../core/time.ts";
import { monotonicNow } from "../../os/clock.ts";
import { ownMask } from "../../os/mask.ts";
import { type ProbeOrder, probe } from "../../probe/probe.ts";
import { ProbeHandle } from "../../probe/probe-handle.ts";
import { chooseProxy } from "../../core/proxy-choice.ts";
import { ANSWER_LIMIT_MS, type CommandProbes } from "./command-probe.ts";

/** Over the limit by more than that: somebody stood still, and it may have been us. */
const LATE_MS = 250;
/** What the limit ends; a server may also have hung up on who did not go on. */
const ENDS_BY_TIME: readonly ProbeReason[] = [
  "name-timeout",
  "connect-timeout",
  "tls-timeout",
  "no-answer",
  "too-slow",
  "reset",
  "command-timeout",
];

export interface ProbingParts {
  /** Of probe/probe-worker.ts. */
  readonly workerUrl: URL;
  readonly commands: CommandProbes;
  /** Told of each answer that counts. */
  readonly onAnswer?: (settings: ProbeSettings, result: ProbeResult) => void;
}

export class Probing {
  readonly #parts: ProbingParts;
  #handle: ProbeHandle | undefined;

  constructor(parts: ProbingParts) {
    this.#parts = parts;
    // Nothing of it is believed (probe/secure.ts), but Bun 1.4.5 warns of it on standard error; the
    // command has its environment from elsewhere.
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  }

  /**
   * Never rejects; the detail is without secrets. Whoever was stopped meanwhile, by a key or by a
   * pause of the run around him, finds the limit over before the answer: that says nothing about
   * the other side, so it is asked once more, and then counts whatever it is.
   */
  async ask(settings: ProbeSettings, timeoutMs: number, signal: AbortSignal): Promise<ProbeResult> {
    const result = await this.#askTwice(settings, timeoutMs, signal);
    // What a command or a server has said goes into records and into the state that all share.
    const told = { ...result, detail: ownMask().text(result.detail) };
    this.#parts.onAnswer?.(settings, told);
    return told;
  }

  async #askTwice(
    settings: ProbeSettings,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ProbeResult> {
    const began = monotonicNow();
    const result = await this.#askOnce(settings, timeoutMs, signal);
    const graceMs = settings.target.kind === "cmd" ? ANSWER_LIMIT_MS : 0;
    const isLate = spanMs(began, monotonicNow()) > timeoutMs + graceMs + LATE_MS;
    if (!isLate || !ENDS_BY_TIME.includes(result.because)) return result;
    return this.#askOnce(settings, timeoutMs, signal);
  }

  #askOnce(settings: ProbeSettings, timeoutMs: number, signal: AbortSignal): Promise<ProbeResult> {
    const { target, http } = settings;
    if (target.kind === "cmd") {
      return this.#parts.commands.probe(target.command, timeoutMs, signal);
    }
    const order: ProbeOrder = { target, http, timeoutMs, proxy: findProxy(settings) };
    if (http.expectBody === undefined) return probe(order, { signal });
    this.#handle ??= new ProbeHandle(this.#parts.workerUrl);
    return this.#handle.probe(order, signal);
  }

  close(): void {
    this.#handle?.close();
    this.#handle = undefined;
  }
}

function findProxy({ target, http }: ProbeSettings): string | undefined {
  return http.usesProxy ? chooseProxy(target, process.env) : undefined;
}
