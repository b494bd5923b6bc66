/**
 * Runs of the release binary that are paused while their dependency is away. The dependency is a
 * server of the test, which says yes or no as the test wants; whether a tree stands still is judged
 * by movement.ts, and that the pause is complete, or over, is read from the journal.
 *
 * Always: what a test has started is dead after it, whether it went well or not.
 */
import { Database } from "bun:sqlite";
import { afterEach } from "bun:test";
import { existsSync } from "node:fs";
import { readChildPid } from "./guarded-scene.ts";
import {
  killAlone,
  readChildren,
  roundEntry,
  roundVariable,
  waitUntilNobodyCarries,
} from "./killing.ts";
import { COUNTER, listBelow, stateOf } from "./movement.ts";
import {
  findCarriers,
  openScene,
  readCommandLine,
  RELEASE,
  type RunOptions,
  type Scene,
  type Started,
} from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever was in the file: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

/** Quick to see that it is away, and that it is back; never down for good by itself. */
export const QUICKLY: readonly string[] = [
  ["--probe-period", "250ms", "--probe-timeout", "250ms", "--probe-failure-threshold", "1"],
  ["--probe-backoff", "20ms..100ms", "--probe-max-attempts", "100000"],
].flat();

export class Dependency {
  readonly url: string;
  /** How often it was asked. */
  asked = 0;
  /** How often it has said the same since that was decided. */
  answered = 0;
  #isUp = true;
  readonly #server: Bun.Server<unknown>;

  constructor(socket: string) {
    this.url = `unix:${socket}`;
    this.#server = Bun.serve({
      unix: socket,
      fetch: () => {
        this.asked += 1;
        this.answered += 1;
        return new Response("", { status: this.#isUp ? 200 : 503 });
      },
    });
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  set isUp(isUp: boolean) {
    this.#isUp = isUp;
    this.answered = 0;
  }

  /** Words of a run that depends on it. */
  get words(): readonly string[] {
    return ["--probe", this.url, "--on-open", "pause", ...QUICKLY];
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }
}

export interface PausingWords {
  readonly name: string;
  readonly args?: readonly string[];
  readonly command: readonly string[];
  readonly options?: RunOptions;
  /** Words before those of watchdog: `sh -c … sh`. */
  readonly before?: readonly string[];
  /** Undefined: one of its own. */
  readonly dependency?: Dependency;
}

export interface PausingScene {
  readonly scene: Scene;
  makeDependency(): Dependency;
  /** Resolves when its command was started. `--result-file` is that of `readRecord(name)`. */
  start(words: PausingWords): Promise<PausingRun>;
  /** Words of a program that counts up in the file of this name. */
  counter(name: string): string[];
}

export function openPausing(file: string): PausingScene {
  const scene = openScene(file);
  const dependencies: Dependency[] = [];
  const running: Started[] = [];
  let made = 0;
  const makeDependency = (): Dependency => {
    const one = new Dependency(scene.path(`dependency-${(made += 1)}`));
    dependencies.push(one);
    return one;
  };
  afterEach(async () => {
    for (const run of running.splice(0)) await killAlone(run);
    for (const one of dependencies.splice(0)) await one.close();
  });
  return {
    scene,
    makeDependency,
    counter: (name) => [...COUNTER, scene.path(name)],
    start: async (words) => {
      const dependency = words.dependency ?? makeDependency();
      const started = startRun(scene, words, dependency);
      running.push(started);
      await waitForStart(scene, words.name);
      return new PausingRun({ scene, name: words.name, dependency, started });
    },
  };
}

function startRun(
  scene: Scene,
  { name, args = [], command, options = {}, before = [] }: PausingWords,
  dependency: Dependency,
): Started {
  const words = ["--name", name, ...scene.recordTo(name), ...dependency.words, ...args];
  const argv = [...before, options.binary ?? RELEASE, "run", ...words, "--", ...command];
  return scene.startProgram(argv, { ...options, env: { ...options.env, ...roundVariable(name) } });
}

/** The command runs, as the running record says. */
export async function waitForStart(scene: Scene, name: string): Promise<void> {
  await waitFor(() => readChildPid(scene, name), `the command of ${name}`);
}

export interface JournalEvent {
  readonly name: string;
  readonly because: string | null;
  readonly data: Parsed;
}

interface PausingParts {
  readonly scene: Scene;
  readonly name: string;
  readonly dependency: Dependency;
  readonly started: Started | undefined;
}

/** One whose command was started. */
export class PausingRun {
  readonly name: string;
  readonly pid: number;
  readonly main: number;
  readonly runId: string;
  readonly dependency: Dependency;
  readonly #parts: PausingParts;

  /** @param parts  those of one whose command was started */
  constructor(parts: PausingParts) {
    const record = parts.scene.readRecord(parts.name);
    this.name = parts.name;
    this.dependency = parts.dependency;
    [this.pid, this.main, this.runId] = [record["pid"], record["child_pid"], record["run_id"]];
    this.#parts = parts;
  }

  /** Where a shell of the test has started it there is none. */
  get started(): Started {
    const { started } = this.#parts;
    if (started === undefined) throw new Error(`${this.name} was started by somebody else`);
    return started;
  }

  /** The living below it that are the job's: neither guards nor what probes for it. */
  members(): number[] {
    const ours = readChildren(this.pid).filter((pid) =>
      / __probe-command\b/.test(readCommandLine(pid)),
    );
    const spared = new Set(ours.flatMap((pid) => [pid, ...listBelow(pid)]));
    return listBelow(this.pid).filter((pid) => !spared.has(pid) && !isGuard(pid));
  }

  /** Its own, and those of nested runs. */
  guards(): number[] {
    return listBelow(this.pid).filter(isGuard);
  }

  /** Pids of the living that carry its mark, wherever they hang. */
  findAll(): number[] {
    return findCarriers(roundEntry(this.name));
  }

  /** Those of them that have this command line. */
  find(command: string): number[] {
    return this.findAll().filter((pid) => readCommandLine(pid) === command);
  }

  /** Those of the members that stand still. */
  stopped(): number[] {
    return this.members().filter((pid) => "Tt".includes(stateOf(pid)));
  }

  /** Takes the dependency away; resolves when the journal says that all stand still. */
  async pause(): Promise<void> {
    await this.#change(false, "paused");
  }

  /** Gives it back; resolves when nobody is held any more. */
  async resume(): Promise<void> {
    await this.#change(true, "resumed");
  }

  /**
   * A probe may have been too slow for a loaded machine: then it is paused already, or for a
   * moment. What counts is how it stands after an answer that says what the test wants.
   */
  async #change(isUp: boolean, name: "paused" | "resumed"): Promise<void> {
    const { dependency } = this;
    dependency.isUp = isUp;
    const isSo = (): boolean => dependency.answered > 0 && this.#lastChange() === name;
    await waitFor(isSo, `${this.name} ${name}`).catch((error: unknown) => {
      const events = this.events().map((event) => event.name);
      const found = { states: this.members().map(stateOf), asked: dependency.asked, events };
      throw new Error(`not ${name}: ${JSON.stringify(found)}`, { cause: error });
    });
  }

  #lastChange(): string | undefined {
    const names = this.events().map((event) => event.name);
    return names.findLast((name) => name === "paused" || name === "resumed");
  }

  /** Of this run, in order; of one name where it is given. */
  events(name?: string): JournalEvent[] {
    const all = readEvents(this.#parts.scene, this.runId);
    return name === undefined ? all : all.filter((event) => event.name === name);
  }

  record(): Record<string, Parsed> {
    return this.#parts.scene.readRecord(this.name);
  }

  async waitUntilGone(): Promise<void> {
    await waitUntilNobodyCarries(roundEntry(this.name));
  }
}

function isGuard(pid: number): boolean {
  return / __bury /.test(readCommandLine(pid));
}

/** The journal as another process sees it. */
export function readEvents(scene: Scene, runId: string): JournalEvent[] {
  const path = `${scene.stateDirectory}/journal.db`;
  if (!existsSync(path)) return [];
  const journal = new Database(path, { readonly: true });
  journal.run("PRAGMA busy_timeout = 5000");
  try {
    const rows = journal
      .query("SELECT name, because, data FROM events WHERE run_id = ? ORDER BY id")
      .all(runId) as { name: string; because: string | null; data: string }[];
    return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
  } finally {
    journal.close();
  }
}
