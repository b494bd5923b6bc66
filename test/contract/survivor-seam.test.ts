/** The kill seam for survivors: what was decided is proven once more, on the open pidfd. */
import { expect, spyOn, test } from "bun:test";
import { SIGKILL } from "../../src/core/signals.ts";
import type { SeenProcess } from "../../src/core/survivors-view.ts";
import { judge, killPass } from "../../src/tree/kill-pass.ts";
import { coldLibc } from "../../src/os/libc.ts";
import { readPidfdInode } from "../../src/os/pidfd-inode.ts";
import { sys } from "../../src/os/sys.ts";
import { scanProcesses, seeProcess } from "../../src/tree/scan.ts";
import { maySignal, openSurvivor } from "../../src/tree/signal.ts";
import { endSurvivors } from "../../src/tree/survivors.ts";
import { openTargets } from "../support/open-files.ts";
import { readStatusLine } from "../support/processes.ts";
import { rootTest } from "../support/scene.ts";
import { DeadRunScene, identityOf, NOBODY_KEPT, stateOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const opened = new DeadRunScene(import.meta.file);
const SLEEP = ["sleep", "60"];
const UNGUARDED = { self: process.pid, pids: new Set<number>() };

function targetOf(pid: number, isStillProven = () => true) {
  return { pid, startTicks: identityOf(pid).start_time, isStillProven };
}

/** pidfd_open(2): the runtime has such descriptors of the children that it has started. */
function openDescriptors(): number {
  return openTargets().filter((target) => target === "anon_inode:[pidfd]").length;
}

test.each([
  ["this process", process.pid],
  ["process 1", 1],
  ["a whole group", 0],
  ["everybody", -1],
])("%s is not opened, and nobody asks whether it is proven", (_, pid) => {
  const target = { pid, startTicks: 0, isStillProven: () => expect.unreachable() };
  expect(() => openSurvivor(target, UNGUARDED)).toThrow("ours or process 1");
});

test("nor is an ancestor, or who else is protected", () => {
  const pid = opened.startChild(SLEEP);
  const guarded = { self: process.pid, pids: new Set([process.ppid, pid]) };
  for (const one of [process.ppid, pid]) {
    expect(() => openSurvivor(targetOf(one), guarded)).toThrow("protected");
  }
  expect(["R", "S", "D"]).toContain(stateOf(pid));
});

test("a recorded one is compared by its inode on the open pidfd, too", async () => {
  const pid = await opened.startOrphan(SLEEP, {});
  const inode = readPidfdInode(pid);
  const open = sys.pidfdOpen;
  /** The look cannot tell the inode (EMFILE), the seam can. */
  const pass = (recordedInode: number) => {
    const run = opened.describe([pid], {
      recorded: [{ ...identityOf(pid), pidfd_inode: recordedInode }],
    });
    const processes = scanProcesses();
    if (processes === "unread") throw new Error("the processes were unread");
    const opens = spyOn(sys, "pidfdOpen").mockImplementation((one) => open.call(sys, one));
    opens.mockReturnValueOnce(-24);
    try {
      return killPass({ run, processes, readKept: NOBODY_KEPT }).sent.map((one) => one.pid);
    } finally {
      opens.mockRestore();
    }
  };
  expect(inode).toBeGreaterThan(0);
  expect(pass(inode - 1)).toEqual([]);
  expect(stateOf(pid)).toBe("S");
  expect(pass(inode)).toEqual([pid]);
});

test("who is no longer proven is not hit, and no descriptor of it is left", () => {
  const pid = opened.startChild(SLEEP);
  const before = openDescriptors();
  const target = targetOf(pid, () => false);
  expect(openSurvivor(target, UNGUARDED)).toBe("gone");
  expect(openDescriptors()).toBeLessThanOrEqual(before);
  expect(["R", "S", "D"]).toContain(stateOf(pid));
});

test("who is proven is hit, and no descriptor of it is left", async () => {
  const pid = opened.startChild(SLEEP);
  const before = openDescriptors();
  const survivor = openSurvivor(targetOf(pid), UNGUARDED);
  if (typeof survivor === "string") throw new Error(survivor);
  expect(survivor.send(SIGKILL)).toBe("sent");
  survivor.close();
  expect(openDescriptors()).toBeLessThanOrEqual(before);
  await waitFor(() => ["Z", "gone"].includes(stateOf(pid)), "the end of the one that was hit");
});

test("the right to signal is asked without a signal", () => {
  const pid = opened.startChild(SLEEP);
  expect(maySignal(pid)).toBe(true);
  expect(["R", "S", "D"]).toContain(stateOf(pid));
});

test("who is gone needs no right", () => {
  expect(maySignal(2 ** 22 + 1)).toBe(true);
});

/** A pass over one process, of which the look has seen something else than there is. */
async function passOver(
  env: Readonly<Record<string, string>> | undefined,
  forge: (seen: SeenProcess, dead: DeadRunScene) => SeenProcess,
): Promise<{ readonly sent: number; readonly state: string; readonly isLeaky: boolean }> {
  const dead = opened.another();
  const pid = await dead.startOrphan(SLEEP, env ?? dead.env);
  const seen = await waitFor(() => {
    const one = seeProcess(pid);
    return one !== undefined && one.runPath !== "unread" && one.state === "S" && one;
  }, "a process after exec");
  const forged = forge(seen, dead);
  // Whoever it was seen below adopts: it is the seam that has to refuse, not the decision.
  const adopters = [seen.ppid, forged.ppid].filter((one) => one > 1);
  const run = dead.describe([], { adopters: adopters.map(identityOf) });
  const processes = [...adopters.flatMap((one) => seeProcess(one) ?? []), forged];
  expect(judge({ run, processes, readKept: NOBODY_KEPT }).members).toHaveLength(1);
  const before = openDescriptors();
  const { sent } = killPass({ run, processes, readKept: NOBODY_KEPT });
  // The engine may close some of its own meanwhile.
  const isLeaky = openDescriptors() > before;
  return { sent: sent.length, state: stateOf(pid), isLeaky };
}

test("a pass hits a bearer that is what it was seen as, and holds nothing after", async () => {
  expect(await passOver(undefined, (seen) => seen)).toMatchObject({ sent: 1, isLeaky: false });
});

const UNTOUCHED = { sent: 0, state: "S", isLeaky: false };

test("a pass does not hit one whose cookie was another's", async () => {
  const forge = (seen: SeenProcess, dead: DeadRunScene) => ({ ...seen, runPath: [dead.runId] });
  expect(await passOver({}, forge)).toEqual(UNTOUCHED);
});

test("a pass does not hit one that has the same pid and another start", async () => {
  const forge = (seen: SeenProcess) => ({ ...seen, startTicks: seen.startTicks + 1 });
  expect(await passOver(undefined, forge)).toEqual(UNTOUCHED);
});

test("a pass does not hit a bearer that has got another parent", async () => {
  const forge = (seen: SeenProcess) => ({ ...seen, ppid: seen.ppid === 1 ? process.ppid : 1 });
  expect(await passOver(undefined, forge)).toEqual(UNTOUCHED);
});

/** Two members, of which one cannot be signalled: not by the kernel's word, but by a fault here. */
async function endTwo(call: "pidfdOpen" | "pidfdSendSignal", onFault?: (error: unknown) => void) {
  const pids = [opened.startChild(SLEEP), opened.startChild(SLEEP)] as const;
  const [faulty, other] = pids;
  const real = sys[call].bind(sys) as (...args: number[]) => number;
  const descriptors = new Set<number>();
  const open = sys.pidfdOpen.bind(sys);
  const spies = [
    spyOn(sys, "pidfdOpen").mockImplementation((pid) => {
      if (call === "pidfdOpen" && pid === faulty) throw new Error("a fault of ours");
      const fd = open(pid);
      if (pid === faulty) descriptors.add(fd);
      else descriptors.delete(fd);
      return fd;
    }),
    ...(call === "pidfdOpen"
      ? []
      : [
          spyOn(sys, call).mockImplementation((fd, signal) => {
            if (descriptors.has(fd)) throw new Error("a fault of ours");
            return real(fd, signal);
          }),
        ]),
  ];
  try {
    const ending = endSurvivors(
      opened.describe([], { recorded: pids.map(identityOf) }),
      NOBODY_KEPT,
      {
        scan: () => [...pids, process.pid].flatMap((pid) => seeProcess(pid) ?? []),
        guardWaitMs: 0,
        termGraceMs: 0,
        ...(onFault === undefined ? {} : { onFault }),
      },
    );
    const left = await ending.catch((error: Error) => error.message);
    return { left, faulty, states: [stateOf(faulty), stateOf(other)] };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.kill(faulty, "SIGKILL");
  }
}

const ENDED = expect.stringMatching(/^(Z|gone)$/);

test.each(["pidfdOpen", "pidfdSendSignal"] as const)(
  "a fault with one of them (%s) costs the others nothing, and is thrown at the end",
  async (call) => {
    const { left, states } = await endTwo(call);
    expect(left).toBe("a fault of ours");
    expect(states).toEqual([expect.stringMatching(/^[RSDT]$/), ENDED]);
  },
);

test("who wants to be told of it gets it told, and who is left", async () => {
  const faults: unknown[] = [];
  const { left, faulty, states } = await endTwo("pidfdSendSignal", (one) => faults.push(one));
  expect(faults.map(String)).toEqual(["Error: a fault of ours"]);
  expect(left).toMatchObject({ members: [{ pid: faulty, isSignalable: false }] });
  expect(states[1]).toEqual(ENDED);
});

/** Of another user than root and than NOBODY. */
const STRANGER = 65_533;
/**
 * The same that other files take for a while: a thread that is born meanwhile keeps it, and glibc
 * aborts a process where a later seteuid(2) of all its threads is refused to one of them.
 */
const NOBODY = 65_534;
const SETRESUID = process.arch === "arm64" ? 147 : 117;
const UNCHANGED = -1;

/** Of this thread alone: what it may signal then is what NOBODY may (kill(2)). */
function takeEffectiveUser(uid: number): void {
  const { syscall } = coldLibc();
  expect(Number(syscall(SETRESUID, UNCHANGED, uid, UNCHANGED, 0, 0, 0))).toBe(0);
}

async function startStranger(): Promise<number> {
  const code = `import os, time; os.setuid(${STRANGER}); time.sleep(60)`;
  const pid = opened.startChild(["python3", "-c", code]);
  await waitFor(() => readStatusLine(pid, "Uid")?.startsWith(`${STRANGER}`), "another user");
  return pid;
}

rootTest("who may not be signalled is told as such, before and after it was tried", async () => {
  const pid = await startStranger();
  const recorded = [identityOf(pid)];
  expect(maySignal(pid)).toBe(true);
  takeEffectiveUser(NOBODY);
  try {
    expect(maySignal(pid)).toBe(false);
    const survivor = openSurvivor(targetOf(pid), UNGUARDED);
    expect(typeof survivor === "string" ? survivor : survivor.send(SIGKILL)).toBe("refused");
    const began = performance.now();
    // The look has the rights that the one who acts on it has not.
    const left = await endSurvivors(opened.describe([], { recorded }), NOBODY_KEPT, {
      scan: () =>
        [seeProcess(pid), seeProcess(process.pid)].flatMap((seen) =>
          seen === undefined ? [] : [{ ...seen, isSignalable: true }],
        ),
      guardWaitMs: 0,
      termGraceMs: 0,
    });
    expect(left).toMatchObject({ members: [{ pid, isSignalable: false }] });
    expect(performance.now() - began).toBeLessThan(8_000);
  } finally {
    takeEffectiveUser(0);
  }
  expect(stateOf(pid)).toBe("S");
});
