/**
 * Runs that share a dependency, without a machine: one clock with its timers, one table of rows,
 * one lock a circuit, one server that counts who asks it. Time goes on only by `pass`.
 *
 * Always: what a killed run has left behind never happens; each run has a store and a pid of its
 * own, as processes have.
 */
import { CircuitWatch } from "../../src/circuit/watch.ts";
import { LiveCircuit } from "../../src/circuit/live-circuit.ts";
import { type StartupEnd, waitForStart } from "../../src/circuit/startup.ts";
import type { CircuitSettings, CircuitTransition } from "../../src/core/circuit.ts";
import type { ProbeReason, ProbeResult } from "../../src/core/probe-result.ts";
import {
  defaultProbeSettings,
  hashSettings,
  type ProbeSettings,
} from "../../src/core/probe-settings.ts";
import type {
  CircuitChange,
  CircuitLook,
  CircuitStore,
  ProbeNote,
  SharedCircuit,
  TrialHolder,
} from "../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../src/core/time.ts";
import type { Timer } from "../../src/os/timers.ts";
import { FakeLock } from "./fake-lock.ts";

export const at = (ms: number): MonotonicAt => ms as MonotonicAt;

const TARGET = { kind: "tcp", host: "model", port: 80 } as const;

export function settingsOf(changes: Partial<ProbeSettings> = {}): ProbeSettings {
  return { ...defaultProbeSettings("liveness", TARGET), name: "model", ...changes };
}

export function circuitSettingsOf(settings: ProbeSettings): CircuitSettings {
  const { failureThreshold, failureWindow, successThreshold, backoff } = settings;
  return { failureThreshold, failureWindow, successThreshold, backoff };
}

interface Waiting {
  readonly atMs: number;
  readonly order: number;
  readonly wake: () => void;
}

/** Everything that was promised until now happens before the next timer. */
function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Timers cut to 30 s, as those of os/timers.ts are; `earlyMs` makes them come too early. */
export class FakeTime {
  nowMs = 1_000_000;
  #waiting: Waiting[] = [];
  #order = 0;
  readonly #earlyMs: number;

  constructor(earlyMs = 0) {
    this.#earlyMs = earlyMs;
  }

  readonly wake = (waitMs: number, wake: () => void): Timer => {
    const atMs = this.nowMs + Math.max(1, Math.ceil(Math.min(waitMs, 30_000)) - this.#earlyMs);
    this.#order += 1;
    const one = { atMs, order: this.#order, wake };
    this.#waiting.push(one);
    return { cancel: () => void (this.#waiting = this.#waiting.filter((each) => each !== one)) };
  };

  get timerCount(): number {
    return this.#waiting.length;
  }

  async pass(spanMs: number): Promise<void> {
    const untilMs = this.nowMs + spanMs;
    await settle();
    for (;;) {
      const [next] = this.#waiting.toSorted((a, b) => a.atMs - b.atMs || a.order - b.order);
      if (next === undefined || next.atMs > untilMs) break;
      this.#waiting = this.#waiting.filter((each) => each !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.wake();
      await settle();
    }
    this.nowMs = untilMs;
  }
}

/** The table of a state directory. */
export class FakeRows {
  readonly rows = new Map<string, SharedCircuit>();
  version = 0;
  /** What every write meets; reads meet `unread`. */
  trouble: "none" | "busy" | "unwritten" | "unread" = "none";

  put(circuit: SharedCircuit): void {
    this.rows.set(circuit.name, circuit);
    this.version += 1;
  }
}

/** In memory, of one process; others' writes are seen by `hasChanged`, its own are not. */
export class MemoryCircuitStore implements CircuitStore {
  readonly #shared: FakeRows;
  #seen = -1;
  writes = 0;
  tries = 0;

  constructor(shared: FakeRows) {
    this.#shared = shared;
  }

  read(name: string): CircuitLook {
    if (this.#shared.trouble === "unread") return { kind: "unread", reason: "it is torn" };
    const circuit = this.#shared.rows.get(name);
    return circuit === undefined ? { kind: "missing" } : { kind: "found", circuit };
  }

  list(): readonly SharedCircuit[] {
    return [...this.#shared.rows.values()];
  }

  change(
    name: string,
    decide: (found: SharedCircuit | undefined) => SharedCircuit | undefined,
  ): CircuitChange {
    this.tries += 1;
    const { trouble } = this.#shared;
    if (trouble === "busy") {
      decide(this.#shared.rows.get(name)); // a try that is given up
      return { kind: "busy" };
    }
    if (trouble !== "none") return { kind: "unwritten", reason: "the disk is full" };
    const hasSeenAll = this.#seen === this.#shared.version;
    const next = decide(this.#shared.rows.get(name));
    if (next === undefined) return { kind: "done" };
    this.#shared.put(next);
    this.writes += 1;
    if (hasSeenAll) this.#seen = this.#shared.version;
    return { kind: "done" };
  }

  hasChanged(): boolean {
    const hasChanged = this.#seen !== this.#shared.version;
    this.#seen = this.#shared.version;
    return hasChanged;
  }

  close(): void {
    this.#seen = -1;
  }
}

export interface Request {
  readonly by: number;
  readonly atMs: number;
}

const BAD: ProbeReason = "refused";

/** The dependency: each request is answered after a while, by what holds when it arrives. */
export class FakeServer {
  isUp = true;
  /** An answer of its own for the next ones, before `isUp` counts. */
  answers: ProbeReason[] = [];
  latencyMs = 5;
  readonly requests: Request[] = [];
  readonly open = new Set<number>();
  onRequest: (request: Request) => void = () => undefined;
  readonly #time: FakeTime;

  constructor(time: FakeTime) {
    this.#time = time;
  }

  ask(by: number, signal: AbortSignal): Promise<ProbeResult> {
    const request = { by, atMs: this.#time.nowMs };
    this.requests.push(request);
    this.onRequest(request);
    this.open.add(by);
    const because = this.answers.shift() ?? (this.isUp ? "good" : BAD);
    return new Promise((resolve) => {
      const end = (reason: ProbeReason): void => {
        timer.cancel();
        this.open.delete(by);
        resolve(resultOf(reason));
      };
      const timer = this.#time.wake(this.latencyMs, () => end(because));
      signal.addEventListener("abort", () => end("stopped"), { once: true });
    });
  }
}

export function resultOf(because: ProbeReason): ProbeResult {
  return { isGood: because === "good", because, stages: [], detail: `it is ${because}` };
}

export interface Told {
  readonly to: SharedCircuit["state"]["kind"];
  readonly transition: CircuitTransition | undefined;
  readonly isOurs: boolean;
}

interface RunOptions {
  readonly settings?: ProbeSettings;
  readonly job?: string;
  /** As `watchdog retry`: it has no settings of a probe. */
  readonly isCaller?: boolean;
}

/** One process. */
export class FakeRun {
  readonly pid: number;
  readonly circuit: LiveCircuit;
  readonly store: MemoryCircuitStore;
  readonly told: Told[] = [];
  readonly reasons: string[] = [];
  readonly troubles: ProbeResult[] = [];
  readonly #scene: ProbersScene;
  readonly settings: ProbeSettings;
  #watch: CircuitWatch | undefined;
  readonly #abort = new AbortController();
  #held: (() => void)[] | undefined;
  /** What the start came to; undefined while it waits. */
  end: StartupEnd | undefined;
  isDead = false;

  constructor(scene: ProbersScene, pid: number, options: RunOptions) {
    const { settings = scene.settings, job = "nightly", isCaller = false } = options;
    this.pid = pid;
    this.settings = settings;
    this.#scene = scene;
    this.store = new MemoryCircuitStore(scene.rows);
    this.circuit = new LiveCircuit({
      name: "model",
      settings: circuitSettingsOf(settings),
      join: isCaller ? undefined : { settingsHash: hashSettings(settings), job, target: "tcp" },
      store: scene.hasStore ? this.store : undefined,
      place: isCaller ? undefined : scene.lock.of(pid),
      wanted: isCaller ? undefined : scene.wanted.of(pid),
      times: isCaller ? undefined : settings,
      self: { pid, start_time: pid, boot_id: "boot", pid_namespace: "1" },
      isAlive: (holder: TrialHolder) => scene.isAlive(holder.pid),
      now: () => at(scene.time.nowMs),
      wall: () => scene.time.nowMs as WallAt,
      random: () => scene.random(),
      tell: (reason) => void this.reasons.push(reason),
    });
  }

  /** Timers of a process that was killed never fire; those of a stopped one when it goes on. */
  readonly wake = (waitMs: number, wake: () => void): Timer => {
    let isCancelled = false;
    const fire = (): void => {
      if (this.isDead || isCancelled) return;
      if (this.#held === undefined) wake();
      else this.#held.push(fire);
    };
    const timer = this.#scene.time.wake(waitMs, fire);
    return {
      ...timer,
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  };

  /** SIGSTOP. */
  suspend(): void {
    this.#held ??= [];
  }

  get isSuspended(): boolean {
    return this.#held !== undefined;
  }

  /** SIGCONT. */
  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const fire of held) fire();
  }

  readonly #probe = async (signal: AbortSignal): Promise<ProbeResult> => {
    const result = await this.#scene.server.ask(this.pid, signal);
    if (this.#held !== undefined) await new Promise<void>((resume) => this.#held?.push(resume));
    return this.isDead ? new Promise<never>(() => undefined) : result;
  };

  /** As of an answer that came just now. */
  noteOf(because: ProbeReason): ProbeNote {
    return { because, detail: "", at: this.circuit.now(), wallAt: this.circuit.wall() };
  }

  start(signal = this.#abort.signal): void {
    const { circuit, settings, wake } = this;
    const random = (): number => this.#scene.random();
    void waitForStart({ circuit, settings, wake, random, signal, probe: this.#probe }).then(
      (end) => void (this.end = end),
    );
  }

  /** The job is watched as soon as it may start. */
  async go(): Promise<void> {
    this.start();
    while (this.end === undefined) await new Promise((resolve) => this.wake(5, () => resolve(0)));
    if (this.end.kind === "ready" && !this.#abort.signal.aborted) this.watch();
    else this.circuit.leave();
  }

  get isWatching(): boolean {
    return this.#watch !== undefined && !this.isDead && !this.#abort.signal.aborted;
  }

  watch(): void {
    const { circuit, settings, wake } = this;
    this.#watch = new CircuitWatch({
      circuit,
      settings,
      wake,
      probe: this.#probe,
      startedAt: at(this.#scene.time.nowMs),
      onChange: (seen, transition, isOurs) => {
        if (this.isDead) throw new Error("a dead run was told");
        this.told.push({ to: seen.state.kind, transition, isOurs });
      },
      onTrouble: (result) => void this.troubles.push(result),
    });
    this.#watch.begin();
  }

  stop(): void {
    this.#abort.abort();
    this.#watch?.end();
  }

  /** SIGKILL: the kernel frees the lock, and nothing else happens. */
  kill(): void {
    this.isDead = true;
    this.#scene.server.open.delete(this.pid);
    for (const lock of [this.#scene.lock, this.#scene.wanted]) {
      if (lock.holder === this.pid) lock.holder = undefined;
    }
  }
}

export class ProbersScene {
  readonly time: FakeTime;
  readonly rows = new FakeRows();
  readonly lock = new FakeLock();
  readonly wanted = new FakeLock();
  readonly server: FakeServer;
  readonly settings: ProbeSettings;
  readonly runs: FakeRun[] = [];
  hasStore = true;
  random: () => number = () => 0.5;

  constructor(settings: ProbeSettings = settingsOf(), time = new FakeTime()) {
    this.settings = settings;
    this.time = time;
    this.server = new FakeServer(time);
  }

  /** Joined already, unless `retry` calls. */
  run(options: RunOptions = {}): FakeRun {
    const run = new FakeRun(this, 100 + this.runs.length, options);
    this.runs.push(run);
    run.circuit.join();
    return run;
  }

  /** A run whose job goes on. */
  watching(options: RunOptions = {}): FakeRun {
    const run = this.run(options);
    run.watch();
    return run;
  }

  isAlive(pid: number): boolean {
    return this.runs.some((run) => run.pid === pid && !run.isDead && !run.isSuspended);
  }

  get row(): SharedCircuit {
    const row = this.rows.rows.get("model");
    if (row === undefined) throw new Error("there is no row");
    return row;
  }

  get count(): number {
    return this.server.requests.length;
  }
}
