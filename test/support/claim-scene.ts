/**
 * Claims and grants of leases in a state directory of the test file's own, with real files and real
 * locks. The look for survivors is played: a script says what each look finds.
 */
import { afterAll } from "bun:test";
import { closeSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FoundProcess, TreeFinding } from "../../src/core/evidence.ts";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { orderKeys } from "../../src/core/lease-key.ts";
import type { DeadRun } from "../../src/core/survivors-view.ts";
import {
  type Claim,
  claimLeases,
  type ClaimRequest,
  type ClaimResult,
  type Ending,
  type Refusal,
} from "../../src/lease/claim/claim.ts";
import { grantLeases, type OwnerFacts } from "../../src/lease/claim/grant.ts";
import type { HeldLeases } from "../../src/lease/held.ts";
import { openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf } from "../../src/lease/files/places.ts";
import { readMachine } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { waitFor } from "./wait-for.ts";

export const EMPTY: TreeFinding = { members: [], suspects: [] };
export const machine = readMachine();
const WORKER = new URL("../../src/lease/claim/wait-worker.ts", import.meta.url);

/** What a claim has asked the room above for, in order. */
export interface Asked {
  readonly looked: string[];
  readonly ended: string[];
  readonly continued: string[];
  readonly endings: Ending[];
  readonly waits: Refusal[];
}

export interface ClaimScene {
  readonly directory: string;
  /** A name that no other test has. */
  key(kind?: string): LeaseKey;
  placeOf(key: LeaseKey): LeasePlace;
  /** The request of a newcomer; `trees` are the findings of its looks, the last one repeated. */
  request(
    keys: readonly LeaseKey[],
    changes?: Partial<ClaimRequest> & { trees?: readonly (TreeFinding | "unread")[] },
  ): ClaimRequest & { asked: Asked };
  /** Claims and grants; throws where it is refused. */
  hold(keys: readonly LeaseKey[], owner?: Partial<OwnerFacts>): Promise<HeldLeases>;
  /** Leaves what an owner leaves that was killed: an unreleased record and a free lock. */
  leaveDead(key: LeaseKey, owner?: Partial<OwnerFacts>): Promise<void>;
}

let count = 0;

export function openClaimScene(): ClaimScene {
  const directory = mkdtempSync(join(tmpdir(), "watchdog-claim-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const scene: ClaimScene = {
    directory,
    key: (kind = "job") => ({ kind, name: `night ${(count += 1)}` }),
    placeOf: (key) => placeOf(directory, key),
    request: (keys, changes = {}) => requestIn(directory, keys, changes),
    hold: async (keys, owner = {}) => grant(await claim(scene.request(keys)), owner),
    leaveDead: async (key, owner = {}) => {
      const held = await scene.hold([key], { pid: DEAD.pid, pid_start_time: DEAD.start, ...owner });
      held.close();
    },
  };
  return scene;
}

/** No process has this pid: it is above the largest that the kernel gives. */
const DEAD = { pid: 2 ** 22 + 1, start: 1 };

function requestIn(
  stateDirectory: string,
  keys: readonly LeaseKey[],
  changes: Partial<ClaimRequest> & { trees?: readonly (TreeFinding | "unread")[] },
): ClaimRequest & { asked: Asked } {
  const asked: Asked = { looked: [], ended: [], continued: [], endings: [], waits: [] };
  const { trees = [EMPTY], ...others } = changes;
  const script = [...trees];
  const next = (): TreeFinding | "unread" =>
    (script.length > 1 ? script.shift() : script[0]) ?? EMPTY;
  return {
    stateDirectory,
    keys: orderKeys(keys),
    runsAround: [],
    waitMs: undefined,
    looker: { stateDirectory, machine, journal: () => undefined },
    survivors: {
      look: async (run: DeadRun) => {
        asked.looked.push(run.runId);
        return next();
      },
      end: async (run: DeadRun) => {
        asked.ended.push(run.runId);
        return EMPTY;
      },
      continueFrozen: async (run: DeadRun) => {
        asked.continued.push(run.runId);
        return 1;
      },
    },
    secondLook: { repairCooldownMs: 600_000, usersOf: async () => [] },
    waitWorkerUrl: WORKER,
    onWaiting: (refusal) => void asked.waits.push(refusal),
    onEnding: (ending) => void asked.endings.push(ending),
    ...others,
    asked,
  };
}

/** Two seconds of looks, one after each try, are some sixty. */
export const FEW_LOOKS = 10;

/** Counts the looks at the holder of a key that has a record which is not released. */
export function countLooks(request: ClaimRequest, onLook?: (look: number) => void): () => number {
  let looks = 0;
  Object.defineProperty(request, "runsAround", {
    get: () => {
      looks += 1;
      onLook?.(looks);
      return [];
    },
  });
  return () => looks;
}

export async function claim(request: ClaimRequest): Promise<Claim> {
  const result = await claimLeases(request);
  if (result.kind === "claimed") return result.claim;
  throw new Error(`refused: ${result.refusal.text}`);
}

export async function refusalOf(request: ClaimRequest): Promise<Refusal> {
  const result: ClaimResult = await claimLeases(request);
  if (result.kind === "refused") return result.refusal;
  result.claim.release();
  throw new Error("claimed, expected a refusal");
}

let runs = 0;

export function ownerOf(changes: Partial<OwnerFacts> = {}): OwnerFacts {
  runs += 1;
  const run = `01999999-0000-7000-8000-${String(runs).padStart(12, "0")}`;
  return {
    run_id: run,
    run_path: changes.run_id ?? run,
    job: "night",
    runner: `${machine.user}@${machine.host}`,
    host: machine.host,
    machine_id: machine.machineId,
    boot_id: machine.bootId,
    pid: process.pid,
    pid_start_time: readStat(process.pid)?.startTicks ?? 0,
    pid_namespace: machine.pidNamespace,
    time_namespace: machine.timeNamespace,
    uid: machine.uid,
    session_started_at: "2030-01-02T03:04:05.000Z",
    heartbeat_interval_ms: 10_000,
    stale_after_ms: 40_000,
    lane: null,
    task_id: null,
    worktree: null,
    branch: null,
    command: "./night.sh",
    cgroup: null,
    adopters: [],
    ...changes,
  };
}

export function grant(claimed: Claim, owner: Partial<OwnerFacts> = {}): HeldLeases {
  return grantLeases(claimed, ownerOf(owner));
}

/** Whether the lock of a path could be had now; a path that is not there is made. */
export function isFree(path: string): boolean {
  const held = holdFile(path);
  held?.();
  return held !== undefined;
}

/** Locks a file as another process would. @returns how to let it go; undefined: it is taken */
export function holdFile(
  path: string,
  mode: "exclusive" | "shared" = "exclusive",
): (() => void) | undefined {
  const opened = openLock(path, "create");
  if (opened.kind !== "open") throw new Error(`${path}: ${opened.kind}`);
  if (tryLock(opened.fd, mode) === "locked") return () => closeSync(opened.fd);
  closeSync(opened.fd);
  return undefined;
}

/** Another process that carries an operation out under a fence. @returns how to end it */
export async function fenceElsewhere(path: string): Promise<() => Promise<void>> {
  const flock = Bun.spawn(["flock", "-s", "--no-fork", path, "sleep", "60"]);
  await waitFor(() => !isFree(path), "the operation");
  return async () => {
    flock.kill("SIGKILL");
    await flock.exited;
  };
}

/** Locks the lock of a key that has no directory yet. */
export function holdPlace(place: LeasePlace): () => void {
  makePlace(place);
  const release = holdFile(place.lock);
  if (release === undefined) throw new Error(`${place.lock} is taken`);
  return release;
}

export function found(pid: number, changes: Partial<FoundProcess> = {}): FoundProcess {
  const command = `work ${pid}`;
  return { pid, start_time: pid, command, isSignalable: true, isAncestor: false, ...changes };
}
