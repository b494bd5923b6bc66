/**
 * A paused run at a real terminal: keys that the kernel sends to a group of stopped processes, and
 * a terminal that goes away under them. The dependency is away all the while, unless a test says
 * that it is back.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { stateOf, statesOf } from "../support/movement.ts";
import { openPausing, PausingRun, waitForStart } from "../support/pausing.ts";
import { FIXTURES } from "../support/scene.ts";
import { areStopped } from "../support/shared-circuit.ts";
import { KEY, openShell, openTerminal, type Shell } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, makeDependency } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;

/** Types it at a prompt, waits until its command was started, and until it has said `ready`. */
async function begin(shell: Shell, name: string, command: string): Promise<PausingRun> {
  const dependency = makeDependency();
  const words = ["--name", name, ...scene.recordTo(name), ...dependency.words];
  shell.begin(`$W run ${words.join(" ")} -- ${command}`);
  await waitForStart(scene, name);
  return new PausingRun({ scene, name, dependency, started: undefined });
}

function textOf(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

describe("Ctrl-C", () => {
  test(
    "ends a paused command that does not catch it, with what it has in other sessions",
    async () => {
      const shell = await openShell(scene);
      const script = "sh -c 'setsid sleep 92301 & echo begun; exec sleep 92302'";
      const run = await begin(shell, "plain", script);
      await shell.see(/\nbegun\n/);
      await run.pause();
      expect(statesOf(run.members())).toBe("TT");
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
      expect(run.record()).toMatchObject({
        outcome: "stopped",
        because: "interrupted",
        exit_status: 130,
        signal: "INT",
        status_of: "command",
      });
      expect(run.members()).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "has the trap of a paused command run to its end, though the dependency is asked meanwhile",
    async () => {
      const shell = await openShell(scene);
      const file = scene.path("cleaned");
      // Longer than it takes until a pause is wanted again.
      const trap = `trap "sleep 1.5; echo cleaned >${file}; exit 9" INT`;
      const script = `sh -c '${trap}; echo begun; while :; do sleep 0.02; done'`;
      const run = await begin(shell, "trap", script);
      await shell.see(/\nbegun\n/);
      await run.pause();
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(9);
      expect(textOf(file)).toBe("cleaned\n");
    },
    LIMIT_MS,
  );

  test(
    "is heard once by a paused command that goes on, and it is paused again after it",
    async () => {
      const shell = await openShell(scene);
      const run = await begin(shell, "counts", `python3 ${FIXTURES}/counts-interrupts.py`);
      await shell.see(/counting\n/);
      await run.pause();
      shell.type(KEY.interrupt);
      await shell.see(/INT number 1\n/);
      await waitFor(() => run.events("paused").length === 2, "the next pause");
      expect(statesOf(run.members())).toBe("T");
      await run.resume();
      shell.type(KEY.interrupt);
      await shell.see(/INT number 2\n/);
      shell.type("end\n");
      await shell.see(/sum 2 0\n/);
      expect((await shell.prompt()).status).toBe(7);
      expect(run.record()).toMatchObject({ outcome: "failed", exit_status: 7, signals: [] });
    },
    LIMIT_MS,
  );

  test(
    "twice kills a paused tree that ignores it",
    async () => {
      const shell = await openShell(scene);
      const run = await begin(shell, "deaf", `${FIXTURES}/ignores-interrupt.sh 92303`);
      await shell.see(/\ndeaf\n/);
      await run.pause();
      shell.type(KEY.interrupt);
      await shell.see(
        /watchdog: the command ignores Ctrl-C; press it again to kill the whole tree\n/,
      );
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(137);
      expect(run.record()).toMatchObject({ outcome: "stopped", because: "interrupted" });
      expect(run.members()).toEqual([]);
    },
    LIMIT_MS,
  );
});

test(
  "Ctrl-Z gives the prompt back while the tree is paused, and fg goes on with the pause",
  async () => {
    const shell = await openShell(scene);
    const gate = scene.path("suspended.gate");
    const script = `sh -c 'echo begun; until [ -e ${gate} ]; do sleep 0.02; done; exit 6'`;
    const run = await begin(shell, "suspended", script);
    await shell.see(/\nbegun\n/);
    await run.pause();
    shell.type(KEY.suspend);
    expect((await shell.prompt()).status).toBe(148);
    expect([stateOf(run.pid), areStopped([run.main])]).toEqual(["T", true]);
    shell.begin("fg");
    // The shell continues the whole group: who is paused is stopped again at the next look.
    await waitFor(() => stateOf(run.pid) !== "T", "watchdog that goes on");
    const asked = run.dependency.asked;
    await waitFor(() => run.dependency.asked > asked + 2, "more trials");
    await waitFor(() => areStopped([run.main]), "the command stopped again");
    writeFileSync(gate, "");
    await run.resume();
    expect((await shell.prompt()).status).toBe(6);
    expect(run.record()).toMatchObject({ outcome: "failed", exit_status: 6 });
  },
  LIMIT_MS,
);

test.each([
  ["a plain command ends of the HUP", "exec sleep 92304", { signal: "HUP" }],
  [
    "a command that ignores the HUP ends of the TERM",
    'trap "" HUP; trap "exit 8" TERM; echo ready; while :; do sleep 0.02; done',
    { exit_code: 8 },
  ],
])(
  "when the terminal goes away under a paused run, %s",
  async (title, script, how) => {
    const name = title.replaceAll(" ", "-");
    const dependency = makeDependency();
    const words = ["--name", name, ...scene.recordTo(name), ...dependency.words].join(" ");
    const other = scene.path(`${name}.other`);
    const trap = `trap \\"echo asked >${other}; exit\\" TERM; echo ready >${other}.ready`;
    const listens = `setsid sh -c "${trap}; while :; do sleep 0.02; done"`;
    const inner = `${listens} & until [ -s ${other}.ready ]; do :; done; echo begun; ${script}`;
    const line = `exec "$W" run ${words} -- sh -c '${inner}'`;
    const terminal = openTerminal(scene, ["sh", "-c", line]);
    await terminal.see(/begun\n/);
    await waitForStart(scene, name);
    const run = new PausingRun({ scene, name, dependency, started: undefined });
    await run.pause();
    expect(areStopped(run.members())).toBe(true);
    terminal.hangUp();
    await terminal.ended;
    expect(run.record()).toMatchObject({ outcome: "stopped", because: "hung-up", ...how });
    expect(textOf(other)).toBe("asked\n");
    expect(run.members()).toEqual([]);
  },
  LIMIT_MS,
);
