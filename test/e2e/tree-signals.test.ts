/**
 * Signals that come to watchdog without a terminal: who in the tree gets them, how often, and when
 * a request becomes a kill.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import {
  findByCommand,
  python,
  readLines,
  startWithoutTerminal,
  waitForCommand,
  waitForText,
} from "../support/processes.ts";
import { limitOf } from "../support/rounds.ts";
import { openScene, RELEASE, ROUNDS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = limitOf(ROUNDS, 60);
const ALL = "HUP,INT,QUIT,USR1,USR2,TERM";

function waitForLine(file: string, line: string, count = 1): Promise<unknown> {
  return waitFor(
    () => readLines(file).filter((one) => one === line).length >= count,
    `${count} times '${line}' in ${file}`,
  );
}

/** A main command and its child that note what they get. */
async function startListeners(name: string, args: readonly string[] = []) {
  const heard = scene.path(`${name}.heard`);
  const run = startWithoutTerminal(
    scene,
    [
      ["--log", "off", ...args, ...scene.recordTo(name)],
      ["--", ...python("notes-signals.py", heard, "main", ALL, ALL)],
    ].flat(),
  );
  await waitForLine(heard, "main ready");
  await waitForLine(heard, "child ready");
  const heardSignals = (): string[] => readLines(heard).filter((line) => !line.endsWith("ready"));
  return { run, heard, heardSignals };
}

test(
  "A-14: USR1, USR2 and TERM arrive in their order, and the status is the command's own",
  async () => {
    const { run, heard, heardSignals } = await startListeners("a14");
    for (const signal of ["USR1", "USR2", "HUP"] as const) {
      run.kill(`SIG${signal}`);
      await waitForLine(heard, `main ${signal}`);
    }
    run.kill("SIGTERM");
    const ended = await run.ended;
    // USR1, USR2 and HUP are for the main command alone; TERM is for everybody.
    expect(heardSignals().filter((line) => line.startsWith("main"))).toEqual([
      "main USR1",
      "main USR2",
      "main HUP",
      "main TERM",
    ]);
    expect(heardSignals().filter((line) => line.startsWith("child"))).toEqual(["child TERM"]);
    expect(ended.status).toBe(5);
    const record = scene.readRecord("a14");
    expect(record).toMatchObject({ outcome: "stopped", because: "terminated", exit_code: 5 });
    expect(record["signals"]).toMatchObject([
      { signal: "USR1", to: "command", count: 1, why: "forwarded" },
      { signal: "USR2", to: "command", count: 1, why: "forwarded" },
      { signal: "HUP", to: "command", count: 1, why: "forwarded" },
      { signal: "TERM", to: "tree", count: 2, why: "forwarded" },
    ]);
  },
  LIMIT_MS,
);

for (const signal of ["INT", "QUIT"] as const) {
  test(
    `${signal} without a terminal reaches every member, each time that it comes`,
    async () => {
      const { run, heard, heardSignals } = await startListeners(signal);
      for (let time = 1; time <= 2; time += 1) {
        run.kill(`SIG${signal}`);
        await waitForLine(heard, `main ${signal}`, time);
        await waitForLine(heard, `child ${signal}`, time);
      }
      run.kill("SIGTERM");
      const ended = await run.ended;
      expect(ended.status).toBe(5);
      expect(heardSignals().filter((line) => line.endsWith(signal))).toHaveLength(4);
      expect(scene.readRecord(signal)).toMatchObject({
        outcome: "stopped",
        because: signal === "INT" ? "interrupted" : "quit",
      });
    },
    LIMIT_MS,
  );
}

test(
  "TERM once is passed on once and waited for; the second one kills the tree",
  async () => {
    const got = scene.path("twice.got");
    const script = `trap "echo TERM >>${got}" TERM; sleep 93001 &
      (trap "" TERM; exec sleep 93002) & echo ready >>${got}; while :; do sleep 0.05; done`;
    const run = startWithoutTerminal(scene, [
      "--log",
      "off",
      ...scene.recordTo("twice"),
      "--",
      "bash",
      "-c",
      script,
    ]);
    await waitForLine(got, "ready");
    await waitForCommand(scene, "sleep 93002");
    run.kill("SIGTERM");
    await waitForLine(got, "TERM");
    await waitFor(() => findByCommand(scene, "sleep 93001").length === 0, "sleep 93001 to obey");
    expect(findByCommand(scene, "sleep 93002")).toHaveLength(1);
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(readLines(got)).toEqual(["ready", "TERM"]);
    expect(ended.status).toBe(137);
    expect(findByCommand(scene, "sleep 93002")).toEqual([]);
    expect(scene.readRecord("twice")).toMatchObject({
      outcome: "stopped",
      because: "terminated",
      signals: [
        { signal: "TERM", to: "tree", why: "forwarded" },
        { signal: "KILL", to: "tree", why: "second-request" },
      ],
    });
  },
  LIMIT_MS,
);

test(
  "--kill-after on the line lets one TERM escalate by itself",
  async () => {
    const ready = scene.path("escalates.ready");
    const script = `trap "" TERM; echo ready >${ready}; exec sleep 93003`;
    const run = startWithoutTerminal(
      scene,
      [
        ["--log", "off", "--kill-after", "500ms", ...scene.recordTo("escalates")],
        ["--", "sh", "-c", script],
      ].flat(),
    );
    await waitForText(ready);
    run.kill("SIGTERM");
    const ended = await run.ended;
    const [asked, killed] = scene.readRecord("escalates")["signals"];
    expect(ended.status).toBe(137);
    expect(asked).toMatchObject({ signal: "TERM", why: "forwarded" });
    expect(killed).toMatchObject({ signal: "KILL", why: "grace-over" });
    expect(killed.at_ms - asked.at_ms).toBeGreaterThanOrEqual(498);
  },
  LIMIT_MS,
);

test(
  "processes that are born in a TERM trap are not signalled again",
  async () => {
    const got = scene.path("born.got");
    // The clean-up itself would die of TERM; only a signal that comes later could hit it.
    const cleanUp = `sh -c "echo cleaning >>${got}; sleep 1; echo cleaned >>${got}"`;
    const script = `trap '${cleanUp}; exit 6' TERM; echo ready >>${got}
      while :; do sleep 0.05; done`;
    const run = startWithoutTerminal(scene, [
      "--log",
      "off",
      ...scene.recordTo("born"),
      "--",
      "bash",
      "-c",
      script,
    ]);
    await waitForLine(got, "ready");
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(readLines(got)).toEqual(["ready", "cleaning", "cleaned"]);
    expect(ended.status).toBe(6);
    expect(scene.readRecord("born")["signals"]).toHaveLength(1);
  },
  LIMIT_MS,
);

test(
  "A-94: a signal that was ignored at the start is neither acted on nor passed on",
  async () => {
    const heard = scene.path("a94.heard");
    const listener = python("notes-signals.py", heard, "main", "USR1,TERM").join(" ");
    const line = [RELEASE, "run", "--log", "off", ...scene.recordTo("a94"), "--", listener];
    const run = scene.startProgram(["setsid", "nohup", "sh", "-c", `exec ${line.join(" ")}`], {
      stdout: "ignore",
      stderr: "ignore",
    });
    await waitForLine(heard, "main ready");
    run.kill("SIGHUP");
    run.kill("SIGHUP");
    run.kill("SIGUSR1");
    await waitForLine(heard, "main USR1");
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(ended.status).toBe(5);
    expect(readLines(heard)).toEqual(["main ready", "main USR1", "main TERM"]);
    const names = scene.readRecord("a94")["signals"].map((sent: { signal: string }) => sent.signal);
    expect(names).toEqual(["USR1", "TERM"]);
  },
  LIMIT_MS,
);

test(
  "a TERM right at the start either reaches the command or ends the whole",
  async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const started = scene.path(`start-${round}`);
      const run = startWithoutTerminal(
        scene,
        [
          ["--log", "off", ...scene.recordTo(`start-${round}`)],
          ["--", "sh", "-c", `echo started >${started}; exec sleep 93004`],
        ].flat(),
      );
      // From before the exec of watchdog to after the exec of the command.
      await Bun.sleep((round * 12) / ROUNDS);
      run.kill("SIGTERM");
      const ended = await run.ended;
      expect(ended.status).toBe(143);
      expect(findByCommand(scene, "sleep 93004")).toEqual([]);
      if (!existsSync(started)) continue;
      expect(scene.readRecord(`start-${round}`)).toMatchObject({ outcome: "stopped" });
    }
    expect(scene.findProcesses()).toEqual([]);
  },
  LIMIT_MS,
);
