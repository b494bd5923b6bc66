/**
 * SIGKILL to a watchdog whose tree stands still: its guard, or the next run, leaves nobody frozen.
 *
 * Stopped processes in the session of the dead may get HUP and CONT from the kernel (setpgid(2),
 * orphaned process groups) and prove nothing then, so most of these have sessions of their own.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { identify, lastOutcome } from "../support/guarded-scene.ts";
import {
  GONE_LIMIT_MS,
  guardOf,
  isStillThere,
  killAlone,
  killWithGuard,
} from "../support/killing.ts";
import { COUNTER, stateOf, statesOf, waitForGrowth } from "../support/movement.ts";
import { PYTHON } from "../support/outside.ts";
import { openPausing, type PausingRun } from "../support/pausing.ts";
import { readLines, waitForText } from "../support/processes.ts";
import { FAULTS, FIXTURES } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "../fault/fault-scene.ts";

const { scene, start } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
const OFTEN = ["--heartbeat-interval", "100ms"];
const ABANDONED = { state: "ended", outcome: "abandoned", because: "watchdog-killed" };
const NOTES = [PYTHON, "-I", "-S", `${FIXTURES}/notes-signals.py`];

/** SIGKILL to watchdog; resolves with the record when its guard has done its work and is gone. */
async function killAndBury(run: PausingRun) {
  const guard = identify(guardOf(run.pid) ?? 0);
  await killAlone(run.started);
  await buried(guard);
  return run.record();
}

async function buried(guard: { pid: number; startTicks: number }): Promise<void> {
  const limitMs = GONE_LIMIT_MS;
  await waitFor(() => !isStillThere(guard), `guard ${guard.pid} gone`, { limitMs });
}

/** A main command and a member in a session of its own; both note what they hear. */
async function startListening(name: string, args: readonly string[], options = {}) {
  const [main, other] = [scene.path(`${name}.main`), scene.path(`${name}.other`)];
  const script = 'setsid "$@" "$0.other" other TERM,HUP & exec "$@" "$0.main" main TERM,HUP';
  const command = ["sh", "-c", script, scene.path(name), ...NOTES];
  const run = await start({ name, args: [...OFTEN, ...args], command, options });
  for (const file of [main, other]) await waitForText(file);
  return { run, heard: () => [readLines(main), readLines(other)] as const };
}

describe("the guard of a run that was killed while it was paused", () => {
  test(
    "ends everybody at once, and the record names them",
    async () => {
      const { run, heard } = await startListening("killed", []);
      await run.pause();
      const members = run.members();
      expect(statesOf(members)).toBe("TT");
      const record = await killAndBury(run);
      await run.waitUntilGone();
      expect(record).toMatchObject(ABANDONED);
      const { leftovers } = record as { leftovers: { pid: number; ended_by: string }[] };
      expect(leftovers.map(({ pid }) => pid).toSorted()).toEqual(members.toSorted());
      expect(heard()[1]).toEqual(["other ready"]);
      expect(await lastOutcome(scene, "killed")).toBe("abandoned");
    },
    LIMIT_MS,
  );

  test(
    "with --guard-grace has each of them hear its TERM",
    async () => {
      const { run, heard } = await startListening("grace", ["--guard-grace", "50s"]);
      await run.pause();
      const record = await killAndBury(run);
      await run.waitUntilGone();
      const [main, other] = heard();
      expect([main.at(-1), other]).toEqual(["main TERM", ["other ready", "other TERM"]]);
      const { leftovers } = record as { leftovers: { ended_by: string }[] };
      expect(leftovers.map((one) => one.ended_by)).toEqual(["TERM", "TERM"]);
    },
    LIMIT_MS,
  );

  test(
    "knows of those that were stopped a moment before watchdog died",
    async () => {
      const faults = scene.path("moment.faults");
      const heard = ["a", "b", "c", "d", "e", "f"].map((one) => scene.path(`moment.${one}`));
      const env = { WATCHDOG_FAULT: "tree.freeze#8=kill", WATCHDOG_FAULT_DIR: faults };
      const lines = heard.map((file) => `setsid ${NOTES.join(" ")} ${file} it TERM,HUP &`);
      // A nested run passes the TERM on, and the CONT to its main command alone: below that only
      // those are continued that are known as frozen.
      const nested = [FAULTS, "run", "--log", "off", "--name", "nested", "--"];
      const below = ["sh", "-c", `${lines.join(" ")} wait`];
      const run = await start({
        name: "moment",
        args: [...OFTEN, "--guard-grace", "50s"],
        command: ["sh", "-c", 'setsid "$@" & wait', "sh", ...nested, ...below],
        options: { binary: FAULTS, env },
      });
      for (const file of heard) await waitForText(file);
      const guard = identify(guardOf(run.pid) ?? 0);
      run.dependency.isUp = false;
      await run.started.ended;
      await buried(guard);
      await run.waitUntilGone();
      const [fault] = readEvidence(faults);
      expect(fault).toMatchObject({ point: "tree.freeze", act: "kill", nth: 8 });
      // The three above them, and some of them; one may be stopped twice (freeze-walk.ts).
      expect(Number(fault?.state["count"])).toBeGreaterThan(3);
      for (const file of heard) expect(readLines(file)).toEqual(["it ready", "it TERM"]);
    },
    LIMIT_MS,
  );
});

describe("where the main command had ended when watchdog was killed", () => {
  async function startLeaving(name: string, leftovers: string, fault: string | undefined) {
    const [file, faults] = [scene.path(name), scene.path(`${name}.faults`)];
    const env = { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults };
    const run = await start({
      name,
      args: [...OFTEN, "--leftovers", leftovers],
      command: ["sh", "-c", 'setsid "$@" "$0" & exec sleep 92101', file, ...COUNTER],
      options: { binary: FAULTS, env, stdout: "ignore", stderr: "ignore" },
    });
    await waitForText(file);
    const [left = 0] = run.members().filter((pid) => pid !== run.main);
    return { run, left, file, faults };
  }

  /** Its command is killed from outside; it dies before it has let anybody go on. */
  async function killBeforeThaw(leftovers: string) {
    const { run, left, file, faults } = await startLeaving(
      `thaw-${leftovers}`,
      leftovers,
      "tree.thaw=kill",
    );
    await run.pause();
    const guard = identify(guardOf(run.pid) ?? 0);
    expect(stateOf(left)).toBe("T");
    process.kill(run.main, "SIGKILL");
    await run.started.ended;
    await buried(guard);
    const state = { pid: left };
    expect(readEvidence(faults)).toMatchObject([{ point: "tree.thaw", act: "kill", state }]);
    return { run, left, file };
  }

  /** It lives, moves and is named. */
  async function expectLeft(run: PausingRun, left: number, file: string): Promise<void> {
    expect(stateOf(left)).not.toBe("T");
    await waitForGrowth([file]);
    expect(run.record()).toMatchObject({
      ...ABANDONED,
      signal: "KILL",
      leftovers: [{ pid: left, ended_by: null }],
    });
    process.kill(left, "SIGKILL");
    await run.waitUntilGone();
  }

  test(
    "those whom --leftovers leave lets live go on",
    async () => {
      const { run, left, file } = await killBeforeThaw("leave");
      await expectLeft(run, left, file);
    },
    LIMIT_MS,
  );

  test(
    "those whom --leftovers wait waits for, paused as they are, go on",
    async () => {
      const { run, left, file } = await startLeaving("waited-for", "wait", undefined);
      await run.pause();
      process.kill(run.main, "SIGKILL");
      // As the beat tells it: then the guard knows, too, that the command has ended.
      const hasEnded = async () =>
        (await askJson(scene, ["lease", "show", "job:waited-for"])).children.every(
          ({ pid }: { pid: number }) => pid !== run.main,
        );
      await waitFor(hasEnded, "a beat without the command");
      expect(stateOf(left)).toBe("T");
      await killAndBury(run);
      await expectLeft(run, left, file);
    },
    LIMIT_MS,
  );

  test(
    "those whom --leftovers kill was about to ask are ended",
    async () => {
      const { run, left } = await killBeforeThaw("kill");
      await run.waitUntilGone();
      expect(stateOf(left)).toMatch(/[ZX]/);
      expect(run.record()).toMatchObject({ ...ABANDONED, signal: "KILL" });
    },
    LIMIT_MS,
  );
});

describe("a run that was killed together with its guard while it was paused", () => {
  /** Leaves a member in a session of its own, frozen; it ends when the gate is there. */
  async function leaveFrozen(name: string) {
    const gate = scene.path(`${name}.gate`);
    // It forks nobody: of a shell inside vfork(2) there are two, and only one is in state T.
    const waits = `import os, sys, time
gate = sys.argv[1]
open(gate + ".ready", "w").write("ready\\n")
while not os.path.exists(gate): time.sleep(0.02)`;
    const member = [PYTHON, "-I", "-S", "-c", waits, gate];
    const command = ["sh", "-c", 'setsid "$@" & exec sleep 92102', "sh", ...member];
    const options = { stdout: "ignore", stderr: "ignore" } as const;
    const run = await start({ name, args: [...OFTEN, "--on-open", "pause"], command, options });
    await waitForText(`${gate}.ready`);
    await run.pause();
    const frozen = run.find(member.join(" "));
    expect(frozen).toHaveLength(1);
    await killWithGuard(run.started);
    expect(frozen.map(stateOf)).toEqual(["T"]);
    return { run, gate, frozen: frozen[0] ?? 0 };
  }

  test(
    "leaves survivors that the next run ends, and then it starts",
    async () => {
      const { run, frozen } = await leaveFrozen("next");
      const next = await scene.run(["--name", "next", "--log", "off", "--", "echo", "started"]);
      expect([next.status, next.stdout.toString()]).toEqual([0, "started\n"]);
      expect(next.stderr).toMatch(new RegExp(`\nwatchdog: ended .* run before: .*${frozen}`));
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "leaves them alone where --on-survivors refuse says so",
    async () => {
      const { run, frozen, gate } = await leaveFrozen("refused");
      const args = ["--name", "refused", "--on-survivors", "refuse", "--", "echo", "started"];
      const next = await scene.run(args);
      expect([next.status, next.stdout.toString()]).toEqual([75, ""]);
      expect(next.stderr).toMatch(
        /^watchdog: not started: job:refused was left by run .* left alone/,
      );
      expect(stateOf(frozen)).toBe("T");
      writeFileSync(gate, "");
      for (const pid of run.findAll()) process.kill(pid, "SIGCONT");
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );

  test(
    "leaves some that --on-survivors wait lets go on, and waits for",
    async () => {
      const { run, frozen, gate } = await leaveFrozen("waited");
      const mark = scene.path("waited.mark");
      const args = ["--on-survivors", "wait", "--wait", "2m", "--log", "off"];
      const command = ["sh", "-c", 'echo started >"$0"', mark];
      const next = scene.start(["--name", "waited", ...args, "--", ...command]);
      await waitFor(() => !"TXZ".includes(stateOf(frozen)), "one that goes on");
      expect(existsSync(mark)).toBe(false);
      writeFileSync(gate, "");
      expect((await next.ended).status).toBe(0);
      expect(await waitForText(mark)).toBe("started\n");
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );
});
