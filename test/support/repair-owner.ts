/**
 * Repairs of leases in a state directory of the test file's own, where the front door's pieces are
 * played; and owners that have a lock and do what the test says.
 */
import { afterAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { renderKey } from "../../src/core/lease-key.ts";
import { AuditLog } from "../../src/journal/audit.ts";
import { openLock } from "../../src/lease/files/lock-file.ts";
import { makePlace, slotPath } from "../../src/lease/files/places.ts";
import { readRecord, writeRecord } from "../../src/lease/files/record-file.ts";
import { createSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { readStat } from "../../src/os/proc.ts";
import {
  repairCommand,
  type RepairOptions,
  type RepairReport,
  type RepairRequest,
} from "../../src/repair/repair-command.ts";
import { machine, openClaimScene } from "./claim-scene.ts";
import { sampleRecord, sampleSlot } from "./lease-samples.ts";
import { PYTHON } from "./outside.ts";
import { readLines } from "./processes.ts";
import { FIXTURES } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const scene = openClaimScene();
export const started: Bun.Subprocess[] = [];

afterAll(async () => {
  for (const child of started) {
    child.kill("SIGKILL");
    await child.exited;
  }
});

const DRY: RepairOptions = {
  keys: [],
  isApplying: false,
  approve: undefined,
  setGeneration: undefined,
  repairIntervalMs: 600_000,
  maxRepairs: 3,
  isJson: false,
};

interface Repaired {
  readonly code: number;
  readonly lines: readonly string[];
  readonly steps: readonly string[];
  readonly report: RepairReport | undefined;
}

export async function repair(
  options: Partial<RepairOptions>,
  changes: Partial<RepairRequest> = {},
): Promise<Repaired> {
  const steps: string[] = [];
  let report: RepairReport | undefined;
  const { code, lines } = await repairCommand({
    stateDirectory: scene.directory,
    options: { ...DRY, ...options },
    scanUrl: new URL("../../src/tree/scan-worker.ts", import.meta.url),
    readKept: () => ({ identities: new Set(), tokens: new Set() }),
    decideRight: () => ({ kind: "granted" }),
    build: { version: "0.0.0", commit: "none" },
    onStep: (line) => void steps.push(line),
    render: (found) => {
      report = found;
      return "";
    },
    ...changes,
  });
  return { code, lines, steps, report };
}

export function planOf({ report }: Repaired, action: string): string {
  const options = report?.leases.flatMap((lease) => lease.options) ?? [];
  const id = options.find((option) => option.action === action)?.planId;
  if (typeof id !== "string") throw new Error(`no ${action} in ${JSON.stringify(options)}`);
  return id;
}

export function actsOf(key: LeaseKey) {
  const audit = new AuditLog(scene.directory);
  try {
    return audit.acts().filter((act) => act.key === renderKey(key));
  } finally {
    audit.close();
  }
}

export function recordOf(key: LeaseKey) {
  const reading = readRecord(scene.placeOf(key).record);
  if (reading.kind !== "read") throw new Error(`found ${reading.kind}`);
  return reading.record;
}

/** A program that has the lock of a key, and is recorded as its owner; its last beat is old. */
export async function startOwner(keys: readonly LeaseKey[], terms: number) {
  const [first] = keys;
  if (first === undefined) throw new Error("an owner has a key");
  const notes = `${scene.directory}/${crypto.randomUUID()}.notes`;
  for (const key of keys) {
    makePlace(scene.placeOf(key));
    const lock = openLock(scene.placeOf(key).lock, "create");
    if (lock.kind !== "open") throw new Error("no lock");
  }
  const words = [`${FIXTURES}/holds-lock.py`, notes, String(terms), scene.placeOf(first).lock];
  const child = Bun.spawn([PYTHON, "-I", "-S", ...words], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  started.push(child);
  await waitFor(() => existsSync(notes) && readLines(notes)[0] === "ready", "an owner");
  for (const key of keys) describeOwner(key, child.pid);
  return { child, notes };
}

function describeOwner(key: LeaseKey, pid: number): void {
  const place = scene.placeOf(key);
  const lock = openLock(place.lock, "existing");
  if (lock.kind !== "open") throw new Error("no lock");
  const start_time = readStat(pid)?.startTicks ?? 0;
  const run = { run_id: `run-of-${pid}`, run_path: `run-of-${pid}` };
  writeRecord(
    place.record,
    sampleRecord({
      ...key,
      ...run,
      boot_id: machine.bootId,
      machine_id: machine.machineId,
      host: machine.host,
      pid_namespace: machine.pidNamespace,
      time_namespace: machine.timeNamespace,
      lock_inode: lock.inode,
      pid,
      pid_start_time: start_time,
      cgroup: null,
    }),
  );
  const owner = { pid, start_time, pidfd_inode: 0 };
  const nobody = { mainChild: null, guard: null, mainGroup: null, members: [], memberCount: 0 };
  const { pidNamespace, timeNamespace, bootId } = machine;
  writeSlot(
    createSlot(place, 7),
    sampleSlot({
      head: { bootId, monotonicMs: 1 },
      body: {
        runId: run.run_id,
        lockInode: lock.inode,
        pidNamespace,
        timeNamespace,
        owner,
        ...nobody,
      },
    }),
  );
  expect(existsSync(slotPath(place, 7))).toBe(true);
}
