/**
 * What a step of a job costs beside a bare spawn, what a job of 10,000 steps costs to be looked at,
 * and the memory of its run. Always holds: the time of an fsync is measured in the same place and
 * in the same minute as the job whose journal pays for it; a command that fails is an error.
 */
import { dlopen, ptr } from "bun:ffi";
import { closeSync, fdatasyncSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeMemoryDirectory } from "./lease-start.ts";
import { type Bench, medianOf, timeMs } from "./measure.ts";
import { WATCHDOG } from "./programs.ts";

export interface JobStepRow {
  readonly "job of 1,000 steps": string;
  readonly "ms a step": number;
  readonly "bare spawn ms": number;
  readonly "fsync ms": number;
  readonly "fsyncs a step": number;
  /** Of the step to the bare spawn; then of both without and with the fsyncs that it must pay. */
  readonly "to bare spawn": number;
  readonly "to spawn and fsyncs": number;
}

export interface LargeJobRow {
  readonly "job of 10,000 steps": string;
  readonly "median ms": number | string;
  /** Of the processor, user and system: what a loaded machine does not change much. */
  readonly "CPU ms": number | string;
  readonly "peak MiB": number;
}

type Effects = "none" | "unsafe";

const FEW = 1_000;
const MANY = 10_000;
/** The end of a step and the start of the next one share a commit where both are harmless. */
const FSYNCS = { none: 1, unsafe: 2 } as const;

/** Aim: at most twice a bare spawn, beside its fsyncs. */
export function measureJobSteps(bench: Bench): JobStepRow[] {
  const memory = makeMemoryDirectory();
  const rows: JobStepRow[] = [];
  try {
    if (memory !== undefined) rows.push(rowOf("on tmpfs, none", memory, "none", bench));
    rows.push(rowOf("on disk, none", bench.scratch, "none", bench));
    rows.push(rowOf("on disk, unsafe", bench.scratch, "unsafe", bench));
  } finally {
    if (memory !== undefined) rmSync(memory, { recursive: true, force: true });
  }
  return rows;
}

function rowOf(name: string, place: string, effects: Effects, bench: Bench): JobStepRow {
  const state = join(place, `job-state-${effects}`);
  const before = { fsyncMs: measureFsync(place), bareMs: measureBareSpawn() };
  const runMs = (steps: number): number => {
    const file = writeJob(bench, `steps-${steps}`, chainOf(steps, effects));
    return timeMs(jobWords("run", state, file), bench);
  };
  runMs(1);
  const startMs = medianOf([runMs(1), runMs(1), runMs(1)]);
  const stepMs = (runMs(FEW) - startMs) / (FEW - 1);
  const fsyncs = FSYNCS[effects];
  // Before and after: a machine that others load meanwhile loads both.
  const fsyncMs = medianOf([before.fsyncMs, measureFsync(place)]);
  const bareMs = medianOf([before.bareMs, measureBareSpawn()]);
  return {
    "job of 1,000 steps": name,
    "ms a step": round(stepMs),
    "bare spawn ms": round(bareMs),
    "fsync ms": round(fsyncMs),
    "fsyncs a step": fsyncs,
    "to bare spawn": round(stepMs / bareMs),
    "to spawn and fsyncs": round(stepMs / (bareMs + fsyncs * fsyncMs)),
  };
}

function chainOf(count: number, side_effects: Effects): Record<string, object> {
  const step = (at: number): object => {
    const needs = at === 0 ? {} : { needs: [`s${at - 1}`] };
    return { command: ["/bin/true"], side_effects, ...needs };
  };
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, step(at)]));
}

function writeJob(bench: Bench, name: string, steps: Record<string, object>): string {
  const file = join(bench.scratch, `${name}.json`);
  writeFileSync(file, JSON.stringify({ name, steps }));
  return file;
}

function jobWords(verb: string, state: string, file: string): string[] {
  const quiet = verb === "run" ? ["--log", "off"] : [];
  return [WATCHDOG, "job", verb, ...quiet, "--state-dir", state, file];
}

const PAGES = 8_192;
const TIMES = 200;

/** Of two pages behind the others, as a small commit appends them. */
function measureFsync(place: string): number {
  const path = join(place, "fsync");
  const fd = openSync(path, "w");
  const page = new Uint8Array(PAGES).fill(7);
  const times = Array.from({ length: TIMES }, () => {
    writeSync(fd, page);
    const startedAt = performance.now();
    fdatasyncSync(fd);
    return performance.now() - startedAt;
  });
  closeSync(fd);
  rmSync(path);
  return medianOf(times);
}

/** Mean of posix_spawn and wait4 of the same program, one after the other, in this process. */
function measureBareSpawn(): number {
  const { symbols: libc } = dlopen("libc.so.6", {
    posix_spawn: { args: ["ptr", "cstring", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    wait4: { args: ["i32", "ptr", "i32", "ptr"], returns: "i32" },
  });
  const path = Buffer.from("/bin/true\0");
  const [words, none] = [new BigUint64Array([BigInt(ptr(path)), 0n]), new BigUint64Array([0n])];
  const pid = new Int32Array(1);
  const status = new Int32Array(1);
  const startedAt = performance.now();
  for (let at = 0; at < FEW; at += 1) {
    const failed = libc.posix_spawn(pid, ptr(path), null, null, words, none);
    if (failed !== 0) throw new Error(`posix_spawn: ${failed}`);
    libc.wait4(pid[0] ?? 0, status, 0, null);
    if (status[0] !== 0) throw new Error(`/bin/true: status ${status[0]}`);
  }
  return (performance.now() - startedAt) / FEW;
}

/** Aims: plan and status at most a second; memory does not grow without bound. */
export function measureLargeJob(bench: Bench): LargeJobRow[] {
  const memory = makeMemoryDirectory();
  const state = join(memory ?? bench.scratch, "large-job-state");
  mkdirSync(state, { mode: 0o700 });
  try {
    const steps = chainOf(MANY - 1, "none");
    const peaks = join(bench.scratch, "peaks");
    const last = { command: READ_PEAKS, side_effects: "none", needs: [`s${MANY - 2}`] };
    const json = writeJob(bench, "large", { ...steps, last: { ...last, env: { PEAKS: peaks } } });
    const yaml = writeYaml(json);
    const runMs = timeMs(jobWords("run", state, json), bench);
    const [runner = NaN, watchdog = NaN] = readFileSync(peaks, "utf8").trim().split("\n").map(mib);
    return [
      largeRow("run: runner", [Math.round(runMs), "", runner]),
      largeRow("run: watchdog", ["", "", watchdog]),
      ...lookAt("plan", "JSON", jobWords("plan", state, json), bench),
      ...lookAt("plan", "YAML", jobWords("plan", state, yaml), bench),
      ...lookAt("status", "JSON", jobWords("status", state, json), bench),
      ...lookAt("status", "YAML", jobWords("status", state, yaml), bench),
    ];
  } finally {
    rmSync(memory ?? state, { recursive: true, force: true });
  }
}

/** Of the runner, whose child it is, and of the watchdog around that. */
const READ_PEAKS = `
  hwm() { sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' "/proc/$1/status"; }
  { hwm "$PPID"; hwm "$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$PPID/status")"; } >"$PEAKS"`;

function mib(kibibytes: string): number {
  return round(Number(kibibytes) / 1024);
}

/** One step a line, as people write it. */
function writeYaml(json: string): string {
  const { name, steps } = JSON.parse(readFileSync(json, "utf8"));
  const lines = Object.entries(steps).map(([step, value]) => `  ${step}: ${JSON.stringify(value)}`);
  const file = json.replace(/json$/, "yaml");
  writeFileSync(file, `name: ${name}\nsteps:\n${lines.join("\n")}\n`);
  return file;
}

function largeRow(
  name: string,
  [ms, cpuMs, peak]: readonly [number | string, number | string, number],
): LargeJobRow {
  return { "job of 10,000 steps": name, "median ms": ms, "CPU ms": cpuMs, "peak MiB": peak };
}

const LOOKS = 3;

function lookAt(verb: string, format: string, words: string[], bench: Bench): LargeJobRow[] {
  const looks = Array.from({ length: LOOKS }, () => {
    const startedAt = performance.now();
    const { exitCode, resourceUsage, stderr } = Bun.spawnSync(words, {
      cwd: bench.scratch,
      env: bench.env,
      stdout: "ignore",
      stderr: "pipe",
    });
    if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr.toString()}`);
    const cpuMs = Number(resourceUsage.cpuTime.total) / 1000;
    return { ms: performance.now() - startedAt, cpuMs, mib: resourceUsage.maxRSS / 2 ** 20 };
  });
  const median = (pick: (look: (typeof looks)[number]) => number): number =>
    Math.round(medianOf(looks.map(pick)));
  const peak = Math.max(...looks.map((look) => look.mib));
  const row = [median(({ ms }) => ms), median(({ cpuMs }) => cpuMs), round(peak)] as const;
  return [largeRow(`${verb} of ${format}`, row)];
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
