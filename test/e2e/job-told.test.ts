/**
 * What a person is told of a job of many steps, on the compiled binary: nothing is said to run that
 * would not, and whoever cannot go on is told by which line somebody can.
 */
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { harmless, type JobPlace, makeJob, unsafe } from "../support/job-place.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

async function answer(job: JobPlace, ...words: readonly [string, ...string[]]): Promise<string> {
  const { stdout, status } = await job.job(...words);
  expect(status).toBe(0);
  return String(stdout);
}

test(
  "what waits for a step that a person has called failed is blocked, until --redo runs that",
  async () => {
    const pay = unsafe("[ -e go ] || kill -9 $$; echo paid >>log");
    const job = makeJob(scene, "failed", { pay, mail: harmless("echo >mail", { needs: ["pay"] }) });
    expect((await job.job("run")).status).toBe(3);
    const waits = await answer(job, "plan");
    expect(waits).toContain(": 0 of 2 steps to run\n");
    expect(waits).toContain("  mail  blocked  waits for pay\n");
    const fail = await job.job("resume", "--accept-unknown", "pay=fail");
    const redo = `watchdog job resume --redo pay ${job.file}`;
    expect([fail.status, fail.stderr.split("\n").includes(`watchdog: hint: ${redo}`)]).toEqual([
      137,
      true,
    ]);
    expect(await answer(job, "status")).toEndWith(`    ${redo}\n`);
    // The line of every night says the same, and runs nothing.
    expect((await job.job("run")).stderr).toContain(redo);
    expect(existsSync(job.path("mail"))).toBe(false);
    writeFileSync(job.path("go"), "");
    expect((await job.job("resume", "--redo", "pay")).status).toBe(0);
    expect([job.lines("log"), job.state()]).toEqual([["paid"], "done"]);
  },
  LIMIT_MS,
);

test(
  "a job that the journal has forgotten is not said to have never been begun",
  async () => {
    const pay = unsafe(
      "echo pay >>log; rm -r $WATCHDOG_STATE_DIR/journal.db* $WATCHDOG_STATE_DIR/jobs",
    );
    const job = makeJob(scene, "forgotten", { pay, last: harmless("true", { needs: ["pay"] }) });
    expect((await job.job("run")).status).toBe(125);
    expect(await answer(job, "status")).toStartWith(
      "what has become of job forgotten is not known",
    );
    const { troubles } = JSON.parse(await answer(job, "status", "--json"));
    expect(troubles).toEqual([expect.stringContaining("journal.db does not know job")]);
    expect([(await job.job("run")).status, job.lines("log")]).toEqual([78, ["pay"]]);
  },
  LIMIT_MS,
);

test(
  "a step is said to run again only where nothing has to be run before it",
  async () => {
    const job = makeJob(scene, "again", {
      first: harmless("[ -e go ]"),
      made: { command: "echo made >out", needs: ["first"], artifacts: ["out"] },
      other: harmless("false"),
    });
    writeFileSync(job.path("go"), "");
    expect((await job.job("run")).status).toBe(1);
    rmSync(job.path("go"));
    const { stderr } = await job.job("run", "--redo", "first");
    expect(stderr).toContain("watchdog: step first runs again: a person asked for it\n");
    expect(stderr).toContain("watchdog: step other runs again: its command has failed\n");
    // It was not: what it needs has failed.
    expect(stderr).toContain("watchdog: step made is to run again: a step that it needs was not");
    expect(stderr).toContain("watchdog: not begun, because of what they need: made\n");
  },
  LIMIT_MS,
);

test(
  "a step of which settle says that it has not happened is not said to wait for another",
  async () => {
    const pay = unsafe("kill -9 $$", { settle: "exit 1" });
    const job = makeJob(scene, "settled", { other: harmless("false"), pay });
    const { stderr } = await job.job("run");
    expect(stderr).not.toContain("because of what they need");
    expect(stderr).toContain(
      "watchdog: not happened, as settle says, and run again when the job goes on: pay\n",
    );
  },
  LIMIT_MS,
);

test(
  "the plan of a job that runs says that it runs, and that of a job that is done does not",
  async () => {
    const wait = harmless("touch began; while [ ! -e go ]; do sleep 0.05; done");
    const job = makeJob(scene, "runs", { wait });
    const run = job.start("run");
    await waitFor(() => existsSync(job.path("began")), "the step");
    try {
      expect(await answer(job, "plan")).toStartWith(
        "job runs  runs now: job run would be refused now (75)\n",
      );
      expect(JSON.parse(await answer(job, "plan", "--json"))).toMatchObject({ is_held: true });
    } finally {
      writeFileSync(job.path("go"), "");
      await run.ended;
    }
    expect(await answer(job, "plan")).toStartWith("job runs  would begin a new job: 1 of 1");
    expect(JSON.parse(await answer(job, "plan", "--json"))).toMatchObject({ is_held: false });
  },
  LIMIT_MS,
);

test(
  "a job file that was moved is told where the unfinished job has its own",
  async () => {
    const job = makeJob(scene, "moved", { no: harmless("false") });
    const nothing = await job.job("resume");
    expect([nothing.status, nothing.stderr.trim().split("\n").at(-1)]).toEqual([
      78,
      `watchdog: hint: watchdog job run ${job.file}`,
    ]);
    expect((await job.job("run")).status).toBe(1);
    mkdirSync(job.path("other"));
    const other = job.path("other", "moved.json");
    copyFileSync(job.file, other);
    for (const verb of ["run", "plan"]) {
      const { status, stderr } = await job.scene.startProgram([RELEASE, "job", verb, other]).ended;
      expect([verb, status]).toEqual([verb, 78]);
      expect(stderr).toContain(`is that of another file: ${job.file}\n`);
      expect(stderr).toContain("give one of the two another name: in its file, or move this one");
      expect(stderr).toContain("watchdog: hint: watchdog job status moved\n");
      expect(stderr).not.toContain("job run --fresh");
    }
  },
  LIMIT_MS,
);

test(
  "what the checks of a step have found is bad output, and no status of a command",
  async () => {
    const quiet = harmless("true", { expect_output: true });
    const job = makeJob(scene, "quiet", { quiet });
    const record = job.path("record.json");
    expect((await job.job("run", "--result-file", record)).status).toBe(65);
    expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({
      outcome: "bad_output",
      because: "step-failed",
      status_of: "watchdog",
      exit_status: 65,
    });
    expect(await answer(job, "status")).toContain(": status 65\n");
    // A command that says so itself has failed.
    job.write({ quiet: harmless("exit 65") });
    expect((await job.job("run", "--result-file", record)).status).toBe(65);
    expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({
      outcome: "failed",
      status_of: "command",
    });
  },
  LIMIT_MS,
);

test(
  "each line that is to be pasted looks into the state that was named on the line before",
  async () => {
    const pay = unsafe("kill -9 $$");
    const job = makeJob(scene, "place", { pay });
    const place = ["--state-dir", job.path("state")];
    const told = `watchdog job resume ${place.join(" ")} `;
    const run = await job.job("run", ...place);
    expect([run.status, run.stderr]).toEqual([3, expect.stringContaining(`hint: ${told}`)]);
    const status = await answer(job, "status", ...place);
    const lines = status.split("\n").filter((line) => line.includes("watchdog job"));
    expect(lines.map((line) => line.trim().slice(0, told.length))).toEqual([told, told, told]);
    const failed = await job.job("resume", ...place, "--accept-unknown", "pay=fail");
    expect(failed.stderr).toContain(`hint: ${told}--redo pay `);
    expect(await answer(job, "status", ...place)).toContain(`${told}--redo pay `);
  },
  LIMIT_MS,
);
