/**
 * A run within a run: limits of the outer one hold for everything below, statuses pass through, and
 * nobody is told twice.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { roundEntry, roundVariable } from "../support/killing.ts";
import {
  findByCommand,
  findGuardOf,
  isDead,
  python,
  readLines,
  startWithoutTerminal,
  waitForText,
} from "../support/processes.ts";
import { PYTHON } from "../support/outside.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import { findCarriers, openScene, RELEASE, ROUNDS, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = limitOf(ROUNDS, 300);
const INNER = [RELEASE, "run", "--log", "off"];

test(
  "A-96: a run within a run runs its command and passes its status through",
  async () => {
    const echoed = await scene.run(
      [
        ["--log", "off", "--name", "a96-outer", "--", ...INNER, "--name", "a96-inner"],
        ["--", "echo", "inner"],
      ].flat(),
    );
    expect(echoed.status).toBe(0);
    expect(echoed.stdout.toString()).toBe("inner\n");
    expect(echoed.stderr).toBe("");
    const nine = await scene.run(["--log", "off", "--", ...INNER, "--", "sh", "-c", "exit 9"]);
    expect(nine.status).toBe(9);
    const killed = await scene.run([
      "--log",
      "off",
      "--",
      ...INNER,
      "--",
      "sh",
      "-c",
      "kill -KILL $$",
    ]);
    expect(killed.status).toBe(137);
    expect(killed.signal).toBe("SIGKILL");
  },
  LIMIT_MS,
);

test(
  "A-96: a run within a run of the same name is refused at once, also where it would wait",
  async () => {
    const mark = scene.path("a96.ran");
    for (const wait of [[], ["--wait", "1h"]]) {
      const ended = await scene.run(
        [
          ["--log", "off", "--name", "a96", "--"],
          [...INNER, ...wait, ...scene.recordTo("a96"), "--name", "a96", "--", "touch", mark],
        ].flat(),
      );
      expect([wait, ended.status, existsSync(mark)]).toEqual([wait, 75, false]);
      expect(ended.stderr).toMatch(
        /^watchdog: not started: job:a96 is held by a run around this one: .*wait for itself\n$/,
      );
      expect(scene.readRecord("a96")).toMatchObject({
        outcome: "locked",
        exit_status: 75,
        status_of: "watchdog",
        held_by: { key: "job:a96" },
      });
    }
    const without = [...INNER, "--no-lease", "--name", "a96", "--", "touch", mark];
    const ended = await scene.run(["--log", "off", "--name", "a96", "--", ...without]);
    expect([ended.status, ended.stderr, existsSync(mark)]).toEqual([0, "", true]);
  },
  LIMIT_MS,
);

test(
  "A-96: the limit of the outer run ends what the inner one started, its session leaders too",
  async () => {
    const script = "setsid sleep 96096 & sleep 96096";
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "3s", "--kill-after", "5s", ...scene.recordTo("outer")],
        ["--", ...INNER, "--timeout", "60s", "--", "sh", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("outer");
    expect(ended.status).toBe(124);
    expect(record["outcome"]).toBe("timeout");
    expect(findByCommand(scene, "sleep 96096")).toEqual([]);
    // TERM alone did it: the inner run passed it on.
    expect(record["signals"]).toHaveLength(1);
  },
  LIMIT_MS,
);

test(
  "the outer limit ends also an inner run that is stopped, and a tree below it that ignores TERM",
  async () => {
    const ready = scene.path("stopped.ready");
    // $PPID is the inner run: it is stopped from below and can pass nothing on.
    const script = `trap "" TERM; echo ready >${ready}; kill -STOP $PPID; exec sleep 96097`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "6s", "--kill-after", "1s", ...scene.recordTo("stopped")],
        ["--", ...INNER, "--", "sh", "-c", script],
      ].flat(),
    );
    expect(await waitForText(ready)).toBe("ready\n");
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 96097")).toEqual([]);
    expect(scene.findProcesses()).toEqual([]);
  },
  LIMIT_MS,
);

/** An inner run that tells its pid, and an outer one whose command ends by 8 after it. */
function startBoth(name: string): { readonly run: Started; readonly innerPid: Promise<number> } {
  const pidFile = scene.path(`${name}.pid`);
  const inner = [...INNER, ...scene.recordTo(`${name}-inner`), "--", "sh", "-c"];
  const script = `${inner.join(" ")} 'echo $PPID >${pidFile}; exec sleep 96098'; exit 8`;
  const words = ["--log", "off", ...scene.recordTo(name), "--", "sh", "-c", script];
  const run = scene.start(words, { env: roundVariable(name) });
  return { run, innerPid: waitForText(pidFile).then(Number) };
}

test(
  "when the inner run is killed, its guard ends what it leaves, and the outer one lets it",
  async () => {
    await inRounds(ROUNDS, async (round) => {
      const { run, innerPid } = startBoth(`killed-${round}`);
      const inner = await innerPid;
      // Until it runs its own program nobody can know it as a guard.
      await waitFor(() => findGuardOf(inner), "the guard of the inner run");
      process.kill(inner, "SIGKILL");
      const ended = await run.ended;
      expect([ended.status, ended.stderr.replace(/^Killed\n/, "")]).toEqual([8, ""]);
      expect(findCarriers(roundEntry(`killed-${round}`))).toEqual([]);
      expect(scene.readRecord(`killed-${round}`)).toMatchObject({ leftovers: [], exit_code: 8 });
      expect(scene.readRecord(`killed-${round}-inner`)).toMatchObject({
        state: "ended",
        outcome: "abandoned",
      });
    });
    expect(findByCommand(scene, "sleep 96098")).toEqual([]);
    expect(scene.findProcesses()).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "a guard is waited for also while it shows no words: its memory file tells it",
  async () => {
    // As in exec or in state D. The name and the descriptor are those of a guard.
    const guard = `import os, time
os.dup2(os.memfd_create("watchdog-guard", 0), 8)
open("$READY", "w").write("ready")
time.sleep(0.6)`;
    const runWith = (text: string, name: string) => {
      const ready = scene.path(`${name}.ready`);
      const python = `${PYTHON} -I -S -c '${text.replace("$READY", ready)}'`;
      const script = `${python} & until [ -s ${ready} ]; do sleep 0.02; done; exit 8`;
      return scene.run(["--log", "off", "--", "sh", "-c", script]);
    };
    const [waited, twin] = await Promise.all([
      runWith(guard, "wordless"),
      runWith(guard.replace(", 8)", ", 7)"), "wordless-twin"),
    ]);
    expect([waited.status, waited.stderr]).toEqual([8, ""]);
    expect(twin.stderr).toMatch(/^watchdog: ended 1 process left by the command: /);
  },
  LIMIT_MS,
);

test(
  "when the inner run is killed and its guard cannot act, the outer one ends what both leave",
  async () => {
    const { run, innerPid } = startBoth("unguarded");
    const inner = await innerPid;
    const guard = await waitFor(() => findGuardOf(inner), "the guard of the inner run");
    process.kill(guard, "SIGSTOP");
    process.kill(inner, "SIGKILL");
    const ended = await run.ended;
    expect(ended.status).toBe(8);
    expect(findByCommand(scene, "sleep 96098")).toEqual([]);
    expect(isDead(guard)).toBe(true);
    const { leftovers } = scene.readRecord("unguarded");
    expect(leftovers).toContainEqual(expect.objectContaining({ command: "sleep 96098" }));
    expect(scene.readRecord("unguarded-inner")).toMatchObject({ state: "running" });
  },
  LIMIT_MS,
);

test(
  "a TERM to the outer run arrives once below the inner one",
  async () => {
    const heard = scene.path("once.heard");
    const run = startWithoutTerminal(
      scene,
      [
        ["--log", "off", ...scene.recordTo("once"), "--", ...INNER, "--"],
        ...python("notes-signals.py", heard, "main", "TERM", "INT,TERM"),
      ].flat(),
    );
    const hears = (line: string): boolean => readLines(heard).includes(line);
    await waitFor(() => hears("main ready") && hears("child ready"), "both to be ready");
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(ended.status).toBe(5);
    expect(
      readLines(heard)
        .filter((line) => line.endsWith("TERM"))
        .sort(),
    ).toEqual(["child TERM", "main TERM"]);
    expect(scene.readRecord("once")["signals"]).toMatchObject([
      { signal: "TERM", to: "tree", count: 1, why: "forwarded" },
    ]);
  },
  LIMIT_MS,
);

test(
  "the ids of the runs around a command stand in its environment, outermost first",
  async () => {
    const ended = await scene.run(
      [
        ["--log", "off", ...scene.recordTo("path"), "--", ...INNER, "--"],
        ["sh", "-c", `echo "$WATCHDOG_RUN_PATH $WATCHDOG_RUN_ID"`],
      ].flat(),
    );
    const [path, id] = ended.stdout.toString().trim().split(" ");
    expect(path).toBe(`${scene.readRecord("path")["run_id"]}/${id}`);
  },
  LIMIT_MS,
);
