/**
 * A run of the release binary that a test is going to kill, with its guard: found by /proc alone.
 * Not to be mixed up with guarded-run.ts, which has a guard and nothing else of watchdog's.
 */
import { existsSync, readFileSync } from "node:fs";
import { askJson } from "./ask.ts";
import {
  GONE_LIMIT_MS,
  isStillThere,
  killAlone,
  roundEntry,
  roundVariable,
  waitForGuard,
  waitUntilNobodyCarries,
} from "./killing.ts";
import {
  findCarriers,
  readCommandLine,
  type RunOptions,
  type Scene,
  type Started,
} from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever was in the file: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

export interface GuardedRun {
  readonly name: string;
  readonly run: Started;
  readonly guard: number;
  /** Pids of the run's processes that carry its mark and have this command line. */
  find(command: string): number[];
  waitForCommand(command: string): Promise<number>;
  /** SIGKILL to watchdog; resolves when its guard has done its work and is gone. */
  killAndBury(): Promise<Record<string, Parsed>>;
  waitUntilGone(): Promise<void>;
}

export interface GuardedWords {
  readonly name: string;
  readonly args?: readonly string[];
  readonly command: readonly string[];
  readonly options?: RunOptions;
}

/** Starts it; resolves when its guard stands by. `--result-file` is that of `readRecord(name)`. */
export async function startGuardedRun(scene: Scene, words: GuardedWords): Promise<GuardedRun> {
  const { name, args = [], command, options = {} } = words;
  const mark = `guarded-${name}`;
  const run = scene.start(["--name", name, ...scene.recordTo(name), ...args, "--", ...command], {
    stdout: "ignore",
    ...options,
    env: { ...options.env, ...roundVariable(mark) },
  });
  const guard = await waitForGuard(run.pid);
  const find = (line: string) =>
    findCarriers(roundEntry(mark)).filter((pid) => readCommandLine(pid) === line);
  return {
    name,
    run,
    guard,
    find,
    waitForCommand: (line) => waitFor(() => find(line)[0], `'${line}'`),
    killAndBury: async () => {
      const identity = identify(guard);
      await killAlone(run);
      await waitFor(() => !isStillThere(identity), `guard ${guard} gone`, {
        limitMs: GONE_LIMIT_MS,
      });
      return scene.readRecord(name);
    },
    waitUntilGone: () => waitUntilNobodyCarries(roundEntry(mark)),
  };
}

export function identify(pid: number) {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return { pid, startTicks: Number(fields[19]) };
}

/** How the journal says that the last run of a job ended. */
export async function lastOutcome(scene: Scene, job: string): Promise<string | null> {
  const { runs } = await askJson(scene, ["history", job]);
  return runs[0]?.outcome ?? null;
}

/** Beats that began after this moment have recorded who lives now. */
export async function waitForBeats(scene: Scene, job: string): Promise<void> {
  const read = async () => {
    const lease = await askJson(scene, ["lease", "show", `job:${job}`]);
    return lease.heartbeat_seq as number;
  };
  const first = await read();
  await waitFor(async () => (await read()) >= first + 2, `two more beats of ${job}`);
}

/** The command as the running record names it; undefined: not yet. */
export function readChildPid(scene: Scene, name: string): number | undefined {
  const isThere = existsSync(scene.path(`${name}.json`));
  return isThere ? (scene.readRecord(name)["child_pid"] ?? undefined) : undefined;
}

/** Ends processes of the scene that a test has found spared. */
export async function endAll(scene: Scene, pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await waitFor(() => pids.every((pid) => !scene.findProcesses().includes(pid)), "their end");
}
