/**
 * Runs the fault build with one fault, and gives back the evidence that the fault itself has left:
 * point, count, act and the state of the code at that moment.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { FAULTS, type Ended, type Scene } from "../support/scene.ts";

export interface Evidence {
  readonly point: string;
  readonly nth: number;
  readonly act: string;
  readonly state: Readonly<Record<string, unknown>>;
}

export interface FaultRun {
  readonly ended: Ended;
  readonly evidence: readonly Evidence[];
  readonly record: Readonly<Record<string, unknown>> | undefined;
}

let runs = 0;

/** @param fault  `point=act`, or undefined: the same run without a fault */
export async function runWithFault(
  scene: Scene,
  fault: string | undefined,
  args: readonly string[],
): Promise<FaultRun> {
  runs += 1;
  const name = `fault-${runs}`;
  const directory = scene.path(name);
  const ended = await scene.run([...scene.recordTo(name), ...args], {
    binary: FAULTS,
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory },
  });
  return { ended, evidence: readEvidence(directory), record: readRecord(scene, name) };
}

function readEvidence(directory: string): Evidence[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory).map((file) =>
    JSON.parse(readFileSync(`${directory}/${file}`, "utf8")),
  );
}

function readRecord(scene: Scene, name: string): Record<string, unknown> | undefined {
  return existsSync(scene.path(`${name}.json`)) ? scene.readRecord(name) : undefined;
}
