/**
 * Whom a burial spares although it carries the cookie of the run, and with what modes it writes:
 * what its guard cannot know from anybody but the notes and the state directory itself.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import { readStat } from "../../src/os/proc.ts";
import { encodeNotes } from "../../src/run/guard-notes.ts";
import { registerKept } from "../../src/run/kept-registry.ts";
import { makeNotes, RUNNING_RECORD } from "../support/guard-notes.ts";
import { type Guarded, isThere, killAndBury, startGuarded } from "../support/guarded-run.ts";
import { findByCommand } from "../support/processes.ts";
import { FIXTURES, killQuietly, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

function identityOf(pid: number): ProcessIdentity {
  return { pid, start_time: readStat(pid)?.startTicks ?? 0 };
}

/** The one process of the scene with this command line, once it is there. */
function waitForPid(line: string): Promise<number> {
  return waitFor(() => findByCommand(scene, line)[0], line);
}

async function note(run: Guarded, inborn: readonly ProcessIdentity[]): Promise<void> {
  run.send(`note ${JSON.stringify({ inborn })}`);
  await waitFor(() => run.told().some((one) => "noted" in one), "a note");
}

describe("a burial spares", () => {
  test("what was kept, by registration and by token", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const run = await startGuarded(scene, {
      command: ["sh", "-c", `WATCHDOG_KEPT=${token} sleep 304 & sleep 305 & sleep 306`],
    });
    const [byToken, registered] = [await waitForPid("sleep 304"), await waitForPid("sleep 305")];
    const ended = await waitForPid("sleep 306");
    const identity = `${registered}@${readStat(registered)?.startTicks}`;
    registerKept(scene.stateDirectory, run.runId, { token, identity: "" });
    registerKept(scene.stateDirectory, run.runId, { token: token.replace("0", "1"), identity });
    try {
      await killAndBury(run);
      expect([byToken, registered, ended].map(isThere)).toEqual([true, true, false]);
    } finally {
      for (const pid of [byToken, registered]) killQuietly(pid);
    }
  });

  test("what was there before its watchdog was, and nobody else for that", async () => {
    const command = ["sh", "-c", "sleep 312 & sleep 313 & sleep 314"];
    const run = await startGuarded(scene, { command });
    const [inborn, other] = [await waitForPid("sleep 312"), await waitForPid("sleep 313")];
    const { start_time: began } = identityOf(other);
    // The number alone proves nothing: this one was another process.
    await note(run, [identityOf(inborn), { pid: other, start_time: began - 1 }]);
    try {
      await killAndBury(run);
      expect([inborn, other, run.child].map(isThere)).toEqual([true, false, false]);
    } finally {
      killQuietly(inborn);
    }
  });
});

/** A call that gives a file its mode later does nothing: what it had at first can be seen. */
const FEIGNED = "inject=?chmod,fchmod,fchmodat,?fchmodat2:retval=0";
const STRACE = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", FEIGNED];
const hasStrace = Bun.which("strace") !== null;
if (!hasStrace) console.error("needs strace, not run here: the modes of what a burial makes");

/** Modes of what a burial makes in a state directory of this mode, started under this umask. */
async function buryIn(mode: number, umask: string): Promise<Map<string, string>> {
  const runId = Bun.randomUUIDv7();
  const state = scene.path(runId);
  mkdirSync(state);
  chmodSync(state, mode);
  const record = { ...RUNNING_RECORD, run_id: runId, run_path: runId };
  writeFileSync(`${state}.notes`, encodeNotes(makeNotes({ record }), 1));
  const script = `umask ${umask}; exec 8<"$1"; shift; exec "$@"`;
  const burial = [process.execPath, `${FIXTURES}/buries.ts`, "__bury", runId, state];
  const argv = ["sh", "-c", script, "sh", `${state}.notes`, ...STRACE, ...burial];
  const { status, stderr } = await scene.startProgram(argv).ended;
  expect([status, stderr]).toEqual([0, ""]);
  const modeOf = (file: string) => (lstatSync(`${state}/${file}`).mode & 0o777).toString(8);
  return new Map(readdirSync(state).map((file) => [file, modeOf(file)]));
}

describe.skipIf(!hasStrace)("what a burial makes has at no moment another mode", () => {
  test.each([
    ["660 in a shared directory, whoever asks for less", 0o2770, "077"],
    ["600 in a private directory, whoever asks for more", 0o700, "000"],
  ] as const)("than %s", async (title, mode, umask) => {
    const made = await buryIn(mode, umask);
    expect([...made.keys()]).toContain("journal.db");
    expect([...new Set(made.values())]).toEqual([title.slice(0, 3)]);
  });
});
