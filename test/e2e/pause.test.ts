/**
 * `--on-open pause`: the whole tree stands still while its dependency is away, and goes on when it
 * is back. Trees of every kind; whether anything moves is judged by the kernel's own numbers and by
 * the files that the processes write.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { endAll } from "../support/guarded-scene.ts";
import { killAlone } from "../support/killing.ts";
import { COUNTER, findMoving, stateOf, statesOf, waitForGrowth } from "../support/movement.ts";
import { PYTHON } from "../support/outside.ts";
import { openPausing, type PausingRun } from "../support/pausing.ts";
import { python, readLines, waitForText } from "../support/processes.ts";
import { FIXTURES, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start, counter } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
const NODE = Bun.which("node") ?? process.execPath;
/** Both ends of it count, each in a file of the directory $0. */
const PIPELINE = `n=0; while :; do n=$((n + 1)); echo $n >"$0/first"; echo $n; done |
  cat | while read -r n; do echo "$n" >"$0/last"; done`;

interface Kind {
  readonly title: string;
  /** It writes files into the directory. */
  command(directory: string): readonly string[];
  /** Their names. */
  readonly files: readonly string[];
}

const KINDS: readonly Kind[] = [
  {
    title: "a tree that forks, daemonizes and changes its sessions",
    command: (directory) => python("grows-in-every-way.py", directory, ...COUNTER),
    files: ["main", "child", "own-session", "daemon", "below-shell", "threaded"],
  },
  {
    title: "a pipeline",
    command: (directory) => ["sh", "-c", PIPELINE, directory],
    files: ["first", "last"],
  },
  {
    title: "node and Python, each with a child in a session of its own",
    command: (directory) => {
      const words = [NODE, `${FIXTURES}/keeps-writing.mjs`, PYTHON, `${FIXTURES}/keeps-writing.py`];
      const script = '"$1" "$2" "$0/node" tree & exec "$3" "$4" "$0/python" tree';
      return ["sh", "-c", script, directory, ...words];
    },
    files: ["node", "python"],
  },
  {
    title: "a nested run and its command",
    command: (directory) => {
      const inner = [RELEASE, "run", "--log", "off", "--name", "nested", "--"];
      const script = '"$1" "$2" "$0/below" & exec "$1" "$2" "$0/nested"';
      return [...inner, "sh", "-c", script, directory, ...COUNTER];
    },
    files: ["nested", "below"],
  },
];

async function startKind(
  kind: Kind,
  name: string,
): Promise<{ run: PausingRun; files: readonly string[] }> {
  const directory = scene.path(name);
  mkdirSync(directory);
  const run = await start({ name, args: ["--log", "off"], command: kind.command(directory) });
  const files = kind.files.map((one) => `${directory}/${one}`);
  for (const file of files) await waitForText(file);
  return { run, files };
}

/** By the guard, which ends whatever there is at once. */
async function end(run: PausingRun): Promise<void> {
  await killAlone(run.started);
  await run.waitUntilGone();
}

describe("the dependency is away", () => {
  test.each(KINDS.map((kind, index) => [kind.title, kind, `kind-${index}`] as const))(
    "%s stands still, and goes on when it is back, twice",
    async (_, kind, name) => {
      const { run, files } = await startKind(kind, name);
      for (let time = 0; time < 2; time += 1) {
        await run.pause();
        const members = run.members();
        expect(members.length).toBeGreaterThan(1);
        expect(statesOf(members)).toMatch(/^[TD]+$/);
        expect(statesOf(run.guards())).toMatch(/^S+$/);
        expect(await findMoving(run.pid, files)).toEqual([]);
        await run.resume();
        await waitForGrowth(files);
        await waitFor(() => run.stopped().length === 0, "nobody that stands still");
      }
      await end(run);
    },
    LIMIT_MS,
  );

  test(
    "negative twin: without --on-open pause the same tree moves on",
    async () => {
      const [kind] = KINDS;
      if (kind === undefined) throw new Error("no kind of tree");
      const directory = scene.path("told");
      mkdirSync(directory);
      const args = ["--log", "off", "--on-open", "notify"];
      const run = await start({ name: "told", args, command: kind.command(directory) });
      const files = kind.files.map((one) => `${directory}/${one}`);
      for (const file of files) await waitForText(file);
      run.dependency.isUp = false;
      await waitFor(() => run.events("circuit_open").length > 0, "an open circuit");
      const moving = await findMoving(run.pid, files);
      for (const file of files) expect(moving).toContain(file);
      expect(run.events("paused")).toEqual([]);
      await end(run);
    },
    LIMIT_MS,
  );

  test.each(["0", "3000"])(
    "a process that lives by fork and exit every %s µs is met, and hops on",
    async (delayUs) => {
      const ready = scene.path(`hopper-${delayUs}`);
      const hopper = [...HOPPER, delayUs, "60", ready];
      const name = `hopper-${delayUs}`;
      const command = ["sh", "-c", '"$@" & exec sleep 92001', "sh", ...hopper];
      const run = await start({ name, args: ["--kill-after", "0"], command });
      await waitForText(ready);
      for (let time = 0; time < 3; time += 1) {
        await run.pause();
        const found = run.members();
        // Some of those that have forked may be stopped before they exit.
        expect(statesOf(found)).toMatch(/^TT+$/);
        expect(await findMoving(run.pid)).toEqual([]);
        await run.resume();
        await waitFor(() => !found.every((pid) => run.members().includes(pid)), "another hop");
      }
      // By its watchdog, which meets a hopper for certain. Of a guard that is not promised.
      run.started.kill("SIGTERM");
      await run.started.ended;
      expect(await waitForText(ready)).toBe("ready\n");
    },
    LIMIT_MS,
  );
});

const HOPPER = makeHopper();

/** Compiled where there is a compiler; the same in Python is slower. */
function makeHopper(): readonly string[] {
  const [source, target] = [`${FIXTURES}/hops-by-fork-and-exit.c`, scene.path("hopper")];
  const compiler = Bun.which("cc");
  const isMade =
    compiler !== null && Bun.spawnSync([compiler, "-O2", "-o", target, source]).success;
  return isMade ? [target] : python("hops-by-fork-and-exit.py");
}

describe("whoever", () => {
  test(
    "was stopped by the job itself stays stopped, and the others go on",
    async () => {
      const [file, own] = [scene.path("own-stop"), scene.path("own-main")];
      const script = `"$@" "$0" & kill -STOP $!; exec "$@" "${own}"`;
      const run = await start({ name: "own", command: ["sh", "-c", script, file, ...COUNTER] });
      await waitForText(own);
      const stopped = await waitFor(() => run.stopped()[0], "one that the job has stopped");
      for (let time = 0; time < 2; time += 1) {
        await run.pause();
        expect(statesOf(run.members())).toBe("TT");
        await run.resume();
        await waitForGrowth([own]);
        await waitFor(
          () => String(run.stopped()) === String(stopped),
          "no other that stands still",
        );
      }
      process.kill(stopped, "SIGCONT");
      await waitForText(file);
      await end(run);
    },
    LIMIT_MS,
  );

  test(
    "is continued from outside is stopped again",
    async () => {
      const file = scene.path("continued");
      const run = await start({ name: "continued", command: counter("continued") });
      await waitForText(file);
      await run.pause();
      process.kill(run.main, "SIGCONT");
      await waitForGrowth([file]);
      await waitFor(() => stateOf(run.main) === "T", "its next stop");
      expect(await findMoving(run.pid, [file])).toEqual([]);
      await run.resume();
      await waitForGrowth([file]);
      await end(run);
    },
    LIMIT_MS,
  );

  const spared = scene.path("spared");
  const count = `${COUNTER.join(" ")} ${spared}`;

  test.each([
    ["was kept", { script: `${RELEASE} keep -- ${count}; exec "$@"`, before: [] }],
    [
      "was there before the run",
      { script: 'exec "$@"', before: ["sh", "-c", `${count} >/dev/null 2>&1 & exec "$@"`, "sh"] },
    ],
  ] as const)(
    "%s is never stopped, and neither is the guard",
    async (title, { script, before }) => {
      const name = title.replaceAll(" ", "-");
      rmSync(spared, { force: true });
      const main = scene.path(name);
      const command = ["sh", "-c", script, "sh", ...counter(name)];
      const run = await start({ name, before, command });
      for (const file of [spared, main]) await waitForText(file);
      for (let time = 0; time < 2; time += 1) {
        await run.pause();
        await waitForGrowth([spared]);
        const moving = await findMoving(run.pid, [spared, main]);
        expect([moving.includes(spared), moving.includes(main)]).toEqual([true, false]);
        expect([stateOf(run.main), statesOf(run.guards())]).toEqual(["T", "S"]);
        await run.resume();
        await waitForGrowth([spared, main]);
      }
      run.started.kill("SIGTERM");
      await run.started.ended;
      const left = run.findAll();
      expect(left).toHaveLength(1);
      await endAll(scene, left);
    },
    LIMIT_MS,
  );
});

const TIMES = 10;

test(
  "ten times away and back leave everybody alive and going on, and paused_ms is the sum",
  async () => {
    const [gate, heard] = [scene.path("flapping.gate"), scene.path("flapping.heard")];
    const hearing = [PYTHON, "-I", `${FIXTURES}/hears-every-signal.py`, heard];
    const script = 'setsid "$@" other "$0" & "$@" main "$0"; wait';
    const command = ["sh", "-c", script, gate, ...hearing];
    const run = await start({ name: "flapping", command });
    await waitFor(() => readLines(heard).length === 2, "both to be ready");
    const members = run.members();
    const linesOf = (name: string) => readLines(heard).filter((line) => line.startsWith(name));
    const countHeard = (name: string): number => linesOf(name).length;
    let [shortest, longest] = [0, 0];
    for (let time = 0; time < TIMES; time += 1) {
      const began = performance.now();
      const before = ["main", "other"].map(countHeard);
      await run.pause();
      const pausedAt = performance.now();
      const asked = run.dependency.asked;
      await waitFor(() => run.dependency.asked >= asked + 2, "more trials");
      expect(statesOf(members)).toBe("TTT");
      shortest += performance.now() - pausedAt;
      await run.resume();
      longest += performance.now() - began;
      // A STOP takes away a CONT that was not heard yet (signal(7)).
      const haveHeard = () =>
        ["main", "other"].every((name, index) => countHeard(name) > (before[index] ?? 0));
      await waitFor(haveHeard, "both to have heard that they go on");
    }
    expect(run.members()).toEqual(members);
    await waitFor(() => run.stopped().length === 0, "nobody that stands still");
    writeFileSync(gate, "");
    expect((await run.started.ended).status).toBe(0);
    const resumed = run.events("resumed");
    const { outcome, paused_ms: pausedMs, signals } = run.record();
    expect([outcome, signals]).toEqual(["ok", []]);
    expect(Math.round(pausedMs)).toBe(resumed.at(-1)?.data["paused_ms"]);
    expect([pausedMs > shortest, pausedMs < longest]).toEqual([true, true]);
    // Each has heard as many CONT as there were pauses, and nothing else; of a pause that a slow
    // answer has brought, perhaps none.
    for (const name of ["main", "other"]) {
      const [first, ...rest] = linesOf(name);
      expect([first, new Set(rest)]).toEqual([`${name} ready`, new Set([`${name} SIGCONT`])]);
      expect(rest.length).toBeWithin(TIMES, resumed.length + 1);
    }
  },
  LIMIT_MS,
);
