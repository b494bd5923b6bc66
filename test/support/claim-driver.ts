/**
 * A program of its own that claims keys, is granted them and releases them, for tests that kill it
 * or make it fail on its way: `claim-driver.ts STATE_DIR RUN_ID KIND:NAME...`. Prints one line of
 * JSON: what has become of it.
 */
import { appendFileSync } from "node:fs";
import { WatchdogError } from "../../src/core/errors.ts";
import { orderKeys, parseKey } from "../../src/core/lease-key.ts";
import { claimLeases } from "../../src/lease/claim/claim.ts";
import { grantLeases } from "../../src/lease/claim/grant.ts";
import { readMachine } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";

const [stateDirectory = "", runId = "", ...words] = process.argv.slice(2);
const machine = readMachine();
const empty = { members: [], suspects: [] };
const member = { pid: 4711, start_time: 1, command: "x", isSignalable: true, isAncestor: false };
/** With DRIVER_FINDS=member the first look finds one, and the next ones nobody. */
let toFind = process.env["DRIVER_FINDS"] === "member" ? [member] : [];

async function look(): Promise<{ members: (typeof member)[]; suspects: [] }> {
  const members = toFind;
  toFind = [];
  return { members, suspects: [] };
}

async function drive(): Promise<Record<string, unknown>> {
  const result = await claimLeases({
    stateDirectory,
    keys: orderKeys(words.flatMap((word) => parseKey(word) ?? [])),
    runsAround: [],
    waitMs: Number(process.env["DRIVER_WAIT_MS"] ?? 0),
    looker: { stateDirectory, machine, journal: () => undefined },
    survivors: { look, end: async () => empty, continueFrozen: async () => 0 },
    secondLook: { repairCooldownMs: 0, usersOf: async () => [] },
    waitWorkerUrl: new URL("../../src/lease/claim/wait-worker.ts", import.meta.url),
    onWaiting: () => undefined,
    onEnding: () => undefined,
  });
  if (result.kind === "refused") return { kind: "refused", text: result.refusal.text };
  const held = grantLeases(result.claim, {
    run_id: runId,
    run_path: runId,
    job: "driven",
    runner: "driver@here",
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
    command: "driver",
    cgroup: null,
    adopters: [],
  });
  const generations = held.leases.map(({ generation }) => generation);
  const log = process.env["DRIVER_LOG"];
  if (log !== undefined) {
    appendFileSync(log, `${generations.join(" ")}\n`);
    await Bun.sleep(2); // long enough to be killed in
  }
  const unreleased = held.markReleased().map(({ reason }) => reason);
  let closing: string | undefined;
  try {
    held.close();
  } catch (error) {
    closing = String(error);
  }
  return { kind: "ran", generations, unreleased, closing };
}

function describeError(error: unknown): Record<string, unknown> {
  const code = error instanceof WatchdogError ? error.code : "bug";
  return { kind: "failed", code, message: error instanceof Error ? error.message : String(error) };
}

const answer = await drive().catch(describeError);
await Bun.write(Bun.stdout, `${JSON.stringify(answer)}\n`);
