/**
 * Sweeps one fault point with all its acts, each in a state directory of its own and all at the
 * same time, and tells of each in words that a table can hold: what the fault has written, how
 * watchdog ended, what was on the disk then, and what the next one found.
 *
 * The act `stop` is none of the faults: it holds the run at the point, so that locks, files and
 * processes of that moment can be looked at; then the run goes on as if nothing had been.
 */
import { readdirSync } from "node:fs";
import { renderKey } from "../../src/core/lease-key.ts";
import type { Ended, Scene, Started } from "../support/scene.ts";
import { type Evidence, FaultCase, JOB, LANE, type Past, stateOf } from "./lease-fault-case.ts";

export const FAULTS_OF_A_POINT = ["kill", "term", "throw", "eio", "enospc"] as const;
export const ACTS = [...FAULTS_OF_A_POINT, "stop"] as const;
export type Act = (typeof ACTS)[number];

/** The command ends by itself, with 7. */
export const SHORT = 'echo started >>"$LIFE"; exit 7';
/** The command ends when it is made to. */
export const LONG = 'echo started >>"$LIFE"; exec sleep 94110';

export interface Sweep {
  readonly scene: Scene;
  readonly past?: Past;
  /** `acquire.A7#2`, perhaps behind another fault and a comma. */
  readonly point: string;
  readonly script?: string | ((act: Act) => string);
  readonly options?: readonly string[];
  /** What happened in the same state directory before. */
  readonly begin?: (one: FaultCase) => Promise<unknown>;
  /**
   * What happens to the run from outside, so that it comes to the point.
   * @returns who will be at the point, where that is not the watchdog
   */
  readonly provoke?: (one: FaultCase, run: Started, act: Act) => Promise<number | void>;
  /** What happens after the point, so that the run comes to its end. */
  readonly finish?: (one: FaultCase, run: Started, act: Act) => Promise<unknown>;
  /**
   * The run is not stopped: its thread alone is held until it was looked at. SIGSTOP from a thread
   * is taken by main (signal(7)), and the thread goes on until then.
   */
  readonly holdsThread?: boolean;
  /** Whether a newcomer comes while the run is held, or for which keys alone. */
  readonly newcomer?: boolean | readonly string[];
  /** At the moment of the point each slot is shown with its beat, else only whose it is. */
  readonly showsBeats?: boolean;
}

/** While the run is held at the point. */
export interface Moment {
  readonly locks: readonly string[];
  readonly keys: readonly string[];
  readonly rows: readonly string[];
  /** Processes of the command; helpers are watchdog and its guard. */
  readonly members: number;
  readonly helpers: number;
  /** Status and verdict that a newcomer gets. */
  readonly newcomer: string | undefined;
}

export interface Swept {
  readonly evidence: readonly Evidence[];
  /** `SIGKILL`, `status 125`. */
  readonly ended: string;
  readonly isStarted: boolean;
  /** Whether stderr names the fault. */
  readonly isTold: boolean;
  readonly keys: readonly string[];
  /** Processes of the command that are left when watchdog and guard are gone. */
  readonly members: number;
  /** `status 0, started`, and for each key verdict, number, and from whom it was taken over. */
  readonly next: readonly string[];
  /** Of the run in the journal, before the next one comes. */
  readonly told: readonly string[];
  /** The same after it, and what waits in spool/ then. */
  readonly rows: readonly string[];
  readonly spooled: number;
  /** Words of the run about its own troubles, from its result file. */
  readonly degraded: unknown;
  readonly moment: Moment | undefined;
}

export type SweptActs = Record<string, Swept>;

export async function sweep(plan: Sweep, acts: readonly Act[] = ACTS): Promise<SweptActs> {
  const entries = await Promise.all(acts.map(async (act) => [act, await strike(plan, act)]));
  return Object.fromEntries(entries);
}

async function strike(plan: Sweep, act: Act): Promise<Swept> {
  const one = await new FaultCase(plan.scene).prepare(plan.past ?? "used");
  try {
    await plan.begin?.(one);
    const script = typeof plan.script === "function" ? plan.script(act) : plan.script;
    const word = act === "stop" && plan.holdsThread === true ? "hold" : act;
    const run = one.start(`${plan.point}=${word}`, script ?? SHORT, plan.options);
    const pid = (await plan.provoke?.(one, run, act)) ?? run.pid;
    const moment = act === "stop" ? await hold(plan, one, pid) : undefined;
    await plan.finish?.(one, run, act);
    const ended = await awaitEnd(run);
    await one.waitForHelpers();
    return await judge(plan, one, act, { ended, moment });
  } finally {
    one.endMembers();
  }
}

/** Each thread counts the times that it passes a point, so a stop may come once more. */
async function awaitEnd(run: Started): Promise<Ended> {
  for (;;) {
    const ended = await Promise.race([run.ended, Bun.sleep(CONTINUE_MS)]);
    if (ended !== undefined) return ended;
    if (stateOf(run.pid) === "T") run.kill("SIGCONT");
  }
}

const CONTINUE_MS = 20;

async function hold(plan: Sweep, one: FaultCase, pid: number): Promise<Moment> {
  await (plan.holdsThread === true ? one.waitForEvidence() : one.waitForStop(pid));
  const { helpers, members } = one.look();
  const keys = one.keys();
  const rows = one.rowsNow();
  const locks = one.locks();
  const newcomer = await refuse(plan, one, keys);
  if (plan.holdsThread === true) one.letGo();
  else process.kill(pid, "SIGCONT");
  const counts = { helpers: helpers.length, members: members.length };
  return { locks, keys: show(plan, keys), rows, ...counts, newcomer };
}

/** A refused start changes nothing of a key. */
async function refuse(
  { newcomer = false }: Sweep,
  one: FaultCase,
  before: readonly string[],
): Promise<string | undefined> {
  if (newcomer === false) return undefined;
  const { status, stderr } = await one.come("newcomer", newcomer === true ? undefined : newcomer);
  const after = one.keys();
  if (after.join() !== before.join()) throw new Error(`changed: ${before.join()} ${after.join()}`);
  const verdict = /verdict (\w+) \((R\d [\w-]+)\)/.exec(stderr);
  return `${status} ${verdict?.[1]} ${verdict?.[2]}`;
}

async function judge(
  plan: Sweep,
  one: FaultCase,
  act: Act,
  { ended, moment }: { ended: Ended; moment: Moment | undefined },
): Promise<Swept> {
  const keys = one.keys();
  const members = one.look().members.length;
  const isStarted = one.lives().includes("started");
  const told = one.rows();
  const result = one.json("result");
  const next = describeNext(one, await one.come("next"), keys);
  const survivors = one.look().members.length;
  if (survivors > 0) throw new Error(`${survivors} of the command live beside the next one`);
  return {
    evidence: one.evidence(),
    ended: ended.signal ?? `status ${ended.code}`,
    isStarted,
    isTold: one.stderr().includes("fault injected at"),
    keys: show({ showsBeats: act === "kill" && plan.showsBeats === true }, keys),
    members,
    next,
    told,
    rows: one.rows(one.json("next")?.["run_id"]),
    spooled: countSpooled(one),
    degraded: result?.["degraded"],
    moment,
  };
}

function show(plan: Pick<Sweep, "showsBeats">, keys: readonly string[]): string[] {
  return keys.map((key) => (plan.showsBeats === true ? key : key.replace(/@\d+(\+child)?/g, "")));
}

function countSpooled(one: FaultCase): number {
  return readdirSync(one.state).includes("spool") ? readdirSync(`${one.state}/spool`).length : 0;
}

function describeNext(one: FaultCase, next: Ended, before: readonly string[]): string[] {
  const granted = one.json("next")?.["leases"] as { generation: number }[] | undefined;
  const first = `status ${next.status}, ${one.lives().at(-1) === "next" ? "started" : "nothing"}`;
  const rest = [JOB, LANE].map((key, index) => {
    const name = renderKey(key);
    const verdict = new RegExp(`${name} was (\\w+) \\((R\\d [\\w-]+)\\)`).exec(next.stderr);
    const from = new RegExp(`took over ${name} from run ([\\w-]+)`).exec(next.stderr)?.[1];
    const generation = granted?.[index]?.generation ?? 0;
    const isLarger = generation > largestKnown(before[index] ?? "");
    const owner = from === undefined ? "" : ` from ${from === "dead" ? "dead" : "ours"}`;
    return `${verdict?.[1]} ${verdict?.[2]}, ${isLarger ? generation : "no larger number"}${owner}`;
  });
  return [first, ...rest];
}

/** Of the numbers in a record and in the names of slots. */
function largestKnown(key: string): number {
  const numbers = [...key.matchAll(/(?<=held |released | )\d+(?=:| )/g)].map(Number);
  return Math.max(0, ...numbers);
}
