/**
 * Machines where watchdog cannot call the C library: no memory may become executable (systemd's
 * MemoryDenyWriteExecute), no JIT, little address space. No lease can be had there, so a run that
 * is to have one is refused; with --no-lease the command runs all the same, watchdog says what does
 * not hold, and the status is right.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { PYTHON } from "../support/outside.ts";
import { type Ended, FIXTURES, openScene, RELEASE, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

interface Way {
  readonly name: string;
  readonly prefix: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const WAYS: readonly Way[] = [
  {
    name: "where no memory may become executable",
    prefix: [PYTHON, `${FIXTURES}/denies-write-exec.py`],
  },
  { name: "without a JIT", prefix: [], env: { BUN_JSC_useJIT: "0" } },
  {
    name: "with 2 GB of address space",
    prefix: ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh"],
  },
];

for (const way of WAYS) {
  const startWith = (lease: readonly string[], args: readonly string[]): Started =>
    scene.startProgram(
      [...way.prefix, RELEASE, "run", ...lease, ...scene.recordTo(), ...args],
      way.env === undefined ? {} : { env: way.env },
    );
  const start = (args: readonly string[]): Started => startWith(["--no-lease"], args);
  const run = (args: readonly string[]): Promise<Ended> => start(args).ended;

  describe(`degraded, ${way.name}`, () => {
    test("without --no-lease it is 125, says why and names it, and nothing runs", async () => {
      const mark = scene.path("never-ran");
      rmSync(scene.path("result.json"), { force: true });
      const state = scene.path(`no-lease-${WAYS.indexOf(way)}`);
      const ended = await startWith(["--state-dir", state], ["--", "touch", mark]).ended;
      expect([ended.code, ended.stdout.length, existsSync(mark)]).toEqual([125, 0, false]);
      const [error, hint, ...rest] = ended.stderr.split("\n");
      expect(error).toMatch(/^watchdog: error: no lease can be had: .+$/);
      const command = `watchdog run --state-dir ${state} --no-lease -- COMMAND`;
      expect([hint, rest]).toEqual([`watchdog: hint: ${command}`, [""]]);
      expect(existsSync(scene.path("result.json"))).toBe(false);
      expect(existsSync(`${state}/leases`)).toBe(false);
    }, 180_000);

    test("a check that was asked for is not left out: 125, and nothing runs", async () => {
      const mark = scene.path("never-checked");
      for (const asked of [["--expect-output"], ["--fail-match", "x"], ["--strict"]]) {
        const ended = await run([...asked, "--", "touch", mark]);
        expect([ended.code, existsSync(mark)]).toEqual([125, false]);
        expect(ended.stderr).toMatch(/^watchdog: error: nothing can be checked: .+\n$/);
      }
    }, 180_000);

    test("the command runs, watchdog says so in one line, and the record has no-ffi", async () => {
      const ended = await run(["--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
      expect([ended.code, ended.stdout.toString()]).toEqual([7, "out\n"]);
      const lines = ended.stderr.split("\n").slice(0, -1);
      expect(lines.filter((line) => line !== "err").length).toBe(1);
      expect(lines.find((line) => line !== "err")).toMatch(/^watchdog: .*degraded/);
      const record = scene.readRecord();
      expect(record.degraded).toContain("no-ffi");
      expect(record).toMatchObject({ outcome: "failed", exit_code: 7, state: "ended" });
    }, 180_000);

    test("statuses are right: exit codes, a death by signal, 126 and 127", async () => {
      for (const [script, status] of [
        ["exit 0", 0],
        ["exit 255", 255],
        ["exit 137", 137],
        ["kill -TERM $$", 143],
        ["kill -KILL $$", 137],
        ["kill -PIPE $$", 141],
      ] as const) {
        const ended = await run(["--", "sh", "-c", `ulimit -c 0; ${script}`]);
        expect([script, ended.status]).toEqual([script, status]);
        expect([script, ended.signal !== null]).toEqual([script, script.startsWith("kill")]);
      }
      expect((await run(["--", "./absent"])).code).toBe(127);
      expect((await run(["--", "/"])).code).toBe(126);
    }, 180_000);

    test("--timeout ends the command and what it started, with 124", async () => {
      const ended = await run([
        "--timeout",
        "400ms",
        "--kill-after",
        "1s",
        "--",
        "sh",
        "-c",
        "sleep 91091; :",
      ]);
      expect(ended.code).toBe(124);
      expect(scene.readRecord()).toMatchObject({ outcome: "timeout", status_of: "watchdog" });
      await waitFor(() => scene.findProcesses().length === 0, "the end of the sleep");
    }, 180_000);

    test("TERM is passed on, and the status is the command's", async () => {
      const ready = scene.path(`ready-${WAYS.indexOf(way)}`);
      const script = `trap 'exit 9' TERM; echo ready >"$0"; while :; do sleep 0.05; done`;
      const started = start(["--", "sh", "-c", script, ready]);
      await waitFor(() => existsSync(ready), "the command to be ready");
      started.kill("SIGTERM");
      expect((await started.ended).code).toBe(9);
      expect(scene.readRecord()).toMatchObject({ outcome: "stopped", exit_code: 9 });
    }, 180_000);

    test("the variables of the run are set, and those of options taken away", async () => {
      const ended = await scene.startProgram(
        [...way.prefix, RELEASE, "run", "--no-lease", "--", "env"],
        { env: { ...way.env, WATCHDOG_TIMEOUT: "1h", LISTEN_PID: "1", LISTEN_FDS: "1" } },
      ).ended;
      const names = ended.stdout
        .toString()
        .split("\n")
        .map((line) => line.split("=")[0]);
      for (const name of [
        "WATCHDOG_RUN_ID",
        "WATCHDOG_RUN_PATH",
        "WATCHDOG_JOB",
        "WATCHDOG_DEADLINE",
      ]) {
        expect(names).toContain(name);
      }
      for (const name of [
        "WATCHDOG_TIMEOUT",
        "LISTEN_PID",
        "LISTEN_FDS",
        "WATCHDOG_LEASE",
        "WATCHDOG_GENERATION",
      ])
        expect(names).not.toContain(name);
    }, 180_000);
  });
}

test("without the restriction nothing is degraded, so these tests prove something", async () => {
  const ended = await scene.run([...scene.recordTo(), "--", "true"]);
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
  expect(scene.readRecord().degraded).toEqual([]);
});
