/** The Worker that looks: an answer comes in time, whatever becomes of the Worker. */
import { describe, expect, test } from "bun:test";
import type { TreeFinding } from "../../src/core/evidence.ts";
import type { DeadRun } from "../../src/core/survivors-view.ts";
import { scanInWorker, tryTwice } from "../../src/tree/scan-handle.ts";
import type { ScanResult } from "../../src/tree/scan.ts";
import { LOOKS, lookForSurvivors } from "../../src/tree/survivors.ts";

/** A Worker that answers the order to look with these statements. */
function workerThat(statements: string): string {
  const source = `self.onmessage = () => { self.onmessage = null; ${statements} };`;
  return URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
}

const WHOLE = `postMessage({ kind: "whole", result: [{ pid: 1 }] });`;
const DOUBTFUL = `postMessage({ kind: "doubtful", result: [{ pid: 2 }] });`;
const HANGS = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10000);";
/** Far beyond what a Worker needs to start, far below what it hangs. */
const LIMIT_MS = 2_500;

async function look(statements: string, limitMs = 60_000): Promise<unknown> {
  return scanInWorker(workerThat(statements), limitMs);
}

test("the whole look is the answer", async () => {
  expect(await look(WHOLE)).toEqual([{ pid: 1 }]);
});

test("what comes before it is not", async () => {
  expect(await look(DOUBTFUL + WHOLE)).toEqual([{ pid: 1 }]);
});

test("a Worker that hangs at a stuck process has told what it saw before", async () => {
  expect(await look(DOUBTFUL + HANGS + WHOLE, LIMIT_MS)).toEqual([{ pid: 2 }]);
});

test("a Worker that hangs without a word leaves everything unread", async () => {
  expect(await look(HANGS + WHOLE, LIMIT_MS)).toBe("unread");
});

test("so does one that dies, as soon as it is dead", async () => {
  const began = performance.now();
  expect(await look(`throw new Error("dies");`, 20_000)).toBe("unread");
  expect(performance.now() - began).toBeLessThan(15_000);
});

test("one that dies after a first answer has given it", async () => {
  expect(await look(`${DOUBTFUL} setTimeout(() => { throw new Error("dies"); }, 0);`)).toEqual([
    { pid: 2 },
  ]);
});

test("so does one that cannot be loaded", async () => {
  expect(await scanInWorker(new URL("./no-such-worker.ts", import.meta.url))).toBe("unread");
});

/** Nobody of it was ever seen. */
const DEAD_RUN: DeadRun = {
  runId: "01999999-0000-7000-8000-000000000001",
  owner: { pid: 2 ** 22 + 1, start_time: 1 },
  recorded: [],
  guard: null,
  adopters: [],
  cgroup: null,
  mainGroup: null,
  unrecordedIn: [],
  countedIn: null,
  isBlind: false,
};
const readNoKept = () => ({ identities: new Set<string>(), tokens: new Set<string>() });

describe("a start that wants a dead owner's key", () => {
  /** So many looks are too slow, the rest is in time and finds nobody. */
  function scanThatIsSlow(times: number): { scan: () => Promise<ScanResult>; asked: () => number } {
    let asked = 0;
    const scan = (): Promise<ScanResult> => {
      asked += 1;
      const isSlow = asked <= times;
      const answer = `postMessage({ kind: "whole", result: [] });`;
      const url = workerThat(isSlow ? HANGS + answer : answer);
      return scanInWorker(url, isSlow ? LIMIT_MS : 5_000);
    };
    return { scan, asked: () => asked };
  }

  const look = (scan: () => Promise<ScanResult>): Promise<TreeFinding | "unread"> =>
    lookForSurvivors(DEAD_RUN, readNoKept, scan, 0);

  test("looks once more where the first look is too slow, and all of it", async () => {
    const { scan, asked } = scanThatIsSlow(1);
    expect(await tryTwice(() => look(scan))).toEqual({ members: [], suspects: [] });
    expect(asked()).toBe(1 + LOOKS);
  });

  test("does not look a third time", async () => {
    const { scan, asked } = scanThatIsSlow(2);
    expect(await tryTwice(() => look(scan))).toBe("unread");
    expect(asked()).toBe(2);
  });

  test("negative twin: one look alone is refused by one that is too slow", async () => {
    const { scan, asked } = scanThatIsSlow(1);
    expect(await look(scan)).toBe("unread");
    expect(asked()).toBe(1);
  });

  test("looks once where the first look is in time", async () => {
    const { scan, asked } = scanThatIsSlow(0);
    expect(await tryTwice(() => look(scan))).toEqual({ members: [], suspects: [] });
    expect(asked()).toBe(LOOKS);
  });
});
