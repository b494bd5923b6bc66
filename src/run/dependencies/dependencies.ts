/**
 * What a run depends on, from before its start to its end: each circuit and each readiness is
 * watched, what follows from all of them is decided in core/dependencies.ts, and the run is told.
 * Loaded only where there is something to probe.
 *
 * Always: a start that is refused has started nothing and holds no circuit; after `end` nothing is
 * asked any more and nobody hears of anything. Trouble of our own with probing never stops a job.
 * State after a crash: the kernel frees the locks of the circuits, and their rows stay.
 */
import { eventOfTransition } from "../../core/circuit-events.ts";
import { decideDependencies, type Dependency } from "../../core/dependencies.ts";
import type { EventName } from "../../core/journal-entry.ts";
import type { StartRefusal } from "../../core/outcome.ts";
import type { ProbeSettings } from "../../core/probe-settings.ts";
import { renderTarget } from "../../core/probe-target.ts";
import type { RecordedDependency } from "../../core/run-record.ts";
import type { DependencyFailure } from "../../core/run-state.ts";
import type { CircuitStore, ProbeNote, SharedCircuit } from "../../core/shared-circuit.ts";
import { openCircuitStore } from "../../journal/circuit-rows.ts";
import { monotonicNow, wallNow } from "../../os/clock.ts";
import { holdCircuitsOpen } from "../../os/circuits-directory.ts";
import { becomeReaper, type ChildChange } from "../../os/reaper.ts";
import { type Timer, wakeAfter, wakeEvery } from "../../os/timers.ts";
import { type Course, makeCommandEnvironment } from "../course.ts";
import { messages } from "../messages.ts";
import { CommandProbes } from "./command-probe.ts";
import { DependencyNews } from "./news.ts";
import { Probing } from "./probing.ts";
import { WatchedCircuit } from "./watched-circuit.ts";
import { WatchedReadiness } from "./watched-readiness.ts";

/** The run, as far as a dependency is its business. */
export interface DependentRun {
  failDependency(failure: DependencyFailure): void;
  wantPause(): void;
  endPause(): void;
}

export type DependencyStart =
  | { readonly kind: "ready" }
  | {
      readonly kind: "refused";
      readonly name: string;
      readonly because: StartRefusal;
      readonly last: ProbeNote | undefined;
      readonly circuit: SharedCircuit;
    };

/**
 * So often a run that must not go on is told again: a request is lost where it comes in between.
 */
const TELL_AGAIN_MS = 1_000;
/** While there is no reaper that would tell of the helpers. */
const COLLECT_MS = 10;

export class Dependencies {
  readonly #course: Course;
  readonly #store: CircuitStore | undefined;
  readonly #commands: CommandProbes;
  readonly #probing: Probing;
  readonly #circuits: readonly WatchedCircuit[];
  readonly #readiness: readonly WatchedReadiness[];
  readonly #news: DependencyNews;
  #run: DependentRun | undefined;
  #again: Timer | undefined;
  #hasFailed = false;
  /** How they stood when nobody asked any more. */
  #ended: readonly RecordedDependency[] | undefined;

  constructor(course: Course) {
    const { options, request, ledger, hasState, stateDirectory } = course;
    const tell = (line: string): void => ledger.tellOnce(line);
    const ofJournal = (line: string): void => tell(messages.journalTrouble(line));
    this.#course = course;
    this.#news = new DependencyNews(course);
    this.#commands = new CommandProbes({
      inherited: request.inherited,
      environment: () => makeCommandEnvironment(course),
      umask: course.umask,
    });
    this.#probing = new Probing({
      workerUrl: request.workerUrls.probe,
      commands: this.#commands,
      onAnswer: (settings, result) => {
        // Good ones decide about a start; after it they come for ever.
        if (result.isGood && this.#run !== undefined) return;
        this.#news.tellAnswer(showName(settings), result);
      },
    });
    const isSharing = hasState && options.probes.length > 0;
    this.#store = isSharing ? openCircuitStore(stateDirectory, ofJournal) : undefined;
    this.#circuits = options.probes.map((settings) => this.#watchCircuit(settings, tell));
    this.#readiness = options.readyProbes.map((settings) => this.#watchReadiness(settings, tell));
    ledger.noteDependencies(() => this.#ended ?? this.#record());
  }

  #watchCircuit(settings: ProbeSettings, tell: (line: string) => void): WatchedCircuit {
    const watched: WatchedCircuit = new WatchedCircuit({
      course: this.#course,
      settings,
      store: this.#store,
      probing: this.#probing,
      tell,
      onTransition: (circuit, transition) => {
        const { name, because, data } = eventOfTransition(circuit, transition);
        this.#put(name, because, data);
      },
      onChange: (circuit) => {
        this.#news.tellCircuit(showName(settings), circuit, settings.onOpen);
        this.#decide();
      },
    });
    return watched;
  }

  #watchReadiness(settings: ProbeSettings, tell: (line: string) => void): WatchedReadiness {
    const watched: WatchedReadiness = new WatchedReadiness({
      settings,
      probing: this.#probing,
      tell,
      onChange: (isReady, { because, detail }) => {
        this.#put(isReady ? "ready" : "unready", because, { name: watched.name, detail });
        this.#news.tellReadiness(watched.name, isReady, { policy: settings.onUnready, detail });
        this.#decide();
      },
    });
    return watched;
  }

  /** The names of those for which the job stands still. */
  get holding(): readonly string[] {
    const decision = decideDependencies(this.#all());
    return decision.kind === "hold" ? decision.names : [];
  }

  #all(): readonly Dependency[] {
    return [...this.#circuits, ...this.#readiness].map(({ dependency }) => dependency);
  }

  /** Helper processes of ours, which are no members of the tree. */
  get helpers(): ReadonlySet<number> {
    return this.#commands.pids;
  }

  /** Told of every child that the reaper has collected. */
  onCollected(change: ChildChange): void {
    this.#commands.onEnded(change);
  }

  /**
   * Waits until each dependency has answered well; all of them at the same time.
   *
   * @returns "refused" with the first that failed: nothing is asked any more, and nothing is held
   * @throws WatchdogError "probe.refused": a circuit belongs to a probe with other settings
   */
  async waitForStart(): Promise<DependencyStart> {
    if (this.#hasCommands()) becomeReaper();
    const collecting = this.#hasCommands()
      ? wakeEvery(COLLECT_MS, () => this.#commands.collectOwn())
      : undefined;
    const letGo =
      this.#store === undefined ? undefined : holdCircuitsOpen(this.#course.stateDirectory);
    try {
      for (const circuit of this.#circuits) circuit.join();
      const start = await this.#waitForAll();
      if (start.kind === "refused") this.end();
      return start;
    } catch (error) {
      this.end();
      throw error;
    } finally {
      letGo?.();
      collecting?.cancel();
    }
  }

  async #waitForAll(): Promise<DependencyStart> {
    const stopping = new AbortController();
    let refused: DependencyStart | undefined;
    const waits = this.#circuits.map(async (watched) => {
      const end = await watched.waitForStart(stopping.signal);
      if (end.kind !== "failed" || refused !== undefined) return;
      const { because, last, circuit } = end;
      refused = { kind: "refused", name: showName(watched.settings), because, last, circuit };
      stopping.abort();
    });
    await Promise.all(waits);
    return refused ?? { kind: "ready" };
  }

  #hasCommands(): boolean {
    const { probes, readyProbes } = this.#course.options;
    return [...probes, ...readyProbes].some(({ target }) => target.kind === "cmd");
  }

  /** The command runs: from now on the run hears of what becomes of its dependencies. */
  begin(run: DependentRun): void {
    const startedAt = monotonicNow();
    this.#run = run;
    for (const one of [...this.#circuits, ...this.#readiness]) one.begin(startedAt);
  }

  /** The tree is gone, or nothing was started. Safe to repeat. */
  end(): void {
    if (this.#ended !== undefined) return;
    this.#ended = this.#record();
    this.#run = undefined;
    this.#again?.cancel();
    for (const one of [...this.#circuits, ...this.#readiness]) one.end();
    this.#probing.close();
    this.#store?.close();
  }

  #record(): readonly RecordedDependency[] {
    return [...this.#circuits, ...this.#readiness].map((one) => one.record());
  }

  #decide(): void {
    this.#again?.cancel();
    const run = this.#run;
    if (run === undefined) return;
    const decision = decideDependencies(this.#all());
    switch (decision.kind) {
      case "go":
        return run.endPause();
      case "hold":
        run.wantPause();
        break;
      case "fail":
        this.#noteFailure(decision.failure);
        run.failDependency(decision.failure);
    }
    this.#again = wakeAfter(TELL_AGAIN_MS, () => this.#decide());
  }

  #noteFailure({ name, because }: DependencyFailure): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const found = this.#record().find((one) => one.name === name);
    this.#put("dependency_down", because, { ...found, name });
  }

  #put(name: EventName, because: string | null, data: Readonly<Record<string, unknown>>): void {
    const { journal, identity } = this.#course;
    const about = { runId: identity.runId, job: identity.jobName, key: null };
    journal?.put({ kind: "event", at: wallNow(), name, because, ...about, data });
  }
}

/** As the user has written it: the hash in the name of a circuit is nobody's word. */
function showName({ name, target }: ProbeSettings): string {
  return name ?? renderTarget(target);
}
