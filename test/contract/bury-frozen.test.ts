/**
 * The burial of a run whose watchdog had made the tree stand still when it was killed: whoever is
 * ended is ended as ever, and whoever may live goes on. Real processes; the run is killed with
 * SIGKILL each time.
 *
 * The frozen ones lead sessions of their own: stopped processes in the session of the dead may get
 * HUP and CONT from the kernel (setpgid(2), orphaned process groups), and prove nothing then.
 */
import { describe, expect, test } from "bun:test";
import type { GuardNotes } from "../../src/run/guard-notes.ts";
import { scanProcesses } from "../../src/tree/scan.ts";
import { endSurvivors } from "../../src/tree/survivors.ts";
import { type Guarded, isThere, killAndBury, startGuarded } from "../support/guarded-run.ts";
import { python, readLines, waitForText } from "../support/processes.ts";
import { FIXTURES } from "../support/scene.ts";
import { DeadRunScene, identityOf, NOBODY_KEPT, stateOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const dead = new DeadRunScene(import.meta.file);
const { scene } = dead;
/** A run with two daemons that are stopped: one by its watchdog, as it says, and one by others. */
async function startFrozen(
  name: string,
  changes: Partial<GuardNotes>,
  command: (one: string) => readonly string[] = () => ["sleep", "300"],
): Promise<{ run: Guarded; frozen: number; other: number }> {
  const files = ["frozen", "other"].map((one) => scene.path(`${name}-${one}`));
  const lines = files.map((file) => python("daemonizes.py", file, ...command(file)).join(" "));
  const run = await startGuarded(scene, {
    command: ["sh", "-c", lines.join("; ")],
  });
  const pids: number[] = [];
  for (const file of files) pids.push(Number(await waitForText(file)));
  const [frozen = 0, other = 0] = pids;
  for (const pid of pids) dead.remember(pid);
  for (const file of files.filter(() => command(name)[0] !== "sleep")) {
    await waitForText(`${file}.heard`);
  }
  await waitFor(() => !isThere(run.child), "the end of the command");
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await waitFor(() => pids.every((pid) => stateOf(pid) === "T"), "both stopped");
  const noted = { phase: "paused", frozen: [identityOf(frozen)], ...changes } as const;
  run.send(`note ${JSON.stringify(noted)}`);
  await waitFor(() => run.told().some((one) => "noted" in one), "the note");
  return { run, frozen, other };
}

const ENDED = { kind: "exited", code: 3 } as const;

describe("a burial of a paused run", () => {
  test.each(["wait", "leave"] as const)(
    "lets those go on that watchdog had stopped, where they may live (%s)",
    async (leftovers) => {
      const changes = { leftovers, mainEnd: ENDED };
      const { run, frozen, other } = await startFrozen(`left-${leftovers}`, changes);
      const record = await killAndBury(run);
      expect([stateOf(frozen), stateOf(other)]).toEqual(["S", "T"]);
      const left = record["leftovers"] as { pid: number; ended_by: string | null }[];
      expect(left.map(({ pid, ended_by }) => [pid, ended_by]).toSorted()).toEqual(
        [frozen, other].map((pid) => [pid, null]).toSorted(),
      );
      expect(record).toMatchObject({ outcome: "abandoned", degraded: [] });
    },
  );

  test("negative twin: whom nobody has noted stays stopped", async () => {
    const changes = { leftovers: "leave", mainEnd: ENDED, frozen: [] } as const;
    const { run, frozen, other } = await startFrozen("unnoted", changes);
    await killAndBury(run);
    expect([stateOf(frozen), stateOf(other)]).toEqual(["T", "T"]);
  });

  test("lets nobody go on whose pid is another process by now", async () => {
    const { run, frozen } = await startFrozen("reused", { leftovers: "leave", mainEnd: ENDED });
    const stale = { pid: frozen, start_time: 1 };
    run.send(`note ${JSON.stringify({ frozen: [stale] })}`);
    await waitFor(() => run.told().filter((one) => "noted" in one).length === 2, "the note");
    await killAndBury(run);
    expect(stateOf(frozen)).toBe("T");
  });

  test.each([
    ["nobody watches it", { mainEnd: null }],
    ["leftovers are ended", { mainEnd: ENDED, leftovers: "kill" }],
  ] as const)("ends the stopped, too, where %s", async (title, changes) => {
    const { run, frozen, other } = await startFrozen(title.replaceAll(" ", "-"), changes);
    await killAndBury(run);
    expect([isThere(frozen), isThere(other)]).toEqual([false, false]);
  });

  test("with a grace asks them by TERM, and continues them so that they hear it", async () => {
    const changes = { mainEnd: null, guardGraceMs: 60_000 };
    const words = (file: string) => python("notes-signals.py", `${file}.heard`, "one", "TERM");
    const { run, frozen, other } = await startFrozen("grace", changes, words);
    const record = await killAndBury(run);
    expect([isThere(frozen), isThere(other)]).toEqual([false, false]);
    for (const one of ["frozen", "other"]) {
      expect(readLines(scene.path(`grace-${one}.heard`))).toEqual(["one ready", "one TERM"]);
    }
    const ends = record["leftovers"] as { pid: number; ended_by: string }[];
    expect(ends.find(({ pid }) => pid === frozen)?.ended_by).toBe("TERM");
  });
});

/** A watchdog is known by its program: of the same as this one is whatever runs on Bun. */
async function endBelowNested(name: string, isNoted: boolean): Promise<string[]> {
  const run = dead.another();
  const [path, heard] = [run.makePath(), scene.path(`${name}.heard`)];
  const child = python("notes-signals.py", heard, "one", "TERM");
  const nested = await run.startOrphan([
    process.execPath,
    `${FIXTURES}/starts-deaf.ts`,
    path,
    ...child,
  ]);
  const [pid = 0] = await run.readPids(path);
  await waitForText(heard);
  for (const one of [nested, pid]) process.kill(one, "SIGSTOP");
  await waitFor(() => [nested, pid].every((one) => stateOf(one) === "T"), "both stopped");
  // The nested one passes TERM on as soon as it hears it; this is what has come of that.
  process.kill(pid, "SIGTERM");
  const left = await endSurvivors(run.describe([nested]), NOBODY_KEPT, {
    scan: scanProcesses,
    guardWaitMs: 0,
    termGraceMs: 1_000,
    frozen: isNoted ? [nested, pid].map(identityOf) : [],
  });
  expect(left).toEqual({ members: [], suspects: [] });
  return readLines(heard);
}

describe("members below a nested watchdog", () => {
  test("are continued by whoever ends a paused tree, and hear what it passes on", async () => {
    expect(await endBelowNested("nested", true)).toEqual(["one ready", "one TERM"]);
  });

  test("negative twin: where they are not, they hear nothing before KILL", async () => {
    expect(await endBelowNested("nested-twin", false)).toEqual(["one ready"]);
  });
});
