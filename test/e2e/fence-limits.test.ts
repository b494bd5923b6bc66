/**
 * How an operation under a fence is ended: by its limit, by a signal, by a key, by the run; and
 * that nobody else is hit by any of them.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { FENCE, startJob } from "../support/fencing.ts";
import { placeOf } from "../support/lease-seen.ts";
import { findProgram, PYTHON } from "../support/outside.ts";
import { findByCommand, readLines, waitForCommand, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene } from "../support/scene.ts";
import { KEY, openShell } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;
const TIMED_OUT = 124;
const NOTES = `${PYTHON} ${FIXTURES}/notes-signals.py`;

function isFree(path: string): boolean {
  return Bun.spawnSync([findProgram("flock"), "-n", "-x", path, "true"]).exitCode === 0;
}

describe("at its limit", () => {
  test(
    "an operation and all that it has started are ended, and the rest of the job is not",
    async () => {
      const announced = scene.path("tree.pid");
      const daemon = `${PYTHON} ${FIXTURES}/daemonizes.py ${announced} sleep 93172`;
      const operation = `setsid sleep 93171 & ${daemon}; sleep 93173`;
      const script =
        `sleep 93174 & ${FENCE} --timeout 0.5 -- sh -c '${operation}'; ` +
        `echo status $?; pgrep -fx 'sleep 9317[1-4]' | wc -l`;
      const { ended } = startJob(scene, "tree", script);
      const { stdout, stderr } = await ended;
      expect(stdout.toString()).toBe(`status ${TIMED_OUT}\n1\n`);
      expect(stderr).toMatch(
        /^watchdog: fence: ended by --timeout: sent TERM to the operation [^\n]+\n.*93174/,
      );
      expect(existsSync(announced)).toBe(true);
      expect(isFree(placeOf(scene.stateDirectory, "tree").fence)).toBe(true);
    },
    LIMIT_MS,
  );

  test(
    "who was there before the operation, and what was kept, are spared",
    async () => {
      const [kept, before] = ["sleep 93175", "sleep 93176"];
      const operation = `"$W" keep -- ${kept}; sleep 93177`;
      const inner = `${before} & exec ${FENCE} --timeout 0.5 -- sh -c '${operation}'`;
      const file = scene.path("inborn.sh");
      writeFileSync(file, inner);
      const script = `sh '${file}'; echo status $?; pgrep -fx '${before}' | wc -l`;
      const { stdout } = await startJob(scene, "spared", script).ended;
      expect(stdout.toString()).toBe(`status ${TIMED_OUT}\n1\n`);
      const pids = findByCommand(scene, kept);
      expect(pids).toHaveLength(1);
      // Outliving the run is what it is for, keeping others from the lease is not.
      expect(isFree(placeOf(scene.stateDirectory, "spared").fence)).toBe(true);
      for (const pid of pids) process.kill(pid, "SIGKILL");
    },
    LIMIT_MS,
  );

  test(
    "a stopped operation is let go on, so that it hears of the end",
    async () => {
      const [notes, operation] = [scene.path("stopped.notes"), scene.path("stopped.sh")];
      writeFileSync(operation, `trap 'echo TERM >"${notes}"; exit' TERM; kill -STOP $$; sleep 9`);
      const script = `${FENCE} --timeout 0.5 -- sh '${operation}'; echo status $?`;
      const { stdout } = await startJob(scene, "stopped", script).ended;
      expect([stdout.toString(), readLines(notes)]).toEqual([`status ${TIMED_OUT}\n`, ["TERM"]]);
    },
    LIMIT_MS,
  );

  test(
    "one that ignores TERM gets it once, and KILL ten seconds later",
    async () => {
      const notes = scene.path("ignores.notes");
      const operation = scene.path("ignores.sh");
      writeFileSync(operation, `trap 'echo TERM >>"${notes}"' TERM; while :; do sleep 0.1; done`);
      const script = `${FENCE} --timeout 0.3 -- sh '${operation}'; echo status $?`;
      const began = performance.now();
      const { stdout } = await startJob(scene, "ignores", script).ended;
      expect(stdout.toString()).toBe(`status ${TIMED_OUT}\n`);
      expect(readLines(notes)).toEqual(["TERM"]);
      expect(performance.now() - began).toBeGreaterThan(10_000);
    },
    LIMIT_MS,
  );

  test(
    "one whose main process ends by TERM is over when the last of its others was killed, too",
    async () => {
      const operation = scene.path("outlives.sh");
      writeFileSync(operation, `trap "" TERM; while :; do sleep 0.1; done`);
      const { fence } = placeOf(scene.stateDirectory, "outlives");
      const script =
        `${FENCE} --timeout 0.3 -- sh -c 'sh ${operation} & exec sleep 93182'; echo status $?; ` +
        `'${findProgram("flock")}' -n -x '${fence}' true; echo fence $?`;
      const { stdout } = await startJob(scene, "outlives", script).ended;
      expect(stdout.toString()).toBe(`status ${TIMED_OUT}\nfence 0\n`);
    },
    LIMIT_MS,
  );

  test(
    "negative twin: the same operation without a limit in its way goes on to its own end",
    async () => {
      const script = `${FENCE} --timeout 0 -- sh -c 'sleep 0.7; exit 3'; echo status $?`;
      const { stdout, stderr } = await startJob(scene, "untimed", script).ended;
      expect([stdout.toString(), stderr]).toEqual(["status 3\n", ""]);
    },
    LIMIT_MS,
  );
});

describe("a signal", () => {
  async function signalled(name: string, signal: NodeJS.Signals, child: string) {
    const notes = scene.path(`${name}.notes`);
    const operation = `${NOTES} '${notes}' main ${child} ${child}`;
    // Not in the background: there a shell has it ignore INT from the start.
    const script = `echo $$ >'${notes}.pid'; exec ${FENCE} -- ${operation}`;
    const run = startJob(scene, name, script);
    await waitFor(() => readLines(notes).length === 2, "both to hear");
    process.kill(Number(await waitForText(`${notes}.pid`)), signal);
    return { run, heard: () => readLines(notes).slice(2).sort() };
  }

  test(
    "to end is passed on to everybody of the operation, once, and its status is its own",
    async () => {
      const { run, heard } = await signalled("int", "SIGINT", "INT,TERM");
      await waitFor(() => heard().length === 2, "both to have heard");
      expect(heard()).toEqual(["child INT", "main INT"]);
      run.kill("SIGTERM");
      expect((await run.ended).status).toBe(5);
      expect(heard()).toEqual(["child INT", "child TERM", "main INT", "main TERM"]);
    },
    LIMIT_MS,
  );

  test(
    "that is for a program is passed on to the operation itself alone",
    async () => {
      const { run, heard } = await signalled("usr1", "SIGUSR1", "USR1,TERM");
      await waitFor(() => heard().length > 0, "USR1");
      run.kill("SIGTERM");
      await run.ended;
      expect(heard()).toEqual(["child TERM", "main TERM", "main USR1"]);
    },
    LIMIT_MS,
  );

  test(
    "to the run reaches an operation through its fence, and once",
    async () => {
      const notes = scene.path("run.notes");
      const script = `exec ${FENCE} -- ${NOTES} '${notes}' main TERM TERM`;
      const run = startJob(scene, "run", script);
      await waitFor(() => readLines(notes).length === 2, "both to hear");
      run.kill("SIGTERM");
      expect((await run.ended).status).toBe(5);
      expect(readLines(notes).slice(2).sort()).toEqual(["child TERM", "main TERM"]);
    },
    LIMIT_MS,
  );

  test(
    "while the fence is waited for ends fence at once, and nothing was started",
    async () => {
      const { fence } = placeOf(scene.stateDirectory, "waits");
      const ready = scene.path("waits.ready");
      const holder = `echo ready >"${ready}"; exec sleep 93178`;
      const holds = `flock -x --no-fork '${fence}' sh -c '${holder}' &`;
      const script =
        `${holds} until [ -s '${ready}' ]; do sleep 0.02; done; ` +
        `${FENCE} -- echo started & sleep 0.5; kill $!; wait $!; echo status $?`;
      const { stdout } = await startJob(scene, "waits", script).ended;
      expect(stdout.toString()).toBe("status 143\n");
    },
    LIMIT_MS,
  );
});

describe("at a terminal", () => {
  test(
    "Ctrl-C and Ctrl-\\ reach the operation exactly once",
    async () => {
      const shell = await openShell(scene);
      shell.begin(`$W run --name keys $W fence -- python3 ${FIXTURES}/counts-interrupts.py`);
      await shell.see(/counting\n/);
      shell.type(KEY.interrupt);
      await shell.see(/INT number 1\n/);
      shell.type(KEY.quit);
      await shell.see(/QUIT number 1\n/);
      shell.type("end\n");
      await shell.see(/sum 1 1\n/);
      expect((await shell.prompt()).status).toBe(7);
    },
    LIMIT_MS,
  );

  test(
    "Ctrl-Z stops the job with its operation, and fg lets both go on",
    async () => {
      const shell = await openShell(scene);
      const gate = scene.path("suspended.gate");
      const operation = `echo begun; until [ -e ${gate} ]; do sleep 0.05; done; echo over; exit 4`;
      shell.begin(`$W run --name suspended $W fence -- sh -c '${operation}'`);
      await shell.see(/\nbegun\n/);
      shell.type(KEY.suspend);
      expect((await shell.prompt()).status).toBe(128 + 20);
      writeFileSync(gate, "");
      shell.begin("fg");
      await shell.see(/\nover\n/);
      expect((await shell.prompt()).status).toBe(4);
    },
    LIMIT_MS,
  );
});

test(
  "an operation that was not waited for is not left: KILL to the run ends it",
  async () => {
    const script = `exec ${FENCE} -- sleep 93179`;
    const run = startJob(scene, "buried", script, { stdout: "ignore", stderr: "ignore" });
    await waitForCommand(scene, "sleep 93179");
    run.kill("SIGKILL");
    await waitFor(() => findByCommand(scene, "sleep 93179").length === 0, "its guard's work");
    await waitFor(() => isFree(placeOf(scene.stateDirectory, "buried").fence), "a free fence");
  },
  LIMIT_MS,
);
