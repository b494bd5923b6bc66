/**
 * One run of the fault build that wants two keys, in a state directory of its own, and what there
 * is to see of it: the evidence that the fault itself has left, files and locks of both keys,
 * processes, the row of the journal.
 *
 * Whose a record or a slot is, is told by a word: `before` (released before the run), `dead` (its
 * owner was dead before the run), `ours` (any true run).
 */
import { Database, SQLiteError } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { askLock } from "../../src/lease/files/lock-file.ts";
import { placeOf } from "../../src/lease/files/places.ts";
import { readRecord } from "../../src/lease/files/record-file.ts";
import { readSlot } from "../../src/lease/files/slot-file.ts";
import { claim, EMPTY, grant, machine } from "../support/claim-scene.ts";
import { readProcText } from "../support/proc-text.ts";
import { type Ended, FAULTS, killQuietly, type Scene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

/** In the order in which every run takes them. */
export const JOB: LeaseKey = { kind: "job", name: "night" };
export const LANE: LeaseKey = { kind: "lane", name: "server" };
const BOTH = ["--name", JOB.name, "--lane", LANE.name];
/** No process has this pid: it is above the largest that the kernel gives. */
const NOBODY = { pid: 2 ** 22 + 1, pid_start_time: 1 };

/** `used`: the first key was released under number 1, that of the second has a dead owner. */
export type Past = "used" | "released" | "none";

export interface Evidence {
  readonly point: string;
  readonly nth: number;
  readonly act: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly thread: "main" | "worker";
}

export interface Seen {
  /** The watchdog of the run and its guard, as what they are now. */
  readonly helpers: readonly number[];
  /** The command and all below it. */
  readonly members: readonly number[];
}

let cases = 0;

/** A database that is busy is opened again for so long, and each time waited for so short. */
const READ_LIMIT_MS = 20_000;
const BUSY_MS = 20;

export class FaultCase {
  readonly directory: string;
  readonly state: string;
  readonly #scene: Scene;
  readonly #life: string;
  readonly #faults: string;
  #pid = 0;

  constructor(scene: Scene) {
    cases += 1;
    this.#scene = scene;
    this.directory = scene.path(`case-${cases}`);
    this.state = `${this.directory}/state`;
    this.#life = `${this.directory}/life`;
    this.#faults = `${this.directory}/faults`;
    mkdirSync(this.directory);
  }

  async prepare(past: Past): Promise<this> {
    if (past === "none") return this;
    mkdirSync(this.state, { mode: 0o700 });
    await this.#leave(JOB, "before");
    await this.#leave(LANE, past === "used" ? "dead" : "before");
    return this;
  }

  async #leave(key: LeaseKey, run_id: string): Promise<void> {
    const claimed = await claim({
      stateDirectory: this.state,
      keys: [key],
      runsAround: [],
      waitMs: undefined,
      looker: { stateDirectory: this.state, machine, journal: () => undefined },
      survivors: {
        look: async () => EMPTY,
        end: async () => EMPTY,
        continueFrozen: async () => 0,
      },
      secondLook: { repairCooldownMs: 0, usersOf: async () => [] },
      waitWorkerUrl: new URL("file:///nobody-waits"),
      onWaiting: () => undefined,
      onEnding: () => undefined,
    });
    const held = grant(claimed, { run_id, ...NOBODY });
    if (run_id === "before") held.markReleased();
    held.close();
  }

  /** The run with its fault; what it prints is in a file, so that no survivor holds a pipe. */
  start(plan: string | undefined, script: string, options: readonly string[] = []): Started {
    const started = this.#start(plan, script, { options, faults: this.#faults });
    this.#pid = started.pid;
    return started;
  }

  #start(
    plan: string | undefined,
    script: string,
    { options, faults }: { options: readonly string[]; faults: string },
  ): Started {
    const result = ["--result-file", `${this.directory}/result.json`];
    const words = [
      FAULTS,
      "run",
      "--log=off",
      ...BOTH,
      ...result,
      ...options,
      "--",
      "sh",
      "-c",
      script,
    ];
    const stderr = openSync(`${this.directory}/stderr`, "a");
    try {
      const env = { ...this.#env, WATCHDOG_FAULT: plan, WATCHDOG_FAULT_DIR: faults };
      return this.#scene.startProgram(words, { env, stdout: "ignore", stderr });
    } finally {
      closeSync(stderr);
    }
  }

  /** An earlier run of which command and child live on: its watchdog and its guard were killed. */
  async orphan(job = JOB.name): Promise<void> {
    const script = 'echo started >>"$LIFE"; sleep 94111 & exec sleep 94112';
    const faults = `${this.directory}/earlier-faults`;
    const run = this.#start("bury.begin=kill", script, { options: ["--name", job], faults });
    await this.waitForCommand();
    run.kill("SIGKILL");
    await run.ended;
    await this.waitForHelpers();
    rmSync(this.#life);
  }

  /** The command runs, and the journal says so. */
  async waitForCommand(): Promise<void> {
    const runs = (): boolean => this.lives().includes("started") && this.rows().includes("running");
    await waitFor(runs, `the command of ${this.directory}`, { stepMs: 8 });
  }

  get #env() {
    return { WATCHDOG_STATE_DIR: this.state, LIFE: this.#life };
  }

  /** Whoever wants the same keys, or those of these words, without a fault. */
  come(name: string, keys: readonly string[] = BOTH): Promise<Ended> {
    const result = ["--result-file", `${this.directory}/${name}.json`];
    const words = [FAULTS, "run", "--log=off", "-v", ...keys, ...result];
    const command = ["--", "sh", "-c", `echo ${name} >>"$LIFE"`];
    return this.#scene.startProgram([...words, ...command], { env: this.#env }).ended;
  }

  /** Lines that commands have written of themselves. */
  lives(): string[] {
    return existsSync(this.#life) ? readFileSync(this.#life, "utf8").trim().split("\n") : [];
  }

  stderr(): string {
    return readFileSync(`${this.directory}/stderr`, "utf8");
  }

  json(name: string): Record<string, unknown> | undefined {
    const path = `${this.directory}/${name}.json`;
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  }

  /** That of the watchdog comes before that of its guard. */
  evidence(): Evidence[] {
    if (!existsSync(this.#faults)) return [];
    const all = readdirSync(this.#faults).toSorted();
    const isOwn = (file: string): boolean => file.startsWith(`${this.#pid}-`);
    const files = [...all.filter(isOwn), ...all.filter((file) => !isOwn(file))];
    return files.map((file) => {
      const found = JSON.parse(readFileSync(`${this.#faults}/${file}`, "utf8"));
      return { ...found, thread: file.split("-")[1] === "0" ? "main" : "worker" };
    });
  }

  /** Of a thread that is held: its file is there at once, and whole a moment later. */
  async waitForEvidence(): Promise<void> {
    const isWhole = (): boolean =>
      existsSync(this.#faults) &&
      readdirSync(this.#faults).some((file) =>
        readFileSync(`${this.#faults}/${file}`, "utf8").endsWith("}}"),
      );
    await waitFor(isWhole, "evidence of the fault", { stepMs: 5 });
  }

  /** The thread that a fault holds goes on. */
  letGo(): void {
    writeFileSync(`${this.#faults}.go`, "");
  }

  look(): Seen {
    const helpers: number[] = [];
    const members: number[] = [];
    const own = `${this.directory}/`;
    for (const name of readdirSync("/proc")) {
      const entries = /^\d+$/.test(name) ? readEnvironment(name) : [];
      const isHelper = entries.some((one) => one.startsWith(`WATCHDOG_FAULT_DIR=${own}`));
      if (isHelper) helpers.push(Number(name));
      else if (entries.includes(`LIFE=${this.#life}`)) members.push(Number(name));
    }
    return { helpers, members };
  }

  /** A process inside exec has no environment to be found by: gone is who is not found thrice. */
  async waitForHelpers(): Promise<void> {
    for (let unseen = 0; unseen < 3; unseen += 1) {
      const { helpers } = this.look();
      if (helpers.length > 0) unseen = -1;
      const areGone = (): boolean => helpers.every(isGone);
      await waitFor(areGone, `watchdog and guard of ${this.directory} to be gone`, { stepMs: 8 });
      if (helpers.length === 0) await Bun.sleep(8);
    }
  }

  /** Until this process stands still (proc(5), state T). */
  async waitForStop(pid = this.#pid): Promise<void> {
    await waitFor(() => stateOf(pid) === "T", `process ${pid} to stop`, { stepMs: 5 });
  }

  endMembers(): void {
    for (const pid of this.look().members) killQuietly(pid);
  }

  /** Rows of true runs that were not refused, but for `but`: `abandoned`, `failed 7`. */
  rows(but?: unknown): string[] {
    if (!existsSync(`${this.state}/journal.db`)) return [];
    const until = performance.now() + READ_LIMIT_MS;
    for (;;) {
      try {
        return this.#readRows(but);
      } catch (error) {
        // It is being made, or its last writer closes it: SQLite waits for neither of the two.
        if (!isBusy(error) || performance.now() > until) throw error;
        Bun.sleepSync(BUSY_MS);
      }
    }
  }

  /** The same of a run that stands still: if it has the database, it will not give it back. */
  rowsNow(): string[] {
    try {
      return existsSync(`${this.state}/journal.db`) ? this.#readRows() : [];
    } catch (error) {
      if (!isBusy(error)) throw error;
      return ["busy"];
    }
  }

  #readRows(but?: unknown): string[] {
    const db = new Database(`${this.state}/journal.db`, { readonly: true });
    try {
      db.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
      const table = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'runs'").get();
      if (table === null) return [];
      const rows = db.query<Record<string, unknown>, []>("SELECT * FROM runs ORDER BY seq").all();
      return rows
        .filter((row) => ![but, "dead"].includes(row["run_id"]) && row["outcome"] !== "locked")
        .map((row) => [row["outcome"] ?? row["state"], row["exit_status"] ?? ""].join(" ").trim());
    } finally {
      db.close();
    }
  }

  /** `held fenced` */
  locks(): string[] {
    return [JOB, LANE].map((key) => {
      const { lock, fence } = placeOf(this.state, key);
      const isFenced = askHeld(fence) === "held";
      return `${existsSync(lock) ? askHeld(lock) : "missing"}${isFenced ? " fenced" : ""}`;
    });
  }

  /**
   * `held 2 ours | 1:before@1 2:ours@3+child`: the record; each slot with the number of its beat,
   * and whether it names the command.
   */
  keys(): string[] {
    return [JOB, LANE].map((key) => describeKey(this.state, key));
  }
}

function readEnvironment(pid: string): string[] {
  try {
    return readProcText(pid, "environ").split("\0");
  } catch {
    return []; // ESRCH: gone. EACCES: of another user, so none of ours
  }
}

/** As proc(5) has it: T for a process that stands still. Undefined: it is gone. */
export function stateOf(pid: number): string | undefined {
  try {
    return /\) (.)/.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
  } catch {
    return undefined; // ENOENT, ESRCH
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code === "SQLITE_BUSY";
}

/** A zombie has nothing left to do. */
function isGone(pid: number): boolean {
  return [undefined, "Z"].includes(stateOf(pid));
}

function askHeld(path: string): "held" | "free" {
  return existsSync(path) && askLock(path).kind === "held" ? "held" : "free";
}

function describeKey(state: string, key: LeaseKey): string {
  const { directory, record } = placeOf(state, key);
  if (!existsSync(directory)) return "none";
  const reading = readRecord(record);
  const known = reading.kind === "read" ? reading.record : undefined;
  const shown =
    known === undefined
      ? reading.kind
      : `${known.state} ${known.generation} ${nameRun(known.run_id)}`;
  const slots = readdirSync(directory)
    .flatMap((name) => (name.startsWith("beat.") ? Number(name.slice("beat.".length)) : []))
    .toSorted((one, other) => one - other)
    .map((generation) => `${generation}:${describeSlot(`${directory}/beat.${generation}`)}`);
  return [shown, "|", ...slots].join(" ");
}

function describeSlot(path: string): string {
  const slot = readSlot(path);
  if (typeof slot === "string") return slot;
  const child = (slot.body?.mainChild ?? null) === null ? "" : "+child";
  return `${nameRun(slot.body?.runId ?? "torn")}@${slot.head.sequence}${child}`;
}

function nameRun(runId: string): string {
  return ["before", "dead", "torn"].includes(runId) ? runId : "ours";
}
