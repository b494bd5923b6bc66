/**
 * What checks of the output cost: a long output of log lines, through a pipe to nobody, without and
 * with expressions; time, and peak memory of watchdog at its end.
 *
 *   bun test/bench/checked-output.ts [MEBIBYTES]
 *
 * Not a test. Always holds: everything that it writes is in one temporary directory, removed at the
 * end.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WATCHDOG } from "./programs.ts";

const LINE = "2026-11-30 12:00:00 INFO item 123456 processed ok in 12 ms by worker 7";
const CASES = [
  ["no copy", ["--log", "off"]],
  ["copy", ["--log", "off", "--expect-output"]],
  ["copy and log", ["--log", "on"]],
  ["one expression", ["--log", "off", "--fail-match", "^(ERROR|FATAL)"]],
  [
    "three, and the log",
    [
      ["--log", "on", "--fail-match", "^(ERROR|FATAL)"],
      ["--fail-match", "Traceback", "--expect-match", "^END$"],
    ].flat(),
  ],
  ["one that looks ahead", ["--log", "off", "--fail-match", "ERROR(?! 0)"]],
] as const;

function measure(name: string, options: readonly string[], mebibytes: number, scratch: string) {
  const peak = join(scratch, "peak");
  const lines = Math.ceil((mebibytes * 1_048_576) / (LINE.length + 1));
  const tellsPeak = `grep VmHWM /proc/$PPID/status >'${peak}'`;
  const script = `yes '${LINE}' | head -n ${lines}; echo END; ${tellsPeak}`;
  const state = ["--state-dir", join(scratch, "state")];
  const started = performance.now();
  const words = [WATCHDOG, "run", ...state, ...options, "--", "sh", "-c", script];
  const ended = Bun.spawnSync(words, {
    stdin: "ignore",
    stdout: Bun.file("/dev/null"),
    stderr: "pipe",
  });
  const seconds = (performance.now() - started) / 1_000;
  if (ended.exitCode !== 0) throw new Error(`${name}: ${ended.stderr.toString()}`);
  const found = /\d+/.exec(Bun.spawnSync(["cat", peak]).stdout.toString())?.[0];
  return {
    output: name,
    seconds: Number(seconds.toFixed(1)),
    "MiB/s": Math.round(mebibytes / seconds),
    "peak MiB": Math.round(Number(found) / 1_024),
  };
}

if (!existsSync(WATCHDOG)) throw new Error("dist/watchdog is missing (npm run build makes it)");
const mebibytes = Number(process.argv[2] ?? 1_024);
const scratch = mkdtempSync(join(tmpdir(), "watchdog-bench-"));
try {
  const rows = CASES.map(([name, options]) => measure(name, options, mebibytes, scratch));
  console.log(`${mebibytes} MiB of output`);
  console.table(rows);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
