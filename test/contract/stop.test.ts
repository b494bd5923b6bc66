/**
 * Stopping a run with real processes in the place of its watchdog: who is signalled, how often, and
 * above all who is not.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import type { GrantedLease } from "../../src/core/journal-entry.ts";
import type { LeaseRecord, ProcessIdentity } from "../../src/core/lease-record.ts";
import { findRunning, isOurProgram } from "../../src/inspect/running.ts";
import { type StopEnd, type StopQuestion, stopRun } from "../../src/inspect/stop.ts";
import { Journal } from "../../src/journal/journal.ts";
import { openLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { readMachine } from "../../src/os/machine.ts";
import { wallNow } from "../../src/os/clock.ts";
import { openSupervisor, protectionOf } from "../../src/tree/signal-supervisor.ts";
import { sampleRecord } from "../support/lease-samples.ts";
import { sampleRunRecord } from "../support/lease-views.ts";
import { python, readLines, readStatusLine, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene, type Started } from "../support/scene.ts";
import { identityOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const machine = readMachine();
const RUN_ID = "01900000-0000-7000-8000-000000000001";
const OTHER_RUN_ID = "01900000-0000-7000-8000-000000000002";
/** Two TERMs with less between them may be one for a holder that gets no processor. */
const APART_MS = 2_000;
let count = 0;

interface Stand {
  readonly state: string;
  readonly notes: string;
  readonly place: LeasePlace;
}

/** A state directory with the empty lock of `job:backup`. */
function setUp(): Stand & { lockInode: string } {
  count += 1;
  const state = scene.path(`state-${count}`);
  mkdirSync(state, { mode: 0o700 });
  const place = placeOf(state, { kind: "job", name: "backup" });
  makePlace(place);
  const lock = openLock(place.lock, "create");
  if (lock.kind !== "open") throw new Error(`found no lock: ${lock.kind}`);
  return { state, place, notes: scene.path(`notes-${count}`), lockInode: lock.inode };
}

/** A process that holds the lock of `job:backup`, and the record that names it as the owner. */
async function standIn(
  terms: number,
  changes: Partial<LeaseRecord> = {},
): Promise<Stand & { holder: Started }> {
  const stand = setUp();
  const words = [stand.notes, String(terms), stand.place.lock];
  const holder = scene.startProgram(python("holds-lock.py", ...words));
  await waitForText(stand.notes);
  const owner = identityOf(holder.pid);
  writeRecord(stand.place.record, recordOf(owner, { lock_inode: stand.lockInode, ...changes }));
  return { ...stand, holder };
}

function recordOf(owner: ProcessIdentity, changes: Partial<LeaseRecord>): LeaseRecord {
  return sampleRecord({
    run_id: RUN_ID,
    run_path: RUN_ID,
    boot_id: machine.bootId,
    machine_id: machine.machineId,
    host: machine.host,
    pid_namespace: machine.pidNamespace,
    time_namespace: machine.timeNamespace,
    pid: owner.pid,
    pid_start_time: owner.start_time,
    ...changes,
  });
}

function stop(
  state: string,
  changes: Partial<StopQuestion> = {},
): { end: StopEnd; steps: string[] } {
  const steps: string[] = [];
  const end = stopRun({
    stateDirectory: state,
    target: "backup",
    killAfterMs: 10_000,
    onStep: (step) => steps.push(step),
    ...changes,
  });
  return { end, steps };
}

/** TERM and CONT that were heard, without the note of being ready. */
function heard(notes: string): string[] {
  return readLines(notes).filter((line) => line !== "ready");
}

async function endQuietly(holder: Started): Promise<void> {
  holder.kill("SIGKILL");
  await holder.ended;
}

async function expectUntouched(stand: { notes: string; holder: Started }): Promise<void> {
  // A signal that was sent would be heard before one that is sent now.
  stand.holder.kill("SIGCONT");
  await waitFor(() => readLines(stand.notes).includes("CONT"), "the end of the queue");
  expect(heard(stand.notes)).toEqual(["CONT"]);
  await endQuietly(stand.holder);
}

describe("the holder of the lease", () => {
  test.each(["backup", "job:backup", RUN_ID])(
    "is asked by TERM and waited for, when told '%s'",
    async (target) => {
      const { state, notes, holder } = await standIn(1);
      const { end, steps } = stop(state, { target });
      expect(end).toMatchObject({ kind: "stopped", run: { runId: RUN_ID, job: "backup" } });
      expect([steps, heard(notes)]).toEqual([[], ["TERM"]]);
      expect((await holder.ended).code).toBe(0);
    },
  );

  test("is asked once more after the grace", async () => {
    const { state, notes, holder } = await standIn(2);
    const { end, steps } = stop(state, { killAfterMs: APART_MS });
    expect([end.kind, steps, heard(notes)]).toEqual(["stopped", ["asked-again"], ["TERM", "TERM"]]);
    await holder.ended;
  });

  test("is never killed, however often it does not answer", async () => {
    const { state, notes, holder } = await standIn(0);
    const { end } = stop(state, { killAfterMs: APART_MS, endingMs: 1_000 });
    expect(end).toMatchObject({ kind: "not-ended", because: "still-there" });
    expect(heard(notes)).toEqual(["TERM", "TERM"]);
    expect(readStatusLine(holder.pid, "State")).toMatch(/^[RSD]/);
    await endQuietly(holder);
  });

  test("is continued where it was stopped, and that is told", async () => {
    const { state, holder, notes } = await standIn(1);
    holder.kill("SIGSTOP");
    await waitFor(() => readStatusLine(holder.pid, "State")?.startsWith("T"), "a stopped holder");
    const { end, steps } = stop(state);
    expect([end.kind, steps]).toEqual(["stopped", ["was-stopped"]]);
    expect(heard(notes)).toContain("TERM");
    await holder.ended;
  });
});

describe("nobody is signalled", () => {
  test("of another name or run", async () => {
    const stand = await standIn(0);
    for (const target of ["back", "backup-2", "lane:backup", OTHER_RUN_ID, RUN_ID.slice(0, 13)]) {
      expect(stop(stand.state, { target }).end).toEqual(notRunning());
    }
    await expectUntouched(stand);
  });

  test("where the recorded start time is that of another process", async () => {
    const stand = await standIn(0);
    const { pid, start_time } = identityOf(stand.holder.pid);
    writeRecord(stand.place.record, recordOf({ pid, start_time: start_time + 1 }, {}));
    expect(stop(stand.state).end.kind).toBe("unseen");
    await expectUntouched(stand);
  });

  test.each([
    ["another pid namespace", { pid_namespace: "1" }],
    ["another boot", { boot_id: "11111111-2222-3333-4444-555555555555" }],
    ["another time namespace", { time_namespace: "1" }],
  ] as const)("where the owner is of %s, whoever has its pid here", async (_, changes) => {
    const stand = await standIn(0, changes);
    expect(stop(stand.state).end.kind).toBe("unseen");
    await expectUntouched(stand);
  });

  test.each([
    ["free: the recorded process is no holder then", "", "not-running"],
    ["another file than that of the recorded process", "0", "unseen"],
  ])("where the lock is %s", async (_, ending, expected) => {
    const stand = setUp();
    const words = [stand.notes, "0"];
    const holder = scene.startProgram(python("holds-lock.py", ...words));
    await waitForText(stand.notes);
    const lock_inode = stand.lockInode + ending;
    writeRecord(stand.place.record, recordOf(identityOf(holder.pid), { lock_inode }));
    expect(stop(stand.state).end.kind).toBe(expected as StopEnd["kind"]);
    await expectUntouched({ ...stand, holder });
  });

  test("where the lease was given back and is just being acquired by another", async () => {
    const stand = await standIn(0, { state: "released" });
    expect(stop(stand.state).end).toMatchObject({
      kind: "unseen",
      lease: { verdict: { because: "being-acquired" } },
    });
    await expectUntouched(stand);
  });

  test("where there is no state at all", () => {
    expect(stop(scene.path("none")).end).toEqual(notRunning());
  });
});

function notRunning(): StopEnd {
  return { kind: "not-running", left: [], isKnown: true, troubles: [] } as StopEnd;
}

/** A row of the journal that says `running`, without a lease. */
function writeRow(
  state: string,
  runId: string,
  owner: ProcessIdentity,
  { at = wallNow(), leases = [] }: { at?: number; leases?: readonly GrantedLease[] } = {},
): void {
  const journal = new Journal(state, (line) => expect(line).toBe("no trouble"));
  const started_at = new Date(at).toISOString();
  const run = sampleRunRecord({
    run_id: runId,
    state: "running",
    outcome: null,
    pid: owner.pid,
    started_at,
  });
  journal.put({
    kind: "run-started",
    at,
    run,
    runPath: runId,
    owner,
    child: null,
    leases,
  });
  journal.close(1_000);
}

describe("a run without a lease", () => {
  async function startSame(notes: string): Promise<Started> {
    const started = scene.startProgram([process.execPath, `${FIXTURES}/waits-for-term.ts`, notes]);
    await waitForText(notes);
    return started;
  }

  test("is found by the journal, where the process runs the program of watchdog", async () => {
    const { state, notes } = setUp();
    const holder = await startSame(notes);
    writeRow(state, RUN_ID, identityOf(holder.pid));
    expect(stop(state).end).toMatchObject({ kind: "stopped", run: { runId: RUN_ID } });
    expect(heard(notes)).toEqual(["TERM"]);
    await holder.ended;
  });

  test("is not another program that has its pid and start time", async () => {
    const { state, notes } = setUp();
    const stranger = scene.startProgram(python("holds-lock.py", notes, "0"));
    await waitForText(notes);
    writeRow(state, RUN_ID, identityOf(stranger.pid));
    expect(isOurProgram(stranger.pid)).toBe(false);
    expect(stop(state).end.kind).toBe("not-running");
    await expectUntouched({ notes, holder: stranger });
  });

  test("is not one of an earlier boot", async () => {
    const { state, notes } = setUp();
    const holder = await startSame(notes);
    writeRow(state, RUN_ID, identityOf(holder.pid), { at: 1_000 });
    expect(stop(state).end.kind).toBe("not-running");
    await expectUntouched({ notes, holder });
  });

  test("is found where it has one, too, and its lock file was replaced", async () => {
    const { state, notes, place, lockInode } = setUp();
    const holder = await startSame(notes);
    const owner = identityOf(holder.pid);
    writeRecord(place.record, recordOf(owner, { lock_inode: `${lockInode}0` }));
    const said = stop(state, { target: "job:backup" }).end;
    expect(said).toMatchObject({
      kind: "unseen",
      lease: { verdict: { because: "lock-replaced" } },
    });
    writeRow(state, RUN_ID, owner, { leases: [{ kind: "lane", name: "gpu", generation: 1 }] });
    expect(stop(state, { target: "lane:gpu" }).end.kind).toBe("stopped");
    expect(heard(notes)).toEqual(["TERM"]);
    await holder.ended;
  });

  test("is not known where the journal cannot be read", () => {
    const { state } = setUp();
    writeFileSync(`${state}/journal.db`, "torn".repeat(2_000));
    expect(stop(state).end).toMatchObject({ kind: "not-running", isKnown: false });
  });

  test("must be named by its id where two have one name", async () => {
    const { state, notes } = setUp();
    const holder = await startSame(notes);
    const other = await startSame(`${notes}-other`);
    writeRow(state, RUN_ID, identityOf(holder.pid));
    writeRow(state, OTHER_RUN_ID, identityOf(other.pid));
    expect(stop(state).end.kind).toBe("ambiguous");
    expect(findRunning(state, "backup").runs).toHaveLength(2);
    expect(stop(state, { target: OTHER_RUN_ID }).end.kind).toBe("stopped");
    expect([heard(notes), heard(`${notes}-other`)]).toEqual([[], ["TERM"]]);
    expect(stop(state).end.kind).toBe("stopped");
    await Promise.all([holder.ended, other.ended]);
  });
});

describe("the seam", () => {
  const target = (pid: number) => ({ pid, startTicks: 1, isStillProven: () => true });

  test.each([
    ["process 1", 1, "process-one"],
    ["a whole group", 0, "process-one"],
    ["everybody", -1, "process-one"],
    ["this process", process.pid, "self"],
    ["its parent", process.ppid, "ancestor"],
  ])("never opens %s", (_, pid, word) => {
    // As process 1's child our parent is process 1, which is refused as such.
    const expected = pid === 1 ? "process-one" : word;
    expect(protectionOf(pid)).toBe(expected as ReturnType<typeof protectionOf>);
    expect(() => openSupervisor(target(pid))).toThrow(`which is ${expected}`);
  });

  test("asks for the proof once more with the process in hand", async () => {
    const sleeper = scene.startProgram(["sleep", "300"]);
    const { pid, start_time: startTicks } = identityOf(sleeper.pid);
    expect(openSupervisor({ pid, startTicks, isStillProven: () => false })).toBe("gone");
    const late = { pid, startTicks: startTicks + 1, isStillProven: () => true };
    expect(openSupervisor(late)).toBe("gone");
    await endQuietly(sleeper);
    expect(openSupervisor({ pid, startTicks, isStillProven: () => true })).toBe("gone");
  });

  test("a run around this command may not be ended by it", async () => {
    const stand = setUp();
    const words = [stand.notes, "0", stand.place.lock];
    const holder = scene.startProgram(python("holds-lock.py", ...words));
    await waitForText(stand.notes);
    const around = recordOf(identityOf(process.ppid), { lock_inode: stand.lockInode });
    writeRecord(stand.place.record, around);
    const expected = process.ppid === 1 ? "process-one" : "ancestor";
    expect(stop(stand.state).end).toMatchObject({ kind: "not-allowed", because: expected });
    await endQuietly(holder);
  });
});
