/**
 * What a command sees of its terminal below watchdog: everything that it would see alone. Both
 * dialogues are held, and compared where they can be.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FIXTURES, openScene, readCommandLine, RELEASE } from "../support/scene.ts";
import { findCommands, KEY, openShell, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const BOTH = [
  ["without watchdog", ""],
  ["with watchdog", "$W run "],
] as const;

describe("A-15: reading from the terminal", () => {
  test.each(BOTH)(
    "%s works at a prompt on /dev/tty",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}sh -c 'printf "wo""rd: " >/dev/tty; read x </dev/tty; echo got=$x'`);
      await shell.see(/word: /);
      shell.type("hello\n");
      await shell.see(/got=hello\n/);
      expect((await shell.prompt()).status).toBe(0);
      expect(shell.screen).not.toContain("Stopped");
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s works while stdin is a pipe",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(
        `echo piped | ${front}sh -c 'read p; echo as""king; read x </dev/tty; echo $p=$x'`,
      );
      await shell.see(/asking\n/);
      shell.type("hello\n");
      await shell.see(/piped=hello\n/);
      expect((await shell.prompt()).status).toBe(0);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s works while stdout is a pipe, and Ctrl-C ends both sides",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}sh -c 'echo as""king; read x; echo got=$x; exec sleep 96001' | cat`);
      await shell.see(/asking\n/);
      shell.type("hello\n");
      await shell.see(/got=hello\n/);
      await waitFor(() => findCommands(scene, "sleep 96001").length === 1, "the sleeper");
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
      expect(findCommands(scene, "sleep 96001")).toEqual([]);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s ends at Ctrl-D",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}sh -c 'echo wai""ting; cat; echo no more; exit 4'`);
      await shell.see(/waiting\n/);
      shell.type("line\n");
      await shell.see(/line\nline\n/);
      shell.type(KEY.endOfFile);
      await shell.see(/no more\n/);
      expect((await shell.prompt()).status).toBe(4);
    },
    LIMIT_MS,
  );

  test(
    "A-19: stdin is passed on as it is, and a job that waits for it meets its limit",
    async () => {
      const pipe = scene.path("in");
      const run = `"$W" run --timeout 1s --kill-after 1s`;
      const script = `exec 9<>${pipe}; exec ${run} -- sh -c 'cat; echo end' <&9`;
      await scene.startProgram(["mkfifo", pipe]).ended;
      const terminal = openTerminal(scene, ["sh", "-c", script]);
      expect(await terminal.ended).toBe(124);
      expect(terminal.screen).not.toContain("end\n");
    },
    LIMIT_MS,
  );
});

describe("what a command sees of its terminal", () => {
  const SEEN = [
    ["the terminal itself on all three descriptors", "tty; tty <&1; tty <&2"],
    ["its settings", "stty -a"],
    ["its size", "stty size"],
    ["itself in the foreground", "ps -o stat= -p $$ | tr -d ' NLl'"],
    ["its session", "ps -o sess= -p $$"],
  ] as const;

  test.each(SEEN)(
    "%s, as without watchdog",
    async (_, script) => {
      const shell = await openShell(scene);
      const alone = await shell.ask(`sh -c '${script}'`);
      const below = await shell.ask(`$W run sh -c '${script}'`);
      expect(alone.text.length).toBeGreaterThan(1);
      expect(below).toEqual(alone);
    },
    LIMIT_MS,
  );

  test(
    "the one group of watchdog and everything below it is the foreground group",
    async () => {
      const shell = await openShell(scene);
      const script = `ps -o pgid= -p $PPID; ps -o pgid= -p $$; ps -o tpgid= -p $$`;
      const { text } = await shell.ask(`$W run sh -c '${script}; :'`);
      const groups = text.trim().split(/\s+/);
      expect(groups).toHaveLength(3);
      expect(new Set(groups).size).toBe(1);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s a new size reaches it once",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}python3 ${join(FIXTURES, "tells-window-size.py")}`);
      await shell.see(/watching\n/);
      shell.resize(101, 31);
      await shell.see(/WINCH number 1: 31 rows 101 columns\n/);
      shell.resize(102, 32);
      await shell.see(/WINCH number 2: 32 rows 102 columns\n/);
      shell.type("\n");
      await shell.see(/sum 2\n/);
    },
    LIMIT_MS,
  );
});

describe("the terminal's settings", () => {
  /** The parent is no interactive shell: such a one would put them right itself. */
  async function settingsAfter(front: string, command: string): Promise<string> {
    const terminal = openTerminal(scene, ["sh", "-c", `${front}sh -c '${command}'; stty -a`]);
    await terminal.ended;
    return /[\s\S]*(speed[\s\S]*)/.exec(terminal.screen)?.[1] ?? terminal.screen;
  }

  const ENDS = [
    ["killed in a password prompt", "stty -echo; kill -TERM $$"],
    ["ended in a password prompt", "stty -echo; exit 3"],
    ["killed by KILL in raw mode", "stty raw -echo; kill -KILL $$"],
    ["ended well with settings of its own", "stty -ixon erase X"],
  ] as const;

  test.each(ENDS)(
    "are left as a command leaves them that was %s",
    async (_, command) => {
      const alone = await settingsAfter("", command);
      expect(alone).toMatch(/-echo\b|-ixon\b/);
      expect(await settingsAfter('"$W" run ', command)).toBe(alone);
    },
    LIMIT_MS,
  );

  test(
    "are not touched by a run of the background that ends under a full-screen program",
    async () => {
      const [go, before, after] = ["go", "before", "after"].map((name) => scene.path(name));
      const record = scene.recordTo("behind").join(" ");
      const shell = await openShell(scene);
      await shell.ask(`$W run ${record} sh -c 'until [ -e ${go} ]; do sleep 0.05; done' &`);
      await waitFor(() => existsSync(scene.path("behind.json")), "the run in the background");
      const wait = `until [ -e ${after}.go ]; do sleep 0.05; done`;
      const full = `stty raw -echo -isig; stty -a >${before}; ${wait}; stty -a >${after}`;
      shell.begin(`sh -c '${full}'`);
      await waitFor(() => existsSync(`${before}`), "the full-screen program");
      writeFileSync(`${go}`, "");
      await waitFor(() => scene.readRecord("behind")["state"] === "ended", "the end behind it");
      await waitFor(() => countWatchdogs() === 0, "no watchdog");
      writeFileSync(`${after}.go`, "");
      await shell.prompt();
      const [left, found] = [before, after].map((file) => readFileSync(`${file}`, "latin1"));
      expect(found).toBe(String(left));
      expect(found).toContain("-isig");
    },
    LIMIT_MS,
  );
});

describe("output through a copy to the terminal", () => {
  test(
    "`--log on` shows the bytes on the terminal and keeps the keys",
    async () => {
      const shell = await openShell(scene);
      shell.begin(
        `$W run --log on -- sh -c 'echo co""pied; read x </dev/tty; echo got=$x; exit 6'`,
      );
      await shell.see(/copied\n/);
      shell.type("hello\n");
      await shell.see(/got=hello\n/);
      expect((await shell.prompt()).status).toBe(6);
    },
    LIMIT_MS,
  );

  test(
    "in the background under `stty tostop` is shown all the same, and ends by itself",
    async () => {
      const shell = await openShell(scene);
      await shell.ask("stty tostop");
      await shell.ask(`$W run --log on -- sh -c 'echo co""pied; exit 6' &`);
      await shell.see(/copied/);
      const isOver = async () => /Exit 6/.test((await shell.ask("jobs")).text);
      await waitFor(isOver, "a job that is over with its own status");
    },
    LIMIT_MS,
  );
});

function countWatchdogs(): number {
  const isWatchdog = (pid: number) => readCommandLine(pid).startsWith(`${RELEASE} run`);
  return scene.findProcesses().filter(isWatchdog).length;
}
