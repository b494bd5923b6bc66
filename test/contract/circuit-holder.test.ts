/** Whether the one who has the trial of a circuit can still end it, with real processes. */
import { afterAll, describe, expect, test } from "bun:test";
import { isHolderAlive, readTrialSelf } from "../../src/circuit/holder.ts";
import type { TrialHolder } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt } from "../../src/core/time.ts";
import { readMachine, readProcessIdentity } from "../../src/os/machine.ts";
import { readStat } from "../../src/os/proc.ts";
import { waitFor } from "../support/wait-for.ts";

const machine = readMachine();
const children: Bun.Subprocess[] = [];
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(children.map((child) => child.exited));
});

const ELSEWHERE = { ...machine, pidNamespace: "another" };
const BLIND = { ...machine, seesOwnProc: false };

/** A process that lives, and the trial it has. */
function hold(): { readonly child: Bun.Subprocess; readonly holder: TrialHolder } {
  const child = Bun.spawn(["sleep", "600"], { stdin: "ignore" });
  children.push(child);
  const identity = readProcessIdentity(child.pid);
  if (identity === undefined) throw new Error("there is no such process");
  return { child, holder: { ...readTrialSelf(machine), ...identity, at: 0 as MonotonicAt } };
}

describe("the one who has the trial", () => {
  test("is alive as long as its process lives, and no longer", async () => {
    const { child, holder } = hold();
    expect(isHolderAlive(holder, machine)).toBe(true);
    child.kill("SIGKILL");
    await child.exited;
    expect(isHolderAlive(holder, machine)).toBe(false);
  });

  test("is as good as gone while it is stopped, and is back when it goes on", async () => {
    const { child, holder } = hold();
    child.kill("SIGSTOP");
    await waitFor(() => readStat(child.pid)?.state === "T", "a stopped holder");
    expect(isHolderAlive(holder, machine)).toBe(false);
    child.kill("SIGCONT");
    await waitFor(() => readStat(child.pid)?.state !== "T", "a holder that goes on");
    expect(isHolderAlive(holder, machine)).toBe(true);
  });

  test("is not the one that has its pid now", () => {
    const { holder } = hold();
    expect(isHolderAlive({ ...holder, start_time: holder.start_time - 1 }, machine)).toBe(false);
  });

  test("is gone with its boot, whoever has its pid since", () => {
    const { holder } = hold();
    expect(isHolderAlive({ ...holder, boot_id: "before" }, machine)).toBe(false);
    // Nor does a pid that cannot be looked up keep it alive.
    expect(isHolderAlive({ ...holder, boot_id: "before" }, BLIND)).toBe(false);
  });

  test("counts as alive where its pid cannot be looked up", async () => {
    const { child, holder } = hold();
    child.kill("SIGKILL");
    await child.exited;
    expect(isHolderAlive(holder, ELSEWHERE)).toBe(true);
    expect(isHolderAlive(holder, BLIND)).toBe(true);
  });
});
