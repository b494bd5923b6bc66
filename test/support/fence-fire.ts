/**
 * Grants of one key that alternate while strangers write: processes outside the tree that carry the
 * environment of a run, some of them stopped between check and use. What was written is a register
 * (lines of generation and writer) and a ref of a bare repository, whose log git keeps; both are
 * naive, and take whatever comes. Judges by them alone.
 */
import { expect } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { readEnvironment, saveEnvironment, startJob } from "./fencing.ts";
import { killWithGuard } from "./killing.ts";
import { placeOf } from "./lease-seen.ts";
import { findProgram } from "./outside.ts";
import { readLines, readStatusLine } from "./processes.ts";
import { FAULTS, RELEASE, type Scene, type Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export type HowItEnds = "released" | "killed";
/** Where a stranger stops: `F1` holds nothing yet, `F4` has the fence, `use` has only checked. */
export type StopsAt = "F1" | "F4" | "use" | undefined;

export interface Stranger {
  readonly id: string;
  readonly stopsAt: StopsAt;
  readonly process: Started;
}

/** The tree without files, which every repository knows. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const SILENT = { stdout: "ignore", stderr: "ignore" } as const;
const LONG = { limitMs: 60_000 };

export class FenceFire {
  readonly #scene: Scene;
  readonly #name: string;
  readonly #register: string;
  readonly #repository: string;
  readonly #writes: string;
  #generation = 0;

  constructor(scene: Scene, name: string, rounds: number) {
    this.#scene = scene;
    this.#name = name;
    this.#register = scene.path(`${name}.register`);
    this.#repository = scene.path(`${name}.git`);
    this.#writes = scene.path(`${name}.writes.sh`);
    const commits = this.#makeRepository(rounds);
    const push = `git -C '${this.#repository}.work' push -q --force origin`;
    // Several pushes of one moment get into each other's way (git's own lock of the ref).
    writeFileSync(
      this.#writes,
      `g=$WATCHDOG_GENERATION; echo "$g $1" >>'${this.#register}'
      commit=$(sed -n "\${g}p" '${commits}')
      for i in 1 2 3 4 5 6 7 8 9 10; do
        ${push} "$commit:refs/heads/state" 2>>'${this.#register}.push' && exit 0; sleep 0.05
      done\n`,
    );
  }

  get generation(): number {
    return this.#generation;
  }

  /** The next run under the key: waits for its grant, then writes until it is told to end. */
  startRun(): { readonly run: Started; readonly generation: number } {
    const generation = (this.#generation += 1);
    const path = (end: string) => this.#path(generation, end);
    const write = (id: string) => `"$W" fence -- sh '${this.#writes}' ${id}-${generation}`;
    // The first thing that it does: whoever of an earlier tree lives is named.
    const earlier = Array.from({ length: generation - 1 }, (_, index) => this.#memberOf(index + 1));
    writeFileSync(path("earlier"), earlier.map((entry) => `${entry}\n`).join(""));
    const looks = `grep -lzsxFf '${path("earlier")}' /proc/[0-9]*/environ >'${path("alive")}'`;
    const script = `${generation > 1 ? `${looks};` : ""} ${write("owner")}
      ${saveEnvironment(path("env"))}
      until [ -e '${path("gate")}' ]; do ${write("again")}; sleep 0.1; done`;
    const [variable = "", value = ""] = this.#memberOf(generation).split("=");
    const env = { [variable]: value };
    const words = ["--wait", "60s"];
    return {
      run: startJob(this.#scene, this.#name, script, { ...SILENT, words, env }),
      generation,
    };
  }

  /** Resolves when the run was granted, and has written. */
  async waitForWrite(generation: number): Promise<Record<string, string>> {
    const environment = await readEnvironment(this.#path(generation, "env"));
    expect(readLines(this.#path(generation, "alive"))).toEqual([]);
    return environment;
  }

  async startStrangers(
    environment: Readonly<Record<string, string>>,
    stops: readonly StopsAt[],
  ): Promise<Stranger[]> {
    const generation = environment["WATCHDOG_GENERATION"];
    const strangers = stops.map((stopsAt, index): Stranger => {
      const id = `stranger-${generation}-${index}`;
      return { id, stopsAt, process: this.#start(environment, id, stopsAt) };
    });
    for (const { stopsAt, process } of strangers) {
      if (stopsAt !== undefined) await waitUntilStopped(process);
    }
    return strangers;
  }

  async end(run: Started, generation: number, how: HowItEnds): Promise<void> {
    if (how === "killed") return killWithGuard(run);
    writeFileSync(this.#path(generation, "gate"), "");
    await run.ended;
  }

  /** Resolves when the newcomer stands before the fence, with the lock in hand. */
  async waitForLock(): Promise<void> {
    const { lock } = placeOf(this.#scene.stateDirectory, this.#name);
    const words = [findProgram("flock"), "-n", "-x", lock, "true"];
    await waitFor(() => Bun.spawnSync(words).exitCode !== 0, "a newcomer");
  }

  /** Each update as `generation writer`, in the order in which the register took them. */
  updates(): string[] {
    return readLines(this.#register);
  }

  /** What the ref of the bare repository has been, first to last. */
  pushed(): number[] {
    const log = this.#git(this.#repository, ["log", "-g", "--format=%s", "refs/heads/state"]);
    return log.trim().split("\n").map(Number).toReversed();
  }

  #start(environment: Readonly<Record<string, string>>, id: string, stopsAt: StopsAt): Started {
    const { [`FIRE_${this.#name}`]: _, ...env } = environment;
    const write = `exec sh '${this.#writes}' ${id}`;
    if (stopsAt === "use") {
      const script = `'${RELEASE}' fence && kill -STOP $$ && ${write}`;
      return this.#scene.startProgram(["sh", "-c", script], { env });
    }
    const words = ["fence", "--", "sh", "-c", write];
    if (stopsAt === undefined) return this.#scene.startProgram([RELEASE, ...words], { env });
    const fault = {
      WATCHDOG_FAULT: `fence.${stopsAt}=stop`,
      WATCHDOG_FAULT_DIR: `${this.#writes}.d`,
    };
    return this.#scene.startProgram([FAULTS, ...words], { env: { ...env, ...fault } });
  }

  #path(generation: number, end: string): string {
    return this.#scene.path(`${this.#name}-${generation}.${end}`);
  }

  /** An entry that every process of that run has in its environment, and no stranger. */
  #memberOf(generation: number): string {
    return `FIRE_${this.#name}=${generation}@${process.pid}`;
  }

  /** A bare repository, a clone, and a commit for each generation. @returns the file of commits */
  #makeRepository(rounds: number): string {
    const [bare, work] = [this.#repository, `${this.#repository}.work`];
    mkdirSync(bare);
    this.#git(bare, ["init", "-q", "--bare"]);
    this.#git(bare, ["config", "core.logAllRefUpdates", "always"]);
    this.#git(this.#scene.directory, ["clone", "-q", bare, work]);
    const commits = Array.from({ length: rounds + 2 }, (_, index) =>
      this.#git(work, ["commit-tree", EMPTY_TREE, "-m", String(index + 1)]).trim(),
    );
    this.#git(work, ["hash-object", "-t", "tree", "-w", "/dev/null"]);
    writeFileSync(`${bare}.commits`, commits.map((commit) => `${commit}\n`).join(""));
    return `${bare}.commits`;
  }

  #git(directory: string, words: readonly string[]): string {
    const who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    const line = ["git", ...who, ...words];
    const done = Bun.spawnSync(line, { cwd: directory, env: this.#scene.env });
    if (done.exitCode !== 0) throw new Error(`git ${words.join(" ")}: ${done.stderr.toString()}`);
    return done.stdout.toString();
  }
}

async function waitUntilStopped({ pid, ended }: Started): Promise<void> {
  const early = ended.then(({ status, stderr }) => {
    throw new Error(`${pid} has ended by ${status} instead of being stopped: ${stderr}`);
  });
  const stopped = () => readStatusLine(pid, "State")?.startsWith("T");
  await Promise.race([waitFor(stopped, `a stopped ${pid}`, LONG), early]);
}

/** Places at which a lower number comes after a higher one. */
export function findRegressions(numbers: readonly number[]): string[] {
  return numbers.flatMap((number, index) => {
    const before = Math.max(0, ...numbers.slice(0, index));
    return number < before ? [`${number} after ${before}`] : [];
  });
}

export function generationsOf(updates: readonly string[]): number[] {
  return updates.map((line) => Number(line.split(" ")[0]));
}
