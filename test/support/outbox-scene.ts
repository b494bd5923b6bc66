/**
 * Runs with a webhook that are killed at some moment, and what their receiver and their journal say
 * of it afterwards. Everything is real: processes, sockets, SQLite.
 */
import { expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { type Evidence, readEvidence } from "../fault/fault-scene.ts";
import { inspect } from "./journal-scene.ts";
import type { NoticeServer } from "./notice-server.ts";
import { readProcText } from "./proc-text.ts";
import { findGuardOf } from "./processes.ts";
import { type Ended, FAULTS, killQuietly, type Scene, type Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const FAILING = ["sh", "-c", "exit 7"] as const;
let cases = 0;

export interface Row {
  readonly entry: string;
  readonly event: string;
  readonly state: string;
  readonly attempts: number;
}

export class OutboxCase {
  readonly #scene: Scene;
  readonly #server: NoticeServer;
  readonly state: string;
  readonly #evidence: string;
  job = "nightly";

  constructor(scene: Scene, server: NoticeServer) {
    cases += 1;
    this.#scene = scene;
    this.#server = server;
    this.state = scene.path(`outbox-${cases}`);
    this.#evidence = scene.path(`evidence-${cases}`);
  }

  start(
    fault: string | undefined,
    command: readonly string[] = FAILING,
    options: readonly string[] = ["--webhook", this.#server.url()],
  ): Started {
    const place = ["--state-dir", this.state, "--name", this.job];
    return this.#scene.start([...place, ...options, "--", ...command], {
      binary: FAULTS,
      env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: this.#evidence },
    });
  }

  run(
    fault: string | undefined,
    command?: readonly string[],
    options?: readonly string[],
  ): Promise<Ended> {
    return this.start(fault, command, options).ended;
  }

  /** A run that has not been told anything: the last that anybody needs to come. */
  async comeNext(): Promise<Ended> {
    return this.run(undefined, ["true"]);
  }

  /** `notify flush`, of a person who knows nothing but the state directory. */
  async flush(): Promise<number> {
    const words = [FAULTS, "notify", "flush", "--state-dir", this.state];
    return (await this.#scene.startProgram(words).ended).status;
  }

  evidence(): Evidence[] {
    return readEvidence(this.#evidence);
  }

  expectFired(...points: readonly string[]): void {
    const fired = this.evidence().map(({ point }) => point);
    expect(fired.toSorted()).toEqual([...points].toSorted());
  }

  /** Nobody of this state directory is left, guards among them. */
  async waitForQuiet(): Promise<void> {
    await waitFor(() => this.#findOurs().length === 0, `nobody to be left of ${this.state}`);
  }

  /** Of the watchdog that stands still at a fault; kills both, the guard first. */
  async killWithGuard(run: Started): Promise<void> {
    await waitFor(() => readState(run.pid) === "T", "watchdog to stop at the fault");
    const guard = findGuardOf(run.pid);
    if (guard !== undefined) killQuietly(guard);
    run.kill("SIGKILL");
    await run.ended;
    await this.waitForQuiet();
  }

  rows(): Row[] {
    return inspect(
      this.state,
      "SELECT entry_id, event, state, attempts FROM outbox ORDER BY id",
    ).map(([entry, event, state, attempts]) => ({
      entry: String(entry).split(":")[0] ?? "",
      event: String(event),
      state: String(state),
      attempts: Number(attempts),
    }));
  }

  /** Ids of the runs of the job, the oldest first. */
  runs(): string[] {
    return inspect(this.state, "SELECT run_id FROM runs ORDER BY seq").map(([id]) => String(id));
  }

  /**
   * What the receiver heard about a run, in order and without repetitions; repetitions under
   * another key are seen here, because each pair of event and key counts.
   */
  heardOf(runId: string | undefined): string[] {
    const ours = this.#server.received.filter((one) => one.runId === runId);
    const told = new Map(ours.map((one) => [`${one.event} ${one.key}`, one.event]));
    return [...told.values()];
  }

  #findOurs(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => isOf(pid, this.state));
  }
}

function isOf(pid: number, state: string): boolean {
  try {
    return readProcText(pid, "cmdline").split("\0").includes(state);
  } catch {
    return false; // gone
  }
}

function readState(pid: number): string {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1] ?? "";
  } catch {
    return ""; // gone
  }
}
