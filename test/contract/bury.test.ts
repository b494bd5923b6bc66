/**
 * A burial: what the guard of a killed run does to whom, and what it writes down. Real processes;
 * the run is killed with SIGKILL each time.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import { findRun } from "../../src/journal/queries.ts";
import { makePlace, placeOf } from "../../src/lease/files/places.ts";
import { createSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { readMachine } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { encodeNotes, type GuardNotes } from "../../src/run/guard-notes.ts";
import { makeNotes, RUNNING_RECORD } from "../support/guard-notes.ts";
import {
  type Guarded,
  isThere,
  killAndBury,
  readResult,
  startGuarded,
  waitUntilGone,
} from "../support/guarded-run.ts";
import {
  findAnywhere,
  findByCommand,
  python,
  readLines,
  waitForText,
} from "../support/processes.ts";
import { inRounds } from "../support/rounds.ts";
import { FIXTURES, killQuietly, openScene, ROUNDS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

async function note(run: Guarded, changes: Partial<GuardNotes>): Promise<void> {
  const before = run.told().filter((one) => "noted" in one).length;
  run.send(`note ${JSON.stringify(changes)}`);
  await waitFor(() => run.told().filter((one) => "noted" in one).length > before, "a note");
}

function daemonize(file: string, command: readonly string[]): string[] {
  return python("daemonizes.py", file, ...command);
}

function notesSignals(file: string): string[] {
  return python("notes-signals.py", file, "main", "TERM,HUP,INT");
}

function ready(name: string): string {
  return scene.path(`ready-${name}`);
}

/** State and outcome of the run's row; undefined: there is none. */
async function findInJournal(run: { readonly runId: string }): Promise<unknown[] | undefined> {
  const found = findRun(scene.stateDirectory, run.runId);
  if (found.kind !== "read" || found.value === undefined) return undefined;
  return [found.value.state, found.value.outcome];
}

/** A daemon without the run's variables, which the beat of a lease (of this run) has recorded. */
async function startRecorded(name: string, runIdOfSlot?: string): Promise<[Guarded, number]> {
  const lease = { kind: "job", name, generation: 1 };
  const record = { ...RUNNING_RECORD, leases: [lease] };
  const daemon = scene.path(`daemon-${name}`);
  const command = ["env", "-u", "WATCHDOG_RUN_PATH", ...daemonize(daemon, ["sleep", "309"])];
  const run = await startGuarded(scene, { command, notes: { record } });
  const pid = Number(await waitForText(daemon));
  const place = placeOf(scene.stateDirectory, lease);
  makePlace(place);
  const fd = createSlot(place, lease.generation);
  writeSlot(fd, {
    head: {
      generation: lease.generation,
      sequence: 1,
      mainLoopSequence: 1,
      bootId: readMachine().bootId,
      monotonicMs: 1,
      boottimeMs: 1,
      wallMs: 1,
      mainLoopMs: 1,
      staleAfterMs: 40_000,
      runState: "running",
      counts: null,
    },
    body: {
      runId: runIdOfSlot ?? run.runId,
      lockInode: "1:1",
      pidNamespace: readMachine().pidNamespace,
      timeNamespace: readMachine().timeNamespace,
      sessionId: 0,
      mainGroup: null,
      owner: { ...identityOf(run.pid), pidfd_inode: 0 },
      mainChild: null,
      guard: null,
      members: [identityOf(pid)],
      memberCount: 1,
      work: null,
    },
  });
  closeSync(fd);
  return [run, pid];
}

/** A process that carries the cookie of a run that nobody watches. */
function startMember() {
  const runId = Bun.randomUUIDv7();
  const env = { ...scene.env, WATCHDOG_RUN_PATH: runId };
  const member = Bun.spawn(["sleep", "300"], { env });
  return { runId, pid: member.pid, kill: () => member.kill("SIGKILL") };
}

function recordOf(member: { readonly runId: string }): RunRecord {
  return { ...RUNNING_RECORD, run_id: member.runId, run_path: member.runId };
}

function identityOf(pid: number): ProcessIdentity {
  return { pid, start_time: readStat(pid)?.startTicks ?? 0 };
}

/** The burial of a run by itself, as a child of the test. */
async function bury(member: { readonly runId: string }, notes: GuardNotes | undefined) {
  const path = scene.path(`notes-${member.runId}`);
  mkdirSync(scene.stateDirectory, { recursive: true, mode: 0o700 });
  writeFileSync(path, notes === undefined ? "" : encodeNotes(notes, 1));
  const words = [process.execPath, `${FIXTURES}/buries.ts`, "__bury", member.runId];
  const burial = Bun.spawn(
    ["sh", "-c", 'exec 8<"$1"; shift; exec "$@"', "sh", path, ...words, scene.stateDirectory],
    { env: scene.env, stdout: "pipe", stderr: "pipe" },
  );
  const said = await Promise.all([burial.stdout, burial.stderr].map((one) => one.text()));
  expect([await burial.exited, ...said]).toEqual([0, "", ""]);
}

describe("a burial", () => {
  test("ends the tree at once, corrects the result file and tells the journal", async () => {
    const daemon = scene.path("daemon-pid");
    const marker = ["sleep", "301"];
    const run = await startGuarded(scene, {
      command: ["sh", "-c", `${daemonize(daemon, marker).join(" ")}; sleep 302 & sleep 303`],
    });
    await waitForText(daemon);
    const tree = await waitFor(() => {
      const those = ["sleep 301", "sleep 302", "sleep 303"];
      const found = those.flatMap((line) => findByCommand(scene, line));
      return found.length === 3 && found;
    }, "the whole tree");
    const record = await killAndBury(run);
    expect([...tree, run.child].filter(isThere)).toEqual([]);
    expect(record).toMatchObject({
      run_id: run.runId,
      state: "ended",
      outcome: "abandoned",
      because: "watchdog-killed",
      exit_status: null,
      status_of: null,
      degraded: [],
    });
    expect(record["duration_ms"]).toBeWithin(0, 60_000);
    const ended = record["leftovers"] as { pid: number; command: string; ended_by: string }[];
    expect(ended.map((one) => one.pid).sort()).toEqual([...tree, run.child].sort());
    expect(ended.every((one) => one.ended_by === "KILL")).toBe(true);
    const commands = tree.map((pid) => ended.find((one) => one.pid === pid)?.command);
    expect(commands).toEqual(["sleep 301", "sleep 302", "sleep 303"]);
    expect(await findInJournal(run)).toEqual(["ended", "abandoned"]);
  });

  test("ends a main command that has dropped the run's variables", async () => {
    const run = await startGuarded(scene, {
      command: ["env", "-u", "WATCHDOG_RUN_PATH", "sleep", "307"],
    });
    await waitFor(() => findByCommand(scene, "sleep 307").length === 1, "its program");
    await killAndBury(run);
    expect(isThere(run.child)).toBe(false);
  });

  test.each([true, false])(
    "ends who shows nothing and is in the group of a command that has ended (its own: %p)",
    async (hasOwnGroup) => {
      const child = scene.path(`in-group-${hasOwnGroup}`);
      const command = ["sh", "-c", 'env -i sleep 310 & echo $! >"$0"', child];
      const run = await startGuarded(scene, { command, notes: { hasOwnGroup } });
      const pid = Number(await waitForText(child));
      await waitFor(() => findAnywhere("sleep 310").includes(pid), "its program");
      await waitFor(() => !isThere(run.child), "the end of the command");
      try {
        await killAndBury(run);
        expect(isThere(pid)).toBe(!hasOwnGroup);
      } finally {
        killQuietly(pid);
      }
    },
  );

  test("names a command that was never noted, and does not touch it", async () => {
    const run = await startGuarded(scene, { command: ["env", "-i", "sleep", "311"] });
    try {
      await waitFor(() => findAnywhere("sleep 311").includes(run.child), "its program");
      await note(run, { mainChild: null, phase: "starting" });
      const record = await killAndBury(run);
      expect(isThere(run.child)).toBe(true);
      expect(record["left_alone"]).toContainEqual(expect.objectContaining({ pid: run.child }));
    } finally {
      killQuietly(run.child);
    }
  });

  test("ends orphans that another subreaper has adopted, and not the adopter", async () => {
    const daemon = scene.path("adopted-pid");
    const run = await startGuarded(scene, {
      command: daemonize(daemon, ["sleep", "308"]),
      wrapper: python("adopts-orphans.py"),
    });
    const orphan = Number(await waitForText(daemon));
    const adopter = readStat(run.pid)?.ppid ?? 0;
    const record = await killAndBury(run);
    expect(isThere(orphan)).toBe(false);
    expect(record["left_alone"]).toEqual([]);
    // It is told of the death by KILL, and had to live for that.
    expect(await run.exited).toBe(128 + 9);
    expect(isThere(adopter)).toBe(false);
  });

  test("ends members that only the last beat knows", async () => {
    const [run, pid] = await startRecorded("recorded");
    await killAndBury(run);
    expect(isThere(pid)).toBe(false);
  });

  test("believes no slot of another run", async () => {
    const [run, pid] = await startRecorded("of-another", Bun.randomUUIDv7());
    await killAndBury(run);
    expect(isThere(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });

  test("sends no TERM without a grace", async () => {
    const noted = scene.path("noted-nothing");
    const run = await startGuarded(scene, { command: notesSignals(noted) });
    await waitForText(noted);
    await killAndBury(run);
    expect(readLines(noted)).toEqual(["main ready"]);
  });

  test("asks by TERM first where there is one, and does not wait for all of it", async () => {
    const noted = scene.path("noted-term");
    const run = await startGuarded(scene, {
      command: notesSignals(noted),
      notes: { guardGraceMs: 60_000 },
    });
    await waitForText(noted);
    const record = await killAndBury(run);
    expect(readLines(noted)).toEqual(["main ready", "main TERM"]);
    expect(record["leftovers"]).toMatchObject([{ pid: run.child, ended_by: "TERM" }]);
  });

  test("ends by KILL who does not listen within it", async () => {
    const run = await startGuarded(scene, {
      command: ["sh", "-c", "trap '' TERM; echo >>$0; while :; do sleep 0.05; done", ready("deaf")],
      notes: { guardGraceMs: 100 },
    });
    await waitForText(ready("deaf"));
    const record = await killAndBury(run);
    expect(isThere(run.child)).toBe(false);
    const ends = record["leftovers"] as { pid: number; ended_by: string }[];
    expect(ends.find((one) => one.pid === run.child)?.ended_by).toBe("KILL");
  });

  test.each(["wait", "leave"] as const)(
    "signals nobody where the main command had ended and leftovers may live (%s)",
    async (leftovers) => {
      const run = await startGuarded(scene, { notes: { leftovers } });
      await note(run, { mainEnd: { kind: "exited", code: 3 } });
      const record = await killAndBury(run);
      expect(isThere(run.child)).toBe(true);
      expect(record).toMatchObject({ outcome: "abandoned", exit_code: 3, exit_status: null });
      expect(record["leftovers"]).toMatchObject([{ pid: run.child, ended_by: null }]);
      process.kill(run.child, "SIGKILL");
    },
  );

  test("but ends them where watchdog was about to", async () => {
    const run = await startGuarded(scene, { notes: { leftovers: "leave" } });
    await note(run, { mainEnd: { kind: "exited", code: 3 }, phase: "stopping" });
    await killAndBury(run);
    expect(isThere(run.child)).toBe(false);
  });

  test.each([
    ["of another run", { run_id: "01900000-0000-7000-8000-0000000000ff", state: "running" }],
    ["that says the end already", { state: "ended", outcome: "ok" }],
    ["that nobody of ours has written", "a person's notes"],
  ])("leaves a result file alone %s", async (_, content) => {
    const run = await startGuarded(scene);
    const whole = typeof content === "string" ? content : { run_id: run.runId, ...content };
    writeFileSync(run.resultFile, JSON.stringify(whole));
    expect(await killAndBury(run)).toEqual(whole as never);
    expect(await findInJournal(run)).toEqual(["ended", "abandoned"]);
  });

  test("makes no result file that is not there", async () => {
    const run = await startGuarded(scene);
    rmSync(run.resultFile);
    await run.kill();
    await waitUntilGone(run.guard.pid, "the guard");
    expect(existsSync(run.resultFile)).toBe(false);
  });

  test("knows the last note that was written to its end, whenever the kill came", async () => {
    await inRounds(ROUNDS, async () => {
      // Of many pages, so that the kernel is killed in the midst of one.
      const record = { ...RUNNING_RECORD, command: ["x".repeat(2 ** 20)] };
      const run = await startGuarded(scene, { command: ["true"], notes: { record } });
      run.send("notes for ever");
      await waitFor(() => run.told().some((one) => one["noted"] === "often"), "many notes");
      const found = await killAndBury(run);
      expect(found["outcome"]).toBe("abandoned");
      expect(found["exit_code"]).toBeGreaterThanOrEqual(1000);
    });
  }, 1_200_000);

  test("knows the last note, too, where the second area cannot be written", async () => {
    const wrapper = ["bash", "-c", 'ulimit -f 2048; exec "$@"', "bash"];
    const run = await startGuarded(scene, { wrapper });
    for (const code of [4, 5, 6]) await note(run, { mainEnd: { kind: "exited", code } });
    expect(await killAndBury(run)).toMatchObject({ outcome: "abandoned", exit_code: 6 });
  });

  test("is not given up because somebody asks it to go", async () => {
    const faults = scene.path("faults-asked");
    const env = { WATCHDOG_FAULT: "bury.begin=stop", WATCHDOG_FAULT_DIR: faults };
    const run = await startGuarded(scene, { env });
    await run.kill();
    await waitFor(() => readStat(run.guard.pid)?.state === "T", "its beginning");
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGCONT"] as const) {
      process.kill(run.guard.pid, signal);
    }
    await waitUntilGone(run.guard.pid, "the guard");
    expect(readResult(run)["outcome"]).toBe("abandoned");
    expect(isThere(run.child)).toBe(false);
  });

  test.each([
    ["bury.begin=throw", "guard-bug", false],
    ["bury.kill=throw", "guard-tree-not-ended", true],
    ["bury.record=throw", undefined, false],
  ] as const)("goes on where a part of it fails: %s", async (fault, word, isAlive) => {
    const faults = scene.path(`faults-${fault}`);
    const env = { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults };
    const run = await startGuarded(scene, { env });
    const record = await killAndBury(run);
    expect(readdirSync(faults)).toHaveLength(1);
    expect(record).toMatchObject({ outcome: "abandoned", degraded: word ? [word] : [] });
    expect(await findInJournal(run)).toEqual(["ended", "abandoned"]);
    expect(isThere(run.child)).toBe(isAlive);
    if (isAlive) process.kill(run.child, "SIGKILL");
  });
});

describe("a burial signals nobody and says so in no file", () => {
  test("while the owner lives", async () => {
    const sleeper = startMember();
    const owner = { pid: process.pid, start_time: readStat(process.pid)?.startTicks ?? 0 };
    await bury(sleeper, makeNotes({ record: recordOf(sleeper), owner }));
    expect(isThere(sleeper.pid)).toBe(true);
    expect(await findInJournal(sleeper)).toBeUndefined();
    sleeper.kill();
  }, 180_000);

  test("by the notes of another run", async () => {
    const sleeper = startMember();
    await bury(sleeper, makeNotes({ mainChild: identityOf(sleeper.pid) }));
    expect(isThere(sleeper.pid)).toBe(true);
    sleeper.kill();
  });

  test("without notes", async () => {
    const sleeper = startMember();
    await bury(sleeper, undefined);
    expect(isThere(sleeper.pid)).toBe(true);
    sleeper.kill();
  });

  test("but ends that very process by the right ones", async () => {
    const sleeper = startMember();
    const mainChild = identityOf(sleeper.pid);
    await bury(sleeper, makeNotes({ record: recordOf(sleeper), mainChild }));
    expect(isThere(sleeper.pid)).toBe(false);
  });
});
