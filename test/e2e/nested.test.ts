/**
 * A run within a run: limits of the outer one hold for everything below, statuses pass through, and
 * nobody is told twice.
 */
import { expect, test } from "bun:test";
import {
  findByCommand,
  python,
  readLines,
  startWithoutTerminal,
  waitForText,
} from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;
const INNER = [RELEASE, "run", "--log", "off"];

test(
  "A-96: a run within a run runs its command and passes its status through",
  async () => {
    const echoed = await scene.run([
      "--log",
      "off",
      "--name",
      "a96",
      "--",
      ...INNER,
      "--name",
      "a96",
      "--",
      "echo",
      "inner",
    ]);
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
  "A-96: the limit of the outer run ends what the inner one started, its session leaders too",
  async () => {
    const script = "setsid sleep 96096 & sleep 96096";
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "1s", "--kill-after", "5s", ...scene.recordTo("outer")],
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
        ["--log", "off", "--timeout", "1500ms", "--kill-after", "1s", ...scene.recordTo("stopped")],
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

test(
  "when the inner run is killed, the outer one ends what it leaves",
  async () => {
    const pidFile = scene.path("killed.pid");
    const inner = [...INNER, "--", "sh", "-c", `'echo $PPID >${pidFile}; exec sleep 96098'`];
    const run = scene.start([
      "--log",
      "off",
      ...scene.recordTo("killed"),
      "--",
      "sh",
      "-c",
      `${inner.join(" ")}; exit 8`,
    ]);
    process.kill(Number(await waitForText(pidFile)), "SIGKILL");
    const ended = await run.ended;
    expect(ended.status).toBe(8);
    expect(findByCommand(scene, "sleep 96098")).toEqual([]);
    expect(scene.readRecord("killed")["leftovers"]).toMatchObject([{ command: "sleep 96098" }]);
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
