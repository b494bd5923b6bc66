/**
 * Runs the fault build with one fault, and gives back the evidence that the fault itself has left:
 * point, count, act and the state of the code at that moment.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readStatusLine } from "../support/processes.ts";
import { FAULTS, type Ended, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

export interface Evidence {
  readonly point: string;
  readonly nth: number;
  readonly act: string;
  readonly state: Readonly<Record<string, unknown>>;
}

export interface FaultRun {
  readonly ended: Ended;
  readonly evidence: readonly Evidence[];
  /** As it was when watchdog had ended. */
  readonly record: Readonly<Record<string, unknown>> | undefined;
  readonly recordPath: string;
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
  return {
    ended,
    evidence: readEvidence(directory),
    record: readRecord(scene, name),
    recordPath: scene.path(`${name}.json`),
  };
}

export function readEvidence(directory: string): Evidence[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory).map((file) =>
    JSON.parse(readFileSync(`${directory}/${file}`, "utf8")),
  );
}

/** Resolves with whoever stands still at a point (`POINT=stop`): its evidence is named for it. */
export async function waitForStopped(directory: string): Promise<number> {
  return waitFor(() => {
    const [file = ""] = existsSync(directory) ? readdirSync(directory) : [];
    const pid = Number(file.split("-")[0]);
    return readStatusLine(pid, "State")?.startsWith("T") && pid;
  }, `a process that stands still, as ${directory} says`);
}

function readRecord(scene: Scene, name: string): Record<string, unknown> | undefined {
  return existsSync(scene.path(`${name}.json`)) ? scene.readRecord(name) : undefined;
}
