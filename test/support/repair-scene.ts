/**
 * Asking `watchdog repair` from outside, and what it has written down: the audit and the runs as
 * SQLite has them. Trusts nothing that watchdog says about itself but the answer in JSON.
 */
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { ask, waitForHolder } from "./ask.ts";
import { endAll } from "./guarded-scene.ts";
import { killWithGuard } from "./killing.ts";
import { findByCommand, readStatusLine, waitForCommand } from "./processes.ts";
import type { Ended, RunOptions, Scene, Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever was answered: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

/** Beats so often, and called stalled so soon. */
export const QUICK = ["--heartbeat-interval", "100ms", "--stale-after", "400ms"] as const;

export function repair(
  scene: Scene,
  words: readonly string[] = [],
  options: RunOptions = {},
): Promise<Ended> {
  return ask(scene, ["repair", ...words], options);
}

/** Its answer in JSON, whatever its status. */
export async function repairJson(scene: Scene, words: readonly string[] = []): Promise<Parsed> {
  const { stdout, stderr } = await repair(scene, [...words, "--json"]);
  try {
    return JSON.parse(stdout.toString());
  } catch (cause) {
    throw new Error(`no JSON: ${stdout.toString()} ${stderr}`, { cause });
  }
}

/** The one lease of a key as a dry run shows it, once it has this verdict. */
export function waitForVerdict(scene: Scene, key: string, verdict: string): Promise<Parsed> {
  return waitFor(async () => {
    const { leases } = await repairJson(scene, [key]);
    return leases[0]?.verdict === verdict && leases[0];
  }, `${key} to be ${verdict}`);
}

/** The id of the plan with this action; throws where it is not offered. */
export function planOf(lease: Parsed, action: string): string {
  const plan = lease.plans.find((one: Parsed) => one.action === action);
  if (typeof plan?.plan_id !== "string") throw new Error(`no ${action}: ${JSON.stringify(lease)}`);
  return plan.plan_id;
}

/**
 * STOP, and back when the kernel says that it stands still. In the middle of a transaction it would
 * keep every other writer out of the journal: then it goes on once more.
 */
export async function stopStill(run: Started): Promise<void> {
  const stop = async (): Promise<boolean> => {
    run.kill("SIGSTOP");
    await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
    const isFree = !isWriting(run.pid);
    if (!isFree) run.kill("SIGCONT");
    return isFree;
  };
  await waitFor(stop, "a watchdog that stands still outside of a transaction");
}

/** By the locks of SQLite: those of a lease are of another kind (proc(5), /proc/locks). */
function isWriting(pid: number): boolean {
  const locks = readFileSync("/proc/locks", "utf8").split("\n");
  return locks.some((line) => new RegExp(` POSIX +ADVISORY +WRITE +${pid} `).test(line));
}

/** A holder whose beats are old, because it stands still. */
export async function startStalled(scene: Scene, job: string, command: readonly string[]) {
  const run = scene.start(["--name", job, ...QUICK, "--", ...command]);
  await waitForHolder(scene, job);
  await stopStill(run);
  return { run, lease: await waitForVerdict(scene, `job:${job}`, "stalled") };
}

/**
 * What a killed watchdog leaves, whose guard was killed too.
 * @param line  of the process that is left
 */
export async function leaveOrphans(
  scene: Scene,
  job: string,
  line: string,
  command: readonly string[] = line.split(" "),
): Promise<Parsed> {
  const run = scene.start(["--name", job, ...QUICK, "--", ...command]);
  await waitForCommand(scene, line);
  const lease = await waitForHolder(scene, job);
  await killWithGuard(run);
  return lease;
}

/** The same with nobody left. */
export async function leaveDead(scene: Scene, job: string, line: string): Promise<Parsed> {
  const lease = await leaveOrphans(scene, job, line);
  await endAll(scene, findByCommand(scene, line));
  await waitForVerdict(scene, `job:${job}`, "dead");
  return lease;
}

export interface AuditLine {
  readonly phase: string;
  readonly action: string;
  readonly because: string;
  readonly plan_id: string;
}

export function readAudit(scene: Scene, key: string): AuditLine[] {
  return query(
    scene,
    "SELECT phase, action, because, plan_id FROM audit WHERE lease_key = ? ORDER BY id",
    key,
  );
}

export function readRuns(scene: Scene, job: string): Parsed[] {
  return query(
    scene,
    "SELECT state, outcome, because, abandoned_by FROM runs WHERE job = ? ORDER BY seq",
    job,
  );
}

function query<Row>(scene: Scene, sql: string, ...words: string[]): Row[] {
  const path = `${scene.stateDirectory}/journal.db`;
  if (!existsSync(path)) return [];
  const journal = new Database(path, { readonly: true });
  journal.run("PRAGMA busy_timeout = 5000");
  try {
    return journal.query(sql).all(...words) as Row[];
  } finally {
    journal.close();
  }
}

/** Names beside the record. */
export function listPlace(scene: Scene, job: string): string[] {
  return readdirSync(`${scene.stateDirectory}/leases/job/${job}`).sort();
}
