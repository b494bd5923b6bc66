/** What `watchdog job plan` tells a person and a program. */
import { describe, expect, test } from "bun:test";
import { jobPlanFields } from "../../../src/cli/job-fields.ts";
import { readJobText } from "../../../src/cli/load-job.ts";
import { stepsToTell, type ToldStep } from "../../../src/cli/plan-steps.ts";
import { describePlanReason, renderJobPlan } from "../../../src/cli/render-job.ts";
import { showPlan } from "../../../src/cli/show-job.ts";
import { type PlannedStep, UNTOUCHED } from "../../../src/core/job-plan.ts";
import type { StepRecord } from "../../../src/core/step-record.ts";
import { STEP_REASONS } from "../../../src/core/step-reasons.ts";
import { DONE, JOB_TEXT, pathsOf, stepOf } from "../../support/job-views.ts";

const PLANNED: readonly PlannedStep[] = [
  { ...UNTOUCHED, record: stepOf("dump", DONE), because: "exited", isChanged: false },
  {
    ...UNTOUCHED,
    record: stepOf("pack", { state: "pending", because: "artifact-changed", detail: "p differs" }),
    because: "artifact-changed",
    isChanged: true,
    todo: "run",
    removesArtifacts: true,
  },
  {
    ...UNTOUCHED,
    record: stepOf("pay", { state: "interrupted", because: "watchdog-killed" }),
    because: "watchdog-killed",
    isChanged: true,
    todo: "settle",
  },
  { ...UNTOUCHED, record: stepOf("clean", {}), because: "not-begun", isChanged: true, todo: "run" },
];

function told(step: PlannedStep): ToldStep {
  return { ...step, blockedBy: [] };
}

describe("job plan", () => {
  test("tells of each step what would be done, and why", () => {
    const steps = PLANNED.map(told);
    const plan = { name: "nightly", kind: "resume", isHeld: false, steps, missing: [] } as const;
    const text = renderJobPlan(plan);
    expect(text.split("\n")).toEqual([
      "job nightly  would go on with the unfinished job: 2 of 4 steps to run",
      "  dump   stays done",
      "  pack   runs        p differs; what it has left is removed first",
      "  pay    is asked    its watchdog was killed while it ran; its settle command says " +
        "whether it has happened",
      "  clean  runs        it was never begun",
      "",
    ]);
    const none = renderJobPlan({ ...plan, name: "n", kind: "begin", steps: [] });
    expect(none).toBe("job n  would begin a new job: 0 of 0 steps to run\n");
  });

  test("names what is missing, as the reason of a step and below all of them", () => {
    const [dump = PLANNED[0]!] = PLANNED;
    const record = stepOf("dump", { detail: "dtaa" });
    const steps = [told({ ...dump, record, because: "input-missing", todo: "run" })];
    const missing = ["step dump: its input dtaa\n is not there"];
    const text = renderJobPlan({ name: "n", kind: "begin", isHeld: false, steps, missing });
    expect(text.split("\n").slice(1, 3)).toEqual([
      "  dump  runs  an input is not there: dtaa",
      "  step dump: its input dtaa\\n is not there",
    ]);
  });

  test("of a job that runs it says so, and what would be if it were killed", () => {
    const plan = { name: "n", isHeld: true, steps: PLANNED.map(told), missing: [] } as const;
    const [first, second] = renderJobPlan({ ...plan, kind: "resume" }).split("\n");
    expect(first).toBe("job n  runs now: job run would be refused now (75)");
    expect(second).toBe(
      "were its watchdog killed at this moment, job run would go on with the unfinished job: " +
        "2 of 4 steps to run",
    );
    expect(renderJobPlan({ ...plan, kind: "begin" })).toContain("when it is free, job run would b");
  });

  test("never says of a step that it runs while it needs one that waits for a person", () => {
    const job = readJobText(JOB_TEXT, "/n.yaml");
    if (job.kind !== "job") throw new Error("refused");
    const tell = (pay: Partial<PlannedStep>, state: StepRecord["state"]) => {
      const record = stepOf("pay", { state, because: "no-settle" });
      const planned = PLANNED.with(2, {
        ...UNTOUCHED,
        ...pay,
        record,
        because: null,
        isChanged: true,
      });
      const steps = stepsToTell(planned, job.spec.steps, { only: undefined });
      const [head = "", ...rows] = renderJobPlan({
        name: "n",
        kind: "resume",
        isHeld: false,
        steps,
        missing: [],
      })
        .trimEnd()
        .split("\n");
      return [head.slice(-19), rows.at(-1)];
    };
    const blocked = "  clean  blocked     waits for pay";
    expect(tell({ todo: "person" }, "unknown")).toEqual(["1 of 4 steps to run", blocked]);
    expect(tell({ todo: "nothing" }, "failed")[1]).toBe("  clean  blocked       waits for pay");
    // What may come to its end blocks nothing.
    expect(tell({ todo: "settle" }, "unknown")[1]).toStartWith("  clean  runs ");
    expect(tell({ todo: "run" }, "pending")[1]).toStartWith("  clean  runs ");
    expect(tell({ todo: "nothing" }, "done")[1]).toStartWith("  clean  runs ");
  });

  test("with --only begins nothing else, and removes nothing of a step that leaves nothing", () => {
    const steps = readJobText(JOB_TEXT, "/n.yaml");
    if (steps.kind !== "job") throw new Error("refused");
    const failed = stepOf("clean", { state: "pending", because: "exited", attempt: 1 });
    const planned = PLANNED.with(3, {
      ...UNTOUCHED,
      record: failed,
      because: "exited",
      isChanged: true,
      todo: "run",
      removesArtifacts: true,
    });
    const told = (only: string | undefined) => {
      const told = stepsToTell(planned, steps.spec.steps, { only });
      const plan = { name: "n", kind: "resume", isHeld: false, steps: told, missing: [] } as const;
      return renderJobPlan(plan).split("\n").slice(2);
    };
    expect(told(undefined)).toEqual([
      "  pack   runs        p differs; what it has left is removed first",
      expect.stringMatching(/^ {2}pay {4}is asked /),
      "  clean  runs        its command has failed",
      "",
    ]);
    expect(told("pack").at(-2)).toStartWith("  clean  stays pending");
    expect(told("clean").slice(0, 1)).toEqual([expect.stringMatching(/pack {3}stays pending/)]);
    expect(told("clean").at(-2)).toBe("  clean  runs           its command has failed");
  });

  test("has words for every reason", () => {
    for (const because of Object.keys(STEP_REASONS)) {
      expect(describePlanReason(because as keyof typeof STEP_REASONS)).not.toBe(because);
    }
    expect(describePlanReason("never-done")).toBe("no earlier job has done it");
  });
});

test("in JSON it has each field that is told of it, and no other", () => {
  const steps = PLANNED.map(told);
  const plan = { name: "nightly", kind: "resume", isHeld: false, steps, missing: [] } as const;
  const shown = showPlan({ ...plan, troubles: [] });
  expect(pathsOf(shown)).toEqual(new Set([...Object.keys(jobPlanFields()), "format", "troubles"]));
});
