/**
 * Where the milliseconds of a start go: the fault build writes the instant of each step
 * (CLOCK_MONOTONIC), the benchmark those before and after. The release build has the same code
 * without the marks.
 */
import { dlopen } from "bun:ffi";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Bench, medianOf } from "./measure.ts";
import { FAULT_BINARY } from "./programs.ts";

export interface StepRow {
  readonly step: string;
  readonly "median ms": number;
}

const CLOCK_MONOTONIC = 1;
const { symbols } = dlopen("libc.so.6", {
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
});

function monotonicMs(): number {
  const time = new BigInt64Array(2);
  symbols.clock_gettime(CLOCK_MONOTONIC, time);
  return Number(time[0] ?? 0n) * 1000 + Number(time[1] ?? 0n) / 1e6;
}

/** Milliseconds from one step to the next, medians over the rounds. */
export function measureSteps(rounds: number, bench: Bench): StepRow[] {
  if (!existsSync(FAULT_BINARY)) throw new Error("dist/watchdog-faults is missing");
  const spans = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [step, spanMs] of measureOnce(bench)) {
      spans.set(step, [...(spans.get(step) ?? []), spanMs]);
    }
  }
  return [...spans].map(([step, values]) => ({
    step,
    "median ms": Math.round(medianOf(values) * 100) / 100,
  }));
}

function measureOnce(bench: Bench): [string, number][] {
  const trace = join(bench.scratch, "trace");
  rmSync(trace, { force: true });
  const startedAt = monotonicMs();
  const done = Bun.spawnSync([FAULT_BINARY, "run", "--log", "off", "--", "/bin/true"], {
    env: { ...bench.env, WATCHDOG_FAULT_TRACE: trace },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const endedAt = monotonicMs();
  if (done.exitCode !== 0) throw new Error(`status ${done.exitCode}: ${done.stderr.toString()}`);
  const marks: { step: string; at: number }[] = JSON.parse(readFileSync(trace, "utf8"));
  const all = [...marks, { step: "process gone", at: endedAt }];
  return all.map(({ step, at }, index) => [step, at - (all[index - 1]?.at ?? startedAt)]);
}
