/** The JSON Schema of job files: it says of a file what the reader says of its shape. */

import { describe, expect, test } from "bun:test";
import { answerJobSchema } from "../../../src/cli/answer-job.ts";
import { jsonSchemaOfJob, OWN_STEP_KEYS, STEP_KEYS } from "../../../src/cli/job-schema.ts";
import { readShape } from "../../../src/cli/job-shape.ts";
import { STEP_ROWS, wordsOfStep } from "../../../src/cli/step-options.ts";
import { RUN_COMMAND } from "../../../src/cli/options-table.ts";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { misfitsOf } from "../../support/json-schema.ts";

const SCHEMA = jsonSchemaOfJob() as Record<string, unknown>;

const job = (step: object, others: object = {}) => ({ name: "j", steps: { a: step }, ...others });
const step = (others: object = {}) => ({ command: "x", side_effects: "none", ...others });

const RIGHT: readonly unknown[] = [
  job(step()),
  job(step(), { $schema: "x", max_parallel: 4, env: { A: "1", B: null } }),
  job(step(), { env: ["A=1", "B"] }),
  job({ command: ["x", "y"], needs: ["b"], artifacts: ["o:min=1KiB"], inputs: [], timeout: 5 }),
  job(step({ retries: 2, backoff: "1s..30s" })),
  job(step({ retries: 2, backoff: { initial: 1, cap: "5s", factor: 1.5 } })),
  job(step({ settle: ["x"], cwd: "y", kill_after: "5s" })),
  job(step({ probe: "tcp://db:1", expect_match: ["a", "b"], success_exit_codes: [0, 2] })),
  job(step({ quiet: true, success_exit_codes: "0,2", max_consecutive_fails: 4 })),
  { name: "j", steps: {} },
];

const WRONG: readonly unknown[] = [
  null,
  [],
  {},
  { name: "j" },
  { name: 5, steps: {} },
  { name: "j", steps: [] },
  job(step(), { max_parallel: 0 }),
  job(step(), { max_parallel: 257 }),
  job(step(), { max_parallel: 1.5 }),
  job(step(), { env: { A: 1 } }),
  job(step(), { stepz: {} }),
  job({}),
  job({ command: [] }),
  job({ command: "x", side_effects: "some" }),
  job(step({ needs: "b" })),
  job(step({ retries: -1 })),
  job(step({ retries: 1001 })),
  job(step({ backoff: { first: 1 } })),
  job(step({ timeout: true })),
  job(step({ quiet: "on" })),
  job(step({ expect_match: [] })),
  job(step({ success_exit_codes: ["0"] })),
  job(step({ lane: "gpu" })),
];

describe("the schema for editors", () => {
  test.each(RIGHT.map((value) => [value]))("lets pass what the reader does: %j", (value) => {
    expect(misfitsOf(SCHEMA, value)).toEqual([]);
    expect(readShape(value).kind).toBe("shape");
  });

  test.each(WRONG.map((value) => [value]))("refuses what the reader does: %j", (value) => {
    expect(misfitsOf(SCHEMA, value)).not.toEqual([]);
    expect(readShape(value).kind).toBe("refused");
  });

  test("is what watchdog job schema prints, of draft 7", () => {
    const { text, lines, code } = answerJobSchema();
    expect({ lines, code }).toEqual({ lines: [], code: 0 });
    expect(JSON.parse(text ?? "")).toEqual(SCHEMA);
    expect(SCHEMA["$schema"]).toBe("http://json-schema.org/draft-07/schema#");
  });

  test("says of each key of a step what it is for", () => {
    const { steps } = SCHEMA["properties"] as {
      steps: { additionalProperties: { properties: Record<string, { description?: string }> } };
    };
    const { properties } = steps.additionalProperties;
    expect(Object.keys(properties)).toEqual([...STEP_KEYS]);
    const undescribed = Object.keys(properties).filter(
      (key) => (properties[key]?.description ?? "") === "" && key !== "env",
    );
    expect(undescribed).toEqual([]);
  });
});

describe("options of watchdog run in a step", () => {
  test("are a closed list, so that a new option of run is looked over before a step has it", () => {
    const others = STEP_KEYS.filter(
      (key) => !key.startsWith("probe") && !OWN_STEP_KEYS.includes(key),
    );
    expect(others).toEqual([
      "idle_timeout",
      "idle_cpu",
      "idle_io",
      "not_after",
      "signal",
      "leftovers",
      "ready_probe",
      "on_open",
      "on_unready",
      "count_paused",
      "expect_file",
      "expect_output",
      "expect_match",
      "fail_match",
      "min_duration",
      "strict",
      "max_fail_rate",
      "max_consecutive_fails",
      "log",
      "log_max",
      "quiet",
      "success_exit_codes",
    ]);
  });

  test("are given to the nested run as they stand, with what looks like an option too", () => {
    const options = new Map([
      ["expect_match", ["--x", "a b"]],
      ["quiet", ["on"]],
      ["strict", ["off"]],
    ]);
    const words = wordsOfStep(options);
    expect(words).toEqual(["--expect-match=--x", "--expect-match=a b", "--quiet"]);
    const cut = cutCommandLine(["run", ...words, "--", "true"], {});
    expect(cut).toMatchObject({
      options: { expectMatches: ["--x", "a b"], isQuiet: true, isStrict: false },
    });
  });

  test("each have an example that a nested run takes", () => {
    for (const [name, row] of STEP_ROWS) {
      expect(RUN_COMMAND.rows).toContain(row);
      const isAmongProbes = /^(?:probe_|on_|count_)/.test(name);
      const words = wordsOfStep(new Map([[name, [row.example]]]));
      expect(words).toHaveLength(1);
      if (isAmongProbes) continue; // they need a probe that fits
      expect(cutCommandLine(["run", ...words, "--", "true"], {}).kind).toBe("run");
    }
  });
});
