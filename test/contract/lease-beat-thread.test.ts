/** The heartbeat's thread: real Workers, real files, real children; main loop blocked and not. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, unlinkSync } from "node:fs";
import { MOST_SLOT_MEMBERS } from "../../src/core/lease-record.ts";
import type { BeatEvent } from "../../src/lease/beat/events.ts";
import { type BeatHandle, type BeatPlan, startBeat } from "../../src/lease/beat/handle.ts";
import { BeatState } from "../../src/lease/beat/state.ts";
import { BeatThread, MOST_RESTARTS, STOP_LIMIT_MS } from "../../src/lease/beat/thread.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { readPidfdInode } from "../../src/os/pidfd-inode.ts";
import { readChildren, readStat } from "../../src/os/proc.ts";
import { pauseThread } from "../../src/os/timers.ts";
import {
  type HeldKey,
  identityOf,
  isFree,
  openBeatScene,
  otherRecord,
  readWholeSlot,
  tryAsNewcomer,
} from "../support/beat-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openBeatScene();
const WORKER = new URL("../../src/lease/beat/beat-worker.ts", import.meta.url);
const FIXTURES = new URL("../fixtures", import.meta.url).pathname;
const DIES = `${FIXTURES}/dies-when-asked-to-beat.ts`;
const DEAF = `${FIXTURES}/hears-no-end.ts`;
const INTERVAL_MS = 100;
const BLOCKED_LIMIT_MS = 60_000;

const running: BeatHandle[] = [];
const children: ReturnType<typeof Bun.spawn>[] = [];
afterAll(async () => {
  await Promise.all(running.map((handle) => handle.stop()));
  for (const pid of children.flatMap((child) => findTree(child.pid))) process.kill(pid, "SIGKILL");
  await Promise.all(children.map((child) => child.exited));
});

/** The process and everybody below it, as long as it was not collected. */
function findTree(pid: number): number[] {
  return readStat(pid) === undefined ? [] : [pid, ...readChildren(pid).flatMap(findTree)];
}

interface Beating {
  readonly lease: HeldKey;
  readonly events: BeatEvent[];
  readonly handle: BeatHandle;
}

function start(plan: Partial<BeatPlan> = {}): Beating {
  const lease = scene.hold();
  const events: BeatEvent[] = [];
  const handle = startBeat({
    leases: [lease],
    workerUrl: WORKER,
    intervalMs: INTERVAL_MS,
    firstSequence: 1,
    onEvent: (event) => void events.push(event),
    ...plan,
  });
  running.push(handle);
  return { lease, events, handle };
}

function spawn(...argv: string[]) {
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  children.push(child);
  return child;
}

async function waitForSequence(handle: BeatHandle, least: number): Promise<number> {
  return waitFor(() => handle.sequence >= least && handle.sequence, `sequence ${least}`);
}

/** Gives way to nothing meanwhile. How long the beats take is a matter of the machine. */
function blockUntil(slotPath: string, sequence: number): void {
  const until = performance.now() + BLOCKED_LIMIT_MS;
  while (readWholeSlot(slotPath).head.sequence < sequence) {
    if (performance.now() > until) throw new Error(`the thread has not come to ${sequence}`);
    pauseThread(INTERVAL_MS / 10);
  }
}

describe("the thread", () => {
  test("shows the main child in the slot before startBeat returns", () => {
    const child = spawn("sleep", "60");
    const { lease } = start({ mainChild: identityOf(child.pid), runState: "running" });
    const { head, body } = readWholeSlot(lease.slotPath);
    expect(head).toMatchObject({ sequence: 2, runState: "running", mainLoopSequence: 1 });
    expect(body.mainChild).toEqual({
      ...identityOf(child.pid),
      pidfd_inode: readPidfdInode(child.pid),
    });
    expect(body.owner).toMatchObject(identityOf(process.pid));
    expect(body.members.map(({ pid }) => pid)).toEqual([child.pid]);
  });

  test("beats on while main is blocked for ten intervals, and shows that it is", async () => {
    const { lease, handle } = start();
    await waitForSequence(handle, 3);
    const before = readWholeSlot(lease.slotPath).head;
    blockUntil(lease.slotPath, before.sequence + 10);
    const after = readWholeSlot(lease.slotPath).head;
    expect(after.monotonicMs - before.monotonicMs).toBeGreaterThanOrEqual(9 * INTERVAL_MS - 10);
    expect(after.mainLoopSequence).toBe(before.mainLoopSequence);
    expect(after.mainLoopMs).toBe(before.mainLoopMs);
  });

  test("is started though main never gives way after startBeat", () => {
    const { lease } = start();
    blockUntil(lease.slotPath, 9);
    expect(readWholeSlot(lease.slotPath).head.mainLoopSequence).toBe(1);
  });

  test("shows that the main loop lives by a counter of its own", async () => {
    const { lease } = start();
    const counted = await waitFor(() => {
      const { mainLoopSequence } = readWholeSlot(lease.slotPath).head;
      return mainLoopSequence >= 2 && mainLoopSequence;
    }, "a second count of the main loop");
    expect(counted).toBeGreaterThanOrEqual(2);
  });

  test("shows run state, child and guard, and beats at once when a process changes", async () => {
    const { lease, handle } = start({ intervalMs: 60_000 });
    await waitForSequence(handle, 3);
    const [child, guard] = [spawn("sleep", "60"), spawn("sleep", "60")];
    handle.setRunState("stopping");
    handle.setGuard(identityOf(guard.pid));
    handle.setMainChild(identityOf(child.pid));
    await waitForSequence(handle, 5);
    const { head, body } = readWholeSlot(lease.slotPath);
    expect(head.runState).toBe("stopping");
    expect(body.guard).toEqual(identityOf(guard.pid));
    expect(body.mainChild).toMatchObject(identityOf(child.pid));
    handle.setMainChild(undefined);
    await waitForSequence(handle, 6);
    expect(readWholeSlot(lease.slotPath).body.mainChild).toBeNull();
  });

  test("tells main of a restored lock, whose descriptor main can keep", async () => {
    const { lease, events } = start();
    unlinkSync(lease.place.lock);
    await waitFor(() => events.length > 0, "an event");
    expect(events[0]).toMatchObject({ kind: "lock-restored", key: lease.key });
    expect(isFree(lease.place.lock)).toBe(false);
  });

  test("tries for a lock that somebody holds long before the next beat is due", async () => {
    const { lease, events, handle } = start({ intervalMs: 60_000 });
    await waitForSequence(handle, 3);
    unlinkSync(lease.place.lock);
    const newcomer = tryAsNewcomer(lease.place.lock);
    handle.setGuard(undefined);
    await waitForSequence(handle, 6);
    expect(events).toEqual([]);
    newcomer.release();
    await waitFor(() => events.length > 0, "the lock");
    expect(events[0]).toMatchObject({ kind: "lock-restored" });
  });

  test("tells main of a loss, once, and beats on for the other leases", async () => {
    const other = scene.hold();
    const lost = scene.hold();
    const { events } = start({ leases: [lost, other] });
    writeRecord(lost.place.record, otherRecord(lost));
    await waitFor(() => events.length > 0, "an event");
    const last = readWholeSlot(lost.slotPath).head.sequence;
    await waitFor(
      () => readWholeSlot(other.slotPath).head.sequence > last + 3,
      "beats of the other",
    );
    expect(events.map(({ kind }) => kind)).toEqual(["lost"]);
    expect(readWholeSlot(lost.slotPath).head.sequence).toBe(last);
  });

  test("does not keep the process alive", async () => {
    const words = [process.execPath, `${FIXTURES}/beats-and-ends.ts`, scene.directory];
    const child = Bun.spawn(words, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    children.push(child);
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stdout).text()).toBe("started\n");
  });
});

describe("members", () => {
  test("are the whole descent of the main child, without guard and inborn children", async () => {
    const inborn = spawn("sh", "-c", "sleep 60 & wait");
    const guard = spawn("sleep", "60");
    const script = "sleep 61 & setsid sh -c 'sleep 62 & wait' & wait";
    const main = spawn("sh", "-c", script);
    const { lease } = start({
      mainChild: identityOf(main.pid),
      guard: identityOf(guard.pid),
      // All that other tests of this process have started.
      inborn: children.map(({ pid }) => pid).filter((pid) => pid !== main.pid && pid !== guard.pid),
    });
    const slot = await waitFor(() => {
      const read = readWholeSlot(lease.slotPath);
      return read.body.memberCount === 4 && read;
    }, "four members");
    const { members } = slot.body;
    expect(members[0]).toEqual(identityOf(main.pid));
    const pids = members.map(({ pid }) => pid);
    expect(pids).not.toContain(inborn.pid);
    expect(pids).not.toContain(guard.pid);
    expect(members).toEqual(pids.map(identityOf));
  });

  test("are told with the session of the owner, and the group that the command leads", async () => {
    const sharing = spawn("sleep", "60");
    const shared = start({ mainChild: identityOf(sharing.pid) });
    const { sessionId } = readStat(process.pid) ?? {};
    expect(readWholeSlot(shared.lease.slotPath).body).toMatchObject({ sessionId, mainGroup: null });
    const leading = spawn("setsid", "sleep", "60");
    await waitFor(() => readStat(leading.pid)?.groupId === leading.pid, "a leader");
    const mainGroup = identityOf(leading.pid);
    const { lease, handle } = start({ mainChild: mainGroup });
    expect(readWholeSlot(lease.slotPath).body).toMatchObject({ sessionId, mainGroup });
    handle.setMainChild(undefined);
    await waitFor(() => readWholeSlot(lease.slotPath).body.mainChild === null, "its end");
    expect(readWholeSlot(lease.slotPath).body).toMatchObject({ sessionId, mainGroup });
  });

  test("are told from inborn, guard and orphans of others in a process that adopts", async () => {
    const lister = Bun.spawn([process.execPath, `${FIXTURES}/adopts-and-lists-members.ts`], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    const answer = await new Response(lister.stdout).text();
    const { pids, parent, cases, doubtful, escaped } = JSON.parse(answer);
    const { main, living, zombie, orphan } = pids;
    expect(cases).toEqual({
      whileBelow: [parent, orphan],
      provenBefore: [main, orphan, living, zombie],
      // Whose orphan it is cannot be told, so nobody may end it as ours.
      withInborn: [main, living, zombie],
      withoutInborn: [pids.inborn, main, orphan, living, zombie],
      withReusedPid: [main, living, zombie],
    });
    // But it is counted, so that nobody takes the list for whole.
    expect(doubtful).toBe(cases.withInborn.length + 1);
    expect(cases.provenBefore.at(-1)).toBe(zombie);
    expect(escaped.crowd).toBeGreaterThan(MOST_SLOT_MEMBERS);
    expect(escaped.first).toBe(escaped.pid);
    expect(escaped.firstWithoutGroup).not.toBe(escaped.pid);
  });
});

describe("a thread that died", () => {
  test("is started again, and goes on with the same numbers and the restored lock", async () => {
    const { lease, events, handle } = start({ workerUrl: DIES });
    unlinkSync(lease.place.lock);
    unlinkSync(lease.slotPath);
    await waitFor(() => events.length >= 3, "lock, record and slot");
    const before = await waitForSequence(handle, 5);
    handle.setGuard(undefined);
    await waitFor(() => events.length >= 4, "the death");
    expect(events[3]).toMatchObject({ kind: "thread-restarted", attempt: 1 });
    expect(JSON.stringify(events[3])).toContain("died as it was told");
    await waitForSequence(handle, before + 10);
    expect(readWholeSlot(lease.slotPath).head.sequence).toBeGreaterThan(before);
    expect(events).toHaveLength(4);
    expect(isFree(lease.place.lock)).toBe(false);
  });

  test(`is started again ${MOST_RESTARTS} times, and then given up with one event`, async () => {
    const events: BeatEvent[] = [];
    const lease = scene.hold();
    const owner = { ...identityOf(process.pid), pidfd_inode: 0 };
    const { memory } = new BeatState(1);
    const facts = { owner, sessionId: 0, inborn: [], intervalMs: INTERVAL_MS };
    const shared = { memory, leases: [lease], ...facts };
    const nowhere = `${FIXTURES}/there-is-no-such-file.ts`;
    const onEvent = (event: BeatEvent) => void events.push(event);
    const thread = new BeatThread(nowhere, { kind: "start", ...shared }, onEvent, 5);
    thread.start();
    await waitFor(() => events.at(-1)?.kind === "thread-gone", "the end of trying");
    const attempts = events.map((event) => (event.kind === "thread-restarted" ? event.attempt : 0));
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
    expect(await thread.stop()).toBe("stopped");
  });
});

describe("the end", () => {
  test("is answered, and the slot stays as it is then", async () => {
    const { lease, events, handle } = start();
    await waitForSequence(handle, 4);
    expect(await handle.stop()).toBe("stopped");
    const bytes = readFileSync(lease.slotPath);
    unlinkSync(lease.place.record);
    pauseThread(3 * INTERVAL_MS);
    expect(readFileSync(lease.slotPath).equals(bytes)).toBe(true);
    expect(events).toEqual([]);
    expect(await handle.stop()).toBe("stopped");
  });

  test("comes though the thread never answers: it writes nothing and is not heard", async () => {
    const { lease, events, handle } = start({ workerUrl: DEAF });
    await waitForSequence(handle, 4);
    handle.setGuard(undefined);
    await waitFor(() => events.length > 0, "its word");
    const [from, asked] = [performance.now(), handle.sequence];
    expect(await handle.stop()).toBe("abandoned");
    const [spent, sequence] = [performance.now() - from, handle.sequence];
    // One beat may be in progress when the end is asked for; there was time for many.
    expect(sequence - asked).toBeWithin(0, 2);
    expect(spent).toBeGreaterThanOrEqual(STOP_LIMIT_MS - 5);
    expect(spent).toBeLessThan(STOP_LIMIT_MS + 20_000);
    expect(readWholeSlot(lease.slotPath).head.sequence).toBe(sequence);
    handle.setGuard(undefined);
    await Bun.sleep(3 * INTERVAL_MS);
    expect([events.length, handle.sequence]).toEqual([1, sequence]);
  });

  test("comes at once where there is no thread at this moment", async () => {
    const { events, handle } = start({ workerUrl: DIES });
    handle.setGuard(undefined);
    await waitFor(() => events.length > 0, "the death");
    const before = handle.sequence;
    expect(await handle.stop()).toBe("stopped");
    expect(handle.sequence).toBe(before);
  });
});
