/** Whom a beat writes down: nobody of a tick that goes on, in which its pid could be used again. */
import { afterAll, expect, test } from "bun:test";
import { MemberWatch } from "../../src/lease/beat/members.ts";
import { bootTicksNow } from "../../src/os/clock.ts";
import { readStat } from "../../src/os/proc.ts";
import { identityOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const MOST_TRIES = 100;
const started: Bun.Subprocess[] = [];
afterAll(async () => {
  for (const one of started) one.kill("SIGKILL");
  await Promise.all(started.map((one) => one.exited));
});

function start(): number {
  const child = Bun.spawn(["sleep", "60"]);
  started.push(child);
  return child.pid;
}

function look(main: number) {
  const watch = new MemberWatch([], readStat(process.pid)?.sessionId ?? 0);
  const mainChild = { ...identityOf(main), pidfd_inode: 0 };
  const list = watch.look({ mainChild, mainGroup: null, guard: null });
  return { ...list, pids: list.members.map(({ pid }) => pid) };
}

/** A child of the tick that was going on when `see` was done. */
function seeYoung<Seen>(see: (pid: number) => Seen): { pid: number; seen: Seen } {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const pid = start();
    const seen = see(pid);
    if (identityOf(pid).start_time >= bootTicksNow()) return { pid, seen };
  }
  throw new Error(`found no child so young in ${MOST_TRIES} tries`);
}

test("a member of the tick that goes on is not listed, and is in the next one", async () => {
  const main = start();
  const { pid, seen } = seeYoung(() => look(main));
  expect(seen.pids).not.toContain(pid);
  expect(seen.pids).toContain(main);
  expect(seen.memberCount).toBe(seen.members.length);
  await waitFor(() => bootTicksNow() > identityOf(pid).start_time, "the next tick");
  expect(look(main).pids).toContain(pid);
});

test("the command is listed however young it is: its inode is written down, too", () => {
  const { pid, seen } = seeYoung(look);
  expect(seen.pids).toContain(pid);
});
