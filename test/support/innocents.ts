/**
 * Processes that look like the members of a run and are none of them: the same program, words,
 * user and age, in the places where a cleaner would look for its victims. Each hears every signal
 * that can be caught, and writes it down.
 */
import { expect } from "bun:test";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { identify } from "./guarded-scene.ts";
import { type Announced, isStillThere } from "./killing.ts";
import { PYTHON } from "./outside.ts";
import { readLines, readStatusLine } from "./processes.ts";
import { FIXTURES, readCommandLine, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const INNOCENTS = 30;

/** How each third of them was started. */
const MANNERS = {
  child: ["sh", "-c", 'exec "$@"', "sh"],
  orphan: ["sh", "-c", '"$@" & exit', "sh"],
  daemon: ["sh", "-c", 'setsid "$@" & exit', "sh"],
} as const;

export class Crowd {
  readonly scene: Scene;
  /** Words of the command of the run and of every innocent. */
  readonly words: readonly string[];
  readonly #heard: string;
  readonly #gate: string;
  readonly #innocents: Announced[] = [];
  readonly #atd: string;

  constructor(scene: Scene, name: string) {
    this.scene = scene;
    mkdirSync(scene.path(name));
    const path = (end: string) => scene.path(name, end);
    [this.#heard, this.#gate, this.#atd] = [path("heard"), path("gate"), path("atd")];
    mkdirSync(this.#atd);
    const program = [PYTHON, "-I", "-S", `${FIXTURES}/hears-every-signal.py`];
    this.words = [...program, this.#heard, "-", this.#gate];
  }

  get line(): string {
    return this.words.join(" ");
  }

  get innocents(): readonly Announced[] {
    return this.#innocents;
  }

  /** Who has this command line, whoever it is. */
  find(): number[] {
    const found = this.scene.findProcesses();
    return found.filter((pid) => readCommandLine(pid) === this.line);
  }

  /** Who has it and is no innocent. */
  findMembers(): number[] {
    return this.find().filter((pid) => !this.#innocents.some((one) => one.pid === pid));
  }

  async waitForMembers(count: number): Promise<number[]> {
    return waitFor(() => {
      const found = this.findMembers();
      return found.every((pid) => this.#isReady(pid)) && found.length === count && found;
    }, `${count} members`);
  }

  #isReady(pid: number): boolean {
    return readLines(this.#heard).includes(`${pid} ready`);
  }

  /** So many more of them, a third of them in each manner. */
  async add(count: number): Promise<void> {
    const before = new Set(this.find());
    const manners = Object.values(MANNERS);
    for (let index = 0; index < count; index += 1) {
      const manner = manners[index % manners.length] ?? MANNERS.child;
      this.scene.startProgram([...manner, ...this.words], { stdout: "ignore", stderr: "ignore" });
    }
    const found = await waitFor(() => {
      const added = this.find().filter((pid) => !before.has(pid));
      return added.length === count && added.every((pid) => this.#isReady(pid)) && added;
    }, `${count} innocents`);
    this.#innocents.push(...found.map(identify));
  }

  /** Whoever came by another way, with these words. */
  async adopt(count: number): Promise<number[]> {
    const found = await this.waitForMembers(count);
    this.#innocents.push(...found.map(identify));
    return found;
  }

  startAtd(): void {
    const words = [PYTHON, "-I", "-S", `${FIXTURES}/stores-and-starts.py`, this.#atd];
    this.scene.startProgram(words);
  }

  /** As `at now + 1 hour`: the environment is stored, and used when it is due. */
  store(name: string, environment: string): void {
    const argv = [...this.words, ""].join("\0");
    const job = `${readFileSync(environment, "latin1")}\0${argv}`;
    writeFileSync(`${this.#atd}/${name}.new`, job, "latin1");
    renameSync(`${this.#atd}/${name}.new`, `${this.#atd}/${name}.job`);
  }

  makeDue(name: string): void {
    writeFileSync(`${this.#atd}/${name}.due`, "");
  }

  /** `env -i $(cat saved) COMMAND`, by a shell that waits for it. */
  startWithSaved(environment: string, words: readonly string[] = this.words) {
    const script = 'env -i $(tr "\\0" "\\n" <"$0") "$@"; :';
    const own = { PATH: process.env["PATH"] };
    return this.scene.startProgram(["sh", "-c", script, environment, ...words], { env: own });
  }

  /** All of them live, are who they were, run, and have heard nothing. */
  expectUntouched(): void {
    expect(this.#innocents.filter((one) => !isStillThere(one))).toEqual([]);
    const pids = this.#innocents.map(({ pid }) => pid);
    expect(pids.filter((pid) => !/^[RSD]/.test(readStatusLine(pid, "State") ?? ""))).toEqual([]);
    expect(this.heardBy(pids)).toEqual(pids.map((pid) => `${pid} ready`).sort());
  }

  heardBy(pids: readonly number[]): string[] {
    const own = new Set(pids.map(String));
    return readLines(this.#heard)
      .filter((line) => own.has(line.split(" ")[0] ?? ""))
      .sort();
  }

  /** They leave by themselves: nobody is signalled for it. */
  async disperse(): Promise<void> {
    writeFileSync(this.#gate, "");
    writeFileSync(`${this.#atd}/end`, "");
    await waitFor(() => this.find().length === 0, "the crowd to leave");
  }
}
