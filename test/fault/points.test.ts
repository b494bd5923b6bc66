/**
 * The fault points of a run itself, with every kind of fault: what the run does then, against a
 * table written by hand. A row counts only with the marker that the fault itself has written and
 * fsynced, with the state that it saw. Points of leases, guard and journal are swept by the other
 * files of this suite and by contract tests; that none is forgotten is checked here for all.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inState } from "../support/own-state.ts";
import {
  FAULTS,
  findGuards,
  openScene,
  readCommandLine,
  RELEASE,
  type Scene,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { type FaultRun, runWithFault } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const SOURCES = join(import.meta.dir, "../../src");
/** Where points are swept. */
const SWEEPS = ["fault", "contract"].map((suite) => join(import.meta.dir, "..", suite));

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
/** Longer than a second: beats as quick as these have the main loop counted once in each. */
const COUNTED = [
  ["--log=off", "--heartbeat-interval=500ms", "--timeout=1.5", "--kill-after=0.2"],
  ["--", "sleep", "94006"],
].flat();
/** Without a lease the record of the run is the first file that is written. */
const FIRST_FILE = ["--no-lease", ...ALL_POINTS];
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
  { point: "file.create", args: FIRST_FILE, state: ["path"], status: 124, says: DISK },
  { point: "file.fsync", args: FIRST_FILE, state: ["path"], status: 124, says: DISK },
  { point: "file.rename", args: FIRST_FILE, state: ["path"], status: 124, says: DISK },
  { point: "log.open", args: ALL_POINTS, state: [], status: 124, says: /missing in the log/ },
  { point: "log.write", args: ALL_POINTS, state: [], status: 124, says: /missing in the log/ },
  { point: "log.join", args: ALL_POINTS, state: [], status: 124, says: /ended by --timeout/ },
  { point: "copy.write", args: ALL_POINTS, state: [], status: 124, says: /could not be written/ },
  { point: "copy.chunk", args: ALL_POINTS, state: [], status: 124, says: /could not be written/ },
  { point: "main.count", args: COUNTED, state: ["sequence"], status: 124, says: OWN_TROUBLE },
  { point: "spool.write", args: QUIET, state: [], status: 3, says: /held back for --quiet/ },
];

/** The one-time write of FORMAT into a new state directory is none of the files that are meant. */
async function writeFormat(state: Scene): Promise<void> {
  expect((await state.run(["--log=off", "--", "true"], { binary: FAULTS })).status).toBe(0);
}

beforeAll(() => writeFormat(scene));

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

/** Nothing of the run is left, and nobody but its guard has ended it. */
async function waitForBurial(): Promise<void> {
  const seesNobody = (): boolean =>
    scene.findProcesses().length + findGuards(scene.stateDirectory).length === 0;
  let unseen = 0;
  const look = (): boolean => {
    unseen = seesNobody() ? unseen + 1 : 0;
    return unseen >= 5;
  };
  await waitFor(look, "the guard to have buried the run", { stepMs: 30 });
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
    }, 180_000);
  }

  test(`${row.point}=kill leaves the rest to the guard: no process, no record of one`, async () => {
    const run = await runWithFault(scene, `${row.point}=kill`, row.args);
    markerOf(run, row, "kill");
    expect(run.ended.signal).toBe("SIGKILL");
    await waitForBurial();
    const record = existsSync(run.recordPath) ? readFileSync(run.recordPath, "utf8") : undefined;
    // Killed before it had a record, it left none, and the guard makes none up.
    if (row.point.startsWith("file.")) return expect(record).toBeUndefined();
    expect(JSON.parse(record ?? "{}")).toMatchObject({
      state: "ended",
      outcome: "abandoned",
      because: "watchdog-killed",
      exit_status: null,
      guard: true,
    });
  }, 180_000);

  test(`${row.point}=delay changes nothing but the time`, async () => {
    const run = await runWithFault(scene, `${row.point}=delay:300`, row.args);
    markerOf(run, row, "delay:300");
    expect(run.ended.status).toBe(row.point === "spool.write" ? 3 : 124);
    expect(run.record?.["state"]).toBe("ended");
    expect(scene.findProcesses()).toEqual([]);
  }, 180_000);
}

describe.each(["file.create", "file.fsync", "file.rename"])(
  "%s at the record of a lease",
  (point) => {
    // Of its own: a run that failed in another test is still being buried by its guard for a while.
    const state = inState(scene, `${point}.state`);
    beforeAll(() => writeFormat(state));

    const runNamed = async (name: string, fault: string | undefined) => {
      const mark = scene.path(`${name}-${fault}.ran`);
      const command = ["--", "sh", "-c", 'echo ran >"$0"; exit 3', mark];
      const run = await runWithFault(state, fault, ["--log=off", `--name=${name}`, ...command]);
      return { ...run, hasRun: existsSync(mark) };
    };

    const expectRefused = ({ ended, hasRun, evidence }: Awaited<ReturnType<typeof runNamed>>) => {
      expect(evidence.map((one) => one.point)).toEqual([point]);
      expect(String(evidence[0]?.state["path"])).toMatch(/\/\.?lease\.json/);
      expect([ended.status, hasRun]).toEqual([125, false]);
      expect(ended.stderr).toMatch(/^watchdog: error: .*(EIO|ENOSPC).*\nwatchdog: hint: .*\n$/);
      expect([scene.findProcesses(), findGuards(state.stateDirectory)]).toEqual([[], []]);
    };

    test("that says EIO is 125 and runs nothing, and the next run has the key", async () => {
      for (const name of [`${point}.eio`, `${point}.eio`]) {
        expectRefused(await runNamed(name, `${point}=eio`));
        expect(await runNamed(name, undefined)).toMatchObject({ hasRun: true, evidence: [] });
      }
    });

    test("that says ENOSPC is 125 at first; a record that exists is written over", async () => {
      const name = `${point}.enospc`;
      expectRefused(await runNamed(name, `${point}=enospc`));
      expect(await runNamed(name, undefined)).toMatchObject({ hasRun: true, evidence: [] });
      const { ended, hasRun, evidence } = await runNamed(name, `${point}=enospc`);
      expect(evidence).toMatchObject([{ point, act: "enospc" }]);
      expect([ended.status, ended.stderr, hasRun]).toEqual([3, "", true]);
    });
  },
);

for (const args of [ALL_POINTS, QUIET]) {
  test(`without a fault the run of ${args[0]} leaves no marker and no complaint`, async () => {
    const run = await runWithFault(scene, undefined, args);
    expect(run.evidence).toEqual([]);
    expect(run.ended.stderr).not.toMatch(/trouble of its own|bug|EIO|ENOSPC|missing in the log/);
    expect(run.record?.["degraded"]).toEqual([]);
  }, 180_000);
}

for (const point of ["spawn.before", "spawn.after"]) {
  test(`a TERM at ${point} is kept for the command, which it ends`, async () => {
    const args = ["--log=off", "--", "sleep", "94003"];
    const run = await runWithFault(scene, `${point}=term`, args);
    expect(run.evidence).toMatchObject([{ point, act: "term" }]);
    expect(run.ended.signal).toBe("SIGTERM");
    expect(run.record).toMatchObject({ state: "ended", outcome: "stopped", signal: "TERM" });
    expect(scene.findProcesses()).toEqual([]);
  }, 180_000);
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
}, 180_000);

test("a fault at a point that is not passed leaves no marker", async () => {
  const run = await runWithFault(scene, "spool.write=eio", ALL_POINTS);
  expect(run.evidence).toEqual([]);
}, 180_000);

test("the release build has no fault: the same variables change nothing", async () => {
  const ended = await scene.run(["--log=off", "--", "sh", "-c", "exit 7"], {
    binary: RELEASE,
    env: { WATCHDOG_FAULT: "spawn.before=throw", WATCHDOG_FAULT_DIR: scene.path("none") },
  });
  expect(ended.status).toBe(7);
  expect(readdirSync(scene.directory)).not.toContain("none");
});

test("every point of the sources has its row, here or in another sweep", () => {
  const points = listPoints();
  const rows = ROWS.map((row) => row.point);
  expect(rows.filter((point) => !points.has(point))).toEqual([]);
  const swept = listSwept(points);
  expect([...points].filter((point) => !swept.has(point)).sort()).toEqual([]);
  expect([new Set(rows).size, swept.size >= 43]).toEqual([rows.length, true]);
});

test("a point that no file sweeps would be seen", () => {
  expect(listSwept(new Set(["reap", ["no", "such"].join(".")]))).toEqual(new Set(["reap"]));
});

/** Those that a test names as a point: whole, in quotes, or before an act. */
function listSwept(points: ReadonlySet<string>): Set<string> {
  const texts = SWEEPS.flatMap((directory) =>
    readdirSync(directory)
      .filter((file) => file.endsWith(".test.ts"))
      .map((file) => readFileSync(join(directory, file), "utf8")),
  );
  const named = new Set(
    texts.flatMap((text) =>
      [...text.matchAll(/["`]([\w.-]+)(?=["`=#@])/g)].map((match) => match[1] ?? ""),
    ),
  );
  return new Set([...points].filter((point) => named.has(point)));
}

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
