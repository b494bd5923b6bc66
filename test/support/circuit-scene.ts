/** Circuits of a state directory as several processes and stores see them. */
import { join } from "node:path";
import type { CircuitClock } from "../../src/core/circuit-record.ts";
import type { CircuitStore, SharedCircuit } from "../../src/core/shared-circuit.ts";
import { openCircuitStore } from "../../src/journal/circuit-rows.ts";
import { CIRCUIT } from "./circuit-samples.ts";
import type { Ended, Surroundings } from "./journal-scene.ts";

export interface OpenStore {
  readonly store: CircuitStore;
  /** What was told, in order. */
  readonly told: readonly string[];
}

export function openStore(state: string, clock?: CircuitClock): OpenStore {
  const told: string[] = [];
  const tell = (line: string): void => void told.push(line);
  const store = openCircuitStore(state, tell, clock === undefined ? undefined : () => clock);
  return { store, told };
}

/** A state directory's circuit, written by a store that is closed again. */
export function putCircuit(state: string, circuit: SharedCircuit = CIRCUIT): void {
  const { store } = openStore(state);
  const change = store.change(circuit.name, () => circuit);
  store.close();
  if (change.kind !== "done") throw new Error(`found ${JSON.stringify(change)}`);
}

/** As another store sees it; throws where there is none. */
export function circuitOf(state: string, name = CIRCUIT.name): SharedCircuit {
  const { store } = openStore(state);
  const look = store.read(name);
  store.close();
  if (look.kind !== "found") throw new Error(`found ${JSON.stringify(look)}`);
  return look.circuit;
}

const PROGRAM = join(import.meta.dir, "circuit-program.ts");

/** A process of its own (circuit-program.ts). */
export async function useCircuit(
  words: readonly string[],
  { env = {}, under = [] }: Surroundings = {},
): Promise<Ended> {
  const child = Bun.spawn([...under, process.execPath, PROGRAM, ...words], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  const lines = text.split("\n").filter((line) => line !== "");
  return { status: child.exitCode, signal: child.signalCode, lines, stderr };
}
