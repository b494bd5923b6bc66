/**
 * What is wrong with a job although each of its words can be read: names that nobody has, needs in
 * a circle, artifacts that two steps would write or that removing would destroy. Pure.
 *
 * Always: all that is wrong is told, of cycles the first one; a job without a finding has an order
 * (core/job-graph.ts), each artifact of it belongs to one step, and no step removes what it reads.
 */
import { ArtifactOwners, listAbove, ownersOf, pathWithin } from "./artifact-owners.ts";
import { NeedsFinder, orderSteps } from "./job-graph.ts";
import { type JobSpec, MOST_STEPS, type StepSpec } from "./job-spec.ts";
import { unprintable } from "./printable.ts";

export type JobFindingReason =
  | "no-steps"
  | "too-many-steps"
  | "step-name"
  | "duplicate-step"
  | "unknown-need"
  | "duplicate-need"
  | "cycle"
  | "artifact-outside"
  | "artifact-not-plain"
  | "duplicate-artifact"
  | "artifact-inside-artifact"
  | "artifact-holds-job-file"
  /** It would be removed before the step that reads it runs again. */
  | "artifact-is-input"
  /** It is written by a step that may run at the same time, or afterwards. */
  | "input-not-needed"
  | "settle-without-unsafe";

/** Keys from the top of the file; a number counts in a list. Steps are keys of `steps`. */
export type JobPlace = readonly (string | number)[];

export interface JobFinding {
  readonly because: JobFindingReason;
  readonly place: JobPlace;
  /** The name or path that is refused. */
  readonly subject: string;
  /** Two clauses: `found …, expected …`. */
  readonly found: string;
  readonly expected: string;
}

/** As a person looks for it: `steps.pack.needs[1]`. */
export function textOfPlace(place: JobPlace): string {
  const parts = place.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`));
  return parts.join("").replace(/^\./, "");
}

export const LONGEST_STEP_NAME = 80;

export function checkJob(spec: JobSpec): readonly JobFinding[] {
  const { steps } = spec;
  return [
    ...checkCount(steps),
    ...steps.flatMap(checkName),
    ...checkDuplicates(steps),
    ...checkNeeds(steps),
    ...checkCycle(steps),
    ...steps.flatMap((step) => checkPaths(step, spec)),
    ...checkOwners(steps),
    ...checkInputs(spec),
    ...steps.flatMap(checkSettle),
  ];
}

function checkCount(steps: readonly StepSpec[]): JobFinding[] {
  const tell = (because: JobFindingReason, expected: string): JobFinding[] => [
    { because, place: ["steps"], subject: "steps", found: `${steps.length} steps`, expected },
  ];
  if (steps.length === 0) return tell("no-steps", "at least one");
  return steps.length > MOST_STEPS ? tell("too-many-steps", `${MOST_STEPS} at most`) : [];
}

/** What stands behind a flag (`STEP=retry`) or in a line of text must be told apart there. */
function checkName({ name }: StepSpec): JobFinding[] {
  const isGood =
    name.length <= LONGEST_STEP_NAME &&
    /^[^-\s=,/@#][^\s=,/@#]*$/u.test(name) &&
    !unprintable().test(name);
  if (isGood) return [];
  return [
    {
      because: "step-name",
      place: ["steps", name],
      subject: name,
      found: name === "" ? "an empty name" : `the name ${JSON.stringify(name)}`,
      expected: `1 to ${LONGEST_STEP_NAME} characters without blanks and = , / @ #, no - in front`,
    },
  ];
}

function checkDuplicates(steps: readonly StepSpec[]): JobFinding[] {
  const seen = new Set<string>();
  return steps.flatMap(({ name }) => {
    const isSecond = seen.has(name);
    seen.add(name);
    if (!isSecond) return [];
    const found = `a second step ${name}`;
    const place = ["steps", name];
    return [{ because: "duplicate-step", place, subject: name, found, expected: "one" }];
  });
}

function checkNeeds(steps: readonly StepSpec[]): JobFinding[] {
  const names = new Set(steps.map(({ name }) => name));
  return steps.flatMap((step) => {
    const seen = new Set<string>();
    return step.needs.flatMap((need, index): JobFinding[] => {
      const isSecond = seen.has(need);
      seen.add(need);
      const at = { place: ["steps", step.name, "needs", index], subject: need };
      if (!names.has(need)) {
        const found = `a need of ${need}`;
        return [{ because: "unknown-need", ...at, found, expected: "the name of a step" }];
      }
      if (!isSecond) return [];
      return [{ because: "duplicate-need", ...at, found: `${need} again`, expected: "it once" }];
    });
  });
}

function checkCycle(steps: readonly StepSpec[]): JobFinding[] {
  const order = orderSteps(steps);
  if (order.kind === "ordered") return [];
  const [first = "", second = ""] = order.path;
  const index = steps.find(({ name }) => name === first)?.needs.indexOf(second) ?? 0;
  return [
    {
      because: "cycle",
      place: ["steps", first, "needs", index],
      subject: second,
      found: `a circle: ${order.path.join(" needs ")}`,
      expected: "steps that can be put in an order",
    },
  ];
}

/** Each artifact for itself. */
function checkPaths(step: StepSpec, { file, directory }: JobSpec): JobFinding[] {
  const jobFile = pathWithin(directory, file);
  return step.artifacts.flatMap(({ path }, index): JobFinding[] => {
    const at = { place: placeOfArtifact(step, index), subject: path };
    const parts = path.split("/");
    if (path.startsWith("/") || parts.includes("..")) {
      const expected = "a path below the job's directory";
      return [{ because: "artifact-outside", ...at, found: `the path ${path}`, expected }];
    }
    if (parts.includes("") || parts.includes(".") || path.includes("\0")) {
      const found = path === "" ? "an empty path" : `the path ${path}`;
      const expected = "one below the job's directory, without . and without empty parts";
      return [{ because: "artifact-not-plain", ...at, found, expected }];
    }
    if (!isWithin(jobFile, path)) return [];
    const found = `${path}, where the job's own file lies`;
    const expected = "what the step makes alone: artifacts are removed before it runs again";
    return [{ because: "artifact-holds-job-file", ...at, found, expected }];
  });
}

function placeOfArtifact({ name }: StepSpec, index: number): JobPlace {
  return ["steps", name, "artifacts", index];
}

/** A step may name a directory and files in it; two steps may not share anything. */
function checkOwners(steps: readonly StepSpec[]): JobFinding[] {
  const owners = ownersOf(steps);
  const seen = new Set<string>();
  return steps.flatMap((step) =>
    step.artifacts.flatMap(({ path }, index): JobFinding[] => {
      const at = { place: placeOfArtifact(step, index), subject: path };
      const isSecond = seen.has(path);
      seen.add(path);
      if (isSecond) {
        const found = `${path} again, which step ${owners.get(path)?.name} names`;
        return [{ because: "duplicate-artifact", ...at, found, expected: "it once in the file" }];
      }
      const above = listAbove(path).find((other) => isOfAnother(owners.get(other), step));
      if (above === undefined) return [];
      const found = `${path} inside ${above}, an artifact of step ${owners.get(above)?.name}`;
      const expected = "artifacts that belong to one step each";
      return [{ because: "artifact-inside-artifact", ...at, found, expected }];
    }),
  );
}

function isOfAnother(owner: StepSpec | undefined, step: StepSpec): boolean {
  return owner !== undefined && owner.name !== step.name;
}

/**
 * A step must not read what it writes: it would never be unchanged, and what it reads would be
 * removed. What another one writes it must need, or it reads now the old and now the new.
 */
function checkInputs({ steps, directory }: JobSpec): JobFinding[] {
  const owners = new ArtifactOwners(steps);
  const needs = new NeedsFinder(steps);
  return steps.flatMap((step) => {
    return (step.inputs ?? []).flatMap((input, index): JobFinding[] => {
      const writers = owners.writersOf(pathWithin(directory, input));
      const at = { place: ["steps", step.name, "inputs", index], subject: input };
      if (writers.has(step)) {
        const found = `the input ${input}, which is an artifact of the step, is in one or has one`;
        const expected = "inputs that it does not write itself";
        return [{ because: "artifact-is-input", ...at, found, expected }];
      }
      const writer = writers.find(({ name }) => !needs.has(step.name, name));
      if (writer === undefined) return [];
      const found = `the input ${input}, which step ${writer.name} writes`;
      const expected = `a need of ${writer.name}`;
      return [{ because: "input-not-needed", ...at, found, expected }];
    });
  });
}

function isWithin(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}/`);
}

function checkSettle({ name, sideEffects, settle }: StepSpec): JobFinding[] {
  if (settle === undefined || sideEffects === "unsafe") return [];
  return [
    {
      because: "settle-without-unsafe",
      place: ["steps", name, "settle"],
      subject: "settle",
      found: "settle at a step whose side effects are none",
      expected: "side_effects: unsafe beside it, or no settle: such a step just runs again",
    },
  ];
}
