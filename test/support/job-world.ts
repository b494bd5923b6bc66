/**
 * A world for jobs of many steps: files, commands that are killed in the middle, and who has run
 * what how often. It knows nothing of the decisions that it is there to judge, and throws where one
 * of them has let something happen that must not.
 */
import type { StepSpec } from "../../src/core/job-spec.ts";

/** How a command behaves, whoever runs it. */
export interface Behaviour {
  /** So many times it says with status 1 that it has failed, and has done nothing. */
  readonly failsFirst: number;
  readonly failsAlways: boolean;
  /** What `settle` does: it tells the truth, or cannot tell. */
  readonly settles: "truly" | "unclearly";
}

export interface JobCase {
  /** In the order of the file, which is none in which they could run. */
  readonly steps: readonly StepSpec[];
  readonly behaviours: ReadonlyMap<string, Behaviour>;
  readonly maxParallel: number;
}

export class Broken extends Error {}

export type Dice = () => number;

/** Mulberry32: small, seeded, and good enough for dice. */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const PARTIAL = "partial";

export class JobWorld {
  readonly files = new Map<string, string>();
  /** Steps whose command runs now; `true`: its effect has happened. */
  readonly running = new Map<string, boolean>();
  /** How often the effect of a step has happened in this job. */
  readonly effects = new Map<string, number>();
  /** How often a command was started in this job. */
  readonly starts = new Map<string, number>();
  /** Unsafe steps that must not be started before somebody has said that they may. */
  readonly #spent = new Set<string>();
  readonly #failures = new Map<string, number>();
  /** How often a person has let an unsafe step run again although it had happened. */
  readonly words = new Map<string, number>();
  /** What each artifact was when its step had done its work. */
  readonly #left = new Map<string, string>();
  readonly #isFickle: boolean;
  readonly #steps: ReadonlyMap<string, StepSpec>;
  readonly #behaviours: ReadonlyMap<string, Behaviour>;
  readonly mostAtOnce: number;

  /** @param isFickle  a step never leaves the same twice, so that it shows what was made of what */
  constructor({ steps, behaviours, maxParallel }: JobCase, isFickle = false) {
    this.#isFickle = isFickle;
    this.#steps = new Map(steps.map((step) => [step.name, step]));
    this.#behaviours = behaviours;
    this.mostAtOnce = maxParallel;
    for (const step of steps) {
      for (const input of step.inputs ?? []) this.files.set(input, "as it came");
    }
  }

  step(name: string): StepSpec {
    const step = this.#steps.get(name);
    if (step === undefined) throw new Broken(`there is no step ${name}`);
    return step;
  }

  /** What a step leaves: made of what it reads as that is now, and of its own moods. */
  contentOf(name: string, path: string): string {
    const { needs, inputs } = this.step(name);
    const read = needs.flatMap((need) =>
      this.step(need).artifacts.map((each) => this.files.get(each.path)),
    );
    const sources = (inputs ?? []).map((input) => this.files.get(input));
    const mood = this.#isFickle ? (this.effects.get(name) ?? 0) : 0;
    return Bun.hash(JSON.stringify([name, path, read, sources, mood])).toString(36);
  }

  /** A new job: what was run in the one before is past. */
  forget(): void {
    this.#spent.clear();
    this.effects.clear();
    this.starts.clear();
    this.words.clear();
  }

  start(name: string): void {
    const step = this.step(name);
    if (this.running.has(name)) throw new Broken(`${name} runs twice at the same time`);
    if (this.running.size >= this.mostAtOnce) throw new Broken("too many run at the same time");
    if (this.#spent.has(name)) throw new Broken(`${name} is run a second time, and nobody said so`);
    if ((this.starts.get(name) ?? 0) > 0) {
      const old = step.artifacts.find(({ path }) => this.files.has(path));
      if (old !== undefined) throw new Broken(`${name} is started over its old ${old.path}`);
    }
    for (const need of step.needs) this.#expectWhole(name, need);
    if (step.sideEffects === "unsafe") this.#spent.add(name);
    this.running.set(name, false);
    this.starts.set(name, (this.starts.get(name) ?? 0) + 1);
    for (const { path } of step.artifacts) this.files.set(path, PARTIAL);
  }

  #expectWhole(name: string, need: string): void {
    if (!this.isWhole(need)) throw new Broken(`${name} is started on a broken artifact of ${need}`);
    if ((this.effects.get(need) ?? 0) === 0 && !this.takenOver.has(need)) {
      throw new Broken(`${name} is started before ${need}`);
    }
  }

  /** Steps that an earlier job has done. */
  readonly takenOver = new Set<string>();

  /** The command does its work, at some moment while it runs. */
  work(name: string): void {
    if (this.#willFail(name)) return;
    this.running.set(name, true);
    this.effects.set(name, (this.effects.get(name) ?? 0) + 1);
    for (const { path } of this.step(name).artifacts) {
      const content = this.contentOf(name, path);
      this.files.set(path, content);
      this.#left.set(path, content);
    }
  }

  #willFail(name: string): boolean {
    const behaviour = this.#behaviours.get(name);
    if (behaviour?.failsAlways === true) return true;
    return (this.#failures.get(name) ?? 0) < (behaviour?.failsFirst ?? 0);
  }

  /** The command ends by itself, with this status. */
  end(name: string): number {
    const hasWorked = this.running.get(name);
    if (hasWorked === undefined) throw new Broken(`${name} ends and did not run`);
    this.running.delete(name);
    if (hasWorked) return 0;
    this.#failures.set(name, (this.#failures.get(name) ?? 0) + 1);
    // It says itself that it has done nothing.
    this.#spent.delete(name);
    return 1;
  }

  /** It is killed; whether its effect comes just before that is a matter of luck. */
  kill(name: string, dice: Dice): void {
    if (this.running.get(name) === false && dice() < 0.4) this.work(name);
    this.running.delete(name);
  }

  killAll(dice: Dice): void {
    for (const name of this.running.keys()) this.kill(name, dice);
  }

  /** What `settle` of a step ends with. */
  settle(name: string): number {
    if (this.#behaviours.get(name)?.settles === "unclearly") return 7;
    // Of what was redone it cannot say more than that it has happened once.
    if (this.hasHappened(name)) return this.isWhole(name) ? 0 : 7;
    this.#spent.delete(name);
    return 1;
  }

  /** Its artifacts are as it has left them. */
  isWhole(name: string): boolean {
    const { artifacts } = this.step(name);
    return artifacts.every(({ path }) => {
      const content = this.files.get(path);
      return content !== undefined && content === this.#left.get(path);
    });
  }

  /** Its artifacts are made of those of the steps that it needs, as they are now. */
  isUpToDate(name: string): boolean {
    const { artifacts } = this.step(name);
    return artifacts.every(({ path }) => this.files.get(path) === this.contentOf(name, path));
  }

  hasHappened(name: string): boolean {
    return (this.effects.get(name) ?? 0) > 0;
  }

  /** A person says that a step may run again. */
  allow(name: string): void {
    if (!this.#spent.delete(name) || !this.hasHappened(name)) return;
    this.words.set(name, (this.words.get(name) ?? 0) + 1);
  }

  remove(name: string): void {
    for (const { path } of this.step(name).artifacts) this.files.delete(path);
  }
}
