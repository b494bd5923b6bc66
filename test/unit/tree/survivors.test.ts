/** Looking for survivors: how often it is looked before anything is believed. Scripted looks. */
import { expect, test } from "bun:test";
import type { DeadRun, KeptProcesses, SeenProcess } from "../../../src/core/survivors-view.ts";
import type { ScanResult } from "../../../src/tree/scan.ts";
import { lookForSurvivors } from "../../../src/tree/survivors.ts";

const RUN = "run";
/** No process has these pids, so nobody could be hit. */
const FIRST_PID = 2 ** 22 + 10;

function seen(pid: number, changes: Partial<SeenProcess> = {}): SeenProcess {
  return {
    pid: FIRST_PID + pid,
    ppid: 1,
    startTicks: 100,
    groupId: 7,
    sessionId: 7,
    state: "S",
    isKernelThread: false,
    runPath: [RUN],
    keptToken: undefined,
    cgroup: "/",
    isNamespaceInit: false,
    isSignalable: true,
    isGuard: false,
    ...changes,
  };
}

const MEMBER = [seen(1)];
/** Its parent is nobody that adopts. */
const SUSPECT = [seen(2, { ppid: FIRST_PID + 3 })];
const EMPTY: readonly SeenProcess[] = [];

const run: DeadRun = {
  runId: RUN,
  owner: { pid: FIRST_PID, start_time: 50 },
  recorded: [],
  guard: null,
  adopters: [],
  cgroup: null,
  mainGroup: null,
  unrecordedIn: [],
  countedIn: null,
  isBlind: false,
};

const readKept = (): KeptProcesses => ({ identities: new Set(), tokens: new Set() });

interface Script {
  readonly scan: () => ScanResult;
  looks: number;
}

/** The last look of the script goes on for ever. */
function script(...results: readonly ScanResult[]): Script {
  const state: Script = {
    looks: 0,
    scan: () => {
      state.looks += 1;
      return results[Math.min(state.looks, results.length) - 1] ?? "unread";
    },
  };
  return state;
}

async function look(...results: readonly ScanResult[]) {
  const looks = script(...results);
  const found = await lookForSurvivors(run, readKept, looks.scan, 0);
  if (found === "unread") return { found, looks: looks.looks };
  const pids = (those: readonly { pid: number }[]) => those.map(({ pid }) => pid - FIRST_PID);
  return { members: pids(found.members), suspects: pids(found.suspects), looks: looks.looks };
}

test("a tree is empty when three looks in a row were", async () => {
  expect(await look(EMPTY)).toEqual({ members: [], suspects: [], looks: 3 });
});

test("a member is an answer at once", async () => {
  expect(await look(MEMBER)).toEqual({ members: [1], suspects: [], looks: 1 });
});

test("a member that only the third look finds is an answer too", async () => {
  expect(await look(EMPTY, EMPTY, MEMBER)).toEqual({ members: [1], suspects: [], looks: 3 });
});

test("a suspect is one when three looks in a row say so", async () => {
  expect(await look(SUSPECT)).toEqual({ members: [], suspects: [2], looks: 3 });
});

test("a suspect for a moment is none, and emptiness is counted anew after it", async () => {
  expect(await look(EMPTY, EMPTY, SUSPECT, EMPTY)).toEqual({
    members: [],
    suspects: [],
    looks: 6,
  });
});

test("a suspect that turns out to be a member is one", async () => {
  expect(await look(SUSPECT, MEMBER)).toEqual({ members: [1], suspects: [], looks: 2 });
});

test("members and a suspect are told together, after three looks", async () => {
  expect(await look([...MEMBER, ...SUSPECT])).toEqual({ members: [1], suspects: [2], looks: 3 });
});

test("looks that never agree end with what was doubtful", async () => {
  const flicker = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? SUSPECT : EMPTY));
  expect(await look(...flicker)).toEqual({ members: [], suspects: [2], looks: 12 });
});

test.each([
  ["first", ["unread"] as const, 1],
  ["last", [EMPTY, EMPTY, "unread"] as const, 3],
])("the %s look that is unread leaves everything unread", async (_, results, looks) => {
  expect(await look(...results)).toEqual({ found: "unread", looks });
});

test("who was kept is read after each look: a token is registered before its process", async () => {
  const order: string[] = [];
  const found = await lookForSurvivors(
    run,
    () => {
      order.push("kept");
      return { identities: new Set(), tokens: new Set(["token"]) };
    },
    () => {
      order.push("look");
      return [seen(4, { keptToken: "token" })];
    },
    0,
  );
  expect(found).toEqual({ members: [], suspects: [] });
  expect(order).toEqual(["look", "kept", "look", "kept", "look", "kept"]);
});
