/**
 * Brings what waits in the outbox of a state directory to its sinks: the engine of notify/, the
 * rows of the journal and the helpers of hooks put together, for a run, for its guard and for the
 * commands. Decides nothing about a notice.
 *
 * Guarantees: nothing is thrown or rejected; a round ends with its limit, or when it is told to
 * stop. Rounds may go on side by side, so that a receiver that hangs in one keeps nobody waiting:
 * no two send the same notice, as each claims it first. Clock: MONOTONIC. State after a crash: that
 * of the outbox.
 */
import type { Sent } from "../core/delivery.ts";
import type { Notice } from "../core/notice.ts";
import type { Claimant } from "../core/outbox.ts";
import { isUrlKind, makeSink, type ResolvedSink, type SinkSpec } from "../core/sink.ts";
import { openOutbox, type Outbox, readSpoolIn } from "../journal/outbox.ts";
import { deliverDue, type DeliveryAsked, type DeliveryReport } from "../notify/deliver.ts";
import type { NoTarget, SendLimits } from "../notify/deliver.ts";
import { resolveSink } from "../notify/resolve.ts";
import { sendNotice } from "../notify/send.ts";
import { isAlive, type Machine, readMachine, readProcessIdentity } from "../os/machine.ts";
import type { ChildChange } from "../os/reaper.ts";
import { sharingOf } from "../os/state-sharing.ts";
import { wakeEvery } from "../os/timers.ts";
import { Helpers, type HelpersRequest } from "../tree/own-processes.ts";

export interface CourierParts {
  readonly stateDirectory: string;
  readonly runId: string | null;
  /** Ours, with their targets. */
  readonly sinks: readonly SinkSpec[];
  /** Of our own environment: a sink may stand in one. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Of watchdog. */
  readonly version: string;
  readonly helpers: HelpersRequest;
  /** One line for people about trouble with the journal. */
  readonly onTrouble: (line: string) => void;
}

/** Of one attempt; a receiver that needs longer is tried again later. */
export const SEND_MS = 10_000;
/** Nobody may be there to tell that a hook has ended. */
const COLLECT_MS = 10;

export type RoundAsked = Pick<
  DeliveryAsked,
  "limitMs" | "isForced" | "wants" | "enough" | "stopping"
>;

export class Courier {
  readonly #parts: CourierParts;
  readonly #outbox: Outbox;
  readonly #helpers: Helpers;
  readonly #bySinkId: ReadonlyMap<string, SinkSpec>;
  readonly #isShared: boolean;
  #machine: Machine | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #rounds = 0;

  constructor(parts: CourierParts) {
    this.#parts = parts;
    this.#outbox = openOutbox(parts.stateDirectory, parts.onTrouble);
    this.#helpers = new Helpers(parts.helpers);
    this.#isShared = sharingOf(parts.stateDirectory).gid !== undefined;
    this.#bySinkId = new Map(parts.sinks.map((sink) => [sink.id, sink]));
  }

  get outbox(): Outbox {
    return this.#outbox;
  }

  /** Children of ours that are no members of any job. As of now, each time. */
  get pids(): ReadonlySet<number> {
    return this.#helpers.pids;
  }

  onCollected(change: ChildChange): void {
    this.#helpers.onEnded(change);
  }

  deliver(asked: RoundAsked): Promise<DeliveryReport> {
    this.#rounds += 1;
    const round = this.#deliver(asked).finally(() => (this.#rounds -= 1));
    this.#running = Promise.all([this.#running, round]);
    return round;
  }

  /** Whether a round is on its way. */
  get isDelivering(): boolean {
    return this.#rounds > 0;
  }

  /** One notice to one sink, past the outbox. Never rejects. */
  async send(sink: SinkSpec, notice: Notice, limits: SendLimits): Promise<Sent> {
    const { version, variables: environment } = this.#parts;
    const found = resolveSink(sink, this.#parts.variables);
    if (found.kind !== "resolved") {
      const detail = found.kind === "hidden" ? "its address is not known here" : found.detail;
      return { kind: "refused", because: "no-target", detail };
    }
    const collecting = wakeEvery(COLLECT_MS, () => this.#helpers.collectOwn());
    const terms = { ...limits, version, environment, hooks: this.#helpers };
    return sendNotice(found, notice, terms).finally(() => collecting.cancel());
  }

  /** When no round is on its way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** What this process could only spool is read in, if the journal can be had now. */
  readSpoolIn(): "written" | "busy" | "unusable" {
    return readSpoolIn(this.#parts.stateDirectory, this.#parts.onTrouble);
  }

  /** When the next notice to a sink of ours is due; undefined: none waits. */
  nextAt(): number | undefined {
    return this.#outbox.nextAt([...this.#bySinkId.keys()]);
  }

  close(): void {
    this.#outbox.close();
  }

  async #deliver(asked: RoundAsked): Promise<DeliveryReport> {
    const collecting = wakeEvery(COLLECT_MS, () => this.#helpers.collectOwn());
    try {
      const { version, variables: environment } = this.#parts;
      const machine = (this.#machine ??= readMachine());
      return await deliverDue(
        {
          store: this.#outbox,
          resolve: (sink) => this.#resolve(sink),
          send: (sink, notice, limits) =>
            sendNotice(sink, notice, { ...limits, version, environment, hooks: this.#helpers }),
          self: selfOn(machine),
          mayLive: (claimant) => mayLive(claimant, machine),
        },
        {
          ...asked,
          sendMs: SEND_MS,
          runId: this.#parts.runId,
          ownSinkIds: [...this.#bySinkId.keys()],
        },
      );
    } catch (error) {
      // No /proc, or a bug of ours: what is in the outbox stays there.
      const reason = error instanceof Error ? error.message : String(error);
      return { attempted: [], trouble: { kind: "unusable", reason } };
    } finally {
      collecting.cancel();
    }
  }

  /** Undefined: its target is not known here, and somebody else may have it. */
  #resolve(sink: SinkSpec): ResolvedSink | NoTarget | undefined {
    const own = this.#bySinkId.get(sink.id);
    if (own === undefined && this.#isShared && !isSafeForOthers(sink)) return undefined;
    const target = (own && this.#readTarget(own)) ?? this.#readTarget(sink);
    if (target !== undefined) return { spec: sink, target };
    const found = own && resolveSink(own, this.#parts.variables);
    if (found?.kind !== "unresolved") return undefined;
    return { because: found.because, detail: found.detail };
  }

  #readTarget(spec: SinkSpec): string | undefined {
    const found = resolveSink(spec, this.#parts.variables);
    return found.kind === "resolved" && isSame(spec, found.target) ? found.target : undefined;
  }
}

/**
 * In a directory that a group shares a row may be another user's: nobody runs a program, or reads a
 * file or a variable of his own, because another one has written so.
 */
function isSafeForOthers({ kind, source }: SinkSpec): boolean {
  return isUrlKind(kind) && source.kind === "literal";
}

/** Another's variable of the same name may hold another target. */
function isSame({ kind, shape, source, id }: SinkSpec, target: string): boolean {
  if (source.kind !== "variable") return true;
  return makeSink({ kind, shape, source, value: target }).id === id;
}

function selfOn(machine: Machine): Omit<Claimant, "token"> {
  return {
    ...(readProcessIdentity(process.pid) ?? { pid: process.pid, start_time: 0 }),
    boot_id: machine.bootId,
    pid_namespace: machine.pidNamespace,
  };
}

/** Of another pid namespace it cannot be told: the time of its claim ends it. */
function mayLive(claimant: Claimant, machine: Machine): boolean {
  if (claimant.boot_id !== machine.bootId) return false;
  const { pid_namespace: namespace } = claimant;
  if (namespace !== machine.pidNamespace || !machine.seesOwnProc) return true;
  return isAlive(claimant) !== "no";
}
