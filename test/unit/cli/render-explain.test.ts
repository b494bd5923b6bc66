import { expect, test } from "bun:test";
import { renderExplanation } from "../../../src/cli/render-explain.ts";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import { explainLease } from "../../../src/core/explanation.ts";
import type { RepairFacts } from "../../../src/core/repair-plan.ts";
import { BOOT, sampleMachine, sampleRecord } from "../../support/lease-samples.ts";
import { deadView, sampleView } from "../../support/lease-views.ts";

const FACTS: RepairFacts = {
  bootId: BOOT,
  lockFile: "regular",
  lockInode: "1:2",
  fenceFile: "regular",
  recordFile: "read",
  owner: { state: "stopped", signal: "allowed" },
};
const HERE = { ...sampleMachine(), monotonicMs: 1_000_000, runsAround: [] };

/** The lines below this heading. */
function linesOf(evidence: LeaseEvidence, heading: string): string[] {
  const text = renderExplanation(explainLease({ evidence, facts: FACTS, here: HERE }));
  const block = text.split("\n\n").find((one) => one.startsWith(heading)) ?? "";
  return block.trimEnd().split("\n").slice(1);
}

const FOUND = { pid: 5, start_time: 6, command: "x", isSignalable: true, isAncestor: false };

test("each rule tells what of it is not so, up to the one that decides", () => {
  const { evidence } = deadView({ members: [FOUND], suspects: [] });
  expect(linesOf(evidence, "rules")).toEqual([
    "  R1  does not fit  the lock can be asked",
    "  R2  does not fit  the lock is free; the recorded owner is gone",
    "  R3  does not fit  the lock is free",
    "  R4  does not fit  neither record nor journal says released",
    "  R5  does not fit  the owner is of this boot",
    "  R6  decides       orphaned, because members",
    "  R7  not asked",
    "  R8  not asked",
  ]);
});

test("a newcomer is told once, or for each policy where they differ", () => {
  const { evidence } = deadView({ members: [FOUND], suspects: [] });
  const refused = "is refused with 75 (survivors-alive); with --wait it waits";
  expect(linesOf(evidence, "a newcomer")).toEqual([
    "  --on-survivors kill    ends 1 process, proves that none is left, takes the lease (members)",
    "  --on-survivors wait    waits until they have ended, as long as it takes; " +
      "--wait bounds it (survivors-alive)",
    `  --on-survivors refuse  ${refused}`,
  ]);
  const held = sampleView().evidence;
  expect(linesOf(held, "a newcomer")).toEqual([
    "  is refused with 75 (beat-fresh); with --wait it waits",
  ]);
  const away = deadView("unread").evidence;
  expect(linesOf({ ...away, namespaceContained: "no" }, "a newcomer")).toEqual([
    "  is refused with 75 (other-namespace); with --wait it waits; " +
      "it notes the time, and one 40 s later takes the lease",
  ]);
  const wrong = sampleView({ lock: { kind: "unaskable", reason: "ENOLCK" } }).evidence;
  expect(linesOf(wrong, "a newcomer")).toEqual([
    "  is refused with 78 (lock-unaskable); --wait does not help",
  ]);
});

test("a checkout is looked at before it is taken, and an ended owner costs time", () => {
  const repair = {
    plan_id: "0a1b2c3d4e",
    action: "ended-owner",
    at: "2026-01-01T00:00:00.000Z",
    boot_id: BOOT,
    time_namespace: "4026531834",
    monotonic_ms: 940_000,
    by: "ops@nightly",
  } as const;
  const record = sampleRecord({ state: "released", repair });
  const key = { kind: "worktree", name: "1:2" } as const;
  const lines = linesOf(sampleView({ lock: { kind: "free" }, key, record }).evidence, "a newcomer");
  expect(lines).toEqual([
    "  takes the lease (released)",
    expect.stringMatching(/--repair-cooldown it is refused with 75 for 9 min more$/),
    "  but while another run works in the checkout it is refused with 75",
  ]);
});

test("a plan comes with the line that carries it out", () => {
  const stalled = sampleView({ beatAgeMs: 50_000 }).evidence;
  expect(linesOf(stalled, "a repair")).toEqual([
    "  continue the stopped owner (SIGCONT) (owner-stopped)",
    expect.stringMatching(/^ {4}watchdog repair job:backup --approve [0-9a-f]{10}$/),
    expect.stringContaining("  end the living owner and its processes"),
    expect.stringMatching(/^ {4}watchdog repair job:backup --approve [0-9a-f]{10}$/),
  ]);
  const dead = deadView({ members: [], suspects: [] }).evidence;
  expect(linesOf(dead, "a repair").at(-1)).toBe("    watchdog repair job:backup --apply");
  const source = { kind: "none" } as const;
  const lost = sampleView({ lock: { kind: "free" }, source, record: undefined }).evidence;
  expect(linesOf(lost, "a repair").at(-1)).toBe("    watchdog repair job:backup");
  const held = sampleView().evidence;
  expect(linesOf(held, "a repair")).toEqual(["  has nothing to do (beat-fresh)"]);
  const away = deadView("unread").evidence;
  expect(linesOf(away, "a repair")).toEqual([
    "  nothing can be done from here: its processes could not be looked for; look again",
  ]);
});
