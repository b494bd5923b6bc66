/**
 * Readers of the output that go away, stand still or never come, and processes that hold it open:
 * none of them holds watchdog up, and the command meets what it would meet without watchdog.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { PYTHON, runShell } from "../support/outside.ts";
import { FIXTURES, openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const MODES = ["on", "auto", "off"];
const D = scene.directory;

test("A-30: `| head -1` gives the command SIGPIPE, and watchdog dies of it too", async () => {
  for (const MODE of MODES) {
    const script = `"$W" run --log $MODE --result-file "$D/head.json" -- yes 2>"$D/errors" | head -1
      echo "\${PIPESTATUS[0]}"; cat "$D/errors"`;
    const env = { W: RELEASE, D, MODE };
    const ended = await scene.startProgram(["bash", "-c", script], { env }).ended;
    expect([MODE, ended.stdout.toString()]).toEqual([MODE, "y\n141\n"]);
    expect(scene.readRecord("head")).toMatchObject({ outcome: "signaled", signal: "PIPE" });
  }
}, 180_000);

test("A-30: a slow command dies of SIGPIPE soon after its reader has gone", async () => {
  const script = `mkfifo "$D/gate-$MODE"
    "$W" run --log $MODE -- sh -c 'echo one; read -r line <"$0"
      while echo two; do echo x >>"$1"; sleep 0.01; done' "$D/gate-$MODE" "$D/count-$MODE" |
      { head -1; exec 0<&-; echo open >"$D/gate-$MODE"; }
    echo "\${PIPESTATUS[0]}"; cat "$D/count-$MODE" 2>/dev/null | wc -l`;
  for (const MODE of MODES) {
    const env = { W: RELEASE, D, MODE };
    const ended = await scene.startProgram(["bash", "-c", script], { env }).ended;
    const [one, status, writes] = ended.stdout.toString().split("\n");
    expect([MODE, one, status]).toEqual([MODE, "one", "141"]);
    // Without a copy the first write meets it; the copy needs a moment to see that the reader is
    // gone, and a core for that.
    expect(Number(writes)).toBeLessThan(MODE === "off" ? 1 : 1_000);
  }
}, 180_000);

test("A-29: `yes | head -1` inside the command ends as outside it", async () => {
  for (const mode of MODES) {
    const script = "yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}";
    const ended = await scene.run(["--log", mode, "--timeout", "20", "--", "bash", "-c", script]);
    expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([0, "141\n", ""]);
  }
}, 180_000);

test("A-20: a grandchild that holds the pipe does not hold watchdog, and is ended", async () => {
  for (const mode of ["on", "auto"]) {
    const started = performance.now();
    const command = ["sh", "-c", "echo out; sleep 91020 & exit 3"];
    const ended = await scene.run(["--log", mode, "--kill-after", "2s", "--", ...command]);
    expect([ended.code, ended.stdout.toString()]).toEqual([3, "out\n"]);
    expect(ended.stderr).toMatch(
      /^watchdog: ended 1 process left by the command: \d+ sleep.*; hint: .*\n$/,
    );
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(scene.findProcesses()).toEqual([]);
  }
}, 180_000);

test("a daemon that is left running with the pipe does not hold watchdog", async () => {
  const script = `"$W" run --log on --leftovers leave -- \\
      sh -c 'echo out; setsid sleep 91021 & exit 3' >"$D/out" 2>"$D/err"
    echo "$?"; cat "$D/out"`;
  const started = performance.now();
  const ended = await runShell(scene, script, { env: { D } });
  expect(ended.stdout.toString()).toBe("3\nout\n");
  expect(performance.now() - started).toBeLessThan(20_000);
  const pids = scene.findProcesses();
  expect(pids.length).toBe(1);
  for (const pid of pids) process.kill(pid, "SIGKILL");
}, 180_000);

test("a daemon that goes on writing does not hold watchdog, and gets SIGPIPE", async () => {
  const script = "echo out; setsid yes & exit 3";
  const ended = await scene.run(["--log", "on", "--leftovers", "leave", "--", "sh", "-c", script], {
    stdout: "ignore",
  });
  expect(ended.code).toBe(3);
  await waitFor(() => scene.findProcesses().length === 0, "the end of the daemon by SIGPIPE");
}, 180_000);

test("A-21: text written just after the direct child's end is not cut", async () => {
  const late = "(for i in 1 2 3 4 5; do sleep 0.1; echo late$i; done) & exit 3";
  const waiting = await scene.run(["--leftovers", "wait", "--log", "on", "--", "sh", "-c", late]);
  expect([waiting.code, waiting.stdout.toString()]).toEqual([
    3,
    "late1\nlate2\nlate3\nlate4\nlate5\n",
  ]);
  const clean = `(trap 'echo cleaned; exit' TERM; echo ready >"$0"; while :; do sleep 0.05; done) &
    until [ -s "$0" ]; do sleep 0.02; done; exit 3`;
  const ended = await scene.run(["--log", "on", "--", "sh", "-c", clean, scene.path("ready")]);
  expect([ended.code, ended.stdout.toString()]).toEqual([3, "cleaned\n"]);
}, 180_000);

test("A-23: a named pipe between two parts does not outlive the limit", async () => {
  await Bun.write(
    scene.path("ff.sh"),
    `mkfifo "$1"
     (for i in $(seq 200); do echo "row $i"; sleep 0.1; done) >"$1" & sed -u s/row/ROW/ <"$1"\n`,
  );
  const args = [...scene.recordTo("pipe"), "--timeout", "3s", "--kill-after", "1s", "--log", "on"];
  const ended = await scene.run([...args, "--", "bash", scene.path("ff.sh"), scene.path("q")]);
  expect(ended.code).toBe(124);
  expect(ended.stdout.toString()).toMatch(/^ROW 1\nROW 2\n/);
  const log = readFileSync(scene.readRecord("pipe").log.path, "utf8");
  expect(log).toStartWith("ROW 1\nROW 2\n");
  expect(scene.findProcesses()).toEqual([]);
}, 180_000);

interface Stall {
  readonly status: number | null;
  readonly seconds: number;
  readonly wasFull: boolean;
  readonly areFlagsKept: boolean;
  readonly unread: number;
}

async function stall(flags: string, signals: string, args: readonly string[]): Promise<Stall> {
  const script = `${FIXTURES}/stalls-as-reader.py`;
  const command = [PYTHON, script, flags, signals, RELEASE, "run", ...args];
  const ended = await scene.startProgram(command).ended;
  expect(ended.stderr).toBe("");
  return JSON.parse(ended.stdout.toString()) as Stall;
}

const TERM = 15;

test("a reader that stands still for ever does not keep --timeout off", async () => {
  for (const flags of ["blocking", "nonblocking"]) {
    for (const mode of MODES) {
      const found = await stall(flags, "-", ["--log", mode, "--timeout", "2s", "--", "yes"]);
      // A program that meets EAGAIN ends by itself; only the copy waits for it.
      const isOwnEnd = flags === "nonblocking" && mode === "off";
      expect([flags, mode, found.status]).toEqual([flags, mode, isOwnEnd ? 1 : 124]);
      expect(found.seconds).toBeLessThan(20);
      expect([found.wasFull || isOwnEnd, found.areFlagsKept]).toEqual([true, true]);
    }
  }
}, 180_000);

test("a reader that stands still for ever does not keep TERM off", async () => {
  for (const mode of MODES) {
    const found = await stall("blocking", "TERM", ["--log", mode, "--", "yes"]);
    expect([mode, found.status]).toEqual([mode, -TERM]);
    expect([found.wasFull, found.areFlagsKept, found.seconds < 20]).toEqual([true, true, true]);
  }
}, 180_000);

test("a reader that stands still does not keep the KILL of a second TERM off", async () => {
  const command = ["sh", "-c", `trap "" TERM; yes`];
  for (const mode of MODES) {
    const found = await stall("blocking", "TERM,TERM", ["--log", mode, "--", ...command]);
    expect([mode, found.status]).toEqual([mode, -9]);
    expect([found.areFlagsKept, found.seconds < 20]).toEqual([true, true]);
  }
}, 180_000);

test("a reader that stands still stalls the command, and fills no memory", async () => {
  const script = 'yes | head -c 400000000; echo never >"$0"';
  const started = scene.start(["--log", "on", "--", "sh", "-c", script, scene.path("never")], {
    stdout: "ignore",
  });
  await started.ended;
  expect(existsSync(scene.path("never"))).toBe(true);
  const found = await stall("blocking", "-", [
    "--log",
    "on",
    "--timeout",
    "700ms",
    "--",
    "sh",
    "-c",
    script,
    scene.path("not-reached"),
  ]);
  expect(found.status).toBe(124);
  expect(existsSync(scene.path("not-reached"))).toBe(false);
}, 180_000);

test("the record says how much a reader who stood still did not take", async () => {
  const args = [...scene.recordTo("stalled"), "--log", "on", "--timeout", "500ms", "--", "yes"];
  const found = await stall("blocking", "-", args);
  const record = scene.readRecord("stalled");
  expect(record).toMatchObject({ outcome: "timeout", exit_status: 124 });
  expect(record.output.stdout_bytes).toBeGreaterThanOrEqual(found.unread);
});
