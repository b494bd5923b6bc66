/**
 * Survivors without the cookie, as real processes: told by the group of the main command, by the
 * numbers of another pid namespace, or only suspected. And a guard, which is nobody's survivor.
 */
import { expect, test } from "bun:test";
import { readFileSync, readlinkSync } from "node:fs";
import { SIGKILL } from "../../src/core/signals.ts";
import type { DeadRun, MainGroup, SeenProcess } from "../../src/core/survivors-view.ts";
import { coldLibc } from "../../src/os/libc.ts";
import { readPidfdInode } from "../../src/os/pidfd-inode.ts";
import { readChildren, readStat } from "../../src/os/proc.ts";
import { judge, killPass } from "../../src/tree/kill-pass.ts";
import { scanProcesses, seeProcess } from "../../src/tree/scan.ts";
import { endSurvivors, lookForSurvivors } from "../../src/tree/survivors.ts";
import { isDead, readStatusLine, waitForText } from "../support/processes.ts";
import { rootTest } from "../support/scene.ts";
import { DeadRunScene, identityOf, NOBODY_KEPT, stateOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const opened = new DeadRunScene(import.meta.file);
const NOTHING = {};
const NOBODY = { members: [], suspects: [] };

/** Leads a group of the session that it was started in; its child is in it, and shows nothing. */
const LEADS = `
import os, sys, time
os.setpgid(0, 0)
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
child = os.fork()
if child == 0: os.execve("/bin/sleep", ["sleep", "60"], {})
open(sys.argv[1] + ".start", "w").write(start)
open(sys.argv[1], "w").write(f"{os.getpid()} {child}\\n")
if sys.argv[2] == "stays": time.sleep(60)
`;

interface Group {
  readonly leader: number;
  readonly child: number;
  /** As a slot tells it. */
  readonly mainGroup: MainGroup;
}

async function startGroup(dead: DeadRunScene, until: "stays" | "ends"): Promise<Group> {
  const path = dead.makePath();
  await dead.startOrphan(["python3", "-c", LEADS, path, until], NOTHING);
  const [leader = 0, child = 0] = await dead.readPids(path);
  if (until === "ends") await waitFor(() => isDead(leader), "its end");
  await waitFor(() => seeProcess(child)?.runPath.length === 0, "a process after exec");
  const start = Number(readFileSync(`${path}.start`, "utf8"));
  return { leader, child, mainGroup: { pid: leader, start_time: start, sessionId: SESSION } };
}

const SESSION = readStat(process.pid)?.sessionId ?? 0;

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

test("who is in the group of a command that has ended is found and ended", async () => {
  const dead = opened.another();
  const { child, mainGroup } = await startGroup(dead, "ends");
  const { child: stranger } = await startGroup(dead, "ends");
  const run = dead.describe([], { mainGroup });
  expect(await end(run)).toEqual({ left: NOBODY, sent: [[child, SIGKILL]] });
  expect(stateOf(stranger)).toBe("S");
});

test("and nobody where the number of the group was used again", async () => {
  const dead = opened.another();
  const { leader, child, mainGroup } = await startGroup(dead, "stays");
  const before = { ...mainGroup, start_time: mainGroup.start_time - 1 };
  const reused = dead.describe([], { mainGroup: before });
  expect(await end(reused)).toEqual({ left: NOBODY, sent: [] });
  expect([leader, child].map(stateOf)).toEqual(["S", "S"]);
  const run = dead.describe([], { mainGroup });
  expect((await end(run)).sent.map(([pid]) => pid).toSorted()).toEqual([leader, child].toSorted());
});

test("nor where it was used again within the tick of the first start", async () => {
  const dead = opened.another();
  const { leader, child, mainGroup } = await startGroup(dead, "stays");
  const inode = readPidfdInode(leader);
  expect(inode).toBeGreaterThan(0);
  const reused = dead.describe([], { mainGroup: { ...mainGroup, pidfd_inode: inode - 1 } });
  expect(await end(reused)).toEqual({ left: NOBODY, sent: [] });
  expect([stateOf(leader), stateOf(child)]).toEqual(["S", "S"]);
  const { left, sent } = await end(
    dead.describe([], { mainGroup: { ...mainGroup, pidfd_inode: inode } }),
  );
  expect([left, sent.length]).toEqual([NOBODY, 2]);
});

/** A pass over one process, which the look has seen in this group of that session. */
async function passOver(forged: Partial<MainGroup>) {
  const dead = opened.another();
  const { child, ...group } = await startGroup(dead, "ends");
  const mainGroup = { ...group.mainGroup, ...forged };
  const seen = seeProcess(child);
  if (seen === undefined) throw new Error("it is gone");
  const { pid: groupId, sessionId } = mainGroup;
  const run = dead.describe([], { mainGroup });
  const ground = { run, processes: [{ ...seen, groupId, sessionId }] };
  expect(judge({ ...ground, readKept: NOBODY_KEPT }).members).toHaveLength(1);
  const { sent } = killPass({ ...ground, readKept: NOBODY_KEPT });
  return { sent: sent.length, state: stateOf(child) };
}

const UNTOUCHED = { sent: 0, state: "S" };
const NO_PID = 2 ** 22 + 3;

test("a pass hits who is in the group once more, and in the session", async () => {
  expect(await passOver({})).toMatchObject({ sent: 1 });
  expect(await passOver({ pid: NO_PID })).toEqual(UNTOUCHED);
  expect(await passOver({ sessionId: NO_PID })).toEqual(UNTOUCHED);
});

test("nor does it hit anybody where a leader of another start is there by now", async () => {
  const { leader, child, mainGroup } = await startGroup(opened.another(), "stays");
  const old = { ...mainGroup, start_time: mainGroup.start_time - 1 };
  const run = opened.another().describe([], { mainGroup: old });
  const seen = seeProcess(child);
  if (seen === undefined) throw new Error("it is gone");
  // The look has not seen the leader.
  const ground = { run, processes: [seen], readKept: NOBODY_KEPT };
  expect(judge(ground).members).toHaveLength(1);
  expect(killPass(ground).sent).toEqual([]);
  expect([leader, child].map(stateOf)).toEqual(["S", "S"]);
});

test("a command that was never written down is a suspect, and is not touched", async () => {
  const dead = opened.another();
  const { leader, child } = await startGroup(dead, "stays");
  const run = dead.describe([leader], { unrecordedIn: [SESSION] });
  const found = await lookForSurvivors(run, NOBODY_KEPT, () => listSome([leader, child]));
  expect(found).toMatchObject({ members: [], suspects: [{ pid: leader }] });
  const sent: number[] = [];
  const left = await endSurvivors(run, NOBODY_KEPT, {
    scan: () => listSome([leader, child]),
    guardWaitMs: 0,
    termGraceMs: 0,
    onSent: ({ pid }) => sent.push(pid),
  });
  expect(left).toMatchObject({ members: [], suspects: [{ pid: leader }] });
  expect([sent, stateOf(leader), stateOf(child)]).toEqual([[], "S", "S"]);
  const recorded = dead.describe([leader]);
  expect(await lookForSurvivors(recorded, NOBODY_KEPT, scanProcesses)).toEqual(NOBODY);
});

/** Other tests of this session have such orphans, too; our parents are there for their sake. */
function listSome(pids: readonly number[]): readonly SeenProcess[] | "unread" {
  const all = scanProcesses();
  if (all === "unread") return all;
  const parents = pids.map((pid) => readStat(pid)?.ppid ?? 0);
  return all.filter(({ pid }) => [...pids, ...parents, process.pid].includes(pid));
}

test("a look that is blind says so where it found nobody", async () => {
  const run = opened.another().describe([], { isBlind: true });
  const found = await lookForSurvivors(run, NOBODY_KEPT, scanProcesses, 0);
  expect(found).toEqual({ ...NOBODY, isBlind: true });
});

/** As a guard holds its notes: descriptor and name of a memory file, in a session of its own. */
const GUARDS = `
import os, subprocess, sys, time
os.setsid()
os.dup2(os.memfd_create(sys.argv[2]), int(sys.argv[3]))
child = subprocess.Popen(["sleep", "60"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}\\n")
time.sleep(60)
`;

test.each([
  ["a guard", "watchdog-guard", "8", true],
  ["who holds it elsewhere", "watchdog-guard", "7", false],
  ["who holds another one", "watchdog-guards", "8", false],
])("of %s it is told, and it is spared with all below it", async (_, name, fd, isGuard) => {
  const dead = opened.another();
  const path = dead.makePath();
  const words = ["python3", "-c", GUARDS, path, name, fd];
  const main = await dead.startOrphan(["sh", "-c", '"$@" & wait', "sh", ...words], NOTHING);
  const pids = await dead.readPids(path);
  expect(seeProcess(pids[0] ?? 0)?.isGuard).toBe(isGuard);
  const { left, sent } = await end(dead.describe([], { recorded: [identityOf(main)] }));
  expect(left).toEqual(NOBODY);
  const ended = isGuard ? [main] : [main, ...pids];
  expect(sent.map(([pid]) => pid).toSorted()).toEqual(ended.toSorted());
  expect(pids.map((pid) => isDead(pid))).toEqual([!isGuard, !isGuard]);
});

interface Inside {
  readonly namespace: string;
  /** As the namespace numbers it. */
  readonly inner: number;
  readonly pid: number;
  readonly start: number;
}

async function waitForChild(parent: number): Promise<number> {
  return waitFor(() => readChildren(parent)[0], `a child of ${parent}`);
}

/** A command in a pid namespace of its own, that shows nothing. */
async function startInside(dead: DeadRunScene): Promise<Inside> {
  const words = ["unshare", "--pid", "--fork", "sh", "-c", "env -i sleep 60 & wait"];
  const outside = await dead.startOrphan(words, NOTHING);
  const init = await waitForChild(outside);
  const pid = await waitForChild(init);
  dead.remember(init);
  dead.remember(pid);
  await waitFor(() => seeProcess(pid)?.runPath.length === 0, "a process after exec");
  const inner = Number(readStatusLine(pid, "NSpid")?.split(/\s+/).at(-1));
  const namespace = /\d+/.exec(readlinkSync(`/proc/${pid}/ns/pid`))?.[0] ?? "";
  return { namespace, inner, pid, start: identityOf(pid).start_time };
}

/** As start times are told: hundredths of a second since boot (proc(5)). */
function readUptimeTicks(): number {
  return Math.floor(Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 100);
}

rootTest(
  "who was recorded in a namespace below ours is found and ended by our number",
  async () => {
    const dead = opened.another();
    const one = await startInside(dead);
    // Both have the same number inside: in one tick they would be the same process.
    await waitFor(() => readUptimeTicks() > one.start, "the next tick");
    const other = await startInside(dead);
    const recorded = [{ pid: one.inner, start_time: one.start }];
    const owner = { pid: 1, start_time: 1 };
    const told = { recorded, owner, adopters: [] };
    expect((await end(dead.describe([], told))).sent).toEqual([]);
    const elsewhere = dead.describe([], { ...told, countedIn: other.namespace });
    expect((await end(elsewhere)).sent).toEqual([]);
    const started = [{ pid: one.inner, start_time: one.start + 1 }];
    const later = dead.describe([], { ...told, recorded: started, countedIn: one.namespace });
    expect((await end(later)).sent).toEqual([]);
    const kept = { identities: new Set([`${one.inner}@${one.start}`]), tokens: new Set<string>() };
    const run = dead.describe([], { ...told, countedIn: one.namespace });
    expect(await lookForSurvivors(run, () => kept, scanProcesses)).toEqual(NOBODY);
    expect([one.pid, other.pid].map(stateOf)).toEqual(["S", "S"]);
    expect(await end(run)).toEqual({ left: NOBODY, sent: [[one.pid, SIGKILL]] });
    expect(stateOf(other.pid)).toBe("S");
  },
);

rootTest("so is who is in the group of a command there, and its orphan is suspected", async () => {
  const dead = opened.another();
  const path = dead.makePath();
  const main = ["python3", "-c", LEADS, path, "stays"];
  const inside = ["setsid", "unshare", "--pid", "--fork", "--mount-proc"];
  const orphaned = '("$@" &); exec sleep 60';
  const outside = await dead.startOrphan([...inside, "sh", "-c", orphaned, "sh", ...main], NOTHING);
  const [inner = 0] = (await waitForText(path)).split(" ").map(Number);
  const init = await waitForChild(outside);
  const leader = identityOf(dead.remember(await waitForChild(init)));
  const child = dead.remember(await waitForChild(leader.pid));
  dead.remember(init);
  const namespace = /\d+/.exec(readlinkSync(`/proc/${leader.pid}/ns/pid`))?.[0] ?? "";
  const session = { owner: { pid: 1, start_time: 1 }, countedIn: namespace, adopters: [] };
  const unrecorded = dead.describe([], { ...session, unrecordedIn: [0] });
  const suspected = await lookForSurvivors(unrecorded, NOBODY_KEPT, scanProcesses);
  expect(suspected).toMatchObject({ members: [], suspects: [{ pid: leader.pid }] });
  const mainGroup = { pid: inner, start_time: leader.start_time, sessionId: 0 };
  const { left, sent } = await end(dead.describe([], { ...session, mainGroup }));
  expect(left).toEqual(NOBODY);
  expect(sent.map(([pid]) => pid).toSorted()).toEqual([leader.pid, child].toSorted());
});

/** Whether it would prove nothing that nobody is found. */
function isBlindTo(run: DeadRun): boolean {
  const processes = scanProcesses();
  if (processes === "unread") throw new Error("unread");
  return judge({ run, processes, readKept: NOBODY_KEPT }).isBlind;
}

rootTest(
  "a run is blind to one further below, and to a namespace that it cannot read",
  async () => {
    const dead = opened.another();
    const inner = "exec unshare --pid --fork sh -c 'env -i sleep 60 & wait'";
    const words = ["unshare", "--pid", "--fork", "sh", "-c", `${inner} & wait`];
    const outside = await dead.startOrphan(words, NOTHING);
    const first = await waitForChild(outside);
    const second = await waitForChild(await waitForChild(first));
    const pid = dead.remember(await waitForChild(second));
    for (const one of [first, second]) dead.remember(one);
    await waitFor(() => seeProcess(pid)?.runPath.length === 0, "a process after exec");
    const namespace = /\d+/.exec(readlinkSync(`/proc/${first}/ns/pid`))?.[0] ?? "";
    const between = Number(readStatusLine(pid, "NSpid")?.split(/\s+/)[1]);
    const { start_time: start } = identityOf(pid);
    const told = { owner: { pid: 1, start_time: 1 }, countedIn: namespace, adopters: [] };
    const recorded = [{ pid: between, start_time: start }];
    expect(isBlindTo(dead.describe([], { ...told, recorded }))).toBe(true);
    const another = [{ pid: between + 1, start_time: start }];
    expect(isBlindTo(dead.describe([], { ...told, recorded: another }))).toBe(false);
    const mainGroup = { pid: between, start_time: start, sessionId: 0 };
    const group = dead.describe([], { ...told, mainGroup });
    expect(isBlindTo(group)).toBe(false);
    asNobody(() => {
      expect(isBlindTo(group)).toBe(true);
      expect(isBlindTo(dead.describe([], { ...told, recorded: another }))).toBe(true);
      expect(isBlindTo(dead.describe([], told))).toBe(false);
    });
  },
);

const NOBODY_UID = 65_534;
const SETRESUID = process.arch === "arm64" ? 147 : 117;

/** This thread alone sees then what another user sees. */
function asNobody(act: () => void): void {
  const take = (uid: number) => coldLibc().syscall(SETRESUID, -1, uid, -1, 0, 0, 0);
  expect(Number(take(NOBODY_UID))).toBe(0);
  try {
    act();
  } finally {
    expect(Number(take(0))).toBe(0);
  }
}
