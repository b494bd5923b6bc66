/**
 * One pass of signals over a tree of real processes: trouble of our own with one of them costs the
 * others nothing, and is told. The trouble is that of the kill seam, which refuses whom the caller
 * should have spared.
 */
import { afterAll, expect, test } from "bun:test";
import { SIGTERM } from "../../src/core/signals.ts";
import { readStat } from "../../src/os/proc.ts";
import { KillRounds } from "../../src/tree/kill-rounds.ts";
import { Tree } from "../../src/tree/tree.ts";
import { python } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const started: Bun.Subprocess[] = [];
afterAll(() => {
  for (const one of started) one.kill("SIGKILL");
});

function sleepers(count: number): Bun.Subprocess[] {
  const some = Array.from({ length: count }, () => Bun.spawn(["sleep", "60"]));
  started.push(...some);
  return some;
}

/** Who is in it is protected, and whoever decides does not see it. */
class UnseenList extends Set<number> {
  override has(): boolean {
    return false;
  }
}

function treeOf(main: number, unseen: readonly number[]): Tree {
  return new Tree({
    main,
    inborn: [],
    runId: crypto.randomUUID(),
    findHelpers: () => new UnseenList(unseen),
    findKept: () => new Set(),
  });
}

const pidsOf = (rows: readonly { readonly pid: number }[]): number[] => rows.map(({ pid }) => pid);

test("a round of KILL hits everybody but the one that the seam refuses", async () => {
  const [first, second, third] = sleepers(3);
  if (first === undefined || second === undefined || third === undefined) throw new Error("three");
  const tally = treeOf(first.pid, [first.pid]).killRound();
  await Promise.all([second.exited, third.exited]);
  expect([second.signalCode, third.signalCode]).toEqual(["SIGKILL", "SIGKILL"]);
  expect(pidsOf(tally.sent).toSorted()).toEqual([second.pid, third.pid].toSorted());
  expect(tally.faults.map(({ row, error }) => [row.pid, String(error)])).toEqual([
    [first.pid, expect.stringContaining(`signal to protected process ${first.pid}`)],
  ]);
  expect([first.exitCode, first.signalCode]).toEqual([null, null]);
  first.kill("SIGKILL");
  await first.exited;
});

test("so does a request to end", async () => {
  const [first, second] = sleepers(2);
  if (first === undefined || second === undefined) throw new Error("two");
  const tally = treeOf(first.pid, [first.pid]).ask([SIGTERM]);
  await second.exited;
  expect([second.signalCode, pidsOf(tally.sent)]).toEqual(["SIGTERM", [second.pid]]);
  expect(tally.faults.map(({ row }) => row.pid)).toEqual([first.pid]);
  expect([first.exitCode, first.signalCode]).toEqual([null, null]);
  first.kill("SIGKILL");
  await first.exited;
});

test("a process whose first thread has ended is hit like everybody else", async () => {
  const one = Bun.spawn(python("leaves-only-a-thread.py"));
  started.push(one);
  await waitFor(() => readStat(one.pid)?.state === "Z", "the end of its first thread");
  const tree = treeOf(one.pid, []);
  expect(pidsOf(tree.members())).toEqual([one.pid]);
  expect(pidsOf(tree.killRound().sent)).toEqual([one.pid]);
  await one.exited;
  expect(one.signalCode).toBe("SIGKILL");
});

test("rounds of KILL tell the trouble, and name the one that is left in the end", async () => {
  const [first, second] = sleepers(2);
  if (first === undefined || second === undefined) throw new Error("two");
  const bugs: unknown[] = [];
  const stuck = Promise.withResolvers<readonly number[]>();
  const rounds = new KillRounds(treeOf(first.pid, [first.pid]), {
    collect: () => undefined,
    onHit: () => undefined,
    onEmpty: () => stuck.resolve([]),
    onBug: (error) => bugs.push(error),
    onStuck: (rows) => stuck.resolve(pidsOf(rows)),
  });
  rounds.begin();
  expect(await stuck.promise).toEqual([first.pid]);
  rounds.end();
  expect(second.signalCode).toBe("SIGKILL");
  expect(bugs.length).toBeGreaterThan(0);
  first.kill("SIGKILL");
  await first.exited;
});

test("negative twin: without the trouble all of them are hit", async () => {
  const some = sleepers(2);
  const tally = treeOf(some[0]?.pid ?? 0, []).killRound();
  await Promise.all(some.map((one) => one.exited));
  expect(some.map((one) => one.signalCode)).toEqual(["SIGKILL", "SIGKILL"]);
  expect([tally.sent.length, tally.faults]).toEqual([2, []]);
});
