/** What becomes of an unsafe step of which nobody knows: its `settle`, else a person. */
import { describe, expect, test } from "bun:test";
import type { Change, PlannedStep } from "../../../src/core/job-plan.ts";
import {
  decideSettled,
  decideUnclear,
  hasSaidSo,
  readSettleEnd,
  type SettleAnswer,
} from "../../../src/core/job-settle.ts";
import { decideNotHappened } from "../../../src/core/step-outcome.ts";
import type { StepEnd } from "../../../src/core/step-outcome.ts";
import type { StepReason } from "../../../src/core/step-record.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";
import { left, record, step } from "../../support/job-specs.ts";

const RUN = { runId: "run-5", generation: 5 };
const asking = step("pay", { sideEffects: "unsafe", settle: { kind: "shell", text: "asks" } });
const silent = step("pay", { sideEffects: "unsafe" });
const killed = record("pay", { state: "running", attempt: 2, commandPrint: "c" });

function plan(changed?: Change): PlannedStep {
  return decideUnclear(asking, killed, { changed, ...RUN });
}

const HAPPENED: SettleAnswer = {
  kind: "happened",
  artifacts: { kind: "good", artifacts: [left("pay", "receipt")] },
};

describe("an unclear step", () => {
  test("is asked about where it has settle, and waits for a person where not", () => {
    const { record: next, ...asked } = plan();
    expect(next).toMatchObject({ state: "interrupted", because: "watchdog-killed", ...RUN });
    expect(asked).toMatchObject({ todo: "settle", endsAttempt: true, isChanged: true });
    const unknown = decideUnclear(silent, killed, { changed: undefined, ...RUN });
    expect(unknown.todo).toBe("person");
    expect(unknown.record).toMatchObject({
      state: "unknown",
      because: "no-settle",
      detail: "its watchdog was killed while it ran",
    });
  });

  test("that was interrupted in this run keeps its reason", () => {
    const ended = record("pay", { state: "interrupted", because: "timeout" });
    const asked = decideUnclear(asking, ended, { changed: undefined, ...RUN });
    expect([asked.record.because, asked.endsAttempt, asked.isChanged]).toEqual([
      "timeout",
      false,
      false,
    ]);
    const unknown = decideUnclear(silent, ended, { changed: undefined, ...RUN });
    expect(unknown.record.detail).toBe("its time limit ended it");
  });
});

describe("settle", () => {
  test.each([
    [{ kind: "exited", code: 0 }, "happened"],
    [{ kind: "exited", code: 1 }, "not-happened"],
    [{ kind: "exited", code: 2 }, "unclear"],
    [{ kind: "exited", code: 127 }, "unclear"],
    [{ kind: "signaled", signal: 1 }, "unclear"],
    [{ kind: "timed-out" }, "unclear"],
    [{ kind: "not-started", because: "not-found" }, "unclear"],
  ] as const)("that ended as %j says %s", (end, answer) => {
    expect(readSettleEnd(end)).toBe(answer);
  });

  test("that says it has happened makes the step done, with what it has left", () => {
    const settled = decideSettled(plan(), HAPPENED);
    expect(settled.record).toMatchObject({ state: "done", because: "settled-happened" });
    expect(settled.record).toMatchObject({ attempt: 2, commandPrint: "c" });
    expect([settled.todo, settled.artifacts]).toEqual(["nothing", [left("pay", "receipt")]]);
  });

  test("that says it has happened does not, where its artifacts or what it does are others", () => {
    const missing: SettleAnswer = {
      kind: "happened",
      artifacts: { kind: "bad", because: "artifact-missing", detail: "receipt: is not there" },
    };
    const unknown = decideSettled(plan(), missing);
    expect(unknown.todo).toBe("person");
    expect(unknown.artifacts).toBeUndefined();
    expect(unknown.record).toMatchObject({
      state: "unknown",
      because: "artifact-missing",
      detail: "receipt: is not there",
    });
    const changed = { because: "definition-changed", detail: null } as const;
    expect(decideSettled(plan(changed), HAPPENED).record).toMatchObject({
      state: "unknown",
      because: "definition-changed",
    });
  });

  test("that says it has not lets it run again, changed or not, over nothing old", () => {
    const changed = { because: "needs-changed", detail: null } as const;
    for (const planned of [plan(), plan(changed)]) {
      const settled = decideSettled(planned, { kind: "not-happened" });
      expect(settled.record).toMatchObject({ state: "pending", because: "settled-not-happened" });
      expect([settled.todo, settled.removesArtifacts]).toEqual(["run", true]);
    }
  });

  test("that cannot tell leaves it to a person", () => {
    const settled = decideSettled(plan(), { kind: "unclear", detail: "it ended with 7" });
    expect(settled.todo).toBe("person");
    expect(settled.record).toMatchObject({
      state: "unknown",
      because: "settle-unclear",
      detail: "it ended with 7",
    });
  });
});

describe("a failed step", () => {
  test.each<[StepReason, number | null, boolean]>([
    ["exited", 1, true],
    ["exited", 128, true],
    ["exited", 129, false],
    ["exited", 192, false],
    ["exited", 193, true],
    ["exited", 0, false],
    ["exited", null, false],
    ["not-found", 127, true],
    ["not-executable", 126, true],
    ["not-started", null, true],
    ["settled-not-happened", null, true],
    ["killed-by-signal", null, false],
    ["timeout", null, false],
    ["artifact-missing", 0, false],
    ["run-failed", null, false],
    ["accepted-fail", null, false],
    ["watchdog-killed", null, false],
  ])("because %s with %p has said itself that it did nothing: %p", (because, exitCode, said) => {
    expect(hasSaidSo(record("pay", { state: "failed", because, exitCode }))).toBe(said);
  });

  test("of which settle says at once that it has not happened may be tried again", () => {
    const end: StepEnd = { kind: "timed-out" };
    const ended = (attempts: number) => ({
      end,
      isStopped: false,
      sideEffects: "unsafe" as const,
      artifacts: undefined,
      backoff: { ...step("pay").backoff, maxAttempts: 2 },
      attempts: { startedAt: 0 as MonotonicAt, attempts, waits: 0 },
    });
    const chance = { nowMs: 1 as MonotonicAt, random: 0 };
    const words = { because: "settled-not-happened", status: 124 };
    expect(decideNotHappened(ended(1), chance)).toMatchObject({ kind: "retry", ...words });
    expect(decideNotHappened(ended(2), chance)).toMatchObject({ kind: "failed", ...words });
  });
});
