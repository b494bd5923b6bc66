/** Steps of a job as tests of what is shown of them have them, and the paths in an answer. */
import { firstRecord } from "../../src/core/job-plan.ts";
import type { StepRecord } from "../../src/core/step-record.ts";

export const BEGUN = Date.UTC(2026, 10, 30, 2);
export const RUN_ID = "01900000-0000-7000-8000-000000000001";

/** Of four steps, one of them unsafe. */
export const JOB_TEXT = `name: nightly
steps:
  dump: { command: x, artifacts: [d] }
  pack: { command: x, artifacts: [p], needs: [dump] }
  pay: { command: x, side_effects: unsafe, needs: [pack] }
  clean: { command: x, side_effects: none, needs: [pay] }
`;

export function stepOf(step: string, changes: Partial<StepRecord>): StepRecord {
  return { ...firstRecord(step), ...changes };
}

export const DONE: Partial<StepRecord> = {
  state: "done",
  because: "exited",
  attempt: 1,
  generation: 7,
  runId: RUN_ID,
  startedAt: BEGUN,
  endedAt: BEGUN + 3_000,
  exitCode: 0,
};

/** `steps[].step`. */
export function pathsOf(value: unknown, prefix = ""): Set<string> {
  if (Array.isArray(value)) {
    return new Set(value.flatMap((item) => [...pathsOf(item, `${prefix}[]`)]));
  }
  if (typeof value !== "object" || value === null) return new Set();
  return new Set(
    Object.entries(value).flatMap(([key, own]) => {
      const path = prefix === "" ? key : `${prefix}.${key}`;
      return [path, ...pathsOf(own, path)];
    }),
  );
}
