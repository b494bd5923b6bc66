/**
 * The circuit that the attempts go through (`--breaker NAME`), as this one process sees it: asked
 * before each attempt, told after it.
 *
 * Guarantees: who was let through as a trial has answered for it, or has given it back, when the
 * attempt is over. Non-guarantees: with no state directory the circuit is this process's own.
 * Clock: CLOCK_MONOTONIC. State after a crash: a trial that is out is lost, and the next one who
 * asks sees that its holder is dead.
 */
import { isHolderAlive, readTrialSelf } from "../circuit/holder.ts";
import { LiveCircuit } from "../circuit/live-circuit.ts";
import { CircuitPlace } from "../circuit/place.ts";
import type { CircuitTransition } from "../core/circuit.ts";
import { eventOfTransition } from "../core/circuit-events.ts";
import { splitRunPath, valueOf } from "../core/environment-entries.ts";
import { WatchdogError } from "../core/errors.ts";
import { CALL_SETTINGS } from "../core/probe-settings.ts";
import type { CircuitStore, SharedCircuit } from "../core/shared-circuit.ts";
import { Journal } from "../journal/journal.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { throwDice } from "../os/dice.ts";
import { readMachine } from "../os/machine.ts";
import { openStateDirectory, resolveStateDirectory } from "../os/state-dir.ts";
import { messages } from "./messages.ts";

const MOST_TRIES = 3;
/** What its calls have found must not be lost to a journal that is busy for a moment. */
const MOST_LEAVING_TRIES = 10;
/** Nothing else of this process happens meanwhile. */
const JOURNAL_LIMIT_MS = 100;

export type OpenStore = (stateDirectory: string, tell: (line: string) => void) => CircuitStore;

export interface BreakerRequest {
  readonly name: string;
  /** `--state-dir` */
  readonly stateDir: string | undefined;
  readonly environment: readonly Uint8Array[];
  readonly openStore: OpenStore;
  readonly tell: (line: string) => void;
}

export type Admission =
  { readonly kind: "admitted" } | { readonly kind: "refused"; readonly circuit: SharedCircuit };

export class Breaker {
  readonly name: string;
  readonly #circuit: LiveCircuit;
  readonly #store: CircuitStore | undefined;
  readonly #place: CircuitPlace | undefined;
  #isTrial = false;

  constructor(request: BreakerRequest) {
    const machine = readMachine();
    const shared = openShared(request);
    this.name = request.name;
    this.#store = shared?.store;
    this.#place = shared && new CircuitPlace(shared.directory, request.name);
    this.#circuit = new LiveCircuit({
      name: request.name,
      settings: CALL_SETTINGS,
      store: this.#store,
      // A call is no prober: the lock is for those.
      place: undefined,
      self: readTrialSelf(machine),
      isAlive: (holder) => isHolderAlive(holder, machine),
      now: monotonicNow,
      wall: wallNow,
      random: throwDice,
      tell: (reason) => request.tell(messages.unshared(request.name, reason)),
      onTransition: (circuit, transition) => {
        if (shared !== undefined) noteTransition(request, shared.directory, [circuit, transition]);
      },
    });
  }

  get state(): SharedCircuit["state"]["kind"] {
    return this.#circuit.look().state.kind;
  }

  /** Whether a run probes it now; a run that stands still for it does, or another one for it. */
  get isProbed(): boolean {
    const watch = this.#place?.watchUse();
    watch?.release();
    return watch?.isInUse === true;
  }

  /**
   * May an attempt begin now? One that was let through is to be answered for by `note`.
   * @param leavesTrial  to those who probe: only a closed circuit lets it through, where there is
   *   anybody to share it with
   */
  admit({ leavesTrial }: { readonly leavesTrial: boolean }): Admission {
    const known = this.#circuit.look();
    const isLeaving = leavesTrial && this.#circuit.isShared;
    if (isLeaving && known.state.kind !== "closed") return { kind: "refused", circuit: known };
    for (let tries = 1; ; tries += 1) {
      const { decision, circuit, isTrial } = this.#circuit.tell({ kind: "due" });
      this.#isTrial = isTrial;
      if (isTrial && isLeaving) {
        this.note("nothing");
        return { kind: "refused", circuit };
      }
      if (decision.isAdmitted) return { kind: "admitted" };
      // A trial is due, and its row could not be had: each try waits for it.
      if (tries >= MOST_TRIES || !this.#circuit.mayTry) return { kind: "refused", circuit };
    }
  }

  /** @param counted  `nothing`: the attempt has said nothing about the dependency */
  note(counted: "succeeded" | "failed" | "nothing"): void {
    const isTrial = this.#isTrial;
    this.#isTrial = false;
    if (counted === "succeeded") this.#circuit.tell({ kind: "call-succeeded", isTrial });
    if (counted === "failed") this.#circuit.tell({ kind: "call-failed", isTrial });
    if (counted === "nothing" && isTrial) this.#circuit.tell({ kind: "trial-lost" });
  }

  /**
   * The end: a trial that was not answered for is given back, what was said is tried again for half
   * a second.
   */
  leave(): void {
    // Each try waits for others, and does nothing where nothing is left to be said.
    for (let tries = 0; tries < MOST_LEAVING_TRIES; tries += 1) this.#circuit.leave();
    this.#store?.close();
  }
}

interface Shared {
  readonly directory: string;
  readonly store: CircuitStore;
}

/** Undefined: there is no usable state directory; told once. */
function openShared(request: BreakerRequest): Shared | undefined {
  const { environment, tell } = request;
  try {
    const inherited = valueOf(environment, "WATCHDOG_STATE_DIR");
    const directory = resolveStateDirectory(request.stateDir ?? inherited);
    // A run around this one has looked at the kind of file system, as it was asked to.
    const isOfRun = request.stateDir === undefined && isWithinRun(environment);
    openStateDirectory(directory, { assumesLocal: isOfRun });
    const store = request.openStore(directory, (line) => tell(messages.trouble(line)));
    return { directory, store };
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    tell(messages.unshared(request.name, error.message));
    return undefined;
  }
}

/** Under the id of the run around; what the journal cannot take now waits in the spool. */
function noteTransition(
  { environment, tell }: BreakerRequest,
  stateDirectory: string,
  change: readonly [SharedCircuit, CircuitTransition],
): void {
  const runId = splitRunPath(valueOf(environment, "WATCHDOG_RUN_PATH")).at(-1) ?? null;
  const job = runId === null ? null : (valueOf(environment, "WATCHDOG_JOB") ?? null);
  const journal = new Journal(stateDirectory, (line) => tell(messages.trouble(line)));
  const event = eventOfTransition(...change);
  journal.put({ kind: "event", at: wallNow(), runId, job, key: null, ...event });
  journal.close(JOURNAL_LIMIT_MS);
}

function isWithinRun(environment: readonly Uint8Array[]): boolean {
  return valueOf(environment, "WATCHDOG_RUN_PATH") !== undefined;
}
