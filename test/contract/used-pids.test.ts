/** Who has the pid and the start of a recorded process, as real processes: the same, or another. */
import { expect, test } from "bun:test";
import { SIGKILL } from "../../src/core/signals.ts";
import type { DeadRun, RecordedProcess } from "../../src/core/survivors-view.ts";
import { readPidfdInode } from "../../src/os/pidfd-inode.ts";
import { scanProcesses } from "../../src/tree/scan.ts";
import { endSurvivors } from "../../src/tree/survivors.ts";
import { DeadRunScene, identityOf, NOBODY_KEPT, stateOf } from "../support/survivor-scene.ts";

const SLEEP = ["sleep", "60"];
const NOBODY = { members: [], suspects: [] };
const opened = new DeadRunScene(import.meta.file);

async function end(run: DeadRun) {
  const sent: (readonly [number, number])[] = [];
  const left = await endSurvivors(run, NOBODY_KEPT, {
    scan: scanProcesses,
    guardWaitMs: 0,
    termGraceMs: 0,
    onSent: ({ pid }, signal) => sent.push([pid, signal]),
  });
  return { left, sent };
}

/** A process of the run that nothing but what was written down proves. */
async function startListed(): Promise<RecordedProcess> {
  const pid = await opened.startOrphan(SLEEP, {});
  return { ...identityOf(pid), pidfd_inode: readPidfdInode(pid) };
}

test("a recorded pid with another pidfd inode is nobody, and with its own a member", async () => {
  const dead = opened.another();
  const one = await startListed();
  expect(one.pidfd_inode).toBeGreaterThan(0);
  const other = { ...one, pidfd_inode: (one.pidfd_inode ?? 0) - 1 };
  const stranger = dead.describe([one.pid], { recorded: [other] });
  expect(await end(stranger)).toEqual({ left: NOBODY, sent: [] });
  expect(stateOf(one.pid)).toBe("S");
  const { left, sent } = await end(dead.describe([one.pid], { recorded: [one] }));
  expect([left, sent]).toEqual([NOBODY, [[one.pid, SIGKILL]]]);
});

test("a kernel without pidfd inodes leaves pid and start", async () => {
  const dead = opened.another();
  const one = await startListed();
  const run = dead.describe([one.pid], { recorded: [{ ...one, pidfd_inode: 0 }] });
  expect((await end(run)).sent).toEqual([[one.pid, SIGKILL]]);
});
