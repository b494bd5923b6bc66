/** What becomes of the other steps where one is named: alone, or to run again. */
import { describe, expect, test } from "bun:test";
import type { AskedOfJob } from "../../../src/core/job-asked.ts";
import type { StepFacts } from "../../../src/core/job-facts.ts";
import { decideResume } from "../../../src/core/job-resume.ts";
import type { StepSpec } from "../../../src/core/job-spec.ts";
import type { StepRecord } from "../../../src/core/step-record.ts";
import { artifact, ask, jobOf, known, left, record, step } from "../../support/job-specs.ts";

const STEPS: readonly StepSpec[] = [
  step("dump", { artifacts: [artifact("out/app.db")] }),
  step("pack", { needs: ["dump"], artifacts: [artifact("out/app.zst")] }),
  step("upload", { needs: ["pack"], sideEffects: "unsafe" }),
  step("tidy", { needs: ["dump"] }),
  step("other", { sideEffects: "unsafe", settle: { kind: "shell", text: "ask" } }),
];
const LEFT = [left("dump", "out/app.db"), left("pack", "out/app.zst")];
const DONE: Partial<StepRecord> = { state: "done", because: "exited", attempt: 1, exitCode: 0 };
const END = { exitCode: 7, startedAt: 1, endedAt: 2, attempt: 2 } as const;
const SAME: StepFacts = {
  commandPrint: "command",
  inputPrint: { kind: "undeclared" },
  verified: { kind: "same" },
  present: undefined,
  earlier: undefined,
};

function decide(
  records: readonly StepRecord[],
  asked: Partial<AskedOfJob>,
  facts: Readonly<Record<string, Partial<StepFacts>>> = {},
) {
  return decideResume({
    spec: jobOf(STEPS),
    known: known(records, LEFT),
    asked: ask(asked),
    facts: new Map(STEPS.map(({ name }) => [name, { ...SAME, ...facts[name] }])),
    startedAs: new Map([["other", "unsafe"]]),
    run: { runId: "run-5", generation: 5 },
  });
}

describe("--only one step", () => {
  /** `dump` is done and `tidy` can run. */
  const alone = (
    pack: Partial<StepRecord>,
    other: Partial<StepRecord>,
    facts: Readonly<Record<string, Partial<StepFacts>>> = {},
  ) => {
    const records = [
      record("dump", DONE),
      record("pack", pack),
      record("upload"),
      record("tidy", { state: "failed", because: "exited", ...END }),
      record("other", other),
    ];
    const decision = decide(records, { only: "tidy" }, facts);
    if (decision.kind !== "resume") throw new Error(`it is ${decision.kind}`);
    const before = new Map(records.map((one) => [one.step, one]));
    return decision.steps.map(({ record: now, todo, isChanged, changed, endsAttempt }) => {
      const isKept = now === before.get(now.step) && !isChanged;
      const doubt = changed === undefined ? "" : ` but ${changed.because}`;
      const end = endsAttempt ? " ended" : "";
      return `${now.step}: ${isKept ? "kept" : now.because} ${now.state} ${todo}${doubt}${end}`;
    });
  };
  const tidyRuns = "tidy: exited pending run";

  test("leaves the others as they are: nothing is sent back, and nobody is asked", () => {
    expect(alone({ state: "failed", because: "exited", ...END }, { state: "unknown" })).toEqual([
      "dump: kept done nothing",
      "pack: kept failed nothing",
      "upload: kept pending nothing",
      tidyRuns,
      "other: kept unknown person",
    ]);
    const stopped = { state: "interrupted", because: "stopped", ...END } as const;
    const both = alone(stopped, stopped);
    expect(both).toContain("pack: kept interrupted nothing");
    expect(both).toContain("other: kept interrupted nothing");
  });

  test("calls those that ran interrupted, and asks about none", () => {
    const ran = { state: "running", ...END } as const;
    const both = alone(ran, ran);
    expect(both).toContain("pack: watchdog-killed interrupted nothing ended");
    expect(both).toContain("other: watchdog-killed interrupted nothing ended");
  });

  test("tells of one that is done and no longer as it was left, and keeps it", () => {
    const gone = { verified: { kind: "other", detail: "out/app.zst: is gone" } } as const;
    expect(alone(DONE, {}, { pack: gone })).toContain(
      "pack: kept done nothing but artifact-changed",
    );
  });

  test("sends back what was made of it, where it was done and is made anew", () => {
    const names = ["dump", "pack", "upload", "tidy"];
    const all = [...names.map((name) => record(name, DONE)), record("other")];
    const decision = decide(all, { only: "dump", redo: ["dump"] });
    if (decision.kind !== "resume") throw new Error(`it is ${decision.kind}`);
    const states = decision.steps.map(
      ({ record: { step: name, state, because } }) => `${name}: ${state} ${because}`,
    );
    expect(states).toEqual([
      "dump: pending asked",
      "pack: pending needs-changed",
      "upload: unknown needs-changed",
      "tidy: pending needs-changed",
      "other: pending null",
    ]);
  });
});

describe("a step to run again", () => {
  test("--redo and --from of one of which nobody knows whether it has happened", () => {
    const named = (upload: Partial<StepRecord>, more: Partial<AskedOfJob>) => {
      const all = [record("dump", DONE), record("pack", DONE), record("upload", upload)];
      const decision = decide(all, more);
      return decision.kind === "refused" ? `refused ${decision.because}` : decision.kind;
    };
    const refused = "refused undecided-named";
    const stopped = { state: "interrupted", because: "stopped" } as const;
    expect(named({ state: "unknown" }, { redo: ["upload"] })).toBe(refused);
    expect(named({ state: "unknown" }, { from: "upload" })).toBe(refused);
    expect(named(stopped, { redo: ["upload"] })).toBe(refused);
    expect(named({ state: "running" }, { redo: ["upload"] })).toBe(refused);
    // Its command has said so by its status, or a person has.
    for (const because of ["exited", "accepted-fail"] as const) {
      const failed = { state: "failed", because, exitCode: 1 } as const;
      expect(named(failed, { redo: ["upload"] })).toBe("resume");
    }
    expect(named({ state: "unknown" }, { redo: ["pack"] })).toBe("resume");
  });
});
