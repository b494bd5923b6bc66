/** The circuit of calls as it stands in a scene's journal, and made to stand as a test needs it. */
import type { CircuitState } from "../../src/core/circuit.ts";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt } from "../../src/core/time.ts";
import { openCircuitStore } from "../../src/journal/circuit-rows.ts";
import { monotonicNow, wallNow } from "../../src/os/clock.ts";
import { openStateDirectory } from "../../src/os/state-dir.ts";
import { CALL_SETTINGS } from "../../src/core/probe-settings.ts";
import type { Scene } from "./scene.ts";

const HOUR_MS = 3_600_000;

export class CallCircuit {
  readonly name: string;
  readonly #stateDirectory: string;

  constructor(scene: Scene, name: string) {
    this.name = name;
    this.#stateDirectory = scene.stateDirectory;
    openStateDirectory(this.#stateDirectory);
  }

  /** Undefined: nobody has used it yet. */
  read(): SharedCircuit | undefined {
    return this.#use((store) => {
      const seen = store.read(this.name);
      return seen.kind === "found" ? seen.circuit : undefined;
    });
  }

  get state(): CircuitState["kind"] | undefined {
    return this.read()?.state.kind;
  }

  /** @param dueInMs  from then on a trial is let through; below 0: it is now */
  openUntil(dueInMs: number): void {
    const now = monotonicNow();
    const openedAt = (now - 5_000) as MonotonicAt;
    this.put({
      kind: "open",
      openedAt,
      backoff: { startedAt: openedAt, attempts: 1, waits: 1 },
      retryAt: (now + dueInMs) as MonotonicAt,
    });
  }

  close(): void {
    this.put({ kind: "closed", consecutiveFailures: 0, window: [] });
  }

  put(state: CircuitState): void {
    const circuit: SharedCircuit = {
      name: this.name,
      // An hour is no instant of another clock here.
      settings: {
        ...CALL_SETTINGS,
        backoff: { ...CALL_SETTINGS.backoff, capMs: HOUR_MS, maxElapsedMs: 10 * HOUR_MS },
      },
      settingsHash: null,
      target: null,
      job: null,
      state,
      changedAt: wallNow(),
      probes: 0,
      goodProbes: 0,
      lastGoodAt: null,
      lastProbe: null,
      trialBy: null,
    };
    this.#use((store) => {
      for (let tries = 0; tries < 100; tries += 1) {
        if (store.change(this.name, () => circuit).kind === "done") return;
      }
      throw new Error("the circuit could not be written");
    });
  }

  #use<T>(act: (store: ReturnType<typeof openCircuitStore>) => T): T {
    const store = openCircuitStore(this.#stateDirectory, (line) => {
      throw new Error(line);
    });
    try {
      return act(store);
    } finally {
      store.close();
    }
  }
}
