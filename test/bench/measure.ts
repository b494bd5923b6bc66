/**
 * Measures: wall time of a start, peak memory, and the time that a pipeline takes. Clock:
 * performance.now, within one process. Always holds: a command that fails is an error and no
 * number.
 */
import type { Contestant } from "./programs.ts";

export interface Bench {
  readonly scratch: string;
  readonly env: Record<string, string>;
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Milliseconds from before the spawn until it is reaped. */
export function timeMs(words: readonly string[], bench: Bench): number {
  const startedAt = performance.now();
  const done = Bun.spawnSync([...words], {
    cwd: bench.scratch,
    env: bench.env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const spanMs = performance.now() - startedAt;
  if (done.exitCode !== 0) {
    throw new Error(`${words.join(" ")}: status ${done.exitCode}: ${done.stderr.toString()}`);
  }
  return spanMs;
}

/**
 * Times of all contestants by name. Interleaved: a machine that becomes slower for a while is
 * slower for each of them. The first round warms the page cache and does not count.
 */
export function timeInterleaved(
  contestants: readonly Contestant[],
  rounds: number,
  bench: Bench,
): Map<string, number[]> {
  const times = new Map(contestants.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, words } of contestants) {
      const spanMs = timeMs(words, bench);
      if (round > 0) times.get(name)?.push(spanMs);
    }
  }
  return times;
}

/**
 * Peak memory of a wrapper in MiB, after its command has copied some output: the command reads
 * VmHWM of its parent. (`ru_maxrss` would not do: over an exec it keeps the peak of the process
 * that spawned, proc(5) and getrusage(2).)
 */
export function readPeakMebibytes(wrapper: readonly string[], bench: Bench): number {
  const script = 'head -c 67108864 /dev/zero; grep VmHWM "/proc/$PPID/status" >&2';
  const done = Bun.spawnSync([...wrapper, "sh", "-c", script], {
    cwd: bench.scratch,
    env: bench.env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const found = /VmHWM:\s*(\d+) kB/.exec(done.stderr.toString());
  if (found === null) throw new Error(`${wrapper.join(" ")}: found no VmHWM`);
  return Number(found[1]) / 1024;
}
