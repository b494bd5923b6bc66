/**
 * What a run tells to others: the part of its journal entries that says to whom, and the deliveries
 * beside the run and after its end. Loads nothing of the engine before there is something to send.
 *
 * Guarantees: the start is never delayed, the status never changed; whatever goes wrong here is a
 * line on standard error. After the end nothing is waited for longer than `--notify-timeout`, and
 * not at all once somebody asks us to go. What is not delivered by then stays in the outbox.
 *
 * Clock: MONOTONIC for spans. State after a crash: that of the outbox.
 */
import { keyOf, readVariables } from "../core/environment-entries.ts";
import type { NoticePart } from "../core/notice-part.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { RunRecord } from "../core/run-record.ts";
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "../core/signals.ts";
import { type SinkSpec, storableSink } from "../core/sink.ts";
import { monotonicNow } from "../os/clock.ts";
import { isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { ownMask } from "../os/mask.ts";
import type { ChildChange } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import { handleSignals } from "../os/signal-handlers.ts";
import { wakeAfter, wakeWhenOver } from "../os/timers.ts";
import type { Journal } from "../journal/journal.ts";
import { Beside } from "./beside.ts";
import type { Courier } from "./courier.ts";
import type { GuardTelling } from "./guard-notes.ts";
import { readMaskedTail } from "./log-tail.ts";
import { messages } from "./messages.ts";
import { readOwnSelf } from "./own-self.ts";

export interface TellingParts {
  readonly options: RunOptions;
  readonly inherited: Inheritance;
  readonly stateDirectory: string;
  readonly runId: string;
  readonly journal: Journal | undefined;
  /** Of watchdog. */
  readonly version: string;
  /** Of a hook. */
  readonly environment: () => readonly Uint8Array[];
  readonly umask: number;
  readonly onBug: (error: unknown) => void;
  readonly tell: (line: string) => void;
}

/** How one entry differs from another one of the same run. */
export interface TellingFacts {
  /** Of the log; null: none was kept. */
  readonly logPath: string | null;
  /** Of the key that was refused, unless its holder is well. */
  readonly verdict: string | null;
}

type SpoolRead = ReturnType<Courier["readSpoolIn"]>;

/** How long the end of a run waits for its notices. */
interface FinalWait {
  readonly until: number;
  readonly stopping: AbortSignal;
  /** Whether what is left is worth a line. */
  readonly isTold: boolean;
}

/** One that has no sinks of its own does not wait long for what others have left. */
export const OTHERS_LIMIT_MS = 1_000;
const SPOOL_PAUSE_MS = 100;
const LEAVE_SIGNALS = [SIGTERM, SIGINT, SIGQUIT, SIGHUP];

export class RunTelling {
  readonly #parts: TellingParts;
  readonly #sinks: readonly SinkSpec[];
  #origin: Pick<NoticePart, "host" | "runner"> | undefined;
  #courier: Promise<Courier> | undefined;
  /** Once it is loaded. */
  #loaded: Courier | undefined;
  #end: { readonly run: RunRecord; readonly part: NoticePart } | undefined;
  /** Nobody waits any more. */
  readonly #leaving = new AbortController();
  readonly #beside: Beside;

  constructor(parts: TellingParts) {
    this.#parts = parts;
    this.#sinks = parts.options.sinks;
    this.#beside = new Beside({
      journal: parts.journal,
      hasOwnSinks: this.#sinks.length > 0,
      load: () => this.#load(),
      leaving: this.#leaving.signal,
      onBug: parts.onBug,
    });
  }

  /** Children of ours that are no members of the job. */
  get helpers(): ReadonlySet<number> {
    return this.#loaded?.pids ?? NOBODY;
  }

  onCollected(change: ChildChange): void {
    this.#loaded?.onCollected(change);
  }

  /** Undefined: nobody is told, or it cannot be said by whom (no /proc). */
  part({ logPath, verdict }: TellingFacts): NoticePart | undefined {
    if (this.#sinks.length === 0) return undefined;
    try {
      const mask = ownMask();
      return {
        ...this.#readOrigin(),
        sinks: this.#sinks.map((sink) => storableSink(sink, (text) => mask.text(text))),
        remindEveryMs: this.#parts.options.remindEveryMs,
        logTail: readMaskedTail(logPath),
        verdict,
      };
    } catch (error) {
      this.#parts.onBug(error);
      return undefined;
    }
  }

  /** The part of the end of the run, which is kept for the case that nothing can be written. */
  fieldOfEnd(run: RunRecord, verdict: string | null = null): { readonly telling?: NoticePart } {
    const field = this.field({ logPath: run.log?.path ?? null, verdict });
    if (field.telling !== undefined) this.#end = { run, part: field.telling };
    return field;
  }

  /** The same as a field of an entry: it is not there where nobody is told. */
  field(facts: TellingFacts): { readonly telling?: NoticePart } {
    const telling = this.part(facts);
    return telling === undefined ? {} : { telling };
  }

  /** For the guard, which has neither our environment nor our options. */
  forGuard(): GuardTelling | null {
    const part = this.part({ logPath: null, verdict: null });
    if (part === undefined) return null;
    const environment = this.#parts.inherited.environment
      .filter((entry) => !isFaultVariable(keyOf(entry)))
      .map((entry) => Buffer.from(entry).toString("latin1"));
    return { part, sinks: this.#sinks, environment };
  }

  /** The command runs, and the start is written down: what is due is sent beside it. */
  begin(): void {
    this.#beside.begin();
  }

  /** The end is about to be written down: from here on nothing is begun under the lease. */
  conclude(): void {
    this.#beside.end();
  }

  /**
   * After everything of the run is over, its leases given back: sends what is due within the limit.
   * @param hasDue  what the journal said before it was closed; undefined: it was not asked
   */
  async finish(hasDue?: boolean): Promise<void> {
    this.conclude();
    const isOurs = this.#sinks.length > 0;
    if (!this.#isNeeded(isOurs, hasDue)) return;
    try {
      await this.#finish(isOurs);
    } catch (error) {
      this.#parts.onBug(error);
    }
  }

  /** Most runs have nothing to tell at their end, and load nothing for it. */
  #isNeeded(isOurs: boolean, hasDue: boolean | undefined): boolean {
    if (!isOurs) return hasDue === true;
    const isInSpool = this.#parts.journal?.hasSpooled === true;
    const isAtWork = this.#courier !== undefined;
    return hasDue !== false || isAtWork || isInSpool || this.#isUnwritten();
  }

  async #finish(isOurs: boolean): Promise<void> {
    const { options, inherited } = this.#parts;
    const limitMs = isOurs ? options.notifyTimeoutMs : OTHERS_LIMIT_MS;
    const until = monotonicNow() + limitMs;
    const leave = (): void => this.#leaving.abort();
    handleSignals(LEAVE_SIGNALS, inherited.ignoredSignals, leave);
    const timer = wakeWhenOver(limitMs, leave);
    const stopping = this.#leaving.signal;
    const courier = await this.#load();
    const wait = { until, stopping, isTold: isOurs && limitMs > 0 };
    if (!isOurs) await this.#deliver(courier, wait);
    else if (this.#isUnwritten()) await this.#tellDirectly(courier, wait, messages.noticesLost);
    else await this.#tellOwn(courier, wait);
    await courier.idle();
    timer.cancel();
    courier.close();
  }

  /** Neither the journal nor the spool has the end: a full disk is no reason to be silent. */
  #isUnwritten(): boolean {
    const { journal } = this.#parts;
    return journal === undefined || journal.hasLost;
  }

  async #tellDirectly(
    courier: Courier,
    { until, stopping }: FinalWait,
    describe: typeof messages.noticesLost,
  ): Promise<void> {
    if (this.#end === undefined) return;
    const { tellWithoutOutbox } = await import("./direct-telling.ts");
    const limits = { limitMs: until - monotonicNow(), stopping };
    const lost = await tellWithoutOutbox(courier, this.#sinks, { ...this.#end, ...limits });
    if (lost !== undefined) say(describe(lost.count, lost));
  }

  /**
   * The end of this run may be in the spool alone: then there is no notice about it yet. Where that
   * cannot be read in for as long as a person has not looked (a disk that is nearly full), nobody
   * is kept waiting for him.
   */
  async #tellOwn(courier: Courier, wait: FinalWait): Promise<void> {
    const read = await this.#readSpoolIn(courier, wait);
    if (read === "unusable") {
      return this.#tellDirectly(courier, wait, messages.noticesLeftInSpool);
    }
    await this.#deliver(courier, wait);
    if (wait.isTold) this.#tellLeft(courier, read === "written");
  }

  async #deliver(courier: Courier, { until, stopping }: FinalWait): Promise<void> {
    const deliver = () => courier.deliver({ limitMs: until - monotonicNow(), stopping });
    const isBeside = courier.isDelivering;
    await deliver();
    if (!isBeside) return;
    // What was still being sent to a receiver that is slow has kept back its own, and only that.
    await courier.idle();
    await deliver();
  }

  async #readSpoolIn(courier: Courier, { until, stopping }: FinalWait): Promise<SpoolRead> {
    if (this.#parts.journal?.hasSpooled !== true) return "written";
    let result = courier.readSpoolIn();
    while (result === "busy" && monotonicNow() < until && !stopping.aborted) {
      await new Promise<void>((resolve) => wakeAfter(SPOOL_PAUSE_MS, resolve));
      result = courier.readSpoolIn();
    }
    return result;
  }

  #tellLeft(courier: Courier, isRead: boolean): void {
    const left = courier.outbox.listLeft(this.#parts.runId);
    if ("kind" in left || !isRead) {
      const reason = "kind" in left ? left.reason : "the end of the run waits in spool/";
      return say(messages.noticesNotMade(reason));
    }
    const [first] = left;
    if (first === undefined) return;
    const because = first.lastBecause ?? "there was no time for it";
    const isDead = first.state === "dead";
    say(messages.noticesLeft(left.length, { shown: first.sink.shown, because, isDead }));
  }

  #load(): Promise<Courier> {
    this.#courier ??= this.#make();
    return this.#courier;
  }

  async #make(): Promise<Courier> {
    const { Courier: Made } = await import("./courier.ts");
    const { stateDirectory, runId, inherited, environment, umask, version, tell } = this.#parts;
    this.#loaded = new Made({
      stateDirectory,
      runId,
      sinks: this.#sinks,
      variables: readVariables(inherited.environment),
      version,
      helpers: { inherited, environment, umask },
      onTrouble: tell,
    });
    return this.#loaded;
  }

  #readOrigin(): Pick<NoticePart, "host" | "runner"> {
    if (this.#origin === undefined) {
      const { host, user } = readOwnSelf().machine;
      this.#origin = { host, runner: `${user}@${host}` };
    }
    return this.#origin;
  }
}

const NOBODY: ReadonlySet<number> = new Set();
