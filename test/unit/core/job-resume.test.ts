/** How a job begins or is gone on with: several steps together, and what is refused. */
import { describe, expect, test } from "bun:test";
import { listLooks } from "../../../src/core/job-facts.ts";
import type { EarlierStep, ResumeFacts, StepFacts } from "../../../src/core/job-facts.ts";
import { decideResume } from "../../../src/core/job-resume.ts";
import type { StepSpec } from "../../../src/core/job-spec.ts";
import type { StepRecord } from "../../../src/core/step-record.ts";
import { artifact, ask, jobOf, known, left, record, step } from "../../support/job-specs.ts";

const dump = step("dump", { inputs: ["app.db"], artifacts: [artifact("out/app.db")] });
const pack = step("pack", { needs: ["dump"], inputs: [], artifacts: [artifact("out/app.zst")] });
const upload = step("upload", { needs: ["pack"], sideEffects: "unsafe" });
const tidy = step("tidy", { needs: ["dump"], inputs: [] });
const STEPS: readonly StepSpec[] = [upload, pack, dump, tidy];

const DONE: Partial<StepRecord> = {
  state: "done",
  because: "exited",
  attempt: 1,
  commandPrint: "command",
  inputPrint: "inputs",
  exitCode: 0,
};

const FACTS: StepFacts = {
  commandPrint: "command",
  inputPrint: { kind: "known", print: "inputs" },
  verified: { kind: "same" },
  present: undefined,
  earlier: undefined,
};

const LEFT = [left("dump", "out/app.db"), left("pack", "out/app.zst")];

/** All steps are done in the last job, or in this one. */
function doneBefore(name: string): EarlierStep {
  const artifacts = LEFT.filter((each) => each.step === name);
  const inputPrint = name === "upload" ? null : "inputs";
  return { record: record(name, { ...DONE, inputPrint }), artifacts };
}

function gather(more: Partial<ResumeFacts>, facts: Record<string, Partial<StepFacts>> = {}) {
  const spec = jobOf(STEPS);
  return {
    spec,
    known: undefined,
    asked: ask(),
    facts: new Map(
      spec.steps.map(({ name, inputs }) => {
        const inputPrint =
          inputs === undefined ? { kind: "undeclared" as const } : FACTS.inputPrint;
        return [name, { ...FACTS, inputPrint, ...facts[name] }];
      }),
    ),
    startedAs: new Map(),
    run: { runId: "run-5", generation: 5 },
    ...more,
  } satisfies ResumeFacts;
}

/** `step: state reason` of each step in order, or what is refused. */
function decide(facts: ResumeFacts): readonly string[] {
  const decision = decideResume(facts);
  if (decision.kind === "refused") {
    const steps = decision.steps.map(({ step: name, because }) => `${name} ${because}`);
    return [`refused ${decision.because}`, ...steps];
  }
  return decision.steps.map(
    ({ record: { step: name, state }, because }) => `${name}: ${state} ${because}`,
  );
}

const EARLIER = Object.fromEntries(
  ["dump", "pack", "upload", "tidy"].map((name) => [name, { earlier: doneBefore(name) }]),
);

describe("a job that is begun", () => {
  test("runs everything where no earlier job has done it, in the order of the needs", () => {
    expect(decide(gather({}))).toEqual([
      "dump: pending never-done",
      "pack: pending never-done",
      "upload: pending never-done",
      "tidy: pending never-done",
    ]);
  });

  test("takes over what is unchanged, with its artifacts, and runs what says no inputs", () => {
    const facts = gather({}, EARLIER);
    expect(decide(facts)).toEqual([
      "dump: done unchanged",
      "pack: done unchanged",
      "upload: pending inputs-undeclared",
      "tidy: done unchanged",
    ]);
    const decision = decideResume(facts);
    if (decision.kind !== "begin") throw new Error("it was not begun");
    const [first] = decision.steps;
    expect(first?.artifacts).toEqual([left("dump", "out/app.db")]);
    expect(first?.record).toEqual(
      record("dump", {
        ...DONE,
        because: "unchanged",
        attempt: 0,
        exitCode: null,
        runId: "run-5",
        generation: 5,
      }),
    );
  });

  test("runs what has changed and what needs that, and leaves old artifacts in place", () => {
    const other = { verified: { kind: "other", detail: "out/app.zst: is gone" } } as const;
    const facts = gather({}, { ...EARLIER, pack: { ...EARLIER["pack"], ...other } });
    expect(decide(facts)).toEqual([
      "dump: done unchanged",
      "pack: pending artifact-changed",
      "upload: pending needs-changed",
      "tidy: done unchanged",
    ]);
    const decision = decideResume(facts);
    if (decision.kind !== "begin") throw new Error("it was not begun");
    expect(decision.steps.map((each) => each.removesArtifacts)).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(decision.steps[1]?.record.detail).toBe("out/app.zst: is gone");
  });

  test("does not take over what nobody has looked at, or what read nobody knows what", () => {
    const unlooked = { verified: { kind: "unchecked" } } as const;
    expect(decide(gather({}, { ...EARLIER, dump: { ...EARLIER["dump"], ...unlooked } }))[0]).toBe(
      "dump: pending artifact-changed",
    );
    const before = doneBefore("dump");
    const nobody = { ...before, record: { ...before.record, inputPrint: null } };
    expect(decide(gather({}, { ...EARLIER, dump: { earlier: nobody } }))[0]).toBe(
      "dump: pending inputs-undeclared",
    );
  });

  test("begins although one is unfinished where a person wants it fresh", () => {
    const unfinished = known([record("upload", { state: "unknown" })]);
    const facts = gather({ known: unfinished, asked: ask({ isFresh: true }) });
    expect(decideResume(facts).kind).toBe("begin");
    expect(decideResume({ ...facts, asked: ask() }).kind).toBe("resume");
    const over = known([record("upload", DONE)], [], { state: "done" });
    expect(decideResume(gather({ known: over })).kind).toBe("begin");
  });

  test("runs what has an input that is not there, whatever is stored of it", () => {
    const inputPrint = { kind: "missing", print: "inputs", detail: "app.db" } as const;
    const old = { ...doneBefore("tidy"), record: record("tidy", { ...DONE, inputPrint: null }) };
    const facts = {
      ...EARLIER,
      pack: { ...EARLIER["pack"], inputPrint },
      tidy: { inputPrint, earlier: old },
    };
    const decided = gather({}, facts);
    expect(decide(decided)).toEqual([
      "dump: done unchanged",
      "pack: pending input-missing",
      "upload: pending needs-changed",
      "tidy: pending input-missing",
    ]);
    const decision = decideResume(decided);
    if (decision.kind !== "begin") throw new Error("it was not begun");
    expect(decision.steps[1]?.record.detail).toBe("app.db");
  });

  test("--redo runs a step and what needs it", () => {
    expect(decide(gather({ asked: ask({ redo: ["pack"] }) }, EARLIER))).toEqual([
      "dump: done unchanged",
      "pack: pending asked",
      "upload: pending asked",
      "tidy: done unchanged",
    ]);
  });

  test("--from takes over what still holds, though nobody knows what it reads", () => {
    const asked = ask({ from: "tidy" });
    expect(decide(gather({ asked }, EARLIER))).toEqual([
      "dump: done unchanged",
      "pack: done unchanged",
      "upload: done asked",
      "tidy: pending asked",
    ]);
    const changed = { ...EARLIER["upload"], commandPrint: "another" };
    expect(decide(gather({ asked }, { ...EARLIER, upload: changed }))).toEqual([
      "refused not-done",
      "upload definition-changed",
    ]);
    expect(decide(gather({ asked }))).toEqual([
      "refused not-done",
      "upload never-done",
      "pack never-done",
      "dump never-done",
    ]);
  });

  test("--only asks for what the step needs, and for nothing else", () => {
    expect(decide(gather({ asked: ask({ only: "dump" }) }))).toHaveLength(4);
    expect(decide(gather({ asked: ask({ only: "pack" }) }))).toEqual([
      "refused not-done",
      "dump never-done",
    ]);
    const facts = { ...EARLIER, upload: {}, tidy: {} };
    expect(decide(gather({ asked: ask({ only: "upload" }) }, facts))).toContain(
      "upload: pending never-done",
    );
  });
});

describe("a job that is gone on with", () => {
  const allDone = known(
    ["dump", "pack", "upload", "tidy"].map((name) => doneBefore(name).record),
    LEFT,
  );
  const spoilt = { verified: { kind: "other", detail: "out/app.db: is gone" } } as const;

  test("keeps what is done and as it was left", () => {
    expect(decide(gather({ known: allDone }))).toEqual([
      "dump: done exited",
      "pack: done exited",
      "upload: done exited",
      "tidy: done exited",
    ]);
  });

  test("sends back what needs a step that is sent back, and asks about what is unsafe", () => {
    expect(decide(gather({ known: allDone }, { dump: spoilt }))).toEqual([
      "dump: pending artifact-changed",
      "pack: pending needs-changed",
      "upload: unknown needs-changed",
      "tidy: pending needs-changed",
    ]);
    expect(decide(gather({ known: allDone }, { pack: spoilt }))).toEqual([
      "dump: done exited",
      "pack: pending artifact-changed",
      "upload: unknown needs-changed",
      "tidy: done exited",
    ]);
  });

  test("of a missing input the step that is to leave it is the reason where that runs", () => {
    const inputPrint = { kind: "missing", print: "inputs", detail: "out/app.db" } as const;
    const decided = (facts: Record<string, Partial<StepFacts>>) =>
      decide(gather({ known: allDone }, { pack: { inputPrint }, ...facts }))[1];
    expect(decided({ dump: spoilt })).toBe("pack: pending needs-changed");
    expect(decided({})).toBe("pack: pending input-missing");
  });

  test("runs an unsafe step again that is named itself, not one that only depends on it", () => {
    const redo = (names: readonly string[]) =>
      decide(gather({ known: allDone, asked: ask({ redo: names }) }));
    expect(redo(["pack"])).toContain("upload: unknown needs-changed");
    expect(redo(["pack", "upload"])).toContain("upload: pending asked");
    const from = decide(gather({ known: allDone, asked: ask({ from: "upload" }) }));
    expect(from).toContain("upload: pending asked");
  });

  test("a step that is new in the file is run, and what needs it is sent back", () => {
    const steps = [step("new"), { ...dump, needs: ["new"] }, pack, upload, tidy];
    expect(decide(gather({ spec: jobOf(steps), known: allDone }))).toEqual([
      "new: pending not-begun",
      "dump: pending needs-changed",
      "pack: pending needs-changed",
      "upload: unknown needs-changed",
      "tidy: pending needs-changed",
    ]);
  });

  test("a step that a person calls done is done, and so is what needs it", () => {
    const asked = ask({ accepted: new Map([["upload", "done"]]) });
    const present = { present: { kind: "good", artifacts: [] } } as const;
    const facts = gather({ known: allDone, asked }, { pack: spoilt, upload: present });
    expect(decide(facts)).toContain("upload: done accepted-done");
    const decision = decideResume(facts);
    if (decision.kind !== "resume") throw new Error("it was not gone on with");
    const accepted = decision.steps.find((each) => each.record.step === "upload");
    // With nothing of what it read it is ever compared.
    expect([accepted?.record.commandPrint, accepted?.record.inputPrint]).toEqual(["command", null]);
  });
});

describe("refused is", () => {
  const unfinished = known([record("dump", DONE), record("pack"), record("upload")], LEFT);

  test("to resume where nothing is unfinished", () => {
    const asked = ask({ verb: "resume" });
    expect(decide(gather({ asked }))).toEqual(["refused nothing-to-resume"]);
    const over = { ...unfinished, state: "done" as const };
    expect(decide(gather({ asked, known: over }))).toEqual(["refused nothing-to-resume"]);
    expect(decideResume(gather({ asked, known: unfinished })).kind).toBe("resume");
  });

  test("to decide about a step where nothing is unfinished: it would be run from the start", () => {
    for (const as of ["retry", "done", "fail"] as const) {
      const asked = ask({ accepted: new Map([["upload", as]]) });
      const over = { ...unfinished, state: "done" as const };
      const words = [undefined, over].map((one) => decide(gather({ asked, known: one }, EARLIER)));
      expect(words.flat()).toEqual(Array(2).fill("refused nothing-to-resume"));
    }
  });

  test("to go on with the job of another file, but not to begin a fresh one", () => {
    const other = { ...unfinished, file: "/srv/other/nightly.yaml" };
    expect(decide(gather({ known: other }))).toEqual(["refused other-file"]);
    const asked = ask({ isFresh: true });
    expect(decideResume(gather({ known: other, asked })).kind).toBe("begin");
    const open = { ...other, steps: [record("pay", { state: "unknown" }), record("pack")] };
    expect(decide(gather({ known: open }))).toEqual(["refused other-file", "pay unknown"]);
  });

  test("to forget a step of which nobody knows, because the file no longer has it", () => {
    const gone = (more: Partial<StepRecord>, startedAs: ResumeFacts["startedAs"] = new Map()) =>
      decide(gather({ known: known([record("pay", more)]), startedAs }));
    expect(gone({ state: "unknown" })).toEqual(["refused undecided-removed", "pay unknown"]);
    expect(gone({ state: "running" })).toEqual(["refused undecided-removed", "pay running"]);
    const unsafe = new Map([["pay", "unsafe"]] as const);
    expect(gone({ state: "interrupted" }, unsafe)[0]).toBe("refused undecided-removed");
    expect(gone({ state: "running" }, new Map([["pay", "none"]]))).toHaveLength(4);
    expect(gone({ state: "done" })).toHaveLength(4);
  });

  test("to call a step done whose artifacts are not there, or to decide what is decided", () => {
    const missing = {
      kind: "bad",
      because: "artifact-missing",
      detail: "out/app.zst: is not there",
    } as const;
    const asked = ask({ accepted: new Map([["pack", "done"]]) });
    const doubtful = known([record("dump", DONE), record("pack", { state: "unknown" })], LEFT);
    const decision = decideResume(
      gather({ known: doubtful, asked }, { pack: { present: missing } }),
    );
    expect(decision).toEqual({
      kind: "refused",
      because: "accepted-without-artifacts",
      steps: [{ step: "pack", because: "unknown", detail: "out/app.zst: is not there" }],
    });
    expect(decide(gather({ known: unfinished, asked }))).toEqual([
      "refused nothing-to-decide",
      "pack pending",
    ]);
  });

  test("--from and --only where what must be done is not, or no longer holds", () => {
    const only = ask({ only: "upload" });
    expect(decide(gather({ known: unfinished, asked: only }))).toEqual([
      "refused not-done",
      "pack not-begun",
    ]);
    const spoilt = { verified: { kind: "unchecked" } } as const;
    expect(decide(gather({ known: unfinished, asked: ask({ only: "pack" }) }))).toHaveLength(4);
    expect(
      decide(gather({ known: unfinished, asked: ask({ from: "pack" }) }, { dump: spoilt })),
    ).toEqual(["refused not-done", "dump artifact-changed", "tidy not-begun"]);
  });
});

describe("what is looked at before", () => {
  const earlier = new Map(
    ["dump", "pack", "upload", "tidy"].map((name) => [name, doneBefore(name)]),
  );

  test("of a job that is begun are the last artifacts of what may be taken over", () => {
    const looks = listLooks(gather({}), earlier);
    const nothing = { verifies: [], wantsPresent: false, wantsInputs: false };
    expect(looks.get("dump")).toEqual({ ...nothing, verifies: [LEFT[0]!], wantsInputs: true });
    expect(looks.get("upload")).toEqual(nothing);
    const fromPack = listLooks(gather({ asked: ask({ redo: ["pack"] }) }), earlier);
    expect([fromPack.get("pack"), fromPack.get("dump")?.verifies]).toEqual([nothing, [LEFT[0]!]]);
    const only = listLooks(gather({ asked: ask({ only: "upload" }) }), new Map());
    expect(only.get("dump")).toEqual(nothing);
  });

  test("of a job that is gone on with are those of the steps that are done", () => {
    const states = [record("dump", DONE), record("pack", { state: "failed" }), record("tidy")];
    const asked = ask({ accepted: new Map([["upload", "done"]]) });
    const looks = listLooks(gather({ known: known(states, LEFT), asked }), new Map());
    const words = [...looks].map(([name, look]) => [
      name,
      look.verifies.map(({ path }) => path),
      look.wantsInputs,
      look.wantsPresent,
    ]);
    expect(words).toEqual([
      ["upload", [], false, true],
      ["pack", [], false, false],
      ["dump", ["out/app.db"], true, false],
      ["tidy", [], false, false],
    ]);
    // Whoever is run again in any case need not be looked at.
    const redo = ask({ redo: ["dump"] });
    const named = listLooks(gather({ known: known(states, LEFT), asked: redo }), new Map());
    expect(named.get("dump")).toEqual({ verifies: [], wantsPresent: false, wantsInputs: false });
  });
});
