/**
 * Ctrl-C and Ctrl-\ at a real terminal: the kernel tells the whole foreground group, so watchdog
 * passes neither on; what the command does with them decides how the run ends.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readStatusLine, waitForText } from "../support/processes.ts";
import { limitOf } from "../support/rounds.ts";
import { FIXTURES, openScene, ROUNDS } from "../support/scene.ts";
import { findCommands, KEY, openShell, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const fixture = (name: string): string => join(FIXTURES, name);
const LIMIT_MS = limitOf(ROUNDS, 150);

/** The same command line with watchdog in front of it and without. */
const BOTH = [
  ["without watchdog", ""],
  ["with watchdog", "$W run "],
] as const;

describe("A-16: one Ctrl-C", () => {
  test.each(BOTH)(
    "%s reaches a command that catches it exactly once, and nothing ends",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}python3 ${fixture("counts-interrupts.py")}`);
      await shell.see(/counting\n/);
      shell.type(KEY.interrupt);
      await shell.see(/INT number 1\n/);
      shell.type(KEY.quit);
      await shell.see(/QUIT number 1\n/);
      shell.type(KEY.interrupt);
      await shell.see(/INT number 2\n/);
      shell.type("end\n");
      await shell.see(/sum 2 1\n/);
      expect((await shell.prompt()).status).toBe(7);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s ends a command that does not catch it, and the shell shows 130",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}sh -c 'echo begun; exec sleep 96101'`);
      await shell.see(/\nbegun\n/);
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s ends a loop of the shell too, because the command died of INT",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`for i in 1 2 3; do echo turn $i; ${front}sleep 96102; done; echo after`);
      await shell.see(/\nturn 1\n/);
      await waitFor(() => countSleepers("96102") === 1, "the sleeper");
      shell.type(KEY.interrupt);
      const { text, status } = await shell.prompt();
      expect(status).toBe(130);
      expect(text).not.toContain("turn 2");
      expect(text).not.toContain("\nafter");
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s and Ctrl-\\ ends a command by QUIT, and the shell shows 131",
    async (_, front) => {
      const shell = await openShell(scene);
      await shell.ask("ulimit -c 0");
      shell.begin(`${front}sh -c 'echo begun; exec sleep 96103'`);
      await shell.see(/\nbegun\n/);
      shell.type(KEY.quit);
      expect((await shell.prompt()).status).toBe(131);
    },
    LIMIT_MS,
  );

  test(
    "says in the record that the run was interrupted, and that watchdog sent no signal",
    async () => {
      const shell = await openShell(scene);
      // INT of our own and the command's end come together: either may be the first that is seen.
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = `interrupted-${round}`;
        const record = scene.recordTo(name).join(" ");
        shell.begin(`$W run ${record} -- sh -c 'echo begun; exec sleep 96104'`);
        await shell.see(/\nbegun\n/);
        shell.type(KEY.interrupt);
        expect((await shell.prompt()).status).toBe(130);
        expect(scene.readRecord(name)).toMatchObject({
          outcome: "stopped",
          because: "interrupted",
          exit_status: 130,
          status_of: "command",
          signal: "INT",
          signals: [],
        });
      }
    },
    LIMIT_MS,
  );

  test(
    "also ends what the command has put into another session",
    async () => {
      const shell = await openShell(scene);
      shell.begin(`$W run sh -c 'setsid sleep 96105 & echo begun; exec sleep 96106'`);
      await shell.see(/\nbegun\n/);
      await waitFor(() => countSleepers("96105") === 1, "the sleeper of another session");
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
      expect(countSleepers("96105")).toBe(0);
    },
    LIMIT_MS,
  );
});

describe("a program that talks", () => {
  test(
    "survives Ctrl-C under watchdog as it does alone (python3 -i)",
    async () => {
      const shell = await openShell(scene, { env: { PYTHON_BASIC_REPL: "1" } });
      const told = scene.path("talks.pid");
      shell.begin(`$W run sh -c 'echo $$ >${told}; exec python3 -q -i'`);
      await shell.see(/>>> /);
      await waitUntilAsleep(Number(await waitForText(told)));
      shell.type(KEY.interrupt);
      await shell.see(/KeyboardInterrupt\s+>>> /);
      shell.type("6 * 7\n");
      await shell.see(/\n42\n>>> /);
      await waitUntilAsleep(Number(await waitForText(told)));
      shell.type(KEY.interrupt);
      await shell.see(/KeyboardInterrupt\s+>>> /);
      shell.type("raise SystemExit(9)\n");
      expect((await shell.prompt()).status).toBe(9);
      expect(shell.screen).not.toContain("watchdog:");
    },
    LIMIT_MS,
  );

  test(
    "a shell that runs a command survives the Ctrl-C that ends the command",
    async () => {
      const shell = await openShell(scene);
      shell.begin("PS1='inner> ' $W run bash --norc --noprofile -i");
      await shell.see(/inner> /);
      shell.begin("sleep 96107");
      await waitFor(() => countSleepers("96107") === 1, "the sleeper");
      shell.type(KEY.interrupt);
      await shell.see(/inner> /);
      shell.begin("exit 4");
      expect((await shell.prompt()).status).toBe(4);
      expect(countSleepers("96107")).toBe(0);
    },
    LIMIT_MS,
  );
});

describe("A-17: a command that ignores Ctrl-C", () => {
  test(
    "the first says what the second will do, and the second kills the whole tree at once",
    async () => {
      const shell = await openShell(scene);
      const record = scene.recordTo("deaf").join(" ");
      shell.begin(`$W run ${record} --kill-after 60s -- ${fixture("ignores-interrupt.sh")} 96108`);
      await shell.see(/\ndeaf\n/);
      await waitFor(() => countSleepers("96108") === 2, "both sleepers");
      shell.type(KEY.interrupt);
      await shell.see(
        /\n?watchdog: the command ignores Ctrl-C; press it again to kill the whole tree\n/,
      );
      expect(countSleepers("96108")).toBe(2);
      shell.type(KEY.interrupt);
      const { status, text } = await shell.prompt();
      expect(status).toBe(137);
      expect(text).not.toContain("survived");
      expect(countSleepers("96108")).toBe(0);
      expect(scene.readRecord("deaf")).toMatchObject({
        outcome: "stopped",
        because: "interrupted",
        signals: [{ signal: "KILL", to: "tree", why: "second-request" }],
      });
    },
    LIMIT_MS,
  );

  test(
    "says nothing of it when the command catches INT",
    async () => {
      const shell = await openShell(scene);
      shell.begin(`$W run python3 ${fixture("counts-interrupts.py")}`);
      await shell.see(/counting\n/);
      for (const number of [1, 2, 3]) {
        shell.type(KEY.interrupt);
        await shell.see(new RegExp(`INT number ${number}\n`));
      }
      shell.type("end\n");
      expect((await shell.prompt()).status).toBe(7);
      expect(shell.screen).not.toContain("press it again");
    },
    LIMIT_MS,
  );
});

test(
  "Ctrl-C while watchdog is the first of its session ends it like the command alone",
  async () => {
    const record = scene.path("first.json");
    const terminal = openTerminal(scene, [
      "sh",
      "-c",
      `exec "$W" run --result-file '${record}' sh -c 'echo begun; exec sleep 96109'`,
    ]);
    await terminal.see(/begun\n/);
    terminal.type(KEY.interrupt);
    expect(await terminal.ended).toBe(130);
    expect(existsSync(record)).toBe(true);
  },
  LIMIT_MS,
);

/**
 * Python's INT that comes after the prompt and before select(2) is only noticed at the next key:
 * alone as under watchdog.
 */
async function waitUntilAsleep(pid: number): Promise<void> {
  let before = "";
  const isAsleep = (): boolean => {
    const words = ["State", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    const now = words.map((word) => readStatusLine(pid, word)).join(" ");
    const isSame = now === before;
    before = now;
    return isSame && now.startsWith("S");
  };
  await waitFor(isAsleep, `${pid} to wait for a key`);
}

function countSleepers(span: string): number {
  return findCommands(scene, `sleep ${span}`).length;
}

test(
  "a key that comes to watchdog a moment after the command has died of it still counts",
  async () => {
    const shell = await openShell(scene);
    const fifo = scene.path("late.fifo");
    await shell.ask(`mkfifo ${fifo}`);
    const found = new Set<string>();
    // Not each round, as a machine under load may be later than the moment; never without it.
    for (let round = 0; round < 20 && !found.has("interrupted"); round += 1) {
      const late = `read pid <${fifo}; sleep 0.005; kill -INT $pid 2>/dev/null`;
      const sender = scene.startProgram(["sh", "-c", late]);
      const words = `${scene.recordTo("late").join(" ")} sh -c 'echo $PPID >${fifo}; kill -INT $$'`;
      expect((await shell.ask(`$W run ${words}`)).status).toBe(130);
      await sender.ended;
      found.add(scene.readRecord("late")["because"]);
    }
    expect([...found]).toContain("interrupted");
  },
  LIMIT_MS,
);
