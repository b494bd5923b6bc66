/** What is done about a run whose watchdog was killed, and what its record says. */
import { describe, expect, test } from "bun:test";
import { abandonRecord, type BurialFacts, decideBurial } from "../../../src/core/burial.ts";
import { SIGTERM } from "../../../src/core/signals.ts";
import { RUNNING_RECORD } from "../../support/guard-notes.ts";

const LIVES = null;
const ENDED = { kind: "exited", code: 3 } as const;

/** Every case but the grace: main, phase, policy, and what follows. */
const TABLE = [
  [LIVES, "starting", "kill", "end nobody-watches"],
  [LIVES, "starting", "wait", "end nobody-watches"],
  [LIVES, "starting", "leave", "end nobody-watches"],
  [LIVES, "running", "kill", "end nobody-watches"],
  [LIVES, "running", "wait", "end nobody-watches"],
  [LIVES, "running", "leave", "end nobody-watches"],
  [LIVES, "paused", "kill", "end nobody-watches"],
  [LIVES, "paused", "wait", "end nobody-watches"],
  [LIVES, "paused", "leave", "end nobody-watches"],
  [LIVES, "stopping", "kill", "end was-being-ended"],
  [LIVES, "stopping", "wait", "end was-being-ended"],
  [LIVES, "stopping", "leave", "end was-being-ended"],
  [LIVES, "ending", "kill", "end nobody-watches"],
  [LIVES, "ending", "wait", "end nobody-watches"],
  [LIVES, "ending", "leave", "end nobody-watches"],
  [ENDED, "starting", "kill", "end leftovers-kill"],
  [ENDED, "starting", "wait", "leave leftovers-wait"],
  [ENDED, "starting", "leave", "leave leftovers-leave"],
  [ENDED, "running", "kill", "end leftovers-kill"],
  [ENDED, "running", "wait", "leave leftovers-wait"],
  [ENDED, "running", "leave", "leave leftovers-leave"],
  [ENDED, "paused", "kill", "end leftovers-kill"],
  [ENDED, "paused", "wait", "leave leftovers-wait"],
  [ENDED, "paused", "leave", "leave leftovers-leave"],
  [ENDED, "stopping", "kill", "end was-being-ended"],
  [ENDED, "stopping", "wait", "end was-being-ended"],
  [ENDED, "stopping", "leave", "end was-being-ended"],
  [ENDED, "ending", "kill", "end leftovers-kill"],
  [ENDED, "ending", "wait", "leave leftovers-wait"],
  [ENDED, "ending", "leave", "leave leftovers-leave"],
] as const;

describe("a tree that nobody watches", () => {
  test.each(TABLE)("main %j, %s, --leftovers %s: %s", (mainEnd, phase, leftovers, expected) => {
    const facts: BurialFacts = { mainEnd, phase, leftovers, guardGraceMs: 0 };
    const decision = decideBurial(facts);
    expect(`${decision.kind} ${decision.because}`).toBe(expected);
    if (decision.kind === "end") expect(decision.graceMs).toBeUndefined();
    const patient = decideBurial({ ...facts, guardGraceMs: 500 });
    expect(`${patient.kind} ${patient.because}`).toBe(expected);
    if (patient.kind === "end") expect(patient.graceMs).toBe(500);
  });
});

describe("the record of an abandoned run", () => {
  const facts = {
    mainEnd: null,
    endedAt: "2026-01-01T00:01:00.000Z",
    durationMs: 60_000.4,
    members: [{ pid: 12, command: "sleep 100", ended_by: "KILL" }],
    unsignalable: [],
    suspects: [],
    troubles: [],
  } as const;

  test("says how it ended and claims no status", () => {
    expect(abandonRecord(RUNNING_RECORD, facts)).toEqual({
      ...RUNNING_RECORD,
      state: "ended",
      outcome: "abandoned",
      because: "watchdog-killed",
      ended_at: "2026-01-01T00:01:00.000Z",
      duration_ms: 60_000,
      leftovers: [{ pid: 12, command: "sleep 100", ended_by: "KILL" }],
    });
  });

  test("tells what was seen of the main command before", () => {
    const exited = abandonRecord(RUNNING_RECORD, { ...facts, mainEnd: ENDED });
    expect([exited.exit_code, exited.signal, exited.exit_status]).toEqual([3, null, null]);
    const mainEnd = { kind: "signaled", signal: SIGTERM } as const;
    const signaled = abandonRecord(RUNNING_RECORD, { ...facts, mainEnd });
    expect([signaled.exit_code, signaled.signal, signaled.status_of]).toEqual([null, "TERM", null]);
  });

  test("adds to what the run itself had noted", () => {
    const before = {
      ...RUNNING_RECORD,
      leftovers: [{ pid: 1000, command: "a", ended_by: null }],
      left_alone: [{ pid: 1001, command: "b", why: "adopted, not proven" }],
      unsignalable: [{ pid: 1002, command: "c" }],
      degraded: ["no-log"],
    };
    const record = abandonRecord(before, {
      ...facts,
      unsignalable: [{ pid: 1003, command: "d" }],
      suspects: [{ pid: 1004, command: "e" }],
      troubles: ["guard-no-journal"],
    });
    expect(record.leftovers.map((one) => one.pid)).toEqual([1000, 12]);
    expect(record.left_alone.map((one) => [one.pid, one.why])).toEqual([
      [1001, "adopted, not proven"],
      [1004, "carries the run's id or may be its command, not proven"],
    ]);
    expect(record.unsignalable.map((one) => one.pid)).toEqual([1002, 1003]);
    expect(record.degraded).toEqual(["no-log", "guard-no-journal"]);
  });

  test("names 200 of a kind, and has no span where the clocks cannot be compared", () => {
    const members = Array.from({ length: 300 }, (_, pid) => ({
      pid: pid + 1,
      command: "x",
      ended_by: null,
    }));
    const record = abandonRecord(RUNNING_RECORD, { ...facts, durationMs: undefined, members });
    expect(record.leftovers).toHaveLength(200);
    expect(record.duration_ms).toBeNull();
  });
});
