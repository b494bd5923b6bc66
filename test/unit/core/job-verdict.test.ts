/** What the runner of a job has told: half of it, or that of somebody else, is no verdict. */
import { describe, expect, test } from "bun:test";
import { type JobVerdict, parseVerdict, renderVerdict } from "../../../src/core/job-verdict.ts";

const STEPS = {
  job_id: "01900000-0000-7000-8000-000000000002",
  total: 3,
  done: 2,
  unchanged: 1,
  failed: ["pay"],
  unknown: [],
};
const VERDICT: JobVerdict = {
  outcome: "failed",
  because: "step-failed",
  statusOf: "command",
  status: 7,
  steps: STEPS,
};

test.each([VERDICT, { ...VERDICT, steps: null }, { ...VERDICT, status: 255 }])(
  "a verdict is read as it was told",
  (verdict) => {
    expect(parseVerdict(renderVerdict(verdict))).toEqual(verdict);
  },
);

test("no part of one that was not written to its end is one", () => {
  const text = renderVerdict(VERDICT);
  const parts = [...text].map((_, length) => text.slice(0, length));
  expect(parts.filter((part) => parseVerdict(part) !== undefined)).toEqual([]);
});

test("of very many steps by their names the first twenty are told, and the number of all", () => {
  const failed = Array.from({ length: 1000 }, (_, place) => `step-${place}`);
  const steps = { ...STEPS, total: 1000, failed, unknown: failed };
  const told = parseVerdict(renderVerdict({ ...VERDICT, steps }))?.steps;
  const named = failed.slice(0, 20);
  expect(told).toEqual({ ...steps, failed: named, unknown: named });
});

describe("nothing is believed of a text", () => {
  test.each<[string, unknown]>([
    ["that is an order", { spec: { steps: [] }, asked: {} }],
    ["that is no object", [VERDICT]],
    ["with an outcome that nobody knows", { ...VERDICT, outcome: "fine" }],
    ["with an outcome that no job has", { ...VERDICT, outcome: "locked" }],
    ["without a reason", { ...VERDICT, because: null }],
    ["with a status that no process has", { ...VERDICT, status: 256 }],
    ["with a status that is no number", { ...VERDICT, status: "7" }],
    ["with a status of nobody", { ...VERDICT, statusOf: "step" }],
    ["without its steps", { ...VERDICT, steps: undefined }],
    ["with steps that are a number", { ...VERDICT, steps: 3 }],
    ["with steps that cannot be counted", { ...VERDICT, steps: { ...STEPS, done: -1 } }],
    ["with steps whose names are none", { ...VERDICT, steps: { ...STEPS, failed: [7] } }],
    ["with steps of a job without an id", { ...VERDICT, steps: { ...STEPS, job_id: 7 } }],
  ])("%s", (_, value) => {
    expect(parseVerdict(JSON.stringify(value))).toBeUndefined();
  });
});
