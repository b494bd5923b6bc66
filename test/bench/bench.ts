/**
 * `npm run bench`: what `watchdog run` costs, beside what one would use instead. Prints tables, or
 * with `--json` one JSON object. Not a test: it never fails on a number, only on a command that
 * fails.
 *
 *   bun test/bench/bench.ts [--json] [--rounds 30] [--mebibytes 1024] [--pipe-rounds 5]
 *       [--idle-seconds 300] [--shared-seconds 30]
 *
 * Always holds: everything that it writes is in one temporary directory, removed at the end.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureDependencies } from "./dependencies.ts";
import { measureJobSteps, measureLargeJob } from "./job-steps.ts";
import { measureLives, SETTLING_SECONDS } from "./lease-life.ts";
import { compareLeaseStarts } from "./lease-start.ts";
import { medianOf, readPeakMebibytes, timeInterleaved } from "./measure.ts";
import type { Bench } from "./measure.ts";
import { BASELINE, prepareContestants, WATCHDOG } from "./programs.ts";
import type { Contestant } from "./programs.ts";
import { measureSteps } from "./steps.ts";

/** A row of a table: the order of the keys is the order of the columns. */
type Row = object;

interface Settings {
  readonly isJson: boolean;
  readonly rounds: number;
  readonly mebibytes: number;
  readonly pipeRounds: number;
  readonly idleSeconds: number;
  readonly sharedSeconds: number;
}

function readSettings(): Settings {
  const { values } = parseArgs({
    args: process.argv.slice(2),
    options: {
      json: { type: "boolean", default: false },
      rounds: { type: "string", default: "30" },
      mebibytes: { type: "string", default: "1024" },
      "pipe-rounds": { type: "string", default: "5" },
      "idle-seconds": { type: "string", default: "300" },
      "shared-seconds": { type: "string", default: "30" },
    },
  });
  return {
    isJson: values.json,
    rounds: readCount("--rounds", values.rounds),
    mebibytes: readCount("--mebibytes", values.mebibytes),
    pipeRounds: readCount("--pipe-rounds", values["pipe-rounds"]),
    idleSeconds: readCount("--idle-seconds", values["idle-seconds"]),
    sharedSeconds: readCount("--shared-seconds", values["shared-seconds"]),
  };
}

function readCount(flag: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text))
    throw new Error(`${flag}: found '${text}', expected 1 to 999999`);
  return Number(text);
}

async function main(): Promise<void> {
  const settings = readSettings();
  if (!existsSync(WATCHDOG)) throw new Error("dist/watchdog is missing (npm run build makes it)");
  const scratch = mkdtempSync(join(tmpdir(), "watchdog-bench-"));
  const bench: Bench = { scratch, env: environmentOf(scratch) };
  try {
    const contestants = await prepareContestants(scratch);
    const tables = {
      start: compareStarts(contestants, settings, bench),
      steps: measureSteps(settings.rounds, bench),
      lease: compareLeaseStarts(settings.rounds, bench),
      life: await measureLives(settings.idleSeconds, bench),
      dependencies: await measureDependencies(
        { ...settings, settlingSeconds: SETTLING_SECONDS },
        bench,
      ),
      jobs: measureJobSteps(bench),
      large: measureLargeJob(bench),
      memory: compareMemory(bench),
      copy: compareCopies(settings, bench),
    };
    print(tables, settings);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function environmentOf(scratch: string): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: scratch,
    WATCHDOG_STATE_DIR: join(scratch, "state"),
  };
}

/** Aim: `watchdog run --log off` at most twice the one that only spawns. */
function compareStarts(
  contestants: readonly Contestant[],
  settings: Settings,
  bench: Bench,
): Row[] {
  const times = timeInterleaved(contestants, settings.rounds, bench);
  const baseMs = medianOf(times.get(BASELINE) ?? []);
  return [...times].map(([name, values]) => ({
    start: name,
    "median ms": round(medianOf(values)),
    "fastest ms": round(Math.min(...values)),
    "slowest ms": round(Math.max(...values)),
    "to only spawns": round(medianOf(values) / baseMs),
  }));
}

/** Aim: at most 45 MiB. */
function compareMemory(bench: Bench): Row[] {
  const wrappers: readonly Contestant[] = [
    { name: "timeout 60", words: ["timeout", "60"] },
    { name: BASELINE, words: [join(bench.scratch, "only-spawns")] },
    { name: "watchdog run --log off", words: [WATCHDOG, "run", "--log", "off", "--"] },
    { name: "watchdog run --log on", words: [WATCHDOG, "run", "--log", "on", "--"] },
  ];
  return wrappers.map(({ name, words }) => ({
    memory: name,
    "peak MiB": round(readPeakMebibytes(words, bench)),
  }));
}

/**
 * Aims: with the log at least 0.95 times as fast as tee, without it 0.97 times as fast as no
 * wrapper.
 */
function compareCopies(settings: Settings, bench: Bench): Row[] {
  const big = join(bench.scratch, "big");
  const made = Bun.spawnSync(["sh", "-c", `head -c ${settings.mebibytes}M /dev/urandom >'${big}'`]);
  if (made.exitCode !== 0) throw new Error(`cannot write ${settings.mebibytes} MiB to ${big}`);
  const pipelines = [
    ["cat | cat", "cat big | cat >/dev/null"],
    ["watchdog --log off | cat", `'${WATCHDOG}' run --log off -- cat big | cat >/dev/null`],
    ["cat | tee | cat", "cat big | tee log | cat >/dev/null"],
    ["watchdog --log on | cat", `'${WATCHDOG}' run --log on -- cat big | cat >/dev/null`],
  ] as const;
  const contestants = pipelines.map(([name, script]) => ({ name, words: ["sh", "-c", script] }));
  const times = timeInterleaved(contestants, settings.pipeRounds, bench);
  const medianMs = (name: string): number => medianOf(times.get(name) ?? []);
  const speedOf = (name: string, than: string): number => round(medianMs(than) / medianMs(name));
  return pipelines.map(([name], index) => ({
    copy: name,
    "median ms": round(medianMs(name)),
    "MiB/s": Math.round((settings.mebibytes * 1000) / medianMs(name)),
    "speed to": index < 2 ? "cat | cat" : "cat | tee | cat",
    ratio: speedOf(name, index < 2 ? "cat | cat" : "cat | tee | cat"),
  }));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function print(tables: Readonly<Record<string, Row[]>>, settings: Settings): void {
  if (settings.isJson) {
    console.log(JSON.stringify({ ...settings, ...tables }, null, 2));
    return;
  }
  for (const rows of Object.values(tables)) console.log(Bun.inspect.table(rows));
}

try {
  await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
