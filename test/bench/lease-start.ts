/**
 * What a lease costs at the start: with and without one, the state on memory and on a disk, and the
 * fsyncs that the disk pays, counted by strace. Always holds: contestants are interleaved.
 */
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { type Bench, medianOf, timeInterleaved } from "./measure.ts";
import { type Contestant, WATCHDOG } from "./programs.ts";

const TMPFS_MAGIC = 0x01021994;
const MEMORY = "/dev/shm";
const WITHOUT = "without a lease";

export interface LeaseStartRow {
  readonly "start with state": string;
  readonly "median ms": number;
  readonly "fastest ms": number;
  /** Of the same state without a lease. */
  readonly ratio: number;
  readonly fsyncs: number | string;
}

/** Aim: on memory at most 1.5 times the start without a lease. */
export function compareLeaseStarts(rounds: number, bench: Bench): LeaseStartRow[] {
  const memory = makeMemoryDirectory();
  try {
    const places: [string, string][] = [["on disk", join(bench.scratch, "lease-state")]];
    if (memory !== undefined) places.unshift(["on tmpfs", join(memory, "state")]);
    const contestants = places.flatMap(([place, path]) => contestantsFor(place, path));
    const times = timeInterleaved(contestants, rounds, bench);
    return contestants.map(({ name, words }) => rowOf(name, words, times, bench));
  } finally {
    if (memory !== undefined) rmSync(memory, { recursive: true, force: true });
  }
}

/** Undefined: the machine has none. */
export function makeMemoryDirectory(): string | undefined {
  if (!existsSync(MEMORY) || statfsSync(MEMORY).type !== TMPFS_MAGIC) return undefined;
  return mkdtempSync(join(MEMORY, "watchdog-bench-"));
}

function contestantsFor(place: string, path: string): Contestant[] {
  const words = (more: readonly string[]): string[] => [
    WATCHDOG,
    "run",
    "--log",
    "off",
    "--state-dir",
    path,
    ...more,
    "--",
    "/bin/true",
  ];
  return [
    { name: `${place}, ${WITHOUT}`, words: words(["--no-lease"]) },
    { name: `${place}, with lease and journal`, words: words([]) },
  ];
}

function rowOf(
  name: string,
  words: readonly string[],
  times: ReadonlyMap<string, number[]>,
  bench: Bench,
): LeaseStartRow {
  const base = [...times.keys()].find(
    (one) => one.startsWith(name.split(",", 1)[0] ?? "") && one.endsWith(WITHOUT),
  );
  const medianMs = medianOf(times.get(name) ?? []);
  return {
    "start with state": name,
    "median ms": round(medianMs),
    "fastest ms": round(Math.min(...(times.get(name) ?? []))),
    ratio: round(medianMs / medianOf(times.get(base ?? name) ?? [])),
    fsyncs: countFsyncs(words, bench),
  };
}

/** All threads and children; `-` where there is no strace. */
function countFsyncs(words: readonly string[], bench: Bench): number | string {
  if (Bun.which("strace") === null) return "-";
  const out = join(bench.scratch, "strace");
  const trace = ["strace", "-f", "-qq", "-o", out, "-e", "trace=fsync,fdatasync"];
  const done = Bun.spawnSync([...trace, ...words], { env: bench.env, stdin: "ignore" });
  if (done.exitCode !== 0) throw new Error(`strace: status ${done.exitCode}`);
  const counted = Bun.spawnSync(["grep", "-cE", "(fsync|fdatasync)\\(", out]);
  return Number(counted.stdout.toString());
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
