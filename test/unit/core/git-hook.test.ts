/** Whether git may go on: for each verdict, from inside the recorded run and from outside. */
import { describe, expect, test } from "bun:test";
import { decideGitHook } from "../../../src/core/git-hook.ts";
import type { Verdict, VerdictName } from "../../../src/core/lease-verdict.ts";
import { sampleRecord } from "../../support/lease-samples.ts";
import { sampleView } from "../../support/lease-views.ts";

const RUN = "01930000-0000-7000-8000-00000000000a";
const INNER = "01930000-0000-7000-8000-00000000000b";
const OTHER = "01930000-0000-7000-8000-00000000000c";
const OUTSIDE = { runPath: undefined, leases: undefined, generations: undefined };
const INSIDE = { runPath: RUN, leases: "job%3Abackup", generations: "7" };

const BECAUSE: Readonly<Record<VerdictName, Verdict["because"]>> = {
  free: "released",
  held: "beat-fresh",
  stalled: "beat-old",
  orphaned: "members",
  dead: "tree-empty",
  elsewhere: "other-machine",
  unknowable: "lock-replaced",
};

function decide(
  name: VerdictName,
  environment: Parameters<typeof decideGitHook>[0],
  changes: { record?: Parameters<typeof sampleRecord>[0]; because?: Verdict["because"] } = {},
) {
  const record = sampleRecord({ run_id: RUN, ...changes.record });
  const { evidence } = sampleView({ record });
  const verdict = { name, rule: "R2", because: changes.because ?? BECAUSE[name] } as const;
  return decideGitHook(environment, { evidence, verdict });
}

describe("from outside of every run", () => {
  test.each([
    ["free", "allow", "nobody"],
    ["dead", "allow", "nobody"],
    ["held", "refuse", "held"],
    ["stalled", "refuse", "held"],
    ["orphaned", "refuse", "survivors"],
    ["elsewhere", "refuse", "elsewhere"],
    ["unknowable", "refuse", "unknowable"],
  ] as const)("a key that is %s: %s", (name, kind, because) => {
    expect(decide(name, OUTSIDE)).toEqual({ kind, because } as ReturnType<typeof decide>);
  });

  test("a key that is just being acquired is refused as one that may soon be told", () => {
    const decided = decide("held", OUTSIDE, { because: "being-acquired" });
    expect(decided).toEqual({ kind: "refuse", because: "being-acquired" });
  });
});

describe("from inside the run that holds the key", () => {
  test("git goes on, also while it is stalled or survived by its tree", () => {
    for (const name of ["held", "stalled", "orphaned"] as const) {
      expect(decide(name, INSIDE)).toEqual({ kind: "allow", because: "inside" });
    }
  });

  test("and from a run within it, which has other leases or none", () => {
    for (const leases of [undefined, "job%3Ainner"]) {
      const generations = leases === undefined ? undefined : "3";
      const nested = { runPath: `${RUN}/${INNER}`, leases, generations };
      expect(decide("held", nested)).toEqual({ kind: "allow", because: "inside" });
    }
  });

  test("it does not where the record is not that of the run, its number or its key", () => {
    const refused = { kind: "refuse", because: "held" } as const;
    expect(decide("held", { ...INSIDE, runPath: OTHER })).toEqual(refused);
    expect(decide("held", { ...INSIDE, generations: "6" })).toEqual(refused);
    expect(decide("held", { ...INSIDE, generations: undefined })).toEqual(refused);
    expect(decide("held", INSIDE, { record: { run_id: OTHER } })).toEqual(refused);
    expect(decide("held", INSIDE, { record: { generation: 8 } })).toEqual(refused);
    expect(decide("held", INSIDE, { record: { name: "another" } })).toEqual(refused);
    expect(decide("held", INSIDE, { record: { state: "released" } })).toEqual(refused);
  });

  test("it does not where nothing is proven about the owner", () => {
    for (const name of ["elsewhere", "unknowable"] as const) {
      expect(decide(name, INSIDE)).toEqual({ kind: "refuse", because: name });
    }
  });

  test("it does not without a record", () => {
    const { evidence } = sampleView({ record: undefined });
    const verdict = { name: "held", rule: "R2", because: "beat-fresh" } as const;
    expect(decideGitHook(INSIDE, { evidence, verdict }).kind).toBe("refuse");
  });
});
