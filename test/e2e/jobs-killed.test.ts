/**
 * Random jobs under SIGKILL at random moments, gone on with until they are done: what the journal
 * says is not asked; a server outside has counted, and locks tell who overlaps. And the orphans of
 * a step whose watchdogs are dead: none of them is there when it runs again.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type JobPlace, makeJob } from "../support/job-place.ts";
import {
  killAlone,
  killWithGuard,
  readChildren,
  SEED,
  seededRandom,
  waitUntilNoGuard,
} from "../support/killing.ts";
import { databaseOf, query } from "../support/own-state.ts";
import { isDead } from "../support/processes.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import {
  type Ended,
  FIXTURES,
  openScene,
  readCommandLine,
  ROUNDS,
  type Started,
} from "../support/scene.ts";
import { countWork, judge, type JudgedStep, serveSteps } from "../support/step-server.ts";
import { waitFor } from "../support/wait-for.ts";

const server = serveSteps();
afterAll(() => server.close());
const scene = openScene(import.meta.file);

const MOST_STEPS = 12;
const MOST_KILLS = 6;
/** From the start to the last step it takes some 2 s on a quiet machine. */
const SPAN_MS = 1_500;
/** A step has two, and ends 100 ms after the second. */
const MOST_WORDS = 8;
const ESCAPES = ["none", "setsid", "double"] as const;

interface RandomJob {
  readonly steps: readonly JudgedStep[];
  readonly maxParallel: number;
  fileOf(job: string): Record<string, object>;
}

type Dice = () => number;

function pick<Value>(dice: Dice, values: readonly Value[]): Value {
  return values[Math.floor(dice() * values.length)] as Value;
}

/** In the file they stand in an order in which they could not run. */
function throwJob(dice: Dice): RandomJob {
  const count = 4 + Math.floor(dice() * (MOST_STEPS - 3));
  const steps: JudgedStep[] = [];
  for (let number = 0; number < count; number += 1) {
    const needs = steps.filter(() => dice() < 1.6 / count).map(({ name }) => name);
    steps.push({ name: `s${number}`, needs, effects: dice() < 0.5 ? "unsafe" : "none" });
  }
  const escapes = steps.map(() => pick(dice, ESCAPES));
  const artifactOf = (name: string): string[] => {
    const step = steps.find((one) => one.name === name);
    return step?.effects === "none" ? [`out-${name}`] : [];
  };
  const describeStep = ({ name, needs, effects }: JudgedStep, at: number, job: string): object => {
    const words = [String(server.port), job, name, "100", escapes[at] ?? "none"];
    const artifacts = artifactOf(name);
    const needed = artifacts.length === 0 ? [] : needs.flatMap(artifactOf);
    const command = ["bash", `${FIXTURES}/works-as-a-step.sh`, ...words, ...artifacts, ...needed];
    return { command, needs, artifacts, side_effects: effects };
  };
  return {
    steps,
    maxParallel: 1 + Math.floor(dice() * 3),
    fileOf: (job) => {
      const entries = steps.map((step, at) => [step.name, describeStep(step, at, job)] as const);
      return Object.fromEntries(entries.toReversed());
    },
  };
}

/** @returns the end of each of them, sorted by step */
function outcomeOf(job: JobPlace, { steps }: RandomJob): string[] {
  const states = job.steps().map((line) => line.split(" ").slice(0, 2).join(" "));
  const left = steps.flatMap(({ name, effects }) =>
    effects === "none" ? [`${name} ${readFileSync(job.path(`out-${name}`), "utf8")}`] : [],
  );
  return [...states, ...left].toSorted();
}

function findRunner({ pid }: Started): number | undefined {
  return readChildren(pid).find((one) => readCommandLine(one).includes("__job"));
}

/** What it leaves is ended by its watchdog. */
async function killRunner(run: Started): Promise<void> {
  const runner = findRunner(run);
  if (runner === undefined) return killAlone(run);
  process.kill(runner, "SIGKILL");
  await run.ended;
}

/** What they leave is ended by nobody before the next run. */
async function killAll(run: Started): Promise<void> {
  const runner = findRunner(run);
  if (runner !== undefined) process.kill(runner, "SIGKILL");
  await killWithGuard(run);
}

/** A runner that lives on for a moment may still write down how its step ends. */
const KILLS = [killAlone, killWithGuard, killRunner, killRunner, killAll, killAll];

/** What a person says who knows what the server has counted. */
async function decideByCount(job: JobPlace, name: string): Promise<string[]> {
  const status = await job.job("status", "--json");
  const { questions } = JSON.parse(status.stdout.toString());
  return questions.map(({ step }: { step: string }) => {
    const word = countWork(server.heardOf(name), step) > 0 ? "done" : "retry";
    return `--accept-unknown=${step}=${word}`;
  });
}

/** Killed early, there is no journal yet, or no table in it. */
function stateOf(job: JobPlace): string | undefined {
  if (!existsSync(databaseOf(job.scene))) return undefined;
  const tables = query(job.scene, "SELECT 1 FROM sqlite_master WHERE name = 'jobs'");
  return tables.length > 0 ? job.state() : undefined;
}

function isDone(job: JobPlace): boolean {
  return stateOf(job) === "done";
}

/**
 * A word is given only where one was asked for: the line alone must do no harm. Whoever was left
 * alive may still come to the end of the job, and `run` would begin another one: `resume` does not.
 */
async function startNext(job: JobPlace, name: string, isAsked: boolean): Promise<Started> {
  if (isAsked) return job.start("resume", ...(await decideByCount(job, name)));
  return job.start(stateOf(job) === undefined ? "run" : "resume");
}

async function runToTheEnd(job: JobPlace, name: string): Promise<Pick<Ended, "status">> {
  for (let isAsked = false; ; isAsked = true) {
    const ended = await (await startNext(job, name, isAsked)).ended;
    if (isDone(job)) return { status: 0 };
    if (ended.status !== 3) return ended;
  }
}

/** Some time after the start, or right after so many words of steps: half of them are effects. */
async function waitForMoment(dice: Dice, name: string): Promise<"now"> {
  if (dice() < 0.3) await Bun.sleep(dice() * SPAN_MS);
  else {
    const until = performance.now() + SPAN_MS;
    const count = server.heardOf(name).length + 1 + Math.floor(dice() * MOST_WORDS);
    const isNow = () => server.heardOf(name).length >= count || performance.now() > until;
    await waitFor(isNow, "a moment", { stepMs: 2 });
  }
  return "now";
}

/** For whoever reads of a failure: what was done to it, and what the journal says. */
function historyOf(job: JobPlace, story: readonly string[]): unknown[] {
  const attempts =
    "SELECT job_id, step, attempt, state, because, generation FROM step_attempts " +
    "ORDER BY started_at";
  const jobs = "SELECT job_id, state, because, generation FROM jobs";
  return [story, query(job.scene, jobs), query(job.scene, attempts)];
}

async function killAndGoOn(round: number): Promise<number> {
  const dice = seededRandom(SEED * 1_000 + round);
  const random = throwJob(dice);
  const more = { max_parallel: random.maxParallel };
  const [quietName, name] = [`quiet-${round}`, `killed-${round}`];
  const quiet = makeJob(scene, quietName, random.fileOf(quietName), more);
  const quietEnd = await quiet.job("run");
  expect([quietEnd.status, judge(server.heardOf(quietName), random.steps)]).toEqual([0, []]);

  const job = makeJob(scene, name, random.fileOf(name), more);
  let [kills, isAsked] = [0, false];
  const story: string[] = [];
  for (let turn = 0; turn < MOST_KILLS; turn += 1) {
    const run = await startNext(job, name, isAsked);
    const first = await Promise.race([waitForMoment(dice, name), run.ended]);
    if (first === "now") {
      const kill = pick(dice, KILLS);
      story.push(kill.name);
      await kill(run);
      kills += 1;
    }
    const { status, stderr } = await run.ended;
    isAsked = status === 3;
    story.push(`${status} ${stderr}`);
    // Half of the next runs meet the guard at its work.
    if (dice() < 0.5) await waitUntilNoGuard(job.scene);
    if (isDone(job)) break;
  }
  await waitUntilNoGuard(job.scene);
  const last = isDone(job) ? { status: 0 } : await runToTheEnd(job, name);
  const faults = judge(server.heardOf(name), random.steps);
  expect([last.status, faults, faults.length === 0 ? [] : historyOf(job, story)]).toEqual([
    0,
    [],
    [],
  ]);
  expect(outcomeOf(job, random)).toEqual(outcomeOf(quiet, random));
  expect(query(job.scene, "SELECT count(*) FROM jobs")).toEqual([[1]]);
  expect([job.lines("overlaps"), quiet.lines("overlaps")]).toEqual([[], []]);
  expect((await job.job("verify")).status).toBe(0);
  return kills;
}

const JOBS = Math.max(3, Math.floor(ROUNDS / 10));

test(
  `random jobs, killed at random moments, come to the end of an undisturbed run (seed ${SEED})`,
  async () => {
    let kills = 0;
    await inRounds(JOBS, async (round) => (kills += await killAndGoOn(round)), 2);
    expect(kills).toBeGreaterThanOrEqual(JOBS);
  },
  limitOf(JOBS, 20_000),
);

describe("the judge", () => {
  const steps: JudgedStep[] = [
    { name: "a", needs: [], effects: "unsafe" },
    { name: "b", needs: ["a"], effects: "none" },
  ];
  const hear = (...words: string[]) =>
    words.map((word) => {
      const event = word.endsWith("!") ? ("works" as const) : ("begins" as const);
      return { job: "j", step: word.replace("!", ""), event };
    });

  test.each([
    ["nothing of a good run", ["a", "a!", "b", "b!"], []],
    ["nothing of a step that runs again without harm", ["a", "a", "a!", "b", "b!", "b", "b!"], []],
    ["a step before what it needs", ["b", "b!", "a", "a!"], ["b before a"]],
    ["a step beside what it needs", ["a", "b", "a!", "b!"], ["b before a"]],
    ["an unsafe step that happens twice", ["a", "a!", "a", "a!", "b", "b!"], ["a 2 times"]],
    ["a step that never happens", ["a", "a!", "b"], ["b never"]],
  ])("finds %s", (_, words, wrong) => {
    expect(judge(hear(...words), steps)).toEqual(wrong);
  });

  test("hears of two that run at once", async () => {
    const words = [String(server.port), "twins", "s", "200", "setsid"];
    const start = () =>
      scene.startProgram(["bash", `${FIXTURES}/works-as-a-step.sh`, ...words], {
        cwd: scene.directory,
      }).ended;
    await Promise.all([start(), start()]);
    expect(readFileSync(scene.path("overlaps"), "utf8")).toBe("s\n");
    for (const pid of scene.findProcesses()) process.kill(pid, "SIGKILL");
  });
});

describe("orphans of a step that nobody has seen yet", () => {
  for (const escape of ["itself", "setsid", "double"]) {
    for (const whom of [["watchdog"], ["guard", "watchdog"], ["guard", "runner", "watchdog"]]) {
      test(`${escape}: without ${whom.join(", ")} they are gone before it runs again`, async () => {
        const name = `orphan-${escape}-${whom.length}`;
        const lock = scene.path(`${name}.lock`);
        const words = [`${FIXTURES}/orphans-itself.sh`, lock, escape, ...whom];
        const job = makeJob(scene, name, {
          s: { command: ["bash", ...words], side_effects: "none" },
        });
        const first = await job.start("run").ended;
        const [orphan] = await waitFor(
          () => job.lines("pids").length > 0 && job.lines("pids"),
          "it",
        );
        // With nobody above it, it lives: else there would be nothing to see.
        if (whom.length === 3) expect(isDead(Number(orphan))).toBe(false);
        expect([first.status, job.lines("log")]).toEqual([137, []]);
        const second = await job.job("run");
        expect([second.status, job.lines("log"), isDead(Number(orphan))]).toEqual([
          0,
          ["free"],
          true,
        ]);
        expect(job.steps()).toEqual(["s done exited 2"]);
      });
    }
  }

  test("the lock of the fixture is held by them: a stranger finds it so", async () => {
    const directory = scene.path("stranger");
    await Bun.$`mkdir ${directory}`;
    const lock = `${directory}/lock`;
    writeFileSync(`${directory}/orphaned`, "");
    const holder = scene.startProgram(["flock", lock, "sleep", "600"]);
    await waitFor(() => Bun.spawnSync(["flock", "-n", lock, "true"]).exitCode === 1, "the lock");
    const script = `${FIXTURES}/orphans-itself.sh`;
    const ended = await scene.startProgram(["bash", script, lock, "itself"], { cwd: directory })
      .ended;
    for (const pid of scene.findProcesses()) process.kill(pid, "SIGKILL");
    await holder.ended;
    expect([ended.status, readFileSync(`${directory}/log`, "utf8")]).toEqual([1, "overlaps\n"]);
  });
});
