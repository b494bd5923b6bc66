/** A tree that is frozen by fixtures/freezes-a-command.ts; movement.ts judges whether it is. */
import { afterEach, expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { FreezePlan } from "../fixtures/freezes-a-command.ts";
import { COUNTER, listBelow, stateOf } from "./movement.ts";
import { FIXTURES, openScene, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export interface FreezingOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Words before those of the program: `sh -c … sh`. */
  readonly wrapper?: readonly string[];
}

/** A scene with trees to freeze; each is ended after its test. */
export interface FreezingScene {
  readonly scene: Scene;
  start(command: readonly string[], options?: FreezingOptions): Promise<Freezing>;
  /** Words of a program that counts up in the file of this name. */
  counter(name: string): string[];
  /** It is not there any more to be ended. */
  forget(freezing: Freezing): void;
}

export function openFreezing(file: string): FreezingScene {
  const scene = openScene(file);
  const running = new Set<Freezing>();
  afterEach(async () => {
    const ended = [...running];
    running.clear();
    for (const one of ended) await one.end();
  });
  return {
    scene,
    start: async (command, options) => {
      const freezing = await Freezing.start(scene, command, options);
      running.add(freezing);
      return freezing;
    },
    counter: (name) => [...COUNTER, scene.path(name)],
    forget: (freezing) => void running.delete(freezing),
  };
}

const FROZEN_WITHIN_MS = 20_000;

type Line = Readonly<Record<string, unknown>>;

export class Freezing {
  readonly runId: string;
  readonly pid: number;
  readonly main: number;
  readonly #told: string;
  readonly send: (line: string) => void;
  readonly #exited: Promise<number>;
  #done = 0;

  static async start(
    scene: Scene,
    command: readonly string[],
    options: FreezingOptions = {},
  ): Promise<Freezing> {
    const runId = Bun.randomUUIDv7();
    const plan: FreezePlan = { runId, command, told: scene.path(`told-${runId}`) };
    writeFileSync(scene.path(`plan-${runId}`), JSON.stringify(plan));
    const words = [process.execPath, `${FIXTURES}/freezes-a-command.ts`];
    const started = Bun.spawn([...(options.wrapper ?? []), ...words, scene.path(`plan-${runId}`)], {
      env: { ...scene.env, ...options.env },
      stdin: "pipe",
      stdout: "inherit",
      stderr: "inherit",
    });
    const look = (): Line | undefined => readTold(plan.told).find((one) => "ready" in one);
    const ready = await waitFor(look, "a tree to freeze");
    return new Freezing(plan, ready, started);
  }

  private constructor(
    plan: FreezePlan,
    ready: Line,
    started: Bun.Subprocess<"pipe", "inherit", "inherit">,
  ) {
    this.runId = plan.runId;
    this.#told = plan.told;
    this.pid = Number(ready["pid"]);
    this.main = Number(ready["ready"]);
    this.#exited = started.exited;
    this.send = (line) => {
      void started.stdin.write(`${line}\n`);
      void started.stdin.flush();
    };
  }

  /** What was told of this kind, in order. */
  told(kind: string): Line[] {
    return readTold(this.#told).filter((one) => kind in one);
  }

  /** Has one line obeyed, and answers with what was told after it. */
  async tell(line: string): Promise<Line> {
    const before = (this.#done += 1);
    this.send(line);
    return waitFor(() => this.told("did")[before - 1], `'${line}' done`);
  }

  /** Freezes, and waits until all stand still. */
  async freeze(): Promise<Line> {
    const before = this.told("frozen").length;
    await this.tell("freeze");
    return this.waitForFrozen(before + 1);
  }

  /** Looked at again every second, it takes no longer on a loaded machine than a timer of 30 s. */
  async waitForFrozen(count: number): Promise<Line> {
    const look = (): Line | undefined => this.told("frozen")[count - 1];
    return waitFor(look, `all stand still, time ${count}`, { limitMs: FROZEN_WITHIN_MS });
  }

  async end(): Promise<void> {
    this.send("bye");
    await this.#exited;
  }
}

export function statesBelow(freezing: Freezing): Record<string, string> {
  return Object.fromEntries(listBelow(freezing.pid).map((pid) => [pid, stateOf(pid)]));
}

/** Nobody below stands still. */
export function expectAllGoOn(freezing: Freezing): void {
  const states = Object.entries(statesBelow(freezing));
  expect(states.filter(([, state]) => "Tt".includes(state))).toEqual([]);
}

/** The last line may be in the midst of being written. */
function readTold(path: string): Line[] {
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  return lines.map((line): Line => JSON.parse(line));
}
