/**
 * Runs of a scene that share one circuit, `dep`, and what is to be seen of it from outside: who has
 * its lock by what the kernel says, and its row by what watchdog answers.
 */
import { readFileSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { ask, askJson } from "./ask.ts";
import type { CountingServer } from "./counting-server.ts";
import { readChildren } from "./killing.ts";
import { readLines, readStatusLine } from "./processes.ts";
import type { RunOptions, Scene, Started } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

type Parsed = ReturnType<typeof JSON.parse>;

export const DEP = "dep";
export const DOWN = 69;
/** The first trial comes within three seconds once in a thousand times. */
export const LONG_BACKOFF = ["--probe-backoff", "1h..1h", "--probe-max-elapsed", "10h"];
/** As often as a test has time for. */
export const PATIENT = ["--probe-period", "400ms", "--probe-timeout", "400ms"];
/** So that a machine which stands still for a second is no dependency that is down. */
export const STEADY = [...PATIENT, "--probe-failure-threshold", "5"];

/** Of a start, which has to be as sure as a busy machine allows, and soon asks again. */
const STARTUP = ['timeout = "20s"', 'backoff = "50ms..200ms"'];

let tables = 0;

/**
 * The words of a run with the probe `dep`.
 * @param settings  as on a line, in pairs; they hold while the job runs, and for the circuit
 * @param startup  lines of its table
 */
export function dependsOn(
  scene: Scene,
  server: CountingServer,
  settings: readonly string[] = [],
  startup: readonly string[] = STARTUP,
): string[] {
  // The last one of each counts, as on a line.
  const keys = new Map<string, string>();
  for (let index = 0; index < settings.length; index += 2) {
    const [flag = "", value = ""] = settings.slice(index);
    const key = flag.replace(/^--(probe-)?/, "").replaceAll("-", "_");
    keys.set(key, /^\d+$/.test(value) ? value : JSON.stringify(value));
  }
  tables += 1;
  const path = scene.path(`probe-${tables}.toml`);
  const own = [`[probes.${DEP}]`, `url = "${server.url}"`];
  const ofStart = [`[probes.${DEP}.startup]`, ...startup];
  const rest = [...keys].map(([key, value]) => `${key} = ${value}`);
  writeFileSync(path, [...own, ...rest, ...ofStart, ""].join("\n"), { mode: 0o600 });
  return ["--config", path, "--log", "off", "--probe", DEP];
}

/** Jobs `PREFIX-0`, `PREFIX-1`, …, all at once. */
export function startJobs(
  scene: Scene,
  { prefix, count }: { readonly prefix: string; readonly count: number },
  words: readonly string[],
  options: RunOptions = {},
): Started[] {
  return Array.from({ length: count }, (_, index) =>
    scene.start(["--name", `${prefix}-${index}`, ...words], options),
  );
}

export async function statusesOf(runs: readonly Started[]): Promise<number[]> {
  const ended = await Promise.all(runs.map((run) => run.ended));
  return ended.map(({ status }) => status);
}

/** A command that tells its pid, and goes on until its gate is there. */
export class Announcing {
  readonly #alive: string;
  readonly gate: string;

  constructor(scene: Scene, name: string) {
    this.#alive = scene.path(`${name}.alive`);
    this.gate = scene.path(`${name}.gate`);
  }

  get command(): string[] {
    const wait = `until test -e '${this.gate}'; do sleep 0.1; done`;
    return ["--", "sh", "-c", `echo $$ >>'${this.#alive}'; ${wait}`];
  }

  get pids(): number[] {
    return readLines(this.#alive).map(Number);
  }

  async waitForAll(count: number): Promise<readonly number[]> {
    await waitFor(() => this.pids.length >= count, `${count} commands that run`);
    return this.pids;
  }
}

/** A shell that is stopped inside vfork(2) waits in D for its child, which is stopped, too. */
export function areStopped(pids: readonly number[]): boolean {
  const isIn = (pid: number, state: string): boolean =>
    readStatusLine(pid, "State")?.startsWith(state) === true;
  return pids.every(
    (pid) =>
      isIn(pid, "T") || (isIn(pid, "D") && readChildren(pid).some((child) => isIn(child, "T"))),
  );
}

/**
 * Until all of them wait for their dependency, in a state directory that is not new: each has the
 * journal open for its leases, and for its circuits. Others open it for a moment alone.
 */
export async function waitUntilAllWait(runs: readonly Started[]): Promise<void> {
  let looks = 0;
  await waitFor(() => {
    looks = runs.every(hasJournalTwice) ? looks + 1 : 0;
    return looks >= MANY_LOOKS;
  }, `${runs.length} runs that wait`);
}

const MANY_LOOKS = 8;

function hasJournalTwice({ pid }: Started): boolean {
  try {
    const links = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    return links.filter((link) => link.endsWith("/journal.db")).length >= 2;
  } catch {
    return false; // ENOENT, ESRCH: a descriptor was closed just now, or the run is gone
  }
}

export function lockOf(scene: Scene, name = DEP): string {
  return `${scene.stateDirectory}/circuits/${name}/lock`;
}

/** Pids of those who hold the lock, as the kernel lists them (proc(5), /proc/locks). */
export function probersOf(scene: Scene, name = DEP): number[] {
  const inode = statSync(lockOf(scene, name), { throwIfNoEntry: false })?.ino;
  return readFileSync("/proc/locks", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, kind, , , , file = ""]) => kind === "FLOCK" && file.endsWith(`:${inode}`))
    .map(([, , , , pid]) => Number(pid));
}

/** The one run among these that probes. */
export async function waitForProber(
  scene: Scene,
  runs: readonly Started[],
  isOther: (run: Started) => boolean = () => true,
): Promise<Started> {
  return waitFor(() => {
    const [pid, ...more] = probersOf(scene);
    return more.length === 0 && runs.find((run) => run.pid === pid && isOther(run));
  }, "one run that probes");
}

export function circuitOf(scene: Scene, name = DEP): Promise<Parsed> {
  return askJson(scene, ["circuit", "show", name]);
}

export async function waitForState(scene: Scene, state: string, name = DEP): Promise<Parsed> {
  return waitFor(async () => {
    const circuit = await circuitOf(scene, name);
    return circuit.state === state && circuit;
  }, `circuit ${name} to be ${state}`);
}

/** One failure of a call, which is enough where the threshold of the probe is 1. */
export async function openByCall(scene: Scene): Promise<void> {
  const { status } = await ask(scene, CALL);
  if (status !== 1) throw new Error(`the call ended with ${status}, not by its own failure`);
}

const CALL = ["retry", "--breaker", DEP, "--max-attempts", "1", "--", "false"];

/** While the test lets time go by, and nothing else is to happen. */
export async function letPass(spanMs: number): Promise<void> {
  const until = performance.now() + spanMs;
  await waitFor(() => performance.now() >= until, `${spanMs} ms`);
}
