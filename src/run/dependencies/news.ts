/**
 * Tells a person what became of a dependency: one line on standard error for a change of state,
 * none for a probe but with `-v`. With `--quiet` they wait for the end of the run, and are told if
 * it was no good one. Decides nothing.
 */
import type { ProbeVerdict } from "../../core/probe-result.ts";
import type { SharedCircuit } from "../../core/shared-circuit.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { monotonicNow } from "../../os/clock.ts";
import { say } from "../../os/say.ts";
import type { Course } from "../course.ts";
import { type Policy, sentences } from "./sentences.ts";

interface Away {
  readonly since: MonotonicAt;
  readonly isGivenUp: boolean;
}

export class DependencyNews {
  readonly #course: Course;
  readonly #away = new Map<string, Away>();

  constructor(course: Course) {
    this.#course = course;
  }

  /** With `-v`: what a decision will rest on. An answer that was not waited for is none. */
  tellAnswer(name: string, result: ProbeVerdict): void {
    if (!this.#course.options.isVerbose || result.because === "stopped") return;
    this.#say(sentences.answered(name, result));
  }

  /** @param name  as the user knows it */
  tellCircuit(name: string, { state, lastProbe }: SharedCircuit, policy: Policy): void {
    const away = this.#away.get(name);
    if (state.kind === "closed") {
      if (away !== undefined) this.#tellBack(name, away);
      return;
    }
    if (away === undefined) {
      this.#away.set(name, { since: monotonicNow(), isGivenUp: false });
      this.#say(sentences.down(name, policy, lastProbe));
    }
    const seen = this.#away.get(name);
    if (state.kind !== "permanent" || seen === undefined || seen.isGivenUp) return;
    this.#away.set(name, { ...seen, isGivenUp: true });
    this.#say(sentences.givenUp(name, policy));
  }

  tellReadiness(
    name: string,
    isReady: boolean,
    { policy, detail }: { readonly policy: Exclude<Policy, "stop">; readonly detail: string },
  ): void {
    this.#say(isReady ? sentences.ready(name) : sentences.unready(name, policy, detail));
  }

  #tellBack(name: string, { since }: Away): void {
    this.#away.delete(name);
    this.#say(sentences.back(name, monotonicNow() - since));
  }

  #say(line: string): void {
    const { options, ledger } = this.#course;
    if (options.isQuiet) ledger.holdLine(line);
    else say(line);
  }
}
