/**
 * A tree of real processes that is made to stand still, and goes on again. Whether anything moves
 * is judged by the kernel's own numbers and by the files that the processes write, never by what
 * the freeze says.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { expectAllGoOn, type Freezing, openFreezing, statesBelow } from "../support/freezing.ts";
import { COUNTER, findMoving, listBelow, stateOf, waitForGrowth } from "../support/movement.ts";
import { python, readLines, waitForText } from "../support/processes.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import { FIXTURES, ROUNDS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start, counter } = openFreezing(import.meta.file);
const LIMIT_MS = 180_000;

const GROWING = ["main", "child", "own-session", "daemon", "below-shell", "threaded"];

/** A tree that grows in every way, and the files that its processes write. */
async function startGrowing(name: string): Promise<[Freezing, string[]]> {
  const directory = scene.path(name);
  mkdirSync(directory);
  const freezing = await start(python("grows-in-every-way.py", directory, ...COUNTER));
  const files = GROWING.map((one) => `${directory}/${one}`);
  for (const file of files) await waitForText(file);
  return [freezing, files];
}

describe("a tree that forks, daemonizes and changes its sessions", () => {
  test(
    "stands still when it is said to, and goes on after it, again and again",
    async () => {
      const [freezing, files] = await startGrowing("growing");
      for (let time = 1; time <= 3; time += 1) {
        const told = await freezing.freeze();
        expect(told["frozen"]).toBe(listBelow(freezing.pid).length);
        expect(await findMoving(freezing.pid, files)).toEqual([]);
        const { list } = await freezing.tell("thaw");
        expect(list).toEqual([]);
        await waitForGrowth(files);
        expectAllGoOn(freezing);
      }
      expect(freezing.told("bug")).toEqual([]);
      expect(freezing.told("incomplete")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "negative twin: one STOP to the main command alone leaves the others moving",
    async () => {
      const [freezing, files] = await startGrowing("stopped-main");
      await freezing.tell("stop main");
      await waitFor(() => stateOf(freezing.main) === "T", "the main command stopped");
      const moving = await findMoving(freezing.pid, files);
      for (const one of files.slice(1)) expect(moving).toContain(one);
      // It is stopped still, and not ours: it stays so after a pause.
      await freezing.freeze();
      expect(await findMoving(freezing.pid, files)).toEqual([]);
      await freezing.tell("thaw");
      await waitForGrowth(files.slice(1));
      expect(stateOf(freezing.main)).toBe("T");
    },
    LIMIT_MS,
  );

  test(
    "is met in every round",
    async () => {
      const [freezing, files] = await startGrowing("rounds");
      await inRounds(
        ROUNDS,
        async () => {
          await freezing.freeze();
          expect(Object.values(statesBelow(freezing)).join("")).toMatch(/^[TDZ]+$/);
          await freezing.tell("thaw");
          await waitForGrowth(files.slice(0, 1));
        },
        1,
      );
      expectAllGoOn(freezing);
    },
    limitOf(ROUNDS, 300),
  );
});

describe("while it stands still", () => {
  test(
    "a CONT from outside is answered by another STOP, and told anew",
    async () => {
      const [freezing, files] = await startGrowing("continued");
      await freezing.freeze();
      const pids = listBelow(freezing.pid);
      for (const pid of pids.toReversed()) process.kill(pid, "SIGCONT");
      await freezing.waitForFrozen(2);
      expect(await findMoving(freezing.pid, files)).toEqual([]);
      await freezing.tell("thaw");
      await waitForGrowth(files);
      expectAllGoOn(freezing);
    },
    LIMIT_MS,
  );

  test(
    "one that was stopped before goes on only if somebody else lets it",
    async () => {
      const freezing = await start(["sh", "-c", `${counter("before").join(" ")} & wait`]);
      await waitForText(scene.path("before"));
      const [pid = 0] = listBelow(freezing.pid).filter((one) => one !== freezing.main);
      process.kill(pid, "SIGSTOP");
      await waitFor(() => stateOf(pid) === "T", "one stopped before");
      await freezing.freeze();
      const frozen = freezing.told("did").at(-1)?.["list"] as { pid: number }[];
      expect(frozen.map((one) => one.pid)).toEqual([freezing.main]);
      await freezing.tell("thaw");
      expect([stateOf(pid), stateOf(freezing.main)]).toEqual(["T", expect.stringMatching(/[RS]/)]);
      // Continued in a pause it is one of ours from then on: it was meant to go on.
      await freezing.freeze();
      process.kill(pid, "SIGCONT");
      await freezing.waitForFrozen(3);
      expect(stateOf(pid)).toBe("T");
      await freezing.tell("thaw");
      await waitForGrowth([scene.path("before")]);
    },
    LIMIT_MS,
  );

  test(
    "a debugger's own process is left to it",
    async () => {
      const freezing = await start(counter("traced"));
      await waitForText(scene.path("traced"));
      const tracer = scene.startProgram(python("holds-by-ptrace.py", `${freezing.main}`));
      try {
        await waitFor(() => stateOf(freezing.main) === "t", "a traced process");
        await freezing.freeze();
        expect((await freezing.tell("list"))["list"]).toEqual([]);
      } finally {
        tracer.kill("SIGKILL");
        await tracer.ended;
      }
      // Without its tracer it goes on, and is stopped as everybody.
      await freezing.waitForFrozen(2);
      expect(stateOf(freezing.main)).toBe("T");
      await freezing.tell("thaw");
      await waitForGrowth([scene.path("traced")]);
    },
    LIMIT_MS,
  );

  test(
    "one that is killed is missed by nobody",
    async () => {
      const [freezing, files] = await startGrowing("killed");
      await freezing.freeze();
      const pid = listBelow(freezing.pid).find((one) => one !== freezing.main) ?? 0;
      process.kill(pid, "SIGKILL");
      await waitFor(() => "ZX".includes(stateOf(pid)), "its end");
      expect(await findMoving(freezing.pid, files)).toEqual([]);
      await freezing.tell("thaw");
      expectAllGoOn(freezing);
      expect((await freezing.tell("list"))["list"]).toEqual([]);
      expect(freezing.told("bug")).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("a shell with job control", () => {
  /** Says of each job that was waited for how it ended; a stopped one would be told as such. */
  const SCRIPT = [
    "set -m",
    "for round in 1 2 3 4 5 6 7 8; do",
    '  "$@" & job=$!',
    "  wait $job; echo $? >>$0.ended",
    "done",
    "echo done >$0.done",
  ].join("\n");

  test(
    "never hears that one of its jobs was stopped",
    async () => {
      const mark = scene.path("jobs");
      const freezing = await start(["bash", "-c", SCRIPT, mark, "sleep", "0.3"]);
      while (!existsSync(`${mark}.done`)) {
        await freezing.freeze();
        await freezing.tell("thaw");
      }
      expect(readLines(`${mark}.ended`)).toEqual(Array.from({ length: 8 }, () => "0"));
    },
    LIMIT_MS,
  );

  test(
    "negative twin: it hears of a STOP to the job alone",
    async () => {
      const mark = scene.path("jobs-stopped");
      const freezing = await start(["bash", "-c", SCRIPT, mark, "sleep", "0.3"]);
      await waitFor(() => {
        for (const pid of listBelow(freezing.pid)) {
          if (pid !== freezing.main) process.kill(pid, "SIGSTOP");
        }
        return readLines(`${mark}.ended`).some((line) => line !== "0");
      }, "a job that was told as stopped");
      for (const pid of listBelow(freezing.pid)) process.kill(pid, "SIGCONT");
    },
    LIMIT_MS,
  );
});

describe("a process that lives by fork and exit", () => {
  const HOPPER = makeHopper();

  function makeHopper(): readonly string[] {
    const target = scene.path("hopper");
    const source = `${FIXTURES}/hops-by-fork-and-exit.c`;
    const compiler = Bun.which("cc");
    const isMade =
      compiler !== null && Bun.spawnSync([compiler, "-O2", "-o", target, source]).success;
    return isMade ? [target] : python("hops-by-fork-and-exit.py");
  }

  test.each(["0", "300", "5000"])(
    "every %s µs is met, and hops on after it",
    async (delayUs) => {
      await inRounds(
        Math.ceil(ROUNDS / 4),
        async (round) => {
          const ready = scene.path(`hopper-${delayUs}-${round}`);
          const script = '"$@" & exec sleep 60';
          const words = [...HOPPER, delayUs, "40", ready];
          const freezing = await start(["sh", "-c", script, "sh", ...words]);
          await waitForText(ready);
          await freezing.freeze();
          const found = listBelow(freezing.pid);
          expect(found.length).toBeGreaterThanOrEqual(2);
          expect(await findMoving(freezing.pid)).toEqual([]);
          await freezing.tell("thaw");
          await waitFor(
            () => !found.every((pid) => listBelow(freezing.pid).includes(pid)),
            "another hop",
          );
          expect(readFileSync(ready, "utf8")).toBe("ready\n");
        },
        1,
      );
    },
    limitOf(ROUNDS, 3_000),
  );

  test(
    "is met among two hundred others, too",
    async () => {
      const ready = scene.path("hopper-among");
      const words = [...HOPPER, "100", "60", ready];
      const script = 'for one in $(seq 200); do (sleep 60 &); done; "$@" & exec sleep 60';
      const freezing = await start(["sh", "-c", script, "sh", ...words]);
      await waitForText(ready);
      // Of the hopper those that were stopped between fork and exit are still there, too.
      const { frozen } = await freezing.freeze();
      expect(frozen).toBeGreaterThanOrEqual(202);
      expect(freezing.told("incomplete")).toEqual([]);
      expect(await findMoving(freezing.pid)).toEqual([]);
      await freezing.tell("thaw");
    },
    LIMIT_MS,
  );

  test(
    "below another subreaper is met, too, whose dead nobody collects meanwhile",
    async () => {
      const ready = scene.path("hopper-below");
      const hopper = [...HOPPER, "0", "40", ready];
      const freezing = await start(python("adopts-orphans.py", ...hopper));
      await waitForText(ready);
      await freezing.freeze();
      expect(await findMoving(freezing.pid)).toEqual([]);
      await freezing.tell("thaw");
    },
    LIMIT_MS,
  );
});
