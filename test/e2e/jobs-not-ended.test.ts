/**
 * A step of which a process outlives KILL, because it has other rights: the job says so, starts
 * nothing beside it, and is gone on with when it is gone. Needs root and a C compiler to make such
 * a process, and says so where it has not got them.
 */
import { beforeAll, expect } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
} from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { harmless, unsafe } from "../support/job-place.ts";
import { isDead, readLines, waitForText } from "../support/processes.ts";
import { type Ended, FIXTURES, isRoot, openScene, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const NOBODY = 54_417;
const HELPER_S = 150;
/** Sparse: it takes no place, and longer to read than any test waits. */
const HUGE_BYTES = 2 ** 40;

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs a C compiler, not run here: steps of other rights");
const aloneTest = compiler === null ? () => undefined : rootTest;

const tools = scene.path("tools");
const helper = `${tools}/becomes-root`;

beforeAll(() => {
  if (!isRoot || compiler === null) return;
  mkdirSync(tools, { mode: 0o755 });
  chmodSync(scene.directory, 0o711);
  const source = `${FIXTURES}/becomes-root.c`;
  expect(Bun.spawnSync([compiler, "-O2", "-o", helper, source]).success).toBe(true);
  chmodSync(helper, 0o4755);
}, LIMIT_MS);

interface HeldJob {
  /** What it says goes to the file `told`, where its steps may read it. */
  run(
    verb: string,
    ...options: readonly string[]
  ): Promise<{ readonly status: number; readonly told: string }>;
  lines(name: string): string[];
  path(name: string): string;
  /** `a done exited 1`, as `job status` tells. */
  steps(): Promise<string[]>;
  state(): Promise<string>;
  record(): Record<string, unknown>;
  /** Of the process that may not be signalled, as it stands in a message. */
  named(): Promise<string>;
  /** Ends it, as only root can, and proves that it was still there. */
  endHelper(): Promise<void>;
}

/** Starts the helper behind the back of a step, and waits until it is what it must be. */
const leave = (pid: string): string =>
  `${helper} ${HELPER_S} ${pid} & until [ -s ${pid} ]; do sleep 0.02; done`;

async function makeHeld(name: string, steps: object, more: object = {}): Promise<HeldJob> {
  const binary = await shareBinary(scene);
  const directory = scene.path(name);
  const path = (file: string): string => `${directory}/${file}`;
  mkdirSync(directory);
  await Bun.write(path("job.json"), JSON.stringify({ name, ...more, steps }));
  chownSync(directory, NOBODY, NOBODY);
  const start = (words: readonly string[], stderr?: number): Promise<Ended> =>
    scene.startProgram([...asUser(NOBODY), binary, "job", ...words, path("job.json")], {
      cwd: directory,
      env: { HOME: directory, WATCHDOG_STATE_DIR: path("state") },
      ...(stderr === undefined ? {} : { stderr }),
    }).ended;
  const run = async (verb: string, ...options: readonly string[]) => {
    const told = openSync(path("told"), "w", 0o644);
    const words = [verb, "--kill-after=200ms", `--result-file=${path("result.json")}`, ...options];
    const { status } = await start(words, told).finally(() => closeSync(told));
    return { status, told: readFileSync(path("told"), "utf8") };
  };
  const status = async () => JSON.parse((await start(["status", "--json"])).stdout.toString());
  const pid = async (): Promise<number> => Number(await waitForText(path("pid")));
  return {
    run,
    lines: (file) => readLines(path(file)),
    path,
    steps: async () =>
      (await status()).steps.map((one: Record<string, unknown>) =>
        [one["step"], one["state"], one["because"] ?? "-", one["attempt"]].join(" "),
      ),
    state: async () => (await status()).state,
    record: () => JSON.parse(readFileSync(path("result.json"), "utf8")),
    named: async () => `${await pid()} ${helper} ${HELPER_S} pid`,
    endHelper: async () => {
      const found = await pid();
      expect(existsSync(`/proc/${found}`)).toBe(true);
      process.kill(found, "SIGKILL");
      await waitFor(() => isDead(found), "the end of the helper");
      rmSync(path("pid"));
    },
  };
}

const quick = { kill_after: "200ms" };
const NOT_ENDED = { outcome: "wrapper_error", because: "step-not-ended", exit_status: 125 };

aloneTest(
  "the job stops with 125 and names it, and goes on when it is gone",
  async () => {
    const job = await makeHeld("stops", {
      a: harmless(`echo a >>log; ${leave("pid")}`, quick),
      b: harmless("echo b >>log", { needs: ["a"] }),
      c: harmless("echo c >>log"),
    });
    const first = await job.run("run");
    const named = await job.named();
    expect(first.status).toBe(125);
    expect(first.told).toContain(`watchdog: step a: processes outlived even KILL: ${named}\n`);
    expect(first.told).toContain("nothing is started beside what outlived KILL; left to do: b, c");
    expect(first.told).toContain(`hint: watchdog job resume ${job.path("job.json")}`);
    expect(job.record()).toMatchObject({ ...NOT_ENDED, status_of: "watchdog" });
    expect(job.lines("log")).toEqual(["a"]);
    expect(await job.steps()).toEqual(["a done exited 1", "b pending - 0", "c pending - 0"]);
    expect(await job.state()).toBe("interrupted");
    // Nobody begins beside it, either.
    expect([(await job.run("resume")).status, job.lines("log")]).toEqual([75, ["a"]]);
    await job.endHelper();
    expect((await job.run("resume")).status).toBe(0);
    expect(job.lines("log")).toEqual(["a", "b", "c"]);
  },
  LIMIT_MS,
);

aloneTest(
  "what runs beside it comes to its own end, and nothing is started after that",
  async () => {
    const isOver = "grep -q 'outlived even KILL' told";
    const job = await makeHeld(
      "beside",
      {
        a: harmless(`echo a >>log; ${leave("pid")}`, quick),
        b: harmless(`echo b >>log; until ${isOver}; do sleep 0.02; done; echo end >>log`, quick),
        c: harmless("echo c >>log", { needs: ["b"] }),
        waits: harmless("echo waits >>log; exit 4", { retries: 3, backoff: "1h" }),
        reads: harmless("echo reads >>log", { inputs: ["huge"] }),
        d: harmless("echo d >>log"),
      },
      { max_parallel: 4 },
    );
    await Bun.write(job.path("huge"), "");
    truncateSync(job.path("huge"), HUGE_BYTES);
    const ended = await job.run("run");
    expect([ended.status, job.lines("log").toSorted()]).toEqual([125, ["a", "b", "end", "waits"]]);
    expect(job.record()).toMatchObject(NOT_ENDED);
    expect(await job.steps()).toEqual([
      "a done exited 1",
      "b done exited 1",
      "c pending - 0",
      "waits failed exited 1",
      "reads pending - 0",
      "d pending - 0",
    ]);
    // It is none of the other's.
    expect(ended.told).not.toContain("step b:");
    await job.endHelper();
  },
  LIMIT_MS,
);

aloneTest(
  "what would be tried again is not, and what was left to do decides the status",
  async () => {
    const stays = `exec ${helper} ${HELPER_S} pid`;
    const slow = harmless(`echo a >>log; ${stays}`, { ...quick, timeout: "1s" });
    const again = await makeHeld("again", { a: { ...slow, retries: 3, backoff: "10ms" } });
    const held = await again.run("run");
    expect([held.status, again.lines("log"), await again.steps()]).toEqual([
      125,
      ["a"],
      ["a failed timeout 1"],
    ]);
    expect(held.told).toContain(`processes outlived even KILL: ${await again.named()}\n`);
    expect(held.told).not.toContain("tried again");
    await again.endHelper();
    // Begun for this step alone, it is not over with it.
    const only = await makeHeld("only", { a: { ...slow, retries: 3 }, b: harmless("true") });
    expect((await only.run("run", "--only=a")).status).toBe(125);
    await only.endHelper();
    const resumed = await only.run("run");
    expect([resumed.status, only.lines("log")]).toEqual([125, ["a", "a"]]);
    expect(resumed.told).toContain("watchdog: job only goes on where it was");
    await only.endHelper();
    // As a plain run: nothing was kept back, and the limit has decided.
    const once = await makeHeld("once", { a: slow, b: harmless("echo b >>log", { needs: ["a"] }) });
    expect([(await once.run("run")).status, await once.steps()]).toEqual([
      124,
      ["a failed timeout 1", "b blocked - 0"],
    ]);
    await once.endHelper();
    // Nor where all was done.
    const last = await makeHeld("last", { a: harmless(`echo a >>log; ${leave("pid")}`, quick) });
    expect([(await last.run("run")).status, await last.state()]).toEqual([0, "done"]);
    await last.endHelper();
  },
  LIMIT_MS,
);

const OF_SETTLE = "watchdog: settle of step pay: processes outlived even KILL: ";

aloneTest(
  "a settle that leaves it keeps everything back within the run",
  async () => {
    const job = await makeHeld("settle", {
      pay: unsafe("echo pay >>log; kill -9 $$", {
        ...quick,
        settle: `echo asked >>log; ${leave("pid")}; exit 1`,
        retries: 3,
        backoff: "10ms",
      }),
      after: harmless("echo after >>log"),
    });
    const first = await job.run("run");
    expect([first.status, job.lines("log")]).toEqual([125, ["pay", "asked"]]);
    expect(first.told).toContain(`${OF_SETTLE}${await job.named()}\n`);
    expect(await job.steps()).toEqual(["pay failed settled-not-happened 1", "after pending - 0"]);
    await job.endHelper();
  },
  LIMIT_MS,
);

aloneTest(
  "no settle is asked beside it, and one that leaves it before the first step is asked again",
  async () => {
    const asked = `echo asked >>log; [ -e paid ] && exit 0; ${leave("pid")}; exit 0`;
    const pay = { ...quick, timeout: "1s", settle: asked };
    const job = await makeHeld("question", {
      pay: unsafe(`echo pay >>log; exec ${helper} ${HELPER_S} pid`, pay),
      after: harmless("echo after >>log"),
    });
    const interrupted = ["pay interrupted timeout 1", "after pending - 0"];
    expect([(await job.run("run")).status, job.lines("log")]).toEqual([125, ["pay"]]);
    expect(await job.steps()).toEqual(interrupted);
    await job.endHelper();
    const second = await job.run("resume");
    expect([second.status, job.lines("log")]).toEqual([125, ["pay", "asked"]]);
    expect(second.told).toContain(`${OF_SETTLE}${await job.named()}\n`);
    expect(job.record()).toMatchObject(NOT_ENDED);
    expect(await job.steps()).toEqual(interrupted);
    await job.endHelper();
    await Bun.write(job.path("paid"), "");
    expect((await job.run("resume")).status).toBe(0);
    expect(job.lines("log")).toEqual(["pay", "asked", "asked", "after"]);
  },
  LIMIT_MS,
);
