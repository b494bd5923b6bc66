/**
 * `--result-file`: running, then ended; whole at every moment; and a file that cannot be written
 * never stops the run. What may lie in its place is `result-file-places.test.ts`.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { holdJob, newcomer, RELEASED } from "../support/lease-seen.ts";
import { runShell } from "../support/outside.ts";
import { findGuardOf, isDead } from "../support/processes.ts";
import { openScene, readCommandLine, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const D = scene.directory;

type Parsed = ReturnType<typeof scene.readRecord>;

const KEYS = (
  "format run_id run_path job state outcome because exit_status status_of exit_code signal " +
  "command cwd pid child_pid started_at ended_at duration_ms suspended_ms paused_ms leases " +
  "held_by guard limits dependencies signals leftovers kept left_alone unsignalable items steps " +
  "output log checks artifacts suspicions degraded dropped_lines watchdog"
).split(" ");
const PARTS: Readonly<Record<string, readonly string[]>> = {
  limits: ["timeout_ms", "idle_timeout_ms", "not_after"],
  output: ["stdout_bytes", "stderr_bytes", "last_output_at", "is_copied", "write_error"],
  watchdog: ["version", "commit"],
};

function expectKeys(record: Parsed): void {
  expect(Object.keys(record)).toEqual(KEYS);
  for (const [key, parts] of Object.entries(PARTS))
    expect(Object.keys(record[key])).toEqual([...parts]);
}

/** The first record is there before the command is: it has no pid yet. */
function withChild(record: Parsed): Parsed | undefined {
  return record.child_pid === null ? undefined : record;
}

test("while the command runs the record says so, and at the end how it went", async () => {
  const gate = scene.path("gate");
  const args = [
    ...scene.recordTo("live"),
    "--timeout",
    "1h",
    "--not-after",
    "06:00",
    "--log",
    "on",
    "--name",
    "n",
  ];
  const started = scene.start([
    ...args,
    "--",
    "sh",
    "-c",
    'until [ -e "$0" ]; do sleep 0.02; done; echo out; exit 5',
    gate,
  ]);
  const running = await waitFor(
    () => existsSync(scene.path("live.json")) && withChild(scene.readRecord("live")),
    "a record that names the command's pid",
    { limitMs: 10_000 },
  );
  expectKeys(running);
  expect(readCommandLine(running.child_pid)).toStartWith("sh -c until ");
  expect(running).toMatchObject({
    format: 1,
    run_path: running.run_id,
    job: "n",
    state: "running",
    leases: [{ kind: "job", name: "n", generation: 1 }],
    held_by: null,
    guard: true,
    outcome: null,
    because: null,
    exit_status: null,
    status_of: null,
    exit_code: null,
    signal: null,
    ended_at: null,
    duration_ms: null,
    pid: started.pid,
    cwd: process.cwd(),
    log: null,
    degraded: [],
    dropped_lines: 0,
    limits: {
      timeout_ms: 36e5,
      idle_timeout_ms: null,
      not_after: "06:00:00",
    },
    command: ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done; echo out; exit 5', gate],
  });
  await Bun.write(gate, "go\n");
  await started.ended;
  const ended = scene.readRecord("live");
  expectKeys(ended);
  expect(ended).toMatchObject({
    run_id: running.run_id,
    started_at: running.started_at,
    pid: started.pid,
    state: "ended",
    outcome: "failed",
    because: "exited",
    exit_status: 5,
    status_of: "command",
    exit_code: 5,
    signal: null,
    suspended_ms: 0,
    signals: [],
    leftovers: [],
    kept: [],
    output: {
      stdout_bytes: 4,
      stderr_bytes: 0,
      is_copied: true,
      write_error: null,
    },
    log: {
      kept_bytes: 4,
      omitted_bytes: 0,
      dropped_bytes: 0,
      because: null,
    },
  });
  expect(ended.child_pid).toBe(running.child_pid);
  expect(Date.parse(ended.ended_at)).toBeGreaterThanOrEqual(Date.parse(ended.started_at));
  expect(ended.duration_ms).toBeGreaterThanOrEqual(0);
  expect(ended).not.toHaveProperty("command_bytes");
}, 180_000);

test("a reader in a loop sees a whole record at every moment", async () => {
  const path = scene.path("looped.json");
  const script = `i=0; while [ $i -lt 60 ]; do "$W" run --log off --result-file "$P" -- true
    i=$((i+1)); done`;
  const writing = runShell(scene, script, { env: { P: path } });
  const progress = { isOver: false };
  void writing.then(() => (progress.isOver = true));
  const states = new Set<string>();
  let reads = 0;
  while (!progress.isOver) {
    await Bun.sleep(0);
    if (!existsSync(path)) continue;
    const text = readFileSync(path, "utf8");
    if (!text.endsWith("}\n")) throw new Error(`found a part of a record: ${text}`);
    states.add(JSON.parse(text).state);
    reads += 1;
  }
  expect(reads).toBeGreaterThan(100);
  expect([...states].sort()).toEqual(["ended", "running"]);
  expect(readdirSync(D).filter((name) => name.includes(".tmp"))).toEqual([]);
}, 180_000);

test("a file that cannot be written is told once: the job runs and its status stands", async () => {
  symlinkSync(scene.path("no-such-directory", "x.json"), scene.path("dangling.json"));
  const script = ["--log", "off", "--", "sh", "-c", "echo ran; exit 4"];
  for (const [path, reason] of [
    [scene.path("no-such-directory", "result.json"), "ENOENT"],
    [scene.path("dangling.json"), "ENOENT"],
    [D, "EISDIR"],
    ["/proc/self/status/x", "ENOTDIR"],
    ["/proc/result.json", "ENOENT"],
  ] as const) {
    const ended = await scene.run(["--result-file", path, ...script]);
    expect([path, ended.code, ended.stdout.toString()]).toEqual([path, 4, "ran\n"]);
    const [line = "", ...more] = ended.stderr.split("\n");
    expect([path, more]).toEqual([path, [""]]);
    expect(line).toStartWith(`watchdog: result file ${path} could not be written: `);
    expect(line).toContain(reason);
  }
  expect(readdirSync(D).filter((name) => name.includes(".tmp"))).toEqual([]);
});

test("control characters of its path are not printed raw", async () => {
  const path = scene.path("no\x1b[31m\nsuch", "x.json");
  const ended = await scene.run(["--result-file", path, "--log", "off", "--", "true"]);
  expect(ended.code).toBe(0);
  expect(ended.stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  for (const line of ended.stderr.trimEnd().split("\n")) expect(line).toStartWith("watchdog: ");
});

test("a relative path is meant from the working directory of the start", async () => {
  const directory = scene.path("relative");
  mkdirSync(directory);
  const args = ["--result-file", "r.json", "--log", "off", "--", "sh", "-c", "cd /; true"];
  await scene.run(args, { cwd: directory });
  expect(readdirSync(directory)).toEqual(["r.json"]);
});

test("a relative path is right also where the working directory's name is not UTF-8", async () => {
  const script = `mkdir -p "$D/odd" && cd "$D/odd" && mkdir "$N" && cd "$N" || exit 99
    "$W" run --log off --result-file r.json -- sh -c 'exit 4'; echo "$?"
    ls -A; ls "$D/odd" | wc -l`;
  const ended = await runShell(scene, `N=$(printf 'n\\377'); ${script}`, { env: { D } });
  expect([ended.stdout.toString(), ended.stderr]).toEqual(["4\nr.json\n1\n", ""]);
});

/** A run whose record says `running`, and which goes on until somebody ends it. */
async function startSleeper(name: string): Promise<Started> {
  const args = [...scene.recordTo(name), "--log", "off", "--name", name];
  // Ignored, because a command that lives on would hold them open.
  const started = scene.start([...args, "--", "sleep", "91071"], {
    stdout: "ignore",
    stderr: "ignore",
  });
  await waitFor(
    () => existsSync(scene.path(`${name}.json`)) && scene.readRecord(name)["child_pid"] !== null,
    "the command",
  );
  expect(scene.readRecord(name)).toMatchObject({ state: "running", outcome: null });
  return started;
}

test("a refused run leaves the holder's alone, and writes its own where none is", async () => {
  const { run, release } = await holdJob(scene, "held", scene.recordTo("held"));
  const before = readFileSync(scene.path("held.json"), "utf8");
  expect((await newcomer(scene, "held", scene.recordTo("held"))).status).toBe(75);
  expect(readFileSync(scene.path("held.json"), "utf8")).toBe(before);
  expect((await newcomer(scene, "held", scene.recordTo("own"))).status).toBe(75);
  expect(scene.readRecord("own")).toMatchObject({ state: "ended", outcome: "locked" });
  release();
  await run.ended;
  expect(scene.readRecord("held")).toMatchObject({ state: "ended", exit_status: RELEASED });
});

test("when watchdog was killed, its guard makes `running` to `ended` and `abandoned`", async () => {
  const started = await startSleeper("killed");
  const before = scene.readRecord("killed");
  started.kill("SIGKILL");
  await started.ended;
  await waitFor(() => scene.readRecord("killed")["state"] === "ended", "the guard's record");
  expect(scene.readRecord("killed")).toMatchObject({
    run_id: before["run_id"],
    command: before["command"],
    outcome: "abandoned",
    exit_code: null,
    exit_status: null,
  });
  expect(scene.findProcesses()).toEqual([]);
}, 180_000);

test("it stays `running` when the guard was killed too, and the next run replaces it", async () => {
  const started = await startSleeper("both-killed");
  const runId = scene.readRecord("both-killed")["run_id"];
  const guard = await waitFor(() => findGuardOf(started.pid), "the guard");
  // Stopped first: it must not bury, and watchdog would start another one in its place.
  process.kill(guard, "SIGSTOP");
  started.kill("SIGKILL");
  process.kill(guard, "SIGKILL");
  await started.ended;
  await waitFor(() => isDead(guard), "the end of the guard");
  expect(scene.readRecord("both-killed")).toMatchObject({ state: "running", run_id: runId });
  expect(scene.findProcesses().length).toBe(1);
  const next = [...scene.recordTo("both-killed"), "--name", "both-killed", "--log", "off"];
  const ended = await scene.run([...next, "--", "true"]);
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining(String(runId))]);
  expect(scene.readRecord("both-killed")).toMatchObject({ state: "ended", outcome: "ok" });
  expect(scene.readRecord("both-killed")["run_id"]).not.toBe(runId);
  expect(scene.findProcesses()).toEqual([]);
}, 180_000);

rootTest(
  "a full disk is a warning: the old file stays, and nothing remains beside it",
  async () => {
    const disk = scene.path("disk");
    mkdirSync(disk);
    await scene.startProgram(["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk]).ended;
    try {
      await Bun.write(`${disk}/r.json`, "old");
      await runShell(scene, 'head -c 100000 /dev/zero >"$D/fill" 2>/dev/null; true', {
        env: { D: disk },
      });
      const args = ["--result-file", `${disk}/r.json`, "--log", "off", "--", "sh", "-c", "exit 6"];
      const ended = await scene.run(args);
      expect(ended.code).toBe(6);
      expect(ended.stderr).toContain("ENOSPC");
      expect(readFileSync(`${disk}/r.json`, "utf8")).toBe("old");
      expect(readdirSync(disk).sort()).toEqual(["fill", "r.json"]);
    } finally {
      await scene.startProgram(["umount", disk]).ended;
    }
  },
);
