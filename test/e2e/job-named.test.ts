/**
 * Which job is meant, on the compiled binary: by its file, by its name, by a file of the same name,
 * or by a word that is neither.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { harmless, type JobPlace, makeJob, unsafe } from "../support/job-place.ts";
import { type Ended, openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

/** `watchdog job WORD...`, with the file of the job only where it is among them. */
function ask(job: JobPlace, ...words: readonly string[]): Promise<Ended> {
  return job.scene.startProgram([RELEASE, "job", ...words]).ended;
}

/** Of a job that has two files, and the record of the first. */
async function makeTwins(name: string, command: string) {
  const one = makeJob(scene, name, { one: unsafe(command), two: harmless("true") });
  const first = await one.job("run");
  mkdirSync(one.path("other"));
  const other = one.path("other", "twin.json");
  writeFileSync(other, JSON.stringify({ name, steps: { three: harmless("true") } }));
  return { one, other, first };
}

describe("two files of one name", () => {
  test(
    "status of the other one shows the job as it is by its name, and says whose it is",
    async () => {
      const { one, other } = await makeTwins("twins", "kill -9 $$");
      const { status, stdout } = await ask(one, "status", other);
      const [head, ...lines] = String(stdout).split("\n");
      expect([status, head]).toEqual([
        0,
        `the newest job twins is that of ${one.file}, and not of ${other}:`,
      ]);
      expect(lines.join("\n")).toBe(String((await ask(one, "status", "twins")).stdout));
      expect(lines.join("\n")).not.toContain("three");
      const asked = async (word: string) =>
        JSON.parse(String((await ask(one, "status", "--json", word)).stdout));
      expect(await asked(other)).toEqual({ ...(await asked("twins")), is_of_other_file: true });
      expect(await asked(one.file)).toMatchObject({ file: one.file, is_of_other_file: false });
    },
    LIMIT_MS,
  );

  test.each([
    ["unfinished", "kill -9 $$", 3],
    ["done", "true", 0],
  ])(
    "verify of the other one finds it, where the job is %s",
    async (name, command, code) => {
      const { one, other, first } = await makeTwins(name, command);
      expect(first.status).toBe(code);
      const line =
        `the newest job ${name} is that of another file: ${one.file}; ` +
        "what that one has left is not looked at";
      const { status, stdout } = await ask(one, "verify", other);
      expect([status, String(stdout)]).toEqual([1, `${line}\n`]);
      const json = await ask(one, "verify", "--json", other);
      expect([json.status, JSON.parse(String(json.stdout)).findings]).toEqual([1, [line]]);
      expect((await ask(one, "verify", one.file)).status).toBe(0);
    },
    LIMIT_MS,
  );
});

describe("the name of a job in place of its file", () => {
  test(
    "status shows the same, as long as the file has a job of this name",
    async () => {
      const job = makeJob(scene, "same", { no: harmless("false") });
      expect((await job.job("run")).status).toBe(1);
      job.write({ no: harmless("false"), more: harmless("true", { needs: ["no"] }) });
      const byFile = await job.job("status");
      expect(String(byFile.stdout)).toContain("  more  blocked");
      const byName = await ask(job, "status", "same");
      expect([byName.status, byName.stderr]).toEqual([0, ""]);
      expect(String(byName.stdout)).toBe(String(byFile.stdout));
      // Another job lies there now: the record stands alone.
      writeFileSync(job.file, JSON.stringify({ name: "else", steps: { x: harmless("true") } }));
      const other = await ask(job, "status", "same");
      expect(other.stderr).toBe(`watchdog: ${job.file} has another job today\n`);
      expect(String(other.stdout)).toContain("  no  failed");
      expect(String(other.stdout)).not.toContain("more");
      rmSync(job.file);
      const alone = await ask(job, "status", "same");
      expect([alone.status, alone.stderr]).toEqual([
        0,
        `watchdog: ${job.file}: found no file, expected a file that can be read\n`,
      ]);
    },
    LIMIT_MS,
  );

  test(
    "the other commands name the file of the job, and a line that asks no more than was asked",
    async () => {
      const job = makeJob(scene, "etl", { pay: unsafe("kill -9 $$"), mail: harmless("true") });
      expect((await job.job("run")).status).toBe(3);
      const said =
        "etl: found no file, expected a file that can be read; " +
        `a job of this name is known, and its file is ${job.file}`;
      for (const verb of ["run", "resume", "plan"]) {
        const { status, stderr } = await ask(job, verb, "etl");
        expect([verb, status, stderr]).toEqual([
          verb,
          78,
          `watchdog: error: ${said}\nwatchdog: hint: watchdog job ${verb} ${job.file}\n`,
        ]);
      }
      const verified = await ask(job, "verify", "etl");
      expect([verified.status, String(verified.stdout), verified.stderr]).toEqual([
        1,
        `${said}\n`,
        `watchdog: hint: watchdog job verify ${job.file}\n`,
      ]);
      const place = ["--state-dir", job.scene.stateDirectory];
      const only = await ask(job, "run", "--only", "mail", ...place, "etl");
      const hint = `watchdog: hint: watchdog job status ${place.join(" ")} ${job.file}\n`;
      expect([only.status, only.stderr]).toEqual([78, `watchdog: error: ${said}\n${hint}`]);
    },
    LIMIT_MS,
  );

  test(
    "a word that is neither is called so, and no state is made for it",
    async () => {
      const state = scene.path("never");
      for (const verb of ["run", "resume", "plan", "status", "verify"]) {
        const words = [RELEASE, "job", verb, "--state-dir", state, "nosuch"];
        const { status, stdout, stderr } = await scene.startProgram(words).ended;
        const said = "nosuch: found no file, expected a file that can be read; no job of this name";
        expect([verb, status]).toEqual([verb, verb === "verify" ? 1 : 78]);
        expect(String(stdout) + stderr).toContain(`${said} is known\n`);
        expect(stderr).toEndWith("watchdog: hint: watchdog help job\n");
      }
      expect(existsSync(state)).toBe(false);
    },
    LIMIT_MS,
  );

  test(
    "a file that is no job is shown the line that tells all that is wrong in it",
    async () => {
      const file = scene.path("bad.yaml");
      writeFileSync(file, "name: bad\nstepps: {}\n");
      const { status, stderr } = await scene.startProgram([RELEASE, "job", "status", file]).ended;
      expect([status, stderr]).toEqual([
        78,
        expect.stringContaining(`watchdog: hint: watchdog job verify ${file}\n`),
      ]);
    },
    LIMIT_MS,
  );
});
