/** How a job looks to a person, and what it asks. */
import { describe, expect, test } from "bun:test";
import type { SideEffects } from "../../../src/core/job-spec.ts";
import { type ViewedJob, viewOfJob } from "../../../src/core/job-view.ts";
import type { JobRecord, StepRecord } from "../../../src/core/step-record.ts";
import { known, record, step } from "../../support/job-specs.ts";

const STEPS = [
  step("tell", { needs: ["upload"] }),
  step("upload", { needs: ["pack"], sideEffects: "unsafe" }),
  step("pack"),
  step("other"),
];

type States = Readonly<Record<string, Partial<StepRecord>>>;

function view(states: States, more: Partial<ViewedJob> & { job?: Partial<JobRecord> } = {}) {
  const steps = Object.entries(states).map(([name, state]) => record(name, state));
  const { job, ...rest } = more;
  return viewOfJob({
    record: known(steps, [], job),
    because: null,
    isLive: false,
    steps: STEPS,
    startedAs: new Map<string, SideEffects>(),
    ...rest,
  });
}

const wordsOf = (seen: ReturnType<typeof view>): string[] =>
  seen.steps.map(({ step: name, word, blockedBy }) => [name, word, ...blockedBy].join(" "));

const DONE = { state: "done", because: "exited" } as const;
const RUNNING = { state: "running", attempt: 1 } as const;

describe("a step that the journal calls running", () => {
  //
  test("is interrupted where nobody lives who could run it, and so is its job", () => {
    const seen = view({ pack: RUNNING });
    expect(seen.word).toBe("interrupted-can-resume");
    expect(wordsOf(seen)).toEqual([
      "pack interrupted",
      "upload pending",
      "tell pending",
      "other pending",
    ]);
    expect(seen.questions).toEqual([]);
    expect(seen.resume).toBe("watchdog job resume /srv/job/nightly.yaml");
  });

  test("runs where somebody lives, and nothing is asked", () => {
    const seen = view({ pack: DONE, upload: RUNNING }, { isLive: true });
    expect(seen.word).toBe("running");
    expect(wordsOf(seen)[1]).toBe("upload running");
    expect([seen.questions, seen.resume]).toEqual([[], undefined]);
  });
});

describe("a job that was begun for one step alone", () => {
  const over = { because: "only-over" };

  test("is over with it, and can be gone on with by who asks for that", () => {
    const seen = view({ pack: DONE }, { ...over, job: { state: "interrupted" } });
    expect([seen.word, seen.isOver]).toEqual(["over", true]);
    expect(seen.resume).toBe("watchdog job resume /srv/job/nightly.yaml");
    const failed = view({ pack: { state: "failed" } }, { ...over, job: { state: "failed" } });
    expect([failed.word, failed.isOver]).toEqual(["failed", true]);
  });

  test("is not where somebody goes on with it, or where it was begun for all", () => {
    const seen = view({ pack: RUNNING }, { ...over, isLive: true });
    expect([seen.word, seen.isOver]).toEqual(["running", false]);
    const all = view({ pack: DONE }, { because: "only-done", job: { state: "interrupted" } });
    expect([all.word, all.isOver]).toEqual(["interrupted", false]);
  });
});

describe("a person is asked", () => {
  test("about a step of which nobody knows, with lines to paste", () => {
    const unknown = { state: "unknown", because: "no-settle", detail: "it was killed" } as const;
    const seen = view({ pack: DONE, upload: unknown }, { job: { state: "unknown" } });
    expect(wordsOf(seen)).toEqual([
      "pack done",
      "upload unknown",
      "tell blocked upload",
      "other pending",
    ]);
    const line = "watchdog job resume /srv/job/nightly.yaml --accept-unknown upload=";
    expect(seen.questions).toEqual([
      {
        step: "upload",
        why: "nobody can tell whether it has happened: it was killed",
        answers: [
          { accepted: "retry", command: `${line}retry` },
          { accepted: "done", command: `${line}done` },
          { accepted: "fail", command: `${line}fail` },
        ],
      },
    ]);
  });

  test("at once about an unsafe one that was killed, but not where settle will be asked", () => {
    const states = { pack: DONE, upload: RUNNING };
    const seen = view(states);
    expect(seen.questions.map(({ step: name }) => name)).toEqual(["upload"]);
    expect(wordsOf(seen).slice(1, 3)).toEqual(["upload interrupted", "tell blocked upload"]);
    const settle = { kind: "shell", text: "asks" } as const;
    const steps = STEPS.map((each) => (each.name === "upload" ? { ...each, settle } : each));
    expect(view(states, { steps }).questions).toEqual([]);
    const unknown = { ...states, upload: { state: "unknown" } } as const;
    expect(view(unknown, { steps }).questions).toHaveLength(1);
  });

  test("about one that was unsafe when it was started, whatever the file says now", () => {
    const startedAs = new Map<string, SideEffects>([["pack", "unsafe"]]);
    expect(view({ pack: RUNNING }, { startedAs }).questions).toHaveLength(1);
    expect(
      view({ pack: { ...RUNNING, state: "failed", exitCode: 7, because: "exited" } }, { startedAs })
        .questions,
    ).toEqual([]);
  });

  test("nothing that the command line would not know: a step that the file no longer has", () => {
    const seen = view({ gone: { state: "unknown" }, pack: DONE });
    expect(wordsOf(seen).at(-1)).toBe("gone removed");
    expect(seen.questions).toMatchObject([{ step: "gone", answers: [] }]);
  });

  test("nothing of a job that is done", () => {
    const seen = view({ pack: DONE }, { job: { state: "done" } });
    expect([seen.word, seen.questions, seen.resume]).toEqual(["done", [], undefined]);
  });
});

describe("a step is blocked", () => {
  test("by what has failed before it, through however many others, three named at most", () => {
    const names = ["a", "b", "c", "d", "e"];
    const steps = [
      ...names.map((name) => step(name)),
      step("next", { needs: names }),
      step("last", { needs: ["next"] }),
    ];
    const failed = Object.fromEntries(names.map((name) => [name, { state: "failed" } as const]));
    const words = wordsOf(view(failed, { steps })).slice(-2);
    expect(words).toEqual(["next blocked a b c", "last blocked a b c"]);
    expect(wordsOf(view({ a: { state: "failed" } }, { steps })).slice(-2)).toEqual([
      "next blocked a",
      "last blocked a",
    ]);
  });

  test("by nobody whom one can see where the file cannot be read", () => {
    const states = { tell: {}, upload: { state: "failed" } } as const;
    expect(wordsOf(view(states, { steps: undefined }))).toEqual(["tell pending", "upload failed"]);
    const cycle = [step("tell", { needs: ["upload"] }), step("upload", { needs: ["tell"] })];
    expect(wordsOf(view(states, { steps: cycle }))).toEqual(["tell pending", "upload failed"]);
  });
});

test("a path that cannot be pasted gives no line to paste", () => {
  const seen = view({ upload: { state: "unknown" } }, { job: { file: "/srv/a\nb.yaml" } });
  expect(seen.resume).toBeUndefined();
  expect(seen.questions[0]?.answers[0]).toEqual({ accepted: "retry", command: undefined });
});
