/**
 * Stopping and continuing at a real terminal: Ctrl-Z, `fg`, `bg`, and jobs of the background that
 * want the terminal. Each dialogue is held without watchdog too, and must go the same way.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limitOf } from "../support/rounds.ts";
import { readStatusLine } from "../support/processes.ts";
import { FIXTURES, openScene, ROUNDS } from "../support/scene.ts";
import { findCommands, KEY, openShell, type Shell } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const COUNTER = join(FIXTURES, "counts-lines.sh");
const LIMIT_MS = limitOf(ROUNDS, 120);
const BOTH = [
  ["without watchdog", ""],
  ["with watchdog", "$W run "],
] as const;

let files = 0;
function freshFile(): string {
  files += 1;
  return scene.path(`lines-${files}`);
}

function countLines(file: string): number {
  return existsSync(file) ? readFileSync(file, "latin1").split("\n").length - 1 : 0;
}

async function waitForMoreLines(file: string, more = 3): Promise<void> {
  const before = countLines(file);
  await waitFor(() => countLines(file) >= before + more, `${more} more lines in ${file}`);
}

/** A copy of a shell that is about to be another program may be gone by now. */
function stateOf(pid: number): string {
  return readStatusLine(pid, "State") ?? "gone";
}

async function waitForState(commandLine: string, state: RegExp): Promise<void> {
  const look = () => findCommands(scene, commandLine).some((pid) => state.test(stateOf(pid)));
  await waitFor(look, `${commandLine} in a state of ${String(state)}`);
}

/** Ctrl-Z, and the shell is there again: 148 is what bash shows for a job that TSTP has stopped. */
async function suspend(shell: Shell): Promise<void> {
  shell.type(KEY.suspend);
  const { status, text } = await shell.prompt();
  expect(status).toBe(148);
  expect(text).toMatch(/\[1\]\+\s+Stopped/);
}

describe("A-18: Ctrl-Z", () => {
  test.each(BOTH)(
    "%s stops the job, fg continues it, as often as one likes",
    async (_, front) => {
      const file = freshFile();
      const shell = await openShell(scene);
      shell.begin(`${front}${COUNTER} ${file}`);
      await waitForMoreLines(file);
      for (const _round of [1, 2, 3]) {
        await suspend(shell);
        await waitForState(`/bin/bash ${COUNTER} ${file}`, /^T/);
        const stopped = countLines(file);
        expect((await shell.ask("jobs")).text).toMatch(/^\[1\]\+\s+Stopped/);
        expect(countLines(file)).toBe(stopped);
        shell.begin("fg");
        await waitForMoreLines(file);
      }
      writeFileSync(`${file}.end`, "");
      await shell.see(/counted\n/);
      expect((await shell.prompt()).status).toBe(5);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s and bg let the job go on behind the shell",
    async (_, front) => {
      const file = freshFile();
      const shell = await openShell(scene);
      shell.begin(`${front}${COUNTER} ${file}`);
      await waitForMoreLines(file);
      await suspend(shell);
      await shell.ask("bg");
      await waitForMoreLines(file);
      writeFileSync(`${file}.end`, "");
      expect((await shell.ask("wait %1")).status).toBe(5);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s stops nothing when the command ignores TSTP",
    async (_, front) => {
      const file = freshFile();
      const shell = await openShell(scene);
      shell.begin(`${front}${COUNTER} ${file} deaf`);
      await waitForMoreLines(file);
      shell.type(KEY.suspend);
      await waitForMoreLines(file);
      shell.type(KEY.suspend);
      await waitForMoreLines(file);
      writeFileSync(`${file}.end`, "");
      await shell.see(/counted\n/);
      expect((await shell.prompt()).status).toBe(5);
      expect(shell.screen).not.toContain("Stopped");
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s stops and continues children of the command as well",
    async (_, front) => {
      const shell = await openShell(scene);
      shell.begin(`${front}sh -c 'sleep 96201 & sleep 96202; exit 3'`);
      await waitForState("sleep 96201", /^S/);
      await waitForState("sleep 96202", /^S/);
      await suspend(shell);
      await waitForState("sleep 96201", /^T/);
      await waitForState("sleep 96202", /^T/);
      shell.begin("fg");
      await waitForState("sleep 96201", /^S/);
      await waitForState("sleep 96202", /^S/);
      shell.type(KEY.interrupt);
      await shell.prompt();
      for (const pid of findCommands(scene, "sleep 96201")) process.kill(pid, "SIGKILL");
    },
    LIMIT_MS,
  );

  test(
    "neither ends a stopped run nor leaves anything of it when the shell kills the job",
    async () => {
      const shell = await openShell(scene);
      const record = scene.recordTo("killed").join(" ");
      shell.begin(`$W run ${record} -- sh -c 'setsid sleep 96203 & sleep 96204'`);
      await waitForState("sleep 96204", /^S/);
      await waitForState("sleep 96203", /^S/);
      await suspend(shell);
      await waitForState("sleep 96204", /^T/);
      expect(scene.readRecord("killed")["state"]).toBe("running");
      // bash continues a stopped job that it sends TERM to.
      await shell.ask("kill %1");
      await waitFor(() => scene.readRecord("killed")["state"] === "ended", "the end of the run");
      expect(scene.readRecord("killed")).toMatchObject({
        outcome: "stopped",
        because: "terminated",
      });
      expect(findCommands(scene, "sleep 96203")).toEqual([]);
      expect(findCommands(scene, "sleep 96204")).toEqual([]);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s stops nothing more when the command ignores TSTP after it was stopped once",
    async (_, front) => {
      const file = freshFile();
      const shell = await openShell(scene);
      shell.begin(`${front}${COUNTER} ${file}`);
      await waitForMoreLines(file);
      await suspend(shell);
      shell.begin("fg");
      writeFileSync(`${file}.deaf`, "");
      await waitForMoreLines(file);
      shell.type(KEY.suspend);
      await waitForMoreLines(file);
      writeFileSync(`${file}.end`, "");
      expect((await shell.prompt()).status).toBe(5);
    },
    LIMIT_MS,
  );

  test(
    "loses none of many, one right after the other",
    async () => {
      const shell = await openShell(scene);
      shell.begin("$W run sleep 96207");
      for (let round = 0; round < ROUNDS; round += 1) {
        await waitForState("sleep 96207", /^S/);
        await suspend(shell);
        shell.begin("fg");
        await shell.see(/\$W run sleep 96207\n/);
      }
      await waitForState("sleep 96207", /^S/);
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
    },
    LIMIT_MS,
  );
});

describe("Ctrl-Z after the command itself has ended", () => {
  test(
    "stops a run that waits for what is left, and fg goes on with it",
    async () => {
      const shell = await openShell(scene);
      shell.begin("$W run --leftovers wait -- sh -c 'sleep 96206 & echo go\"\"ne'");
      await shell.see(/gone\n/);
      await waitForState("sleep 96206", /^S/);
      await waitFor(
        () => findCommands(scene, 'sh -c sleep 96206 & echo go""ne').length === 0,
        "its end",
      );
      await suspend(shell);
      shell.begin("fg");
      await waitForState("sleep 96206", /^S/);
      shell.type(KEY.interrupt);
      await shell.prompt();
      expect(findCommands(scene, "sleep 96206")).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("a job of the background", () => {
  test.each(BOTH)(
    "%s that reads from the terminal is stopped, and goes on with fg",
    async (_, front) => {
      const shell = await openShell(scene);
      await shell.ask(`${front}sh -c 'read word </dev/tty; echo got=$word; exit 6' &`);
      await waitFor(
        async () => (await shell.ask("jobs")).text.includes("Stopped"),
        "a stopped job",
      );
      shell.begin("fg");
      shell.type("hello\n");
      await shell.see(/\ngot=hello\n/);
      expect((await shell.prompt()).status).toBe(6);
    },
    LIMIT_MS,
  );

  test.each(BOTH)(
    "%s that writes under `stty tostop` is stopped, and goes on with fg",
    async (_, front) => {
      const shell = await openShell(scene);
      await shell.ask("stty tostop");
      await shell.ask(`${front}sh -c 'echo wri""tten; exit 6' &`);
      await waitFor(
        async () => (await shell.ask("jobs")).text.includes("Stopped"),
        "a stopped job",
      );
      expect(shell.screen).not.toContain("\nwritten");
      shell.begin("fg");
      await shell.see(/\nwritten\n/);
      expect((await shell.prompt()).status).toBe(6);
    },
    LIMIT_MS,
  );

  test(
    "meets its limit under `stty tostop`, though watchdog itself has a line to write",
    async () => {
      const shell = await openShell(scene);
      const record = scene.recordTo("tostop").join(" ");
      await shell.ask("stty tostop");
      await shell.ask(`$W run ${record} --timeout 300ms -- sleep 96205 &`);
      await waitFor(
        () => findCommands(scene, "sleep 96205").length === 0,
        "the end of the command",
      );
      const isOver = async () => /Stopped|Exit 124/.test((await shell.ask("jobs")).text);
      await waitFor(isOver, "a job that is stopped or over");
      await shell.ask("fg; true");
      await waitFor(() => scene.readRecord("tostop")["state"] === "ended", "the end of the run");
      expect(scene.readRecord("tostop")).toMatchObject({ outcome: "timeout", exit_status: 124 });
    },
    LIMIT_MS,
  );
});
