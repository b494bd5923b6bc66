/**
 * What a lease costs while it is held, how long the guard takes when watchdog is killed, and how
 * long the reading commands take over much state. Clock: performance.now for spans, the
 * kernel's ticks for CPU.
 */
import { Database } from "bun:sqlite";
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readProcText } from "../support/proc-text.ts";
import { type Bench, medianOf } from "./measure.ts";
import { WATCHDOG } from "./programs.ts";

const KILLS = 20;
const LEASES = 1_000;
const RUNS = 100_000;
const TICK_MS = 10;
/**
 * Measured: for the first 31 s the timer of the runtime's garbage collector goes once a second, and
 * the code warms up. That comes once, and is not to be taken for sixty minutes of it.
 */
export const SETTLING_SECONDS = 60;

export interface LifeRow {
  readonly measure: string;
  readonly value: string;
  readonly aim: string;
}

export async function measureLives(idleSeconds: number, bench: Bench): Promise<LifeRow[]> {
  return [
    ...(await measureIdle(idleSeconds, bench)),
    await measureKills(bench),
    ...measureReaders(bench),
  ];
}

/** Aims: at most 2 s of CPU an hour, at most 50 MB. Both runs at the same time. */
function measureIdle(seconds: number, bench: Bench): Promise<LifeRow[]> {
  return Promise.all(["off", "on"].map((log) => measureIdleRun(log, seconds, bench)));
}

async function measureIdleRun(log: string, seconds: number, bench: Bench): Promise<LifeRow> {
  const run = beginIdleRun(`idle-${log}`, ["--log", log], bench);
  const value = await run.measure({ seconds, settlingSeconds: SETTLING_SECONDS });
  return { measure: `idle run, --log ${log}`, value, aim: "2 s, 50 MB" };
}

export interface IdleRun {
  /** Waits for both spans, and ends the run. */
  measure(spans: { readonly seconds: number; readonly settlingSeconds: number }): Promise<string>;
  end(): Promise<void>;
}

export function beginIdleRun(name: string, options: readonly string[], bench: Bench): IdleRun {
  const words = [WATCHDOG, "run", "--name", name, ...options, "--", "sleep", "3600"];
  const child = Bun.spawn(words, { env: bench.env, stdout: "ignore", stderr: "ignore" });
  const end = async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
  return {
    end,
    measure: async ({ seconds, settlingSeconds }) => {
      await Bun.sleep(settlingSeconds * 1_000);
      const before = readCpuMs(child.pid);
      await Bun.sleep(seconds * 1_000);
      const used = ((readCpuMs(child.pid) - before) / 1_000) * (3600 / seconds);
      const memory = readMemory(child.pid);
      await end();
      return `${used.toFixed(1)} s CPU an hour, ${memory}`;
    },
  };
}

/**
 * utime and stime of all threads, of those that have ended as well (the JIT compiler's come and
 * go): in ticks of 10 ms, so that a sample of 300 s is right within 0.24 s an hour.
 */
function readCpuMs(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** All that is resident, and the part that no other process could share. */
function readMemory(pid: number): string {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
  const sum = (names: readonly string[]): number =>
    names.reduce(
      (total, name) => total + Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1]),
      0,
    );
  const own = sum(["Private_Clean", "Private_Dirty"]);
  return `${megabytes(sum(["Rss"]))} MB resident, ${megabytes(own)} MB private`;
}

function megabytes(kibibytes: number): string {
  return ((kibibytes * 1024) / 1e6).toFixed(1);
}

/** Aim: 19 of 20 below 0.3 s. */
async function measureKills(bench: Bench): Promise<LifeRow> {
  const spans: number[] = [];
  for (let round = 0; round < KILLS; round += 1) spans.push(await killOnce(round, bench));
  const sorted = spans.toSorted((a, b) => a - b);
  const shown = [sorted[0], medianOf(sorted), sorted[KILLS - 2], sorted[KILLS - 1]];
  return {
    measure: `SIGKILL to tree gone, ${KILLS} times`,
    value: `${shown.map((ms) => Math.round(ms ?? 0)).join(" / ")} ms (least, median, 19th, most)`,
    aim: "19 of 20 below 300 ms",
  };
}

async function killOnce(round: number, bench: Bench): Promise<number> {
  const ready = join(bench.scratch, `ready-${round}`);
  const script = `setsid sleep 3600 & (sleep 3600 &); echo >'${ready}'; sleep 3600`;
  const words = [WATCHDOG, "run", "--name", "killed", "--log", "off", "--", "sh", "-c", script];
  const env = { ...bench.env, WATCHDOG_BENCH: ready };
  const child = Bun.spawn(words, { env, stdout: "ignore", stderr: "ignore" });
  while (!existsSync(ready)) await Bun.sleep(1);
  const startedAt = performance.now();
  child.kill("SIGKILL");
  while (carriers(`WATCHDOG_BENCH=${ready}`) > 0) await Bun.sleep(1);
  const spanMs = performance.now() - startedAt;
  await child.exited;
  return spanMs;
}

function carriers(entry: string): number {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && carries(name, entry)).length;
}

function carries(pid: string, entry: string): boolean {
  try {
    return readProcText(pid, "environ").split("\0").includes(entry);
  } catch {
    return false; // gone
  }
}

/** Aims: at most 0.3 s each. */
function measureReaders(bench: Bench): LifeRow[] {
  const state = join(bench.scratch, "much-state");
  const env = { ...bench.env, WATCHDOG_STATE_DIR: state };
  Bun.spawnSync([WATCHDOG, "run", "--name", "seed", "--log", "off", "--", "true"], { env });
  multiplyLeases(state);
  multiplyRuns(join(state, "journal.db"));
  return [
    readingRow(`status over ${LEASES} leases`, ["status"], env),
    readingRow(`status --json over ${LEASES} leases`, ["status", "--json"], env),
    readingRow(`history over ${RUNS} runs`, ["history"], env),
    readingRow(`history of one of ${RUNS}`, ["history", "seed"], env),
  ];
}

function multiplyLeases(state: string): void {
  const jobs = join(state, "leases", "job");
  const record: object = JSON.parse(readFileSync(join(jobs, "seed", "lease.json"), "utf8"));
  for (let number = 1; number < LEASES; number += 1) {
    const name = `seed-${number}`;
    cpSync(join(jobs, "seed"), join(jobs, name), { recursive: true });
    const text = JSON.stringify({ ...record, name }).padEnd(4096);
    writeFileSync(join(jobs, name, "lease.json"), text);
  }
}

function multiplyRuns(path: string): void {
  const database = new Database(path);
  const columns = database
    .query<{ name: string }, []>("PRAGMA table_info(runs)")
    .all()
    .map(({ name }) => name)
    .filter((name) => name !== "seq");
  const values = columns.map((name) => {
    if (name === "run_id") return "printf('01900000-0000-7000-8000-%012x', n)";
    return name === "job" ? "'seed-' || (n % 100)" : name;
  });
  database.run(
    `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ${RUNS - 1})
     INSERT INTO runs (${columns.join(", ")})
     SELECT ${values.join(", ")} FROM numbers, (SELECT * FROM runs LIMIT 1)`,
  );
  database.close();
}

function readingRow(
  measure: string,
  words: readonly string[],
  env: Record<string, string>,
): LifeRow {
  const spans: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const startedAt = performance.now();
    const done = Bun.spawnSync([WATCHDOG, ...words], { env });
    if (done.exitCode !== 0) throw new Error(`${words.join(" ")}: status ${done.exitCode}`);
    spans.push(performance.now() - startedAt);
  }
  return { measure, value: `${Math.round(medianOf(spans))} ms`, aim: "300 ms" };
}
