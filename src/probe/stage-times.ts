/** How long each stage of a probe took. Clock: monotonic. */
import type { ProbeStage, ProbeStageName } from "../core/probe-result.ts";
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";

export class StageTimes {
  readonly #ended: ProbeStage[] = [];
  #running: { readonly stage: ProbeStageName; readonly since: MonotonicAt } | undefined;

  /** Ends the stage before. */
  begin(stage: ProbeStageName): void {
    const now = monotonicNow();
    this.#end(now);
    this.#running = { stage, since: now };
  }

  /** Ends the last stage. @returns all of them, in their order */
  finish(): readonly ProbeStage[] {
    this.#end(monotonicNow());
    this.#running = undefined;
    return this.#ended;
  }

  #end(now: MonotonicAt): void {
    if (this.#running === undefined) return;
    const { stage, since } = this.#running;
    this.#ended.push({ stage, ms: Math.round((now - since) * 10) / 10 });
  }
}
