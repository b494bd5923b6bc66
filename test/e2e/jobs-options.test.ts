/**
 * Options of `watchdog run` in the steps of a job, secrets of a job file, and what a configuration
 * says of the job as a whole.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { findRunners, harmless, makeJob, readFilesBelow, unsafe } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { readLines } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

describe("the time limit of a step", () => {
  const tell = 'echo "$0 $(( ${WATCHDOG_DEADLINE:-0} - $(date +%s) ))" >>log';
  /** The words of the lines, and the spans as whole hours. */
  const hoursOf = (lines: readonly string[]): readonly unknown[] =>
    lines.map((line) => {
      const [name, seconds = ""] = line.split(" ");
      return [name, Number(seconds) < 0 ? undefined : Math.round(Number(seconds) / 3_600)];
    });
  const words = (name: string): string[] => ["sh", "-c", tell, name];

  test.each([1, 2])(
    "is told to its command, the earlier of both where the job has one (max_parallel %d)",
    async (max_parallel) => {
      const steps = {
        long: { command: words("long"), side_effects: "none", timeout: "9h" },
        short: { command: words("short"), side_effects: "none", timeout: "2h", needs: ["long"] },
        none: { command: words("none"), side_effects: "none", needs: ["short"] },
      };
      const job = makeJob(scene, `deadline-${max_parallel}`, steps, { max_parallel });
      expect((await job.job("run")).status).toBe(0);
      expect(hoursOf(job.lines("log"))).toEqual([
        ["long", 9],
        ["short", 2],
        ["none", undefined],
      ]);
      expect((await job.job("run", "--timeout", "4h")).status).toBe(0);
      expect(hoursOf(job.lines("log").slice(3))).toEqual([
        ["long", 4],
        ["short", 2],
        ["none", 4],
      ]);
    },
    LIMIT_MS,
  );
});

describe("a step with options of watchdog run", () => {
  test(
    "is checked as a run is: its output must be there",
    async () => {
      const job = makeJob(scene, "checked", {
        good: harmless("echo all is well", { expect_match: "all is well" }),
        bad: harmless("echo nothing", { expect_match: "all is well", needs: ["good"] }),
        after: harmless("echo after >>log", { needs: ["bad"] }),
      });
      const { status, stderr } = await job.job("run");
      expect([status, job.lines("log")]).toEqual([65, []]);
      expect(stderr).toContain("check failed: --expect-match");
      expect(job.steps()).toEqual([
        "good done exited 1",
        "bad failed run-failed 1",
        "after pending - 0",
      ]);
    },
    LIMIT_MS,
  );

  test(
    "has the fence of the lease of its job, as a plain step has",
    async () => {
      const ask = `"${RELEASE}" fence -- sh -c 'echo $0 >>log'`;
      const job = makeJob(scene, "fenced", {
        plain: harmless(`${ask} plain`),
        limited: harmless(`${ask} limited`, { idle_timeout: "1m" }),
        within: harmless(`"${RELEASE}" run --no-lease -- ${ask} within`, { idle_timeout: "1m" }),
      });
      const { status, stderr } = await job.job("run");
      expect(job.lines("log")).toEqual(["plain", "limited"]);
      // Another run has what it has of its own: nothing.
      expect([status, job.steps().at(-1)]).toEqual([76, "within failed exited 1"]);
      expect(stderr).toContain("the run around this holds no lease");
    },
    LIMIT_MS,
  );

  test(
    "that needs a dependency which is down fails with 69, and says so",
    async () => {
      const job = makeJob(scene, "down", {
        upload: harmless("echo upload >>log", {
          probe: "up=tcp://127.0.0.1:1",
          probe_timeout: "100ms",
          probe_startup_wait: "300ms",
        }),
      });
      const { status } = await job.job("run", ...scene.recordTo("down"));
      expect([status, job.lines("log")]).toEqual([69, []]);
      expect(scene.readRecord("down")["outcome"]).toBe("dependency_down");
    },
    LIMIT_MS,
  );

  test(
    "that was not begun for it has not happened: an unsafe one is no question",
    async () => {
      const job = makeJob(scene, "down-unsafe", {
        pay: unsafe("echo pay >>log", {
          probe: "up=tcp://127.0.0.1:1",
          probe_timeout: "100ms",
          probe_startup_wait: "300ms",
        }),
      });
      expect([(await job.job("run")).status, job.lines("log")]).toEqual([69, []]);
      expect(job.steps()).toEqual(["pay failed not-started 1"]);
    },
    LIMIT_MS,
  );

  test(
    "whose run is killed right after its begin may have happened: an unsafe one is a question",
    async () => {
      // Its guard tells of the run's end before it has heard of the command.
      const job = makeJob(scene, "orphaned", {
        pay: unsafe("echo pay >>log; kill -9 $PPID; sleep 96172", { idle_timeout: "1m" }),
      });
      for (const verb of ["run", "run", "resume"]) {
        expect((await job.job(verb)).status).toBe(3);
        expect([job.lines("log"), job.steps()]).toEqual([["pay"], ["pay unknown no-settle 1"]]);
      }
    },
    LIMIT_MS,
  );

  test(
    "whose run is killed with its guard has not ended well, though nobody tells of its end",
    async () => {
      const others = "$(cat /proc/$PPID/task/$PPID/children)";
      const killGuard = `for p in ${others}; do [ $p = $$ ] || kill -9 $p; done`;
      const job = makeJob(scene, "untold", {
        run: harmless(`${killGuard}; kill -9 $PPID; sleep 96171`, { idle_timeout: "1m" }),
        after: harmless("echo after >>log", { needs: ["run"] }),
      });
      expect([(await job.job("run")).status, job.lines("log")]).toEqual([137, []]);
      expect(job.steps()[0]).toBe("run failed run-failed 1");
    },
    LIMIT_MS,
  );

  test(
    "has a run of its own in the history, and its leftovers are ended",
    async () => {
      const job = makeJob(scene, "history", {
        one: harmless("(setsid sleep 96151 >/dev/null 2>&1 &)", {
          expect_output: false,
          log: "on",
        }),
      });
      expect((await job.job("run")).status).toBe(0);
      const runs = query(job.scene, "SELECT job, outcome FROM runs ORDER BY job");
      expect(runs).toEqual([
        ["history", "ok"],
        ["history/one", "ok"],
      ]);
    },
    LIMIT_MS,
  );
});

describe("a configuration", () => {
  test(
    "speaks of the job as a whole, and its steps hear nothing of it",
    async () => {
      const job = makeJob(scene, "configured", {
        one: harmless("sleep 0.1; echo one >>log; exit 7", { idle_timeout: "1m" }),
      });
      const config = job.path("config.toml");
      const lines = [
        "[run]",
        `on_failure = "echo told >>${job.path("told")}"`,
        "[jobs.configured]",
        'lane = "gpu"',
        '[jobs."configured/one"]',
        'timeout = "1ms"',
      ];
      writeFileSync(config, lines.join("\n"));
      expect((await job.job("run", `--config=${config}`)).status).toBe(7);
      // Once, by the job: its step is a run of its own, and is told of by nobody.
      expect([job.lines("log"), job.lines("told")]).toEqual([["one"], ["told"]]);
    },
    LIMIT_MS,
  );

  test(
    "of the line is that of the runs around its steps: a probe is known there by its name",
    async () => {
      const job = makeJob(scene, "known-probe", {
        one: harmless("echo one >>log", { probe: "db" }),
      });
      const config = job.path("config.toml");
      writeFileSync(config, `[probes.db]\nurl = "cmd:echo asked >>${job.path("asked")}"\n`);
      const { status } = await job.job("run", `--config=${config}`);
      expect([status, job.lines("log"), job.lines("asked")[0]]).toEqual([0, ["one"], "asked"]);
    },
    LIMIT_MS,
  );
});

test(
  "secrets of a job file are in no table, no message and no record",
  async () => {
    const secret = "hunter2-of-a-step";
    const script = '(exec -a "x $API_TOKEN" sleep 96161 &) ; sleep 0.2; exit 3';
    const job = makeJob(scene, "secrets", {
      one: { command: ["bash", "-c", script], side_effects: "none", env: { API_TOKEN: secret } },
    });
    const { status, stderr } = await job.job("run", ...scene.recordTo("secrets"));
    expect(status).toBe(3);
    expect(stderr).toContain("left by its command");
    expect(stderr).not.toContain(secret);
    const files = [...readFilesBelow(job.scene.stateDirectory)];
    expect(
      files.filter(([path, text]) => !path.includes("/logs/") && text.includes(secret)),
    ).toEqual([]);
    expect(JSON.stringify(scene.readRecord("secrets"))).not.toContain(secret);
  },
  LIMIT_MS,
);

describe("what is to be hidden", () => {
  /** It leaves a process behind, whose name is that word. */
  const leaving = (word: string, more: object = {}) => ({
    command: ["bash", "-c", `(exec -a "x ${word}" sleep 96162 &) ; sleep 0.2`],
    side_effects: "none",
    ...more,
  });

  test(
    "by --mask of the job is hidden by its runner, and by the runs around its steps",
    async () => {
      const job = makeJob(scene, "masked", {
        one: leaving("customer-1234"),
        two: leaving("customer-5678", { needs: ["one"], idle_timeout: "1m" }),
      });
      const { status, stderr } = await job.job("run", "--mask=customer-[0-9]+");
      expect(status).toBe(0);
      expect(stderr.match(/left by (its|the) command/g)).toHaveLength(2);
      expect(stderr).not.toContain("customer-");
    },
    LIMIT_MS,
  );

  test(
    "of a step is hidden by the run around the job, too, when the runner was killed",
    async () => {
      const secret = "hunter3-of-a-step";
      const script = 'echo begun >>log; exec -a "x $API_TOKEN" sleep 96163';
      const job = makeJob(scene, "outer", {
        one: { command: ["bash", "-c", script], side_effects: "none", env: { API_TOKEN: secret } },
      });
      const run = job.start("run", ...scene.recordTo("outer"));
      const isThere = (pid: number) => nameOf(pid).startsWith(`x ${secret}`);
      await waitFor(() => job.scene.findProcesses().some(isThere), "the step by its name");
      const [runner = 0] = findRunners(run.pid);
      process.kill(runner, "SIGKILL");
      const { status, stderr } = await run.ended;
      expect([status, stderr]).toEqual([137, expect.stringContaining("left by the command")]);
      const files = [...readFilesBelow(job.scene.stateDirectory)];
      const told = [stderr, JSON.stringify(scene.readRecord("outer"))];
      const others = files.filter(([path]) => !path.includes("/logs/")).map(([, text]) => text);
      expect([...told, ...others].filter((text) => text.includes(secret))).toEqual([]);
    },
    LIMIT_MS,
  );
});

function nameOf(pid: number): string {
  return readLines(`/proc/${pid}/cmdline`).join("\n");
}
