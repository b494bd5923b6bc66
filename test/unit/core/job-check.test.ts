/** What is wrong with a job: each fault alone with its place, and the same job without it. */
import { describe, expect, test } from "bun:test";
import { checkAsked } from "../../../src/core/job-asked.ts";
import { checkJob, textOfPlace } from "../../../src/core/job-check.ts";
import { type JobSpec, MOST_STEPS, type StepSpec } from "../../../src/core/job-spec.ts";
import { artifact, ask, jobOf, step } from "../../support/job-specs.ts";

/** `place: reason` of each finding. */
function find(steps: readonly StepSpec[], more: Partial<JobSpec> = {}): string[] {
  return checkJob(jobOf(steps, more)).map(
    ({ place, because }) => `${textOfPlace(place)}: ${because}`,
  );
}

const writes = (...paths: string[]): Partial<StepSpec> => ({
  artifacts: paths.map((path) => artifact(path)),
});

describe("a job without a fault", () => {
  test("is one whose steps need each other across, and share no artifact", () => {
    const steps = [
      step("clean", { needs: ["upload", "dump"], sideEffects: "unsafe" }),
      step("dump", { inputs: ["app.db"], ...writes("out/app.db") }),
      step("pack", { needs: ["dump"], inputs: ["out/app.db"], ...writes("out/app.db.zst") }),
      step("upload", {
        needs: ["pack"],
        inputs: ["out"],
        sideEffects: "unsafe",
        settle: { kind: "shell", text: "asks" },
      }),
    ];
    expect(find(steps)).toEqual([]);
  });

  test("may have a step that names a directory, and files in it with bounds of their own", () => {
    expect(find([step("a", writes("out", "out/list", "out/deep/er"))])).toEqual([]);
    expect(find([step("a", writes("out/a")), step("b", writes("out/ab", "out/a.b"))])).toEqual([]);
  });
});

describe("names and needs", () => {
  test("there is at least one step, and not more than there may be", () => {
    const many = Array.from({ length: MOST_STEPS + 1 }, (_, index) => step(`s${index}`));
    expect(find([])).toEqual(["steps: no-steps"]);
    expect(find(many)).toEqual(["steps: too-many-steps"]);
    expect(find(many.slice(1))).toEqual([]);
  });

  test.each(["", "-x", "a b", "a=b", "a,b", "a/b", "a@b", "a#b", "a\nb", "\u202e", "x".repeat(81)])(
    "a step is not called %j",
    (name) => {
      expect(find([step(name)])).toEqual([`steps.${name}: step-name`]);
    },
  );

  test.each(["a", "0", "a-b.c_d", "übergabe", "a:b", "x".repeat(80)])(
    "a step may be called %j",
    (name) => {
      expect(find([step(name)])).toEqual([]);
    },
  );

  test("two steps of one name, and a need that is no step or is named twice, are told", () => {
    expect(find([step("a"), step("b"), step("a")])).toEqual(["steps.a: duplicate-step"]);
    const needs = ["a", "c", "a"];
    expect(find([step("a"), step("b", { needs })])).toEqual([
      "steps.b.needs[1]: unknown-need",
      "steps.b.needs[2]: duplicate-need",
    ]);
  });

  test("a cycle is told at the first step in the file that is in it, with the whole way", () => {
    const steps = [
      step("out", { needs: ["b"] }),
      step("b", { needs: ["in", "c"] }),
      step("c", { needs: ["d"] }),
      step("d", { needs: ["b"] }),
      step("in"),
    ];
    const [finding, ...others] = checkJob(jobOf(steps));
    expect(others).toEqual([]);
    expect(textOfPlace(finding?.place ?? [])).toBe("steps.b.needs[1]");
    expect(finding?.found).toBe("a circle: b needs c needs d needs b");
    expect(find([step("a", { needs: ["a"] })])).toEqual(["steps.a.needs[0]: cycle"]);
  });

  test("settle belongs to a step with unsafe side effects", () => {
    const settle = { kind: "shell", text: "asks" } as const;
    expect(find([step("a", { settle })])).toEqual(["steps.a.settle: settle-without-unsafe"]);
    expect(find([step("a", { settle, sideEffects: "unsafe" })])).toEqual([]);
  });
});

describe("artifacts", () => {
  test.each(["/etc/passwd", "../x", "a/../../x", ".."])("may not be at %j", (path) => {
    expect(find([step("a", writes("b", path))])).toEqual([
      "steps.a.artifacts[1]: artifact-outside",
    ]);
  });

  test.each(["", ".", "./a", "a//b", "a/", "a/./b", "a\0b"])("are not written as %j", (path) => {
    expect(find([step("a", writes(path))])).toEqual(["steps.a.artifacts[0]: artifact-not-plain"]);
  });

  test("belong to one step: neither the same path nor one inside another's", () => {
    const one = step("a", writes("out/x"));
    expect(find([one, step("b", writes("out/x"))])).toEqual([
      "steps.b.artifacts[0]: duplicate-artifact",
    ]);
    expect(find([step("a", writes("x", "x"))])).toEqual([
      "steps.a.artifacts[1]: duplicate-artifact",
    ]);
    const inside = ["steps.a.artifacts[0]: artifact-inside-artifact"];
    expect(find([one, step("b", writes("out"))])).toEqual(inside);
    expect(find([step("b", writes("out")), one])).toEqual(inside);
  });

  test("do not hold the job's own file, which would be removed with them", () => {
    const more = { file: "/srv/job/jobs/nightly.yaml" };
    const reason = "steps.a.artifacts[0]: artifact-holds-job-file";
    expect(find([step("a", writes("jobs/nightly.yaml"))], more)).toEqual([reason]);
    expect(find([step("a", writes("jobs"))], more)).toEqual([reason]);
    expect(find([step("a", writes("jobs/nightly.yaml.zst"))], more)).toEqual([]);
  });
});

describe("inputs", () => {
  test.each([
    ["out/x", "out/x"],
    ["out/x/y", "out/x"],
    ["out", "out/x"],
    [".", "out/x"],
    ["/srv/job/out/x", "out/x"],
    ["/srv/job", "out/x"],
  ])("are not written by the step itself: %j beside %j", (input, output) => {
    const one = step("a", { inputs: ["b", input], ...writes(output) });
    expect(find([one])).toEqual(["steps.a.inputs[1]: artifact-is-input"]);
    expect(find([{ ...one, artifacts: [artifact(`${output}-2`)], inputs: ["b"] }])).toEqual([]);
  });

  test("that another step writes are read by steps that need it, directly or not", () => {
    const steps = (needs: readonly string[]): StepSpec[] => [
      step("a", writes("out/x")),
      step("b", { needs: ["a"] }),
      step("c", { needs, inputs: ["out"] }),
    ];
    expect(find(steps([]))).toEqual(["steps.c.inputs[0]: input-not-needed"]);
    expect(find(steps(["a"]))).toEqual([]);
    expect(find(steps(["b"]))).toEqual([]);
  });
});

describe("what is asked of a job", () => {
  const steps = [step("a"), step("b")];

  test.each([
    ["--from x: unknown-step", { from: "x" }],
    ["--only x: unknown-step", { only: "x" }],
    ["--redo x: unknown-step", { redo: ["a", "x"] }],
    ["--accept-unknown x: unknown-step", { accepted: new Map([["x", "retry"]] as const) }],
    ["--from --only: from-with-only", { from: "a", only: "b" }],
    [
      "--accept-unknown --fresh: accept-with-fresh",
      { isFresh: true, accepted: new Map([["a", "done"]] as const) },
    ],
    ["--fresh resume: resume-with-fresh", { isFresh: true, verb: "resume" as const }],
    [
      "--redo a: redo-with-accept",
      { redo: ["a", "a"], accepted: new Map([["a", "done"]] as const) },
    ],
  ])("%s is told, and nothing else", (expected, more) => {
    const found = checkAsked(steps, ask(more));
    expect(found.map(({ flag, subject, because }) => `${flag} ${subject}: ${because}`)).toEqual([
      expected,
    ]);
  });

  test("anything that names steps there are, and says one thing of each, is fine", () => {
    const accepted = new Map([["b", "retry"]] as const);
    expect(checkAsked(steps, ask())).toEqual([]);
    expect(checkAsked(steps, ask({ from: "a", redo: ["a", "a"], accepted }))).toEqual([]);
    expect(checkAsked(steps, ask({ isFresh: true, only: "b", redo: ["a"] }))).toEqual([]);
  });
});
