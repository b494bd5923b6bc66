/**
 * Every fault point of the product, with every kind of fault: what the run does then, against a
 * table written by hand. A row counts only with the marker that the fault itself has written and
 * fsynced, with the state that it saw.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FAULTS, openScene, readCommandLine, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { type FaultRun, runWithFault } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const SOURCES = join(import.meta.dir, "../../src");

/** A run that passes all points: output with a log, a limit, TERM ignored, KILL, a record. */
const ALL_POINTS = [
  "--log=on",
  "--log-max=4KiB",
  "--timeout=0.4",
  "--kill-after=0.2",
  "--",
  "sh",
  "-c",
  "trap '' TERM; head -c 9000 /dev/zero; sleep 94001; sleep 94001",
];
const QUIET = ["--quiet", "--log=off", "--", "sh", "-c", "echo kept; exit 3"];

interface Row {
  readonly point: string;
  readonly args: readonly string[];
  /** Keys that the state at the point must have. */
  readonly state: readonly string[];
  /** Status when the point throws; for a point of the disk, when it says EIO or ENOSPC. */
  readonly status: number;
  /** What stderr must say then. */
  readonly says: RegExp;
}

const OWN_TROUBLE = /trouble of its own: fault injected at/;
const DISK = /EIO|ENOSPC/;

const ROWS: readonly Row[] = [
  { point: "spawn.before", args: ALL_POINTS, state: ["runId"], status: 125, says: /bug: fault/ },
  {
    point: "spawn.after",
    args: ALL_POINTS,
    state: ["runId", "pid"],
    status: 125,
    says: OWN_TROUBLE,
  },
  { point: "reap", args: ALL_POINTS, state: ["hasMain"], status: 124, says: OWN_TROUBLE },
  { point: "tree.ask", args: ALL_POINTS, state: ["signal", "why"], status: 124, says: OWN_TROUBLE },
  {
    point: "tree.signal",
    args: ALL_POINTS,
    state: ["pid", "signal"],
    status: 124,
    says: OWN_TROUBLE,
  },
  {
    point: "tree.kill",
    args: ALL_POINTS,
    state: ["pid", "signal"],
    status: 124,
    says: OWN_TROUBLE,
  },
  { point: "record.end", args: ALL_POINTS, state: ["outcome"], status: 124, says: OWN_TROUBLE },
  { point: "file.create", args: ALL_POINTS, state: ["path"], status: 124, says: DISK },
  { point: "file.fsync", args: ALL_POINTS, state: ["path"], status: 124, says: DISK },
  { point: "file.rename", args: ALL_POINTS, state: ["path"], status: 124, says: DISK },
  { point: "log.open", args: ALL_POINTS, state: [], status: 124, says: /missing in the log/ },
  { point: "log.write", args: ALL_POINTS, state: [], status: 124, says: /missing in the log/ },
  { point: "log.join", args: ALL_POINTS, state: [], status: 124, says: /ended by --timeout/ },
  { point: "copy.write", args: ALL_POINTS, state: [], status: 124, says: /could not be written/ },
  { point: "copy.chunk", args: ALL_POINTS, state: [], status: 124, says: /could not be written/ },
  { point: "spool.write", args: QUIET, state: [], status: 3, says: /held back for --quiet/ },
];

function markerOf(run: FaultRun, row: Row, act: string): void {
  expect(run.evidence.map(({ point, act: done }) => ({ point, act: done }))).toEqual([
    { point: row.point, act },
  ]);
  const [evidence] = run.evidence;
  expect(Object.keys(evidence?.state ?? {})).toEqual(expect.arrayContaining([...row.state]));
}

/** A process inside exec has no environment to be found by: gone is who is not found five times. */
async function endSurvivors(): Promise<void> {
  let unseen = 0;
  const look = (): boolean => {
    const pids = scene.findProcesses();
    for (const pid of pids) process.kill(pid, "SIGKILL");
    unseen = pids.length === 0 ? unseen + 1 : 0;
    return unseen >= 5;
  };
  await waitFor(look, "survivors to be gone", { stepMs: 30 });
}

const isOfFiles = (point: string): boolean => /^(file|log|copy|spool)\./.test(point);

for (const row of ROWS) {
  const acts = isOfFiles(row.point) ? ["eio", "enospc"] : ["throw"];
  for (const act of acts) {
    test(`${row.point}=${act} ends with ${row.status} and leaves no process`, async () => {
      const run = await runWithFault(scene, `${row.point}=${act}`, row.args);
      markerOf(run, row, act);
      expect(run.ended.status).toBe(row.status);
      expect(run.ended.stderr).toMatch(row.says);
      expect(scene.findProcesses()).toEqual([]);
    }, 30_000);
  }

  test(`${row.point}=kill leaves a record that still says running`, async () => {
    const run = await runWithFault(scene, `${row.point}=kill`, row.args);
    markerOf(run, row, "kill");
    expect(run.ended.signal).toBe("SIGKILL");
    expect(run.record?.["state"] ?? "not yet written").not.toBe("ended");
    await endSurvivors();
  }, 30_000);

  test(`${row.point}=delay changes nothing but the time`, async () => {
    const run = await runWithFault(scene, `${row.point}=delay:300`, row.args);
    markerOf(run, row, "delay:300");
    expect(run.ended.status).toBe(row.point === "spool.write" ? 3 : 124);
    expect(run.record?.["state"]).toBe("ended");
    expect(scene.findProcesses()).toEqual([]);
  }, 30_000);
}

for (const args of [ALL_POINTS, QUIET]) {
  test(`without a fault the run of ${args[0]} leaves no marker and no complaint`, async () => {
    const run = await runWithFault(scene, undefined, args);
    expect(run.evidence).toEqual([]);
    expect(run.ended.stderr).not.toMatch(/trouble of its own|bug|EIO|ENOSPC|missing in the log/);
    expect(run.record?.["degraded"]).toEqual([]);
  }, 30_000);
}

for (const point of ["spawn.before", "spawn.after"]) {
  test(`a TERM at ${point} is kept for the command, which it ends`, async () => {
    const args = ["--log=off", "--", "sleep", "94003"];
    const run = await runWithFault(scene, `${point}=term`, args);
    expect(run.evidence).toMatchObject([{ point, act: "term" }]);
    expect(run.ended.signal).toBe("SIGTERM");
    expect(run.record).toMatchObject({ state: "ended", outcome: "stopped", signal: "TERM" });
    expect(scene.findProcesses()).toEqual([]);
  }, 30_000);
}

test("who was there before the run outlives its last resort", async () => {
  const run = `${FAULTS} run --log off -- sleep 94005`;
  const ended = await scene.startProgram(
    ["sh", "-c", `sleep 94004 >/dev/null 2>&1 & exec ${run}`],
    { env: { WATCHDOG_FAULT: "spawn.after=throw", WATCHDOG_FAULT_DIR: scene.path("inborn") } },
  ).ended;
  expect([ended.status, existsSync(scene.path("inborn"))]).toEqual([125, true]);
  expect(scene.findProcesses().map(readCommandLine)).toEqual(["sleep 94004"]);
  await endSurvivors();
}, 30_000);

test("a fault at a point that is not passed leaves no marker", async () => {
  const run = await runWithFault(scene, "spool.write=eio", ALL_POINTS);
  expect(run.evidence).toEqual([]);
}, 30_000);

test("the release build has no fault: the same variables change nothing", async () => {
  const ended = await scene.run(["--log=off", "--", "sh", "-c", "exit 7"], {
    binary: RELEASE,
    env: { WATCHDOG_FAULT: "spawn.before=throw", WATCHDOG_FAULT_DIR: scene.path("none") },
  });
  expect(ended.status).toBe(7);
  expect(readdirSync(scene.directory)).not.toContain("none");
});

test("every point of the sources has its row", () => {
  const swept = new Set(ROWS.map((row) => row.point));
  expect([...listPoints()].sort()).toEqual([...swept].sort());
  expect(swept.size).toBeGreaterThanOrEqual(16);
});

function listPoints(): Set<string> {
  const points = new Set<string>();
  for (const file of readdirSync(SOURCES, { recursive: true })) {
    if (!String(file).endsWith(".ts")) continue;
    const text = readFileSync(join(SOURCES, String(file)), "utf8");
    for (const match of text.matchAll(/(?:faultPoint|injectedError)\("([\w.-]+)"/g)) {
      points.add(match[1] ?? "");
    }
  }
  return points;
}

afterAll(endSurvivors);
