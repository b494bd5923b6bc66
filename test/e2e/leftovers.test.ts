/**
 * What happens to processes that are alive when the command has ended: each policy of
 * `--leftovers`, its one line on standard error, and its record.
 */
import { expect, test } from "bun:test";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const QUIET = "</dev/null >/dev/null 2>&1";

/** Runs a command that leaves these commands behind and exits with 4. */
async function runLeaving(name: string, args: readonly string[], left: readonly string[]) {
  const starts = left.map((command) => `setsid ${command} ${QUIET} &`).join("\n");
  // The descendants have become what they are called before the command leaves.
  const wait = left.map((c) => `until pgrep -fx '${c}' >/dev/null; do :; done`).join("\n");
  const ended = await scene.run(
    [
      ["--log", "off", ...args, ...scene.recordTo(name)],
      ["--", "sh", "-c", `${starts}\n${wait}\nexit 4`],
    ].flat(),
  );
  return { ended, record: scene.readRecord(name) };
}

test(
  "--leftovers kill asks first, and names how each was ended",
  async () => {
    const ignoring = "sh -c 'trap \"\" TERM; exec sleep 94001'";
    const script = `setsid ${ignoring} ${QUIET} & setsid sleep 94002 ${QUIET} &
      until pgrep -fx 'sleep 94001' && pgrep -fx 'sleep 94002'; do :; done >/dev/null; exit 4`;
    const ended = await scene.run(
      [
        ["--log", "off", "--kill-after", "500ms", ...scene.recordTo("kill")],
        ["--leftovers", "kill", "--", "sh", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("kill");
    const byCommand = Object.fromEntries(
      record["leftovers"].map((one: { command: string; ended_by: string }) => [
        one.command,
        one.ended_by,
      ]),
    );
    expect(ended.status).toBe(4);
    expect(scene.findProcesses()).toEqual([]);
    expect(byCommand).toEqual({ "sleep 94001": "KILL", "sleep 94002": "TERM" });
    expect(ended.stderr.replaceAll(/\d+ sleep 9400[12]/g, "PID SLEEP")).toBe(
      "watchdog: ended 2 processes left by the command: PID SLEEP, PID SLEEP; " +
        "hint: --leftovers leave\n",
    );
    expect(record).toMatchObject({
      outcome: "failed",
      exit_code: 4,
      signals: [
        { signal: "TERM", to: "tree", count: 2, why: "leftover" },
        { signal: "KILL", to: "tree", why: "grace-over" },
      ],
    });
  },
  LIMIT_MS,
);

test(
  "what ends by itself a moment after the command is no leftover",
  async () => {
    const { ended, record } = await runLeaving("moment", [], []);
    expect(ended.stderr).toBe("");
    expect(record["leftovers"]).toEqual([]);
    const soon = await scene.run([
      "--log",
      "off",
      ...scene.recordTo("soon"),
      "--",
      "sh",
      "-c",
      "(sleep 0.02 &); exit 0",
    ]);
    expect(soon.stderr).toBe("");
    expect(scene.readRecord("soon")).toMatchObject({ leftovers: [], signals: [] });
  },
  LIMIT_MS,
);

test(
  "--leftovers wait waits until the last one has ended, and says nothing",
  async () => {
    const { ended, record } = await runLeaving("wait", ["--leftovers", "wait"], ["sleep 1.9403"]);
    expect(ended.status).toBe(4);
    expect(ended.stderr).toBe("");
    expect(record["signals"]).toEqual([]);
    expect(record["duration_ms"]).toBeGreaterThanOrEqual(1900);
    expect(record["leftovers"]).toMatchObject([{ command: "sleep 1.9403", ended_by: null }]);
  },
  LIMIT_MS,
);

test(
  "a limit goes on while leftovers are waited for, and ends them",
  async () => {
    const { ended, record } = await runLeaving(
      "wait-limit",
      ["--leftovers", "wait", "--timeout", "4s"],
      ["sleep 94004"],
    );
    expect(ended.status).toBe(124);
    expect(ended.stderr).toBe("watchdog: ended by --timeout: sent TERM to the whole tree\n");
    expect(findByCommand(scene, "sleep 94004")).toEqual([]);
    expect(record).toMatchObject({ outcome: "timeout", exit_code: 4, exit_status: 124 });
    expect(record["leftovers"]).toMatchObject([{ command: "sleep 94004", ended_by: "TERM" }]);
  },
  LIMIT_MS,
);

test(
  "a TERM while leftovers are waited for ends them, and the command's status stays",
  async () => {
    const script = `setsid sleep 94005 ${QUIET} & exit 4`;
    const run = scene.start(
      [
        ["--log", "off", "--leftovers", "wait", ...scene.recordTo("wait-term")],
        ["--", "sh", "-c", script],
      ].flat(),
    );
    await waitForCommand(scene, "sleep 94005");
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(ended.status).toBe(4);
    expect(findByCommand(scene, "sleep 94005")).toEqual([]);
    expect(scene.readRecord("wait-term")).toMatchObject({
      outcome: "stopped",
      because: "terminated",
    });
  },
  LIMIT_MS,
);

test(
  "--leftovers leave leaves them, names them, and returns at once",
  async () => {
    const { ended, record } = await runLeaving("leave", ["--leftovers", "leave"], ["sleep 94006"]);
    const [pid] = findByCommand(scene, "sleep 94006");
    expect(pid).toBeNumber();
    expect(ended.status).toBe(4);
    expect(ended.stderr).toBe(
      `watchdog: left 1 process of the command running: ${pid} sleep 94006\n`,
    );
    expect(record["signals"]).toEqual([]);
    expect(record["leftovers"]).toEqual([{ pid, command: "sleep 94006", ended_by: null }]);
    process.kill(Number(pid), "SIGKILL");
  },
  LIMIT_MS,
);

test(
  "a limit ends the whole tree also under --leftovers leave",
  async () => {
    const script = `(trap "" TERM; exec sleep 94007) & trap "exit 0" TERM; wait`;
    const ended = await scene.run(
      [
        ["--log", "off", "--leftovers", "leave", "--timeout", "2s", "--kill-after", "500ms"],
        [...scene.recordTo("leave-limit"), "--", "sh", "-c", script],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 94007")).toEqual([]);
    expect(scene.readRecord("leave-limit")).toMatchObject({ outcome: "timeout" });
  },
  LIMIT_MS,
);

test(
  "with the log on, a leftover that holds the output is ended all the same",
  async () => {
    const ended = await scene.run([
      "--log",
      "on",
      ...scene.recordTo("log"),
      "--",
      "sh",
      "-c",
      "echo said; sleep 94008 & exit 4",
    ]);
    expect(ended.status).toBe(4);
    expect(ended.stdout.toString()).toBe("said\n");
    expect(findByCommand(scene, "sleep 94008")).toEqual([]);
    expect(scene.readRecord("log")["leftovers"]).toMatchObject([{ command: "sleep 94008" }]);
  },
  LIMIT_MS,
);
