/** What of the words of a job file a step would look for in vain, and what may still come. */
import { expect, test } from "bun:test";
import { listMissing, type Sights } from "../../../src/core/job-missing.ts";
import { artifact, jobOf, step } from "../../support/job-specs.ts";

const make = step("make", { artifacts: [artifact("out/made"), artifact("tree")] });
const between = step("between", { needs: ["make"] });
const read = step("read", {
  needs: ["between"],
  inputs: ["out/made", "tree/leaf", "out", "typo"],
  cwd: "work",
});
const alone = step("alone", { inputs: ["there"], cwd: "nowhere" });

function list(sights: Partial<Sights> = {}, steps = [make, between, read, alone]): string[] {
  const missing = listMissing(jobOf(steps), {
    isInputMissing: (path) => path !== "there",
    isDirectoryMissing: ({ cwd }) => cwd !== undefined,
    willWrite: () => true,
    willRun: () => true,
    ...sights,
  });
  return missing.map(({ step: { name }, input }) => `${name} ${input ?? "directory"}`);
}

test("what a step before will still leave is not missing, by whichever way it is needed", () => {
  expect(list()).toEqual(["read typo", "alone directory"]);
});

test("what the step before has not left although it is over is missing", () => {
  const willWrite: Sights["willWrite"] = ({ name }) => name !== "make";
  expect(list({ willWrite })).toEqual([
    "read out/made",
    "read tree/leaf",
    "read out",
    "read typo",
    "alone directory",
  ]);
});

test("a directory may come as long as any step before it runs, its artifact or not", () => {
  expect(list({ willRun: ({ name }) => name === "make" })).not.toContain("read directory");
  // Itself and one that it does not need make nothing for it.
  expect(list({ willRun: ({ name }) => name === "read" || name === "alone" })).toEqual([
    "read directory",
    "read typo",
    "alone directory",
  ]);
});

test("what is there is not named, and no directory of a step that names none", () => {
  const isThere = { isInputMissing: () => false, isDirectoryMissing: () => false };
  expect(list(isThere)).toEqual([]);
  expect(list({}, [step("plain")])).toEqual([]);
});
