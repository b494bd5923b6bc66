/**
 * What becomes of one step of a job that is gone on with: every state that the journal may have of
 * it, with all that may have changed and all that a person may say, against a table written by
 * hand. Exactly one line fits each case.
 */
import { expect, test } from "bun:test";
import type { AskedOfJob } from "../../src/core/job-asked.ts";
import type { ResumeFacts, StepFacts } from "../../src/core/job-facts.ts";
import { decideResume } from "../../src/core/job-resume.ts";
import type { SideEffects } from "../../src/core/job-spec.ts";
import type { StepRecord } from "../../src/core/step-record.ts";
import { artifact, ask, jobOf, known, left, record, step } from "../support/job-specs.ts";
import { combine, compareTable, parseTable } from "../support/word-tables.ts";

/**
 * `then`, `now`: the side effects when it was started and in the file. What follows: state, reason,
 * what is to be done, whether what it has left is removed. `any-other`: any change at all.
 */
const TABLE = `
state    then   now    settle change   asked   follows
pending  *      *      *      *        nothing pending null run keeps
sentback *      *      *      *        nothing pending inputs-changed run removes
running  none   none   *      *        nothing pending watchdog-killed run removes
running  *      unsafe yes    *        nothing interrupted watchdog-killed settle keeps
running  unsafe none   yes    *        nothing interrupted watchdog-killed settle keeps
running  *      unsafe no     *        nothing unknown no-settle person keeps
running  unsafe none   no     *        nothing unknown no-settle person keeps
stopped  none   none   *      *        nothing pending stopped run removes
stopped  *      unsafe yes    *        nothing interrupted stopped settle keeps
stopped  unsafe none   yes    *        nothing interrupted stopped settle keeps
stopped  *      unsafe no     *        nothing unknown no-settle person keeps
stopped  unsafe none   no     *        nothing unknown no-settle person keeps
done     *      *      *      nothing  nothing done exited nothing keeps
done     none   none   *      artifact nothing pending artifact-changed run removes
done     *      unsafe *      artifact nothing unknown artifact-changed person keeps
done     unsafe none   *      artifact nothing unknown artifact-changed person keeps
done     none   none   *      unlooked nothing pending artifact-changed run removes
done     *      unsafe *      unlooked nothing unknown artifact-changed person keeps
done     unsafe none   *      unlooked nothing unknown artifact-changed person keeps
done     none   none   *      command  nothing pending definition-changed run removes
done     *      unsafe *      command  nothing unknown definition-changed person keeps
done     unsafe none   *      command  nothing unknown definition-changed person keeps
done     none   none   *      output   nothing pending definition-changed run removes
done     *      unsafe *      output   nothing unknown definition-changed person keeps
done     unsafe none   *      output   nothing unknown definition-changed person keeps
done     none   none   *      inputs   nothing pending inputs-changed run removes
done     *      unsafe *      inputs   nothing unknown inputs-changed person keeps
done     unsafe none   *      inputs   nothing unknown inputs-changed person keeps
done     none   none   *      unread   nothing pending inputs-changed run removes
done     *      unsafe *      unread   nothing unknown inputs-changed person keeps
done     unsafe none   *      unread   nothing unknown inputs-changed person keeps
done     none   none   *      missing  nothing pending input-missing run removes
done     *      unsafe *      missing  nothing unknown input-missing person keeps
done     unsafe none   *      missing  nothing unknown input-missing person keeps
done     none   none   *      need     nothing pending needs-changed run removes
done     *      unsafe *      need     nothing unknown needs-changed person keeps
done     unsafe none   *      need     nothing unknown needs-changed person keeps
status   *      *      *      *        nothing pending exited run removes
nothere  *      *      *      *        nothing pending not-found run removes
settled  *      *      *      *        nothing pending settled-not-happened run removes
death    none   none   *      *        nothing pending exited run removes
death    *      unsafe yes    *        nothing interrupted exited settle keeps
death    unsafe none   yes    *        nothing interrupted exited settle keeps
death    *      unsafe no     *        nothing unknown no-settle person keeps
death    unsafe none   no     *        nothing unknown no-settle person keeps
noresult none   none   *      *        nothing pending artifact-missing run removes
noresult *      unsafe yes    *        nothing interrupted artifact-missing settle keeps
noresult unsafe none   yes    *        nothing interrupted artifact-missing settle keeps
noresult *      unsafe no     *        nothing unknown no-settle person keeps
noresult unsafe none   no     *        nothing unknown no-settle person keeps
limit    none   none   *      *        nothing pending timeout run removes
limit    *      unsafe yes    *        nothing interrupted timeout settle keeps
limit    unsafe none   yes    *        nothing interrupted timeout settle keeps
limit    *      unsafe no     *        nothing unknown no-settle person keeps
limit    unsafe none   no     *        nothing unknown no-settle person keeps
refused  *      *      *      *        nothing failed accepted-fail nothing keeps
unknown  *      *      *      *        nothing unknown no-settle person keeps
unknown  *      *      *      *        redo    refused undecided-named
running|stopped|death|noresult|limit none none * * redo pending asked run removes
running|stopped|death|noresult|limit * unsafe * * redo refused undecided-named
running|stopped|death|noresult|limit unsafe none * * redo refused undecided-named
pending|sentback|done|status|nothere|settled|refused * * * * redo pending asked run removes
unknown  *      *      *      *        retry   pending accepted-retry run removes
unknown  *      *      *      *        fail    failed accepted-fail nothing keeps
unknown  *      *      *      *        done    done accepted-done nothing keeps
done     *      *      *      nothing  retry|fail|done refused nothing-to-decide
pending|sentback|status|nothere|settled|refused * * * * retry|fail|done refused nothing-to-decide
running|stopped|death|noresult|limit none none * * retry|fail|done refused nothing-to-decide
running|stopped|death|noresult|limit * unsafe * * retry pending accepted-retry run removes
running|stopped|death|noresult|limit * unsafe * * fail failed accepted-fail nothing keeps
running|stopped|death|noresult|limit * unsafe * * done done accepted-done nothing keeps
running|stopped|death|noresult|limit unsafe none * * retry pending accepted-retry run removes
running|stopped|death|noresult|limit unsafe none * * fail failed accepted-fail nothing keeps
running|stopped|death|noresult|limit unsafe none * * done done accepted-done nothing keeps
done none none * any-other retry|fail|done refused nothing-to-decide
done * unsafe * any-other retry pending accepted-retry run removes
done * unsafe * any-other fail failed accepted-fail nothing keeps
done * unsafe * any-other done done accepted-done nothing keeps
done unsafe none * any-other retry pending accepted-retry run removes
done unsafe none * any-other fail failed accepted-fail nothing keeps
done unsafe none * any-other done done accepted-done nothing keeps
`;

const PRINTS = { commandPrint: "command", inputPrint: "inputs" };
const STARTED: Partial<StepRecord> = { attempt: 1, ...PRINTS };

const STATES: Readonly<Record<string, Partial<StepRecord>>> = {
  pending: {},
  sentback: { ...STARTED, because: "inputs-changed" },
  running: { ...STARTED, state: "running" },
  stopped: { ...STARTED, state: "interrupted", because: "stopped" },
  done: { ...STARTED, state: "done", because: "exited", exitCode: 0 },
  status: { ...STARTED, state: "failed", because: "exited", exitCode: 7 },
  nothere: { ...STARTED, state: "failed", because: "not-found", exitCode: 127 },
  settled: { ...STARTED, state: "failed", because: "settled-not-happened" },
  death: { ...STARTED, state: "failed", because: "exited", exitCode: 137 },
  noresult: { ...STARTED, state: "failed", because: "artifact-missing", exitCode: 0 },
  limit: { ...STARTED, state: "failed", because: "timeout" },
  refused: { ...STARTED, state: "failed", because: "accepted-fail" },
  unknown: { ...STARTED, state: "unknown", because: "no-settle" },
};

const SAME: StepFacts = {
  commandPrint: "command",
  inputPrint: { kind: "known", print: "inputs" },
  verified: { kind: "same" },
  present: { kind: "good", artifacts: [left("pay", "receipt")] },
  earlier: undefined,
};

const CHANGES: Readonly<Record<string, Partial<StepFacts>>> = {
  nothing: {},
  artifact: { verified: { kind: "other", detail: "receipt: is gone" } },
  unlooked: { verified: { kind: "unchecked" } },
  command: { commandPrint: "another" },
  output: {},
  inputs: { inputPrint: { kind: "known", print: "others" } },
  unread: { inputPrint: { kind: "unread", detail: "EACCES" } },
  missing: { inputPrint: { kind: "missing", print: "inputs", detail: "prices" } },
  need: {},
};

const ANY_CHANGE = Object.keys(CHANGES)
  .filter((change) => change !== "nothing")
  .join("|");

const ASKED: Readonly<Record<string, Partial<AskedOfJob>>> = {
  nothing: {},
  redo: { redo: ["pay"] },
  retry: { accepted: new Map([["pay", "retry"]]) },
  fail: { accepted: new Map([["pay", "fail"]]) },
  done: { accepted: new Map([["pay", "done"]]) },
};

/** Under load: a hundred times as long as it takes. */
const LIMIT_MS = 120_000;

const COLUMNS = [
  Object.keys(STATES),
  ["none", "unsafe"],
  ["none", "unsafe"],
  ["yes", "no"],
  Object.keys(CHANGES),
  Object.keys(ASKED),
];

function factsOf(words: readonly string[]): ResumeFacts {
  const [state = "", then = "", now = "", settle, change = "", asked = ""] = words;
  const outputs = change === "output" ? ["receipt", "list"] : ["receipt"];
  const pay = step("pay", {
    needs: ["pack"],
    artifacts: outputs.map((path) => artifact(path)),
    inputs: ["prices"],
    sideEffects: now as SideEffects,
    settle: settle === "yes" ? { kind: "shell", text: "asks" } : undefined,
  });
  const pack = record("pack", change === "need" ? {} : { ...STATES["done"] });
  const isDone = state === "done";
  return {
    spec: jobOf([pay, step("pack")]),
    known: known([record("pay", STATES[state]), pack], isDone ? [left("pay", "receipt")] : []),
    asked: ask(ASKED[asked]),
    facts: new Map([
      ["pay", { ...SAME, ...CHANGES[change] }],
      ["pack", { ...SAME, inputPrint: { kind: "undeclared" } }],
    ]),
    startedAs: new Map([["pay", then as SideEffects]]),
    run: { runId: "run-5", generation: 5 },
  };
}

function decide(words: readonly string[]): string {
  const decision = decideResume(factsOf(words));
  if (decision.kind === "refused") return `refused ${decision.because}`;
  const planned = decision.steps.find(({ record }) => record.step === "pay");
  if (planned === undefined) return "nothing was planned";
  const { record, todo } = planned;
  const removed = planned.removesArtifacts ? "removes" : "keeps";
  return `${record.state} ${record.because} ${todo} ${removed}`;
}

test(
  "what becomes of a step in every state is what the table says",
  () => {
    const cases = combine(COLUMNS);
    const { wrong, unused } = compareTable(
      parseTable(TABLE.replaceAll("any-other", ANY_CHANGE)),
      cases,
      decide,
    );
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(unused).toEqual([]);
    expect(cases).toHaveLength(13 * 2 * 2 * 2 * 9 * 5);
  },
  LIMIT_MS,
);

test(
  "what is written is of this run, and nothing is written that stays as it is",
  () => {
    for (const words of combine(COLUMNS)) {
      const facts = factsOf(words);
      const decision = decideResume(facts);
      if (decision.kind === "refused") continue;
      for (const { record: next, isChanged, endsAttempt } of decision.steps) {
        const before = facts.known?.steps.find((each) => each.step === next.step);
        expect(endsAttempt).toBe(before?.state === "running");
        if (!isChanged) expect(next).toEqual(before ?? record(""));
        else expect([next.runId, next.generation]).toEqual(["run-5", 5]);
      }
    }
  },
  LIMIT_MS,
);
