/** A look over all processes: what is told of each, and what is told where it cannot be read. */
import { expect, test } from "bun:test";
import { closeSync, constants, openSync } from "node:fs";
import type { SeenProcess } from "../../src/core/survivors-view.ts";
import { libc } from "../../src/os/libc.ts";
import { readCgroup } from "../../src/os/machine.ts";
import { lookAtProcess, readEnvironmentText } from "../../src/os/proc-look.ts";
import { readChildren, readStat } from "../../src/os/proc.ts";
import { KEPT_VARIABLE } from "../../src/run/kept-registry.ts";
import { scanInWorker } from "../../src/tree/scan-handle.ts";
import { scanPatiently, scanProcesses, type ScanResult } from "../../src/tree/scan.ts";
import { python } from "../support/processes.ts";
import { rootTest } from "../support/scene.ts";
import { DeadRunScene, identityOf, stateOf } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const dead = new DeadRunScene(import.meta.file);
const { scene } = dead;
const WORKER = new URL("../../src/tree/scan-worker.ts", import.meta.url);

function find(result: ScanResult, pid: number): SeenProcess | undefined {
  if (result === "unread") throw new Error("the look was unread");
  return result.find((seen) => seen.pid === pid);
}

/** exec has happened: until then a forked child shows the environment of its parent. */
async function startSleep(env: Record<string, string>, argv = ["sleep", "60"]): Promise<number> {
  const pid = dead.startChild(argv, env);
  await waitFor(() => {
    const seen = find(scanProcesses(), pid);
    return seen?.runPath !== "unread" && seen?.state === "S";
  }, "a process after exec that sleeps");
  return pid;
}

test("a process is told by pid, parent, start, run path, kept token and cgroup", async () => {
  const pid = await startSleep({ WATCHDOG_RUN_PATH: "outer/inner", [KEPT_VARIABLE]: "token" });
  expect(find(scanProcesses(), pid)).toEqual({
    pid,
    ppid: process.pid,
    startTicks: identityOf(pid).start_time,
    groupId: readStat(pid)?.groupId ?? 0,
    sessionId: readStat(pid)?.sessionId ?? 0,
    state: "S",
    isKernelThread: false,
    runPath: ["outer", "inner"],
    keptToken: "token",
    cgroup: readCgroup(pid),
    isNamespaceInit: false,
    isSignalable: true,
    isGuard: false,
  });
});

test("a variable whose name only ends alike says nothing", async () => {
  const pid = await startSleep({ NOT_WATCHDOG_RUN_PATH: "one", A: "WATCHDOG_RUN_PATH=two" });
  expect(find(scanProcesses(), pid)).toMatchObject({ runPath: [], keptToken: undefined });
});

test("a process with an empty environment has no run path, which is known at once", async () => {
  const pid = await startSleep({}, ["env", "-i", "sleep", "60"]);
  await waitFor(() => find(scanProcesses(), pid)?.runPath.length === 0, "an empty environment");
  expect(find(scanProcesses(), pid)?.runPath).toEqual([]);
});

test("process 1 is told as such", () => {
  expect(find(scanProcesses(), 1)?.isNamespaceInit).toBe(true);
  expect(find(scanProcesses(), process.pid)?.isNamespaceInit).toBe(false);
});

rootTest("of a bearer's parent it is told whether it is process 1 of a namespace", async () => {
  const outside = dead.startChild(["unshare", "--pid", "--fork", "sh", "-c", "sleep 60 & wait"]);
  const first = await waitForChild(outside);
  const inside = await waitForChild(first);
  const result = scanProcesses();
  const found = [outside, first, inside].map((pid) => find(result, pid)?.isNamespaceInit);
  expect(found).toEqual([false, true, false]);
  process.kill(first, "SIGKILL");
});

async function waitForChild(parent: number): Promise<number> {
  return waitFor(() => {
    const result = scanProcesses();
    return result !== "unread" && result.find((one) => one.ppid === parent)?.pid;
  }, "a child");
}

test("a process whose first thread has ended while another lives is no zombie", async () => {
  const pid = await dead.startOrphan(python("leaves-only-a-thread.py"));
  await waitFor(() => stateOf(pid) === "Z", "a zombie by its first thread");
  await waitFor(() => find(scanProcesses(), pid)?.state === "S", "another thread that sleeps");
  expect(find(scanProcesses(), pid)).toMatchObject({ state: "S", runPath: [dead.runId] });
});

test("a dead child that nobody has collected is one", async () => {
  // What took the place of the shell knows nothing of the child.
  const parent = dead.startChild(["sh", "-c", "true & exec sleep 60"]);
  const zombie = await waitFor(() => {
    const result = scanProcesses();
    return result !== "unread" && result.find((one) => one.ppid === parent && one.state === "Z");
  }, "a zombie");
  expect(zombie).toMatchObject({ runPath: [], isKernelThread: false });
});

/** Nothing more can be opened meanwhile: EMFILE. */
function withoutDescriptors<T>(act: () => T): T {
  const whole = new BigUint64Array(2);
  libc().getrlimit(RLIMIT_NOFILE, whole);
  libc().setrlimit(RLIMIT_NOFILE, new BigUint64Array([0n, whole[1] ?? 0n]));
  try {
    return act();
  } finally {
    libc().setrlimit(RLIMIT_NOFILE, whole);
  }
}

const RLIMIT_NOFILE = 7;

test("an error of our own makes the whole look unread instead of short", () => {
  expect(withoutDescriptors(scanProcesses)).toBe("unread");
  expect(scanProcesses()).not.toBe("unread");
});

test("and it does not make a process gone, or its environment empty", () => {
  const look = lookAtProcess(process.pid);
  if (look === undefined) throw new Error("found not even ourselves");
  expect(() => withoutDescriptors(() => lookAtProcess(process.pid))).toThrow("EMFILE");
  expect(() => withoutDescriptors(() => readEnvironmentText(look))).toThrow("EMFILE");
  expect(lookAtProcess(2 ** 22 + 1)).toBeUndefined();
});

async function startStuck(): Promise<{ readonly pid: number; readonly fifo: string }> {
  const fifo = dead.makePath();
  await scene.startProgram(["mkfifo", fifo]).ended;
  const pid = dead.startChild(python("hangs-in-vfork.py", fifo));
  // Its child may come to open(2) before it has come to state D, or after it; nobody can be let go
  // before both have (ENXIO).
  const isStuck = (): boolean => readChildren(pid).some(isAsleep) && stateOf(pid) === "D";
  await waitFor(isStuck, "a process in state D whose child waits for the FIFO");
  return { pid, fifo };
}

function isAsleep(pid: number): boolean {
  return readStat(pid)?.state === "S";
}

/** Lets the program of the fixture start, and end. */
function release(fifo: string): void {
  closeSync(openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK));
}

test("a process in state D is read in the Worker, and nowhere else", async () => {
  const { pid, fifo } = await startStuck();
  expect(find(scanProcesses(), pid)).toMatchObject({ state: "D", runPath: "unread" });
  expect(find(await scanInWorker(WORKER), pid)).toMatchObject({
    state: "D",
    runPath: [dead.runId],
  });
  release(fifo);
});

test("before it reads such a one, a patient look has said all that it knows without", async () => {
  const { pid, fifo } = await startStuck();
  const sofar: (readonly SeenProcess[])[] = [];
  let pauses = 0;
  const whole = scanPatiently({
    pause: () => {
      pauses += 1;
    },
    onDoubtful: (seen) => sofar.push(seen),
  });
  expect(pauses).toBe(15);
  expect(sofar).toHaveLength(1);
  expect(find(sofar[0] ?? [], pid)?.runPath).toBe("unread");
  expect(find(sofar[0] ?? [], process.pid)).toBeDefined();
  expect(find(whole, pid)?.runPath).toEqual([dead.runId]);
  release(fifo);
});

test("one that leaves state D while the look goes on is read then, without a doubt", async () => {
  const { pid, fifo } = await startStuck();
  let doubts = 0;
  let isReleased = false;
  const whole = scanPatiently({
    pause: () => {
      if (isReleased) return;
      isReleased = true;
      release(fifo);
      const until = performance.now() + 5_000;
      while (stateOf(pid) === "D" && performance.now() < until) continue;
    },
    onDoubtful: (seen) => {
      if (find(seen, pid)?.runPath === "unread") doubts += 1;
    },
  });
  // It ends as soon as it goes on: then it is no longer in the list, or it was read.
  expect(doubts).toBe(0);
  expect(find(whole, pid)?.runPath ?? []).not.toBe("unread");
});
