/** Survivors of a dead owner, as real processes: who is found, who is ended, who is not touched. */
import { expect, test } from "bun:test";
import type { TreeFinding } from "../../src/core/evidence.ts";
import { SIGKILL, SIGTERM } from "../../src/core/signals.ts";
import type { DeadRun, KeptProcesses } from "../../src/core/survivors-view.ts";
import { KEPT_VARIABLE } from "../../src/run/kept-registry.ts";
import { scanInWorker } from "../../src/tree/scan-handle.ts";
import { scanProcesses, type ScanResult } from "../../src/tree/scan.ts";
import {
  type EndOptions,
  endSurvivors,
  lookForSurvivors,
  type ReadKept,
  type Scan,
} from "../../src/tree/survivors.ts";
import { python, readLines, waitForText } from "../support/processes.ts";
import { killQuietly, readCommandLine } from "../support/scene.ts";
import {
  DeadRunScene,
  identityOf,
  isGone,
  NOBODY_KEPT,
  stateOf,
} from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const WORKER = new URL("../../src/tree/scan-worker.ts", import.meta.url);
const SLEEP = ["sleep", "60"];
/** One run for each test: nobody of another one is found. */
const opened = new DeadRunScene(import.meta.file);

function openRun(): DeadRunScene {
  return opened.another();
}

type Sent = readonly [pid: number, signal: number];

interface Ended {
  readonly left: TreeFinding;
  readonly sent: readonly Sent[];
}

async function end(
  run: DeadRun,
  changes: Partial<EndOptions> = {},
  readKept: ReadKept = NOBODY_KEPT,
): Promise<Ended> {
  const sent: Sent[] = [];
  const left = await endSurvivors(run, readKept, {
    scan: scanProcesses,
    guardWaitMs: 0,
    termGraceMs: 0,
    onSent: ({ pid }, signal) => sent.push([pid, signal]),
    ...changes,
  });
  if (left === "unread") throw new Error("the processes were unread");
  return { left, sent };
}

async function find(run: DeadRun, readKept: ReadKept = NOBODY_KEPT) {
  const found = await lookForSurvivors(run, readKept, scanProcesses);
  if (found === "unread") throw new Error("the processes were unread");
  const pids = (those: readonly { pid: number }[]) =>
    those.map(({ pid }) => pid).toSorted((one, other) => one - other);
  return { members: pids(found.members), suspects: pids(found.suspects) };
}

const NOBODY: TreeFinding = { members: [], suspects: [] };

test("a daemon with a session of its own and closed descriptors is found and ended", async () => {
  const dead = openRun();
  const path = dead.makePath();
  const starter = dead.startChild(python("daemonizes.py", path, ...SLEEP));
  const [daemon = 0] = await dead.readPids(path);
  await waitFor(() => stateOf(starter) === "Z" || stateOf(starter) === "gone", "an orphan");
  const run = dead.describe([daemon]);
  const identity = identityOf(daemon);
  expect(await lookForSurvivors(run, NOBODY_KEPT, scanProcesses)).toEqual({
    members: [{ ...identity, command: "sleep 60", isSignalable: true, isAncestor: false }],
    suspects: [],
  });
  expect(await end(run)).toEqual({ left: NOBODY, sent: [[daemon, SIGKILL]] });
  expect(isGone(identity)).toBe(true);
});

test("a tree below an orphan is ended as a whole, with looks in a Worker too", async () => {
  const dead = openRun();
  const path = dead.makePath();
  const below = `sleep 60 & echo "$1 $2 $$ $!" >"$0"; wait`;
  const root = `sleep 60 & sh -c "$1" "$0" $$ $!; wait`;
  const orphan = await dead.startOrphan(["sh", "-c", root, path, below]);
  const pids = await dead.readPids(path);
  expect(pids).toHaveLength(4);
  expect(pids[0]).toBe(orphan);
  const identities = pids.map(identityOf);
  const run = dead.describe([orphan]);
  expect((await find(run)).members).toEqual(pids.toSorted((one, other) => one - other));
  const { left } = await end(run, { scan: () => scanInWorker(WORKER), firstScan: scanProcesses });
  expect(left).toEqual(NOBODY);
  expect(identities.every(isGone)).toBe(true);
});

test("who hides its environment is a member where it was recorded, with all below it", async () => {
  const dead = openRun();
  const path = dead.makePath();
  const root = await dead.startOrphan(python("hides-its-environment.py", path, "3"));
  const pids = await dead.readPids(path);
  const identities = pids.map(identityOf);
  const run = dead.describe([root]);
  // The documented limit, and the twin of what follows.
  expect(await find(run)).toEqual({ members: [], suspects: [] });
  expect(identities.some(isGone)).toBe(false);
  const recorded = { ...run, recorded: [identityOf(root)] };
  expect((await find(recorded)).members).toEqual(pids.toSorted((one, other) => one - other));
  expect((await end(recorded)).left).toEqual(NOBODY);
  expect(identities.every(isGone)).toBe(true);
});

test("a recorded pid with another start is nobody", async () => {
  const dead = openRun();
  const stranger = await dead.startOrphan(SLEEP, {});
  const { pid, start_time: start } = identityOf(stranger);
  const run = dead.describe([stranger], { recorded: [{ pid, start_time: start - 1 }] });
  expect(await end(run)).toEqual({ left: NOBODY, sent: [] });
  expect(stateOf(stranger)).toBe("S");
});

test("children that are born while their parent is ended are ended with it", async () => {
  const dead = openRun();
  const path = dead.makePath();
  const root = await dead.startOrphan(python("hides-its-environment.py", path, "0", "storm"));
  await dead.readPids(path);
  try {
    await waitFor(() => findByWord(path).length > 20, "a storm of children");
    const run = dead.describe([root], { recorded: [identityOf(root)] });
    expect((await end(run)).left).toEqual(NOBODY);
    expect(findByWord(path)).toEqual([]);
  } finally {
    for (const pid of findByWord(path)) killQuietly(pid);
  }
});

/** Whoever has this word, one of a kind, in its command line. */
function findByWord(word: string): number[] {
  const result = scanProcesses();
  if (result === "unread") throw new Error("the processes were unread");
  return result.flatMap(({ pid, state }) =>
    state !== "Z" && readCommandLine(pid).includes(word) ? [pid] : [],
  );
}

test("a stopped member is ended", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(SLEEP);
  process.kill(orphan, "SIGSTOP");
  await waitFor(() => stateOf(orphan) === "T", "a stopped process");
  const identity = identityOf(orphan);
  expect((await end(dead.describe([orphan]))).left).toEqual(NOBODY);
  expect(isGone(identity)).toBe(true);
});

test("one that lives in a second thread only is ended", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(python("leaves-only-a-thread.py"));
  await waitFor(() => stateOf(orphan) === "Z", "a zombie by its first thread");
  const run = dead.describe([orphan]);
  expect((await find(run)).members).toEqual([orphan]);
  expect((await end(run)).sent).toEqual([[orphan, SIGKILL]]);
});

test("innocents with the cookie are suspects: they are told and not touched", async () => {
  const dead = openRun();
  const innocent = dead.startChild(SLEEP);
  const orphan = await dead.startOrphan(SLEEP);
  const run = dead.describe([orphan]);
  await waitFor(async () => (await find(run)).suspects.length === 1, "a suspect");
  expect(await find(run)).toEqual({ members: [orphan], suspects: [innocent] });
  const { left, sent } = await end(run);
  expect(left.suspects.map(({ pid }) => pid)).toEqual([innocent]);
  expect(left.members).toEqual([]);
  expect(sent).toEqual([[orphan, SIGKILL]]);
  expect(stateOf(innocent)).toBe("S");
});

test("strangers without the cookie are nobody, whatever their command line", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(SLEEP);
  const stranger = await dead.startOrphan(SLEEP, { WATCHDOG_RUN_PATH: `x${dead.runId}` });
  const { left, sent } = await end(dead.describe([orphan]));
  expect({ left, sent }).toEqual({ left: NOBODY, sent: [[orphan, SIGKILL]] });
  expect(stateOf(stranger)).toBe("S");
});

test("what was kept, by token or by pid and start, lives on with all below it", async () => {
  const dead = openRun();
  const words = ["sh", "-c", "sleep 60 & wait"];
  const byToken = await dead.startOrphan(words, { ...dead.env, [KEPT_VARIABLE]: "token" });
  const byIdentity = await dead.startOrphan(words);
  const below = await Promise.all([byToken, byIdentity].map(waitForChild));
  below.forEach((pid) => dead.remember(pid));
  const { pid, start_time: start } = identityOf(byIdentity);
  const kept: KeptProcesses = {
    identities: new Set([`${pid}@${start}`]),
    tokens: new Set(["token"]),
  };
  const run = dead.describe([byToken]);
  expect(await find(run, () => kept)).toEqual({ members: [], suspects: [] });
  expect(await end(run, {}, () => kept)).toEqual({ left: NOBODY, sent: [] });
  expect([byToken, byIdentity, ...below].map(stateOf)).toEqual(["S", "S", "S", "S"]);
  // The twin: nothing else has spared them.
  expect((await find(run)).members).toHaveLength(4);
});

async function waitForChild(parent: number): Promise<number> {
  return waitFor(() => {
    const result = scanProcesses();
    return result !== "unread" && result.find((one) => one.ppid === parent)?.pid;
  }, "a child");
}

test("an ancestor of the one who looks is told and not touched, nor is the guard", async () => {
  const dead = openRun();
  const guard = await dead.startOrphan(["sh", "-c", "sleep 60 & wait"]);
  const below = dead.remember(await waitForChild(guard));
  const run = dead.describe([], {
    recorded: [identityOf(process.ppid), identityOf(guard)],
    guard: identityOf(guard),
  });
  const { left, sent } = await endAmong(run, [process.ppid, process.pid, guard, below]);
  expect(sent).toEqual([]);
  expect(left.members.map(({ pid, isAncestor }) => [pid, isAncestor])).toEqual([
    [process.ppid, true],
  ]);
  expect([guard, below].map(stateOf)).toEqual(["S", "S"]);
});

/** Whatever else our own parent has below it would be a member, too, so they alone are seen. */
async function endAmong(run: DeadRun, pids: readonly number[]): Promise<Ended> {
  return end(run, {
    scan: () => {
      const result = scanProcesses();
      return result === "unread" ? result : result.filter(({ pid }) => pids.includes(pid));
    },
  });
}

test("a member that may not be signalled is told, the others are ended", async () => {
  const dead = openRun();
  const [one, other] = [await dead.startOrphan(SLEEP), await dead.startOrphan(SLEEP)];
  const { left, sent } = await end(dead.describe([one, other]), {
    scan: () => {
      const result = scanProcesses();
      if (result === "unread") return result;
      return result.map((seen) => (seen.pid === one ? { ...seen, isSignalable: false } : seen));
    },
  });
  expect(sent).toEqual([[other, SIGKILL]]);
  expect(left.members.map(({ pid, isSignalable }) => [pid, isSignalable])).toEqual([[one, false]]);
  expect(stateOf(one)).toBe("S");
});

test("with a grace, who obeys TERM is not killed, though it was stopped", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(SLEEP);
  process.kill(orphan, "SIGSTOP");
  await waitFor(() => stateOf(orphan) === "T", "a stopped process");
  const { left, sent } = await end(dead.describe([orphan]), { termGraceMs: 20_000 });
  expect({ left, sent }).toEqual({ left: NOBODY, sent: [[orphan, SIGTERM]] });
});

test("with a grace, who ignores TERM is killed after it", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(["sh", "-c", "trap '' TERM; sleep 60 & wait"]);
  dead.remember(await waitForChild(orphan));
  const began = performance.now();
  const { left, sent } = await end(dead.describe([orphan]), { termGraceMs: 300 });
  // Emptiness alone takes 200 ms.
  expect(performance.now() - began).toBeGreaterThan(500);
  expect(left).toEqual(NOBODY);
  expect(sent.filter(([pid]) => pid === orphan)).toEqual([
    [orphan, SIGTERM],
    [orphan, SIGKILL],
  ]);
});

test("who was proven by its parent stays proven when TERM ends the parent first", async () => {
  const dead = openRun();
  const path = dead.makePath();
  const ignores = `(trap '' TERM; exec "$@") & trap 'exit 0' TERM; wait`;
  const hidden = python("hides-its-environment.py", path, "0");
  const parent = await dead.startOrphan(["sh", "-c", ignores, "sh", ...hidden]);
  const [child = 0] = await dead.readPids(path);
  const identity = identityOf(child);
  const { left, sent } = await end(dead.describe([parent]), { termGraceMs: 3_000 });
  expect(left).toEqual(NOBODY);
  expect(sent).toContainEqual([parent, SIGTERM]);
  expect(sent).not.toContainEqual([parent, SIGKILL]);
  expect(isGone(identity)).toBe(true);
});

test("below a nested watchdog nobody is told twice", async () => {
  const dead = openRun();
  const path = dead.makePath();
  // This program's own file is what makes a process a nested watchdog.
  const words = JSON.stringify(python("notes-signals.py", path, "below", "TERM"));
  const nested = `Bun.spawn(${words});
    process.on("SIGTERM", () => undefined); setInterval(() => undefined, 1000);`;
  const orphan = await dead.startOrphan([process.execPath, "-e", nested]);
  await waitForText(path);
  const child = dead.remember(await waitForChild(orphan));
  const { left, sent } = await end(dead.describe([orphan]), { termGraceMs: 300 });
  expect(left).toEqual(NOBODY);
  expect(sent.filter(([, signal]) => signal === SIGTERM)).toEqual([[orphan, SIGTERM]]);
  expect(sent.filter(([, signal]) => signal === SIGKILL).map(([pid]) => pid)).toContain(child);
  expect(readLines(path).some((line) => line.includes("TERM"))).toBe(false);
});

test("the run's guard is let do it first", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(SLEEP);
  const guard = await dead.startOrphan(["sh", "-c", `kill -KILL ${orphan}; exec sleep 60`]);
  const { left, sent } = await end(dead.describe([orphan], { guard: identityOf(guard) }), {
    guardWaitMs: 20_000,
  });
  expect({ left, sent }).toEqual({ left: NOBODY, sent: [] });
});

test("a guard that does nothing is waited for as long as was said", async () => {
  const dead = openRun();
  const [orphan, guard] = [await dead.startOrphan(SLEEP), await dead.startOrphan(SLEEP)];
  const began = performance.now();
  const run = dead.describe([orphan], { guard: identityOf(guard) });
  const { sent } = await end(run, { guardWaitMs: 400 });
  expect(performance.now() - began).toBeGreaterThan(400);
  expect(sent).toEqual([[orphan, SIGKILL]]);
  expect(stateOf(guard)).toBe("S");
});

test("a dead guard, or none, is not waited for", async () => {
  const dead = openRun();
  const orphan = await dead.startOrphan(SLEEP);
  const guard = { ...identityOf(process.pid), start_time: 1 };
  const began = performance.now();
  const { sent } = await end(dead.describe([orphan], { guard }), { guardWaitMs: 60_000 });
  expect(sent).toEqual([[orphan, SIGKILL]]);
  expect(performance.now() - began).toBeLessThan(30_000);
});

test("two that end the same tree at once are harmless to each other", async () => {
  const dead = openRun();
  const orphans = await Promise.all(Array.from({ length: 20 }, () => dead.startOrphan(SLEEP)));
  const identities = orphans.map(identityOf);
  const run = dead.describe(orphans);
  const [one, other] = await Promise.all([end(run), end(run)]);
  expect([one.left, other.left]).toEqual([NOBODY, NOBODY]);
  expect(identities.every(isGone)).toBe(true);
});

/** Counts the looks: the first ones as given, then an empty machine. */
function countLooks(...first: readonly ScanResult[]): { scan: () => ScanResult; looks: number } {
  const counted = {
    looks: 0,
    scan: () => {
      counted.looks += 1;
      return first[counted.looks - 1] ?? [];
    },
  };
  return counted;
}

test("emptiness is three looks 100 ms apart, before an end and after it", async () => {
  const run = openRun().describe([]);
  for (const look of [
    (scan: Scan) => lookForSurvivors(run, NOBODY_KEPT, scan),
    (scan: Scan) => endSurvivors(run, NOBODY_KEPT, { scan, guardWaitMs: 0, termGraceMs: 0 }),
  ]) {
    const counted = countLooks();
    const began = performance.now();
    expect(await look(counted.scan)).toEqual(NOBODY);
    expect(counted.looks).toBe(3);
    expect(performance.now() - began).toBeGreaterThan(195);
  }
});

test("an end comes back after a look that was unread", async () => {
  const counted = countLooks("unread", "unread");
  expect((await end(openRun().describe([]), { scan: counted.scan })).left).toEqual(NOBODY);
  expect(counted.looks).toBe(5);
});

test("an end may look otherwise the first time", async () => {
  const [first, later] = [countLooks(), countLooks()];
  await end(openRun().describe([]), { firstScan: first.scan, scan: later.scan });
  expect([first.looks, later.looks]).toEqual([1, 2]);
});
