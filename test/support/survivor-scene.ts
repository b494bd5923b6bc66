/**
 * A run whose watchdog is dead, made of real processes: orphans that carry its run id, and what is
 * known of it. Every process carries the cookie of the scene, too; those that hide it are
 * remembered by pid and start, and all of them are ended at the end of the file.
 */
import { afterAll } from "bun:test";
import { randomUUIDv7 } from "bun";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import type { DeadRun, KeptProcesses } from "../../src/core/survivors-view.ts";
import { readStat } from "../../src/os/proc.ts";
import { waitForText } from "./processes.ts";
import { killQuietly, openScene, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const NOBODY_KEPT = (): KeptProcesses => ({ identities: new Set(), tokens: new Set() });

/** No process has this pid: the owner is dead. */
const DEAD_PID = 2 ** 22 + 1;

export function identityOf(pid: number): ProcessIdentity {
  const stat = readStat(pid);
  if (stat === undefined) throw new Error(`found no process ${pid}`);
  return { pid, start_time: stat.startTicks };
}

export function isGone({ pid, start_time: start }: ProcessIdentity): boolean {
  const stat = readStat(pid);
  return stat?.startTicks !== start || stat.state === "Z" || stat.state === "X";
}

/** `S`: lives and goes on, on a processor or not; else the letter of proc(5). */
export function stateOf(pid: number): string {
  const state = readStat(pid)?.state ?? "gone";
  return state === "R" ? "S" : state;
}

export class DeadRunScene {
  readonly runId = randomUUIDv7();
  readonly scene: Scene;
  readonly #owner: ProcessIdentity;
  readonly #started: ProcessIdentity[];

  /** Opens the scene of the test file, too: what was started is ended before that is closed. */
  constructor(file: string, other?: DeadRunScene) {
    this.#started = other === undefined ? [] : other.#started;
    this.#owner = { pid: DEAD_PID, start_time: identityOf(process.pid).start_time };
    if (other === undefined) afterAll(() => this.#endAll());
    this.scene = other?.scene ?? openScene(file);
  }

  /** Another dead run of the same test file. */
  another(): DeadRunScene {
    return new DeadRunScene("", this);
  }

  /** What the command of the run, and everything below it, has in its environment. */
  get env(): Record<string, string> {
    return { WATCHDOG_RUN_ID: this.runId, WATCHDOG_RUN_PATH: this.runId };
  }

  /** As its record tells it; whoever adopted one of `orphans` adopts the orphans of the run. */
  describe(orphans: readonly number[], changes: Partial<DeadRun> = {}): DeadRun {
    const parents = orphans.map((pid) => readStat(pid)?.ppid ?? 0).filter((pid) => pid > 1);
    return {
      runId: this.runId,
      owner: this.#owner,
      recorded: [],
      guard: null,
      adopters: parents.map(identityOf),
      cgroup: null,
      mainGroup: null,
      unrecordedIn: [],
      countedIn: null,
      isBlind: false,
      ...changes,
    };
  }

  /** A process of the run whose parent is gone. */
  async startOrphan(
    argv: readonly string[],
    env: Readonly<Record<string, string>> = this.env,
  ): Promise<number> {
    const words = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo "$!"', "sh", ...argv];
    const { stdout } = await this.scene.startProgram(words, { env }).ended;
    return this.remember(Number(stdout.toString()));
  }

  /** A process that this one has started: nobody has orphaned it. */
  startChild(argv: readonly string[], env: Readonly<Record<string, string>> = this.env): number {
    const started = this.scene.startProgram(argv, { env, stdout: "ignore", stderr: "ignore" });
    return this.remember(started.pid);
  }

  /** A place for a fixture to announce its pids. */
  makePath(): string {
    return this.scene.path(`announced-${randomUUIDv7()}`);
  }

  /** Pids that a fixture has announced in that file. */
  async readPids(path: string): Promise<number[]> {
    const pids = (await waitForText(path)).trim().split(" ").map(Number);
    return pids.map((pid) => this.remember(pid));
  }

  remember(pid: number): number {
    const stat = readStat(pid);
    if (stat !== undefined) this.#started.push({ pid, start_time: stat.startTicks });
    return pid;
  }

  async #endAll(): Promise<void> {
    for (const one of this.#started) {
      if (!isGone(one)) killQuietly(one.pid);
    }
    await waitFor(() => this.#started.every(isGone), "the end of all that was started");
  }
}
