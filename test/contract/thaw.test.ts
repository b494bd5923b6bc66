/** Who was stopped is continued, or kept as one that still has to be; with real processes. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import type { ProcessIdentity } from "../../src/core/lease-record.ts";
import { readProcessIdentity } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { EPERM, sys } from "../../src/os/sys.ts";
import { continueStopped } from "../../src/tree/thaw.ts";
import { Tree } from "../../src/tree/tree.ts";
import { waitFor } from "../support/wait-for.ts";

const EMFILE = 24;
const NAME = "the stopped one";

let child: Bun.Subprocess;
let identity: ProcessIdentity;
let faults: unknown[] = [];
beforeEach(async () => {
  faults = [];
  child = Bun.spawn(["sleep", "600"], { stdin: "ignore" });
  identity = readProcessIdentity(child.pid) ?? { pid: child.pid, start_time: -1 };
  child.kill("SIGSTOP");
  await waitFor(isStopped, "a stopped process");
});
afterEach(async () => {
  child.kill("SIGKILL");
  await child.exited;
});

const isStopped = (): boolean => readStat(child.pid)?.state === "T";

/** Those that need no more. */
function thaw(kept: readonly number[] = [], one = identity): readonly string[] {
  const tree = new Tree({
    main: child.pid,
    inborn: [],
    runId: Bun.randomUUIDv7(),
    findHelpers: () => new Set<number>(),
    findKept: () => new Set(kept),
  });
  return continueStopped(tree, [[NAME, one]], (_, error) => void faults.push(error));
}

describe("a process that was stopped", () => {
  test("goes on, also where it is one to be kept by now", async () => {
    expect([thaw([child.pid]), faults]).toEqual([[NAME], []]);
    await waitFor(() => !isStopped(), "a process that goes on");
  });

  test.each([
    ["no descriptor for it is left", "pidfdOpen", EMFILE],
    ["it has another user for now", "pidfdSendSignal", EPERM],
  ] as const)("is still to be continued where %s", async (_, call, error) => {
    const spy = spyOn(sys, call).mockReturnValue(-error);
    try {
      expect([thaw(), faults, isStopped()]).toEqual([[], [], true]);
    } finally {
      spy.mockRestore();
    }
    expect(thaw()).toEqual([NAME]);
    await waitFor(() => !isStopped(), "a process that goes on");
  });

  test("is done with when it is gone, and another one with its pid is left as it is", async () => {
    const before = { ...identity, start_time: identity.start_time - 1 };
    expect([thaw([], before), isStopped()]).toEqual([[NAME], true]);
    child.kill("SIGKILL");
    await child.exited;
    expect([thaw(), faults]).toEqual([[NAME], []]);
  });
});
