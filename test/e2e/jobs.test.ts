/**
 * Jobs of many steps on the compiled binary: a crash in the middle, what a resume runs again, and
 * what it leaves to a person. are those of the collected cases.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { findRunners, harmless, killAndWait, makeJob, unsafe } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { findAnywhere } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

/** Writes its begin, stays until the file `go` is there, and writes its end. */
function staying(name: string): string {
  return `echo ${name} >>log; until [ -e go ]; do sleep 0.02; done; echo ${name}e >>log`;
}

describe("A-91, A-92: a crash in step 2 of 3", () => {
  test(
    "looking spoils nothing, and the resume begins step 2 again and no other",
    async () => {
      const job = makeJob(scene, "a91", {
        s1: harmless("echo 1 >>log"),
        s2: harmless(staying("2"), { needs: ["s1"] }),
        s3: harmless("echo 3 >>log", { needs: ["s2"] }),
      });
      const first = job.start("run");
      await waitFor(() => job.lines("log").includes("2"), "step 2");
      first.kill("SIGKILL");
      await first.ended;
      await waitFor(() => job.scene.findProcesses().length === 0, "the guard to have ended all");
      for (let look = 0; look < 3; look += 1) {
        const { stdout, status } = await job.job("status");
        expect([status, stdout.toString()]).toEqual([
          0,
          expect.stringContaining("interrupted, can be resumed (its watchdog is gone)"),
        ]);
      }
      expect(job.lines("log")).toEqual(["1", "2"]);
      writeFileSync(job.path("go"), "");
      const second = await job.job("run");
      expect([second.status, job.lines("log")]).toEqual([0, ["1", "2", "2", "2e", "3"]]);
      expect(second.stderr).toContain("job a91 goes on where it was: 1 of 3 steps are done");
      expect(job.steps()).toEqual(["s1 done exited 1", "s2 done exited 2", "s3 done exited 1"]);
      // What is done is not gone on with: the next start begins anew.
      const third = await job.job("run");
      expect([third.status, third.stderr]).toEqual([0, ""]);
      expect(job.lines("log").slice(5)).toEqual(["1", "2", "2e", "3"]);
    },
    LIMIT_MS,
  );

  test(
    "the same when the runner alone is killed, and nobody but its steps knows",
    async () => {
      const job = makeJob(scene, "runner", {
        s1: harmless(`setsid sleep 96111 & ${staying("1")}`),
        s2: harmless("echo 2 >>log", { needs: ["s1"] }),
      });
      const first = job.start("run");
      await waitFor(() => job.lines("log").includes("1"), "step 1");
      const [runner = 0] = findRunners(first.pid);
      process.kill(runner, "SIGKILL");
      const ended = await first.ended;
      expect([ended.status, findAnywhere("sleep 96111")]).toEqual([137, []]);
      expect(job.steps()).toEqual(["s1 running - 1", "s2 pending - 0"]);
      writeFileSync(job.path("go"), "");
      expect((await job.job("resume")).status).toBe(0);
      expect(job.lines("log")).toEqual(["1", "1", "1e", "2"]);
    },
    LIMIT_MS,
  );
});

describe("an unsafe step that was interrupted", () => {
  const steps = (settle?: string) => ({
    before: harmless("echo before >>log"),
    pay: unsafe(staying("pay"), { needs: ["before"], ...(settle === undefined ? {} : { settle }) }),
    after: harmless("echo after >>log", { needs: ["pay"] }),
    free: harmless("echo free >>log", { needs: ["before"] }),
  });

  async function interrupt(name: string, settle?: string) {
    const job = makeJob(scene, name, steps(settle));
    const first = job.start("run");
    await waitFor(() => job.lines("log").includes("pay"), "the unsafe step");
    await killAndWait(scene, first);
    writeFileSync(job.path("go"), "");
    return job;
  }

  test(
    "without settle is unknown: 3, nothing after it runs, what needs it not does",
    async () => {
      const job = await interrupt("unknown");
      const { status, stderr } = await job.job("run", ...scene.recordTo("unknown"));
      expect([status, job.lines("log")]).toEqual([3, ["before", "pay", "free"]]);
      expect(stderr).toContain("nobody knows whether pay has happened: a person must decide");
      const record = scene.readRecord("unknown");
      expect([record["outcome"], record["because"], record["steps"]]).toEqual([
        "unknown",
        "step-unknown",
        {
          job_id: expect.any(String),
          total: 4,
          done: 2,
          unchanged: 0,
          failed: [],
          unknown: ["pay"],
        },
      ]);
      // It stays so, however often it is run.
      expect((await job.job("run")).status).toBe(3);
      expect(job.lines("log")).toEqual(["before", "pay", "free"]);
      const plan = (await job.job("plan")).stdout.toString();
      expect(plan).toMatch(/pay +waits +.*a person must decide/);
    },
    LIMIT_MS,
  );

  for (const [accepted, log, state] of [
    ["done", ["before", "pay", "after", "free"], 0],
    ["retry", ["before", "pay", "pay", "paye", "after", "free"], 0],
    ["fail", ["before", "pay", "free"], 1],
  ] as const) {
    test(
      `goes on by a person's word: ${accepted}`,
      async () => {
        const job = await interrupt(`accepted-${accepted}`);
        const { status } = await job.job("resume", `--accept-unknown=pay=${accepted}`);
        expect([status, job.lines("log").toSorted()]).toEqual([state, log.toSorted()]);
      },
      LIMIT_MS,
    );
  }

  for (const [answer, status, lines] of [
    [0, 0, ["before", "pay", "settle", "after", "free"]],
    [1, 0, ["before", "pay", "settle", "pay", "paye", "after", "free"]],
    [7, 3, ["before", "pay", "settle", "free"]],
  ] as const) {
    test(
      `is settled by what settle answers: ${answer}`,
      async () => {
        const job = await interrupt(`settle-${answer}`, `echo settle >>log; exit ${answer}`);
        const ended = await job.job("run");
        expect([ended.status, job.lines("log").toSorted()]).toEqual([status, lines.toSorted()]);
      },
      LIMIT_MS,
    );
  }
});

describe("the end of a step", () => {
  test(
    "its own status is that of the job, and what needs it is not begun",
    async () => {
      const job = makeJob(scene, "status", {
        bad: harmless("exit 7"),
        after: harmless("echo after >>log", { needs: ["bad"] }),
        free: harmless("echo free >>log"),
      });
      const { status, stderr } = await job.job("run", ...scene.recordTo("status"));
      expect([status, job.lines("log")]).toEqual([7, ["free"]]);
      expect(stderr).toContain("step bad exited with status 7");
      const record = scene.readRecord("status");
      expect([record["outcome"], record["because"]]).toEqual(["failed", "step-failed"]);
      expect(record["steps"].failed).toEqual(["bad"]);
      // Mended, it goes on with what is left.
      job.write({
        bad: harmless("echo good >>log"),
        after: harmless("echo after >>log", { needs: ["bad"] }),
        free: harmless("echo free >>log"),
      });
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["free", "good", "after"]);
    },
    LIMIT_MS,
  );

  test(
    "retries have their number, and the last one decides",
    async () => {
      const job = makeJob(scene, "retries", {
        flaky: harmless('echo "$WATCHDOG_ATTEMPT" >>log; [ "$WATCHDOG_ATTEMPT" = 3 ]', {
          retries: 5,
          backoff: "10ms",
        }),
      });
      expect((await job.job("run")).status).toBe(0);
      expect([job.lines("log"), job.steps()]).toEqual([["1", "2", "3"], ["flaky done exited 3"]]);
    },
    LIMIT_MS,
  );

  test(
    "a time limit ends all of it: 124, and an unsafe one is unknown",
    async () => {
      const job = makeJob(scene, "limit", {
        slow: harmless("setsid sleep 96121 & sleep 96122", { timeout: "300ms" }),
      });
      expect((await job.job("run")).status).toBe(124);
      expect(["sleep 96121", "sleep 96122"].flatMap(findAnywhere)).toEqual([]);
      job.write({ slow: unsafe("sleep 96122", { timeout: "300ms" }) });
      const { status } = await job.job("run", "--fresh");
      expect([status, job.steps()]).toEqual([3, ["slow unknown no-settle 1"]]);
    },
    LIMIT_MS,
  );

  test(
    "TERM ends the step that runs, starts no other, and the next run goes on",
    async () => {
      const job = makeJob(scene, "term", {
        one: harmless(staying("1")),
        two: harmless("echo 2 >>log", { needs: ["one"] }),
      });
      const first = job.start("run", ...scene.recordTo("term"));
      await waitFor(() => job.lines("log").includes("1"), "step 1");
      first.kill("SIGTERM");
      expect((await first.ended).signal).toBe("SIGTERM");
      expect(scene.readRecord("term")["outcome"]).toBe("stopped");
      expect([job.state(), job.steps()]).toEqual([
        "interrupted",
        ["one interrupted stopped 1", "two pending - 0"],
      ]);
      writeFileSync(job.path("go"), "");
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["1", "1", "1e", "2"]);
    },
    LIMIT_MS,
  );

  test(
    "what its command leaves behind is ended before the next step begins",
    async () => {
      const job = makeJob(scene, "left", {
        one: harmless("(setsid sleep 96131 >/dev/null 2>&1 &)"),
        two: harmless("pgrep -fx 'sleep 96131' >>log; echo end >>log", { needs: ["one"] }),
      });
      const { status, stderr } = await job.job("run");
      expect([status, job.lines("log")]).toEqual([0, ["end"]]);
      expect(stderr).toMatch(/step one: ended 1 process left by its command: \d+ sleep 96131/);
    },
    LIMIT_MS,
  );
});

describe("a runner that is an owner no longer", () => {
  test(
    "writes nothing more: the journal knows a larger generation, 76",
    async () => {
      const job = makeJob(scene, "fenced", {
        one: harmless(staying("1")),
        two: harmless("echo 2 >>log", { needs: ["one"] }),
      });
      const run = job.start("run", ...scene.recordTo("fenced"));
      await waitFor(() => job.lines("log").includes("1"), "step 1");
      const before = job.steps();
      query(job.scene, "UPDATE leases SET generation = generation + 7 WHERE name = 'fenced'");
      writeFileSync(job.path("go"), "");
      const { status, stderr } = await run.ended;
      expect([status, scene.readRecord("fenced")["outcome"]]).toEqual([76, "lease_lost"]);
      expect([job.steps(), job.lines("log")]).toEqual([before, ["1", "1e"]]);
      expect(stderr).toContain("it is somebody else's now");
    },
    LIMIT_MS,
  );
});

test(
  "two runners of one job: the second is refused, and nothing runs twice",
  async () => {
    const job = makeJob(scene, "two", { one: harmless(staying("1")) });
    const first = job.start("run");
    await waitFor(() => job.lines("log").includes("1"), "step 1");
    expect((await job.job("run")).status).toBe(75);
    writeFileSync(job.path("go"), "");
    expect([(await first.ended).status, job.lines("log")]).toEqual([0, ["1", "1e"]]);
  },
  LIMIT_MS,
);

test(
  "several at a time: never more than allowed, each with its own tree",
  async () => {
    const one = (name: string) =>
      harmless(`(setsid sleep 96141 &); echo +${name} >>log; sleep 0.3; echo -${name} >>log`);
    const names = ["a", "b", "c", "d", "e"];
    const steps = Object.fromEntries(names.map((name) => [name, one(name)]));
    const job = makeJob(scene, "parallel", steps);
    expect((await job.job("run", "--max-parallel=2")).status).toBe(0);
    let running = 0;
    const counts = job.lines("log").map((line) => (running += line.startsWith("+") ? 1 : -1));
    expect([Math.max(...counts), counts.at(-1), counts.length]).toEqual([2, 0, 10]);
    expect(findAnywhere("sleep 96141")).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "no job that was not ordered: the inner word alone does nothing",
  async () => {
    const { status, stdout } = await scene.startProgram([RELEASE, "__job"]).ended;
    expect([status, stdout.toString()]).toEqual([64, ""]);
  },
  LIMIT_MS,
);
