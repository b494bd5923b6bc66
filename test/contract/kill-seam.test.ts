/** The kill seam: whom it does not hit, whatever its caller has decided. */
import { afterAll, expect, test } from "bun:test";
import { SIGKILL } from "../../src/core/signals.ts";
import type { ProcessRow } from "../../src/core/tree-members.ts";
import { lookAt } from "../../src/tree/find.ts";
import { type Protected, signalChild, signalMember } from "../../src/tree/signal.ts";

const sleeper = Bun.spawn(["sleep", "60"]);
afterAll(() => sleeper.kill("SIGKILL"));

function guard(changes: Partial<Protected> = {}): Protected {
  return { self: process.pid, pids: new Set(), verified: new Set(), ...changes };
}

function rowOf(pid: number): ProcessRow {
  const row = lookAt(pid, undefined);
  if (row === undefined) throw new Error(`found no process ${pid}`);
  return row;
}

function expectAlive(): void {
  expect(["R", "S", "D"]).toContain(rowOf(sleeper.pid).state);
}

test("who is protected is not hit, and the caller hears of its mistake", () => {
  const row = rowOf(sleeper.pid);
  const guarded = guard({ pids: new Set([row.pid]) });
  expect(() => signalMember(row, SIGKILL, guarded)).toThrow("protected");
  expect(() => signalChild(row.pid, SIGKILL, guarded)).toThrow("protected");
  expectAlive();
});

test.each([
  ["watchdog itself", process.pid],
  ["process 1", 1],
  ["a whole group", 0],
  ["everybody", -1],
])("nor is %s, by the mildest signal", (_, pid) => {
  expect(() => signalChild(pid, 0, guard())).toThrow("ours or process 1");
});

test("a process with the pid of a member, but another start, is not hit", () => {
  const row = rowOf(sleeper.pid);
  expect(signalMember({ ...row, startTicks: row.startTicks - 1 }, SIGKILL, guard())).toBe("gone");
  expectAlive();
});

test("a process that is not below us is not hit", () => {
  const stranger = rowOf(sleeper.pid);
  expect(signalMember(stranger, SIGKILL, guard({ self: 2 ** 22 + 1 }))).toBe("gone");
  expectAlive();
});

test("a member is hit, so the tests above prove something", async () => {
  const member = Bun.spawn(["sleep", "60"]);
  expect(signalMember(rowOf(member.pid), SIGKILL, guard())).toBe("sent");
  await member.exited;
  expect(member.signalCode).toBe("SIGKILL");
});
