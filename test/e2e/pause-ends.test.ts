/**
 * A paused run that is asked to end: it ends as one that is not paused. Handlers of the command
 * run, the status is the command's own where it is without a pause, and the record says why.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { ask } from "../support/ask.ts";
import { COUNTER, findMoving, stateOf, waitForGrowth } from "../support/movement.ts";
import { PYTHON } from "../support/outside.ts";
import { openPausing, type PausingRun } from "../support/pausing.ts";
import { readLines, waitForText } from "../support/processes.ts";
import { FIXTURES } from "../support/scene.ts";
import { areStopped } from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
const NOTES = [PYTHON, "-I", "-S", `${FIXTURES}/notes-signals.py`];
/** Cleans up and leaves with 9; it is asked every few milliseconds. */
const CLEANS = `trap 'sleep 0.2; echo cleaned >>"$0.main"; exit 9' TERM INT QUIT HUP
  echo ready >>"$0.main"; while :; do sleep 0.02; done`;

interface Handling {
  readonly run: PausingRun;
  readonly file: string;
  readonly heard: () => readonly (readonly string[])[];
}

/** A main command with a clean-up, and a member of another session that notes what it hears. */
async function startHandling(name: string, args: readonly string[] = []): Promise<Handling> {
  const file = scene.path(name);
  const script = `setsid "$@" "$0.other" other TERM,INT,QUIT & ${CLEANS}`;
  const command = ["sh", "-c", script, file, ...NOTES];
  // No terminal, whoever runs the tests.
  const run = await start({ name, args: ["--log", "off", ...args], command, before: ["setsid"] });
  for (const one of ["main", "other"]) await waitForText(`${file}.${one}`);
  return {
    run,
    file,
    heard: () => ["main", "other"].map((one) => readLines(`${file}.${one}`)),
  };
}

/** The same with the dependency away, and without. */
const BOTH = [
  ["while it is paused", true],
  ["without a pause", false],
] as const;

async function pauseIf(isPaused: boolean, run: PausingRun): Promise<void> {
  if (!isPaused) return;
  await run.pause();
  expect(areStopped(run.members())).toBe(true);
}

/** Without what differs from run to run. */
function howItEnded(run: PausingRun): unknown {
  const { outcome, because, exit_status: status, status_of: whose, signals } = run.record();
  const sent = signals.map(({ signal, to, why }: Record<string, string>) => [signal, to, why]);
  return { outcome, because, status, whose, sent };
}

describe.each(BOTH)("%s", (_, isPaused) => {
  test.each([
    ["SIGTERM", "terminated", "TERM"],
    ["SIGINT", "interrupted", "INT"],
    ["SIGQUIT", "quit", "QUIT"],
  ] as const)(
    "%s has the handlers of everybody run, and the status is the command's",
    async (signal, because, name) => {
      const { run, heard } = await startHandling(`${name}-${isPaused}`);
      await pauseIf(isPaused, run);
      run.started.kill(signal);
      expect((await run.started.ended).status).toBe(9);
      const [main, other] = heard();
      expect(main).toEqual(["ready", "cleaned"]);
      expect(other?.slice(0, 2)).toEqual(["other ready", `other ${name}`]);
      expect(howItEnded(run)).toMatchObject({
        outcome: "stopped",
        because,
        status: 9,
        whose: "command",
        sent: expect.arrayContaining([[name, "tree", "forwarded"]]),
      });
      expect(run.record()["paused_ms"] > 0).toBe(isPaused);
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "`watchdog stop` ends it, and says so",
    async () => {
      const { run, heard } = await startHandling(`stop-${isPaused}`);
      await pauseIf(isPaused, run);
      const { status, stdout, stderr } = await ask(scene, ["stop", run.name]);
      expect([status, stdout.toString(), stderr]).toEqual([
        0,
        `stopped ${run.name} (run ${run.runId})\n`,
        "",
      ]);
      expect((await run.started.ended).status).toBe(9);
      expect(heard()).toEqual([
        ["ready", "cleaned"],
        ["other ready", "other TERM"],
      ]);
      expect(howItEnded(run)).toMatchObject({ outcome: "stopped", because: "terminated" });
    },
    LIMIT_MS,
  );

  test(
    "a second TERM kills a tree that ignores the first",
    async () => {
      const { run, file } = await startDeaf(`second-${isPaused}`, []);
      await pauseIf(isPaused, run);
      run.started.kill("SIGTERM");
      await waitForGrowth([file]);
      await waitFor(() => run.members().length > 0 && run.stopped().length === 0, "all going on");
      run.started.kill("SIGTERM");
      expect((await run.started.ended).status).toBe(137);
      expect(howItEnded(run)).toMatchObject({
        outcome: "stopped",
        because: "terminated",
        sent: [
          ["TERM", "tree", "forwarded"],
          ["KILL", "tree", "second-request"],
        ],
      });
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "--kill-after kills a tree that ignores TERM",
    async () => {
      const { run } = await startDeaf(`grace-${isPaused}`, ["--kill-after", "300ms"]);
      await pauseIf(isPaused, run);
      run.started.kill("SIGTERM");
      expect((await run.started.ended).status).toBe(137);
      expect(howItEnded(run)).toMatchObject({
        sent: [
          ["TERM", "tree", "forwarded"],
          ["KILL", "tree", "grace-over"],
        ],
      });
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "KILL to the main command ends what it leaves, by policy",
    async () => {
      const { run, heard } = await startHandling(`main-${isPaused}`);
      await pauseIf(isPaused, run);
      process.kill(run.main, "SIGKILL");
      const ended = await run.started.ended;
      expect(ended.status).toBe(137);
      expect(heard()[1]).toEqual(["other ready", "other TERM"]);
      expect(run.record()).toMatchObject({
        outcome: "signaled",
        signal: "KILL",
        leftovers: expect.arrayContaining([expect.objectContaining({ ended_by: "TERM" })]),
      });
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "KILL to the main command lets those go on that --leftovers leave leaves",
    async () => {
      const { run, file, left } = await startLeaving(`leave-${isPaused}`, "leave");
      await pauseIf(isPaused, run);
      process.kill(run.main, "SIGKILL");
      expect((await run.started.ended).status).toBe(137);
      await waitForGrowth([file]);
      expect(stateOf(left)).not.toBe("T");
      process.kill(left, "SIGKILL");
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "KILL to the main command leaves those as they are whom --leftovers wait waits for",
    async () => {
      const { run, file, left } = await startLeaving(`wait-${isPaused}`, "wait");
      await pauseIf(isPaused, run);
      process.kill(run.main, "SIGKILL");
      await waitFor(() => stateOf(run.main) === "X", "the end of the command");
      if (isPaused) {
        const asked = run.dependency.asked;
        await waitFor(() => run.dependency.asked > asked + 4, "more trials");
        expect(await findMoving(run.pid, [file])).toEqual([]);
        await run.resume();
      }
      await waitForGrowth([file]);
      process.kill(left, "SIGKILL");
      expect((await run.started.ended).status).toBe(137);
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );
});

/** A main command, and a member in a session of its own that counts in a file and may be left. */
async function startLeaving(name: string, leftovers: "wait" | "leave") {
  const file = scene.path(name);
  const run = await start({
    name,
    args: ["--log", "off", "--leftovers", leftovers],
    command: ["sh", "-c", 'setsid "$@" "$0" & exec sleep 92201', file, ...COUNTER],
    options: { stdout: "ignore", stderr: "ignore" },
  });
  await waitForText(file);
  const [left = 0] = run.members().filter((pid) => pid !== run.main);
  return { run, file, left };
}

/** It counts in a file, and ignores TERM; so does a member in a session of its own. */
async function startDeaf(name: string, args: readonly string[]) {
  const file = scene.path(name);
  const script = `trap "" TERM; setsid "$@" "$0.other" & exec "$@" "$0"`;
  const command = ["sh", "-c", script, file, ...COUNTER];
  const run = await start({ name, args: ["--log", "off", ...args], command });
  for (const one of [file, `${file}.other`]) await waitForText(one);
  return { run, file };
}

test(
  "a limit of the day ends it while it is paused, by TERM, and the handlers run",
  async () => {
    const at = new Date(Date.now() + 4_000).toISOString().slice(11, 19);
    const file = scene.path("night");
    const args = ["--log", "off", "--not-after", at];
    const options = { env: { TZ: "UTC" } };
    const run = await start({ name: "night", args, command: ["sh", "-c", CLEANS, file], options });
    await waitForText(`${file}.main`);
    await run.pause();
    const ended = await run.started.ended;
    expect([ended.status, readLines(`${file}.main`)]).toEqual([124, ["ready", "cleaned"]]);
    expect(howItEnded(run)).toEqual({
      outcome: "timeout",
      because: "not-after",
      status: 124,
      whose: "watchdog",
      sent: [["TERM", "tree", "limit"]],
    });
    expect(run.record()).toMatchObject({ exit_code: 9 });
  },
  LIMIT_MS,
);

test(
  "USR1 waits for the end of the pause, and CONT to watchdog does not end it",
  async () => {
    const heard = scene.path("usr1");
    const run = await start({ name: "usr1", command: [...NOTES, heard, "it", "USR1,CONT,TERM"] });
    await waitForText(heard);
    await run.pause();
    for (const signal of ["SIGUSR1", "SIGCONT"] as const) run.started.kill(signal);
    const asked = run.dependency.asked;
    await waitFor(() => run.dependency.asked > asked + 2, "more trials");
    expect([readLines(heard), stateOf(run.main)]).toEqual([["it ready"], "T"]);
    await run.resume();
    await waitFor(() => readLines(heard).length === 3, "both");
    expect(readLines(heard).slice(1).toSorted()).toEqual(["it CONT", "it USR1"]);
    run.started.kill("SIGTERM");
    expect((await run.started.ended).status).toBe(5);
  },
  LIMIT_MS,
);

test(
  "at the bound the tree goes on to hear its TERM, and the run ends with 69",
  async () => {
    const { run, heard } = await startHandling("bound", ["--probe-max-attempts", "6"]);
    run.dependency.isUp = false;
    const ended = await run.started.ended;
    expect(ended.status).toBe(69);
    expect(heard()).toEqual([
      ["ready", "cleaned"],
      ["other ready", "other TERM"],
    ]);
    expect(howItEnded(run)).toEqual({
      outcome: "dependency_down",
      because: "max-attempts",
      status: 69,
      whose: "watchdog",
      sent: [["TERM", "tree", "dependency-down"]],
    });
    const { exit_code: code, paused_ms: pausedMs, dependencies } = run.record();
    expect([code, pausedMs > 0, dependencies[0].state]).toEqual([9, true, "permanent"]);
    const names = run.events().map((event) => event.name);
    for (const one of ["circuit_open", "paused", "circuit_permanent", "dependency_down"]) {
      expect(names).toContain(one);
    }
    await run.waitUntilGone();
  },
  LIMIT_MS,
);

test(
  "whom a run waits for in the place of its command is paused as that would be",
  async () => {
    const [file, gate] = [scene.path("in-place"), scene.path("in-place.gate")];
    const waits = '"$@" "$0" & until [ -e "$0.gate" ]; do sleep 0.02; done; kill $!';
    const run = await start({
      name: "in-place",
      args: ["--log", "off", "--leftovers", "wait"],
      command: ["sh", "-c", `setsid sh -c '${waits}' "$0" "$@" & exit 4`, file, ...COUNTER],
      options: { stdout: "ignore", stderr: "ignore" },
    });
    await waitForText(file);
    await waitFor(() => stateOf(run.main) === "X", "the end of the command");
    for (let time = 0; time < 2; time += 1) {
      await run.pause();
      expect(await findMoving(run.pid, [file])).toEqual([]);
      await run.resume();
      await waitForGrowth([file]);
    }
    writeFileSync(gate, "");
    expect((await run.started.ended).status).toBe(4);
    const { outcome, paused_ms: pausedMs, leftovers } = run.record();
    expect([outcome, pausedMs > 0]).toEqual(["failed", true]);
    expect(leftovers.map((one: { ended_by: string | null }) => one.ended_by)).not.toContain("TERM");
  },
  LIMIT_MS,
);
