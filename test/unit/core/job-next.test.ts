/** The machine of a job in progress: what is started when, and how the job ends. */
import { describe, expect, test } from "bun:test";
import { orderSteps, type StepNode } from "../../../src/core/job-graph.ts";
import {
  beginProgress,
  decideNextSteps,
  type JobEvent,
  type JobProgress,
  noteEvent,
  type RunAlone,
} from "../../../src/core/job-next.ts";
import type { StepRecord } from "../../../src/core/step-record.ts";
import { record } from "../../support/job-specs.ts";

const node = (name: string, ...needs: string[]): StepNode => ({ name, needs });
const DIAMOND = [
  node("end", "left", "right"),
  node("left", "top"),
  node("right", "top"),
  node("top"),
];

interface Begun extends RunAlone {
  readonly states?: Readonly<Record<string, Partial<StepRecord>>>;
}

function begin(steps: readonly StepNode[], { states = {}, ...alone }: Begun = {}): JobProgress {
  const order = orderSteps(steps);
  if (order.kind === "cycle") throw new Error("a cycle");
  const records = Object.entries(states).map(([name, more]) => [name, record(name, more)] as const);
  return beginProgress(order.steps, new Map(records), alone);
}

/** Starts what can be, until nothing is left to start. */
function start(progress: JobProgress, maxParallel = 1): [readonly string[], JobProgress] {
  const next = decideNextSteps(progress, maxParallel);
  return next.kind === "start" ? [next.steps, next.progress] : [[], progress];
}

const done = (step: string): JobEvent => ({ kind: "step-done", step });
const failed = (step: string, status = 7): JobEvent => ({ kind: "step-failed", step, status });

/** Plays a job; `ends` says how each step ends. @returns the steps in their order, and the end */
function play(
  progress: JobProgress,
  ends: (step: string) => JobEvent = done,
  maxParallel = 1,
): readonly string[] {
  const words: string[] = [];
  const running: string[] = [];
  let now = progress;
  for (;;) {
    const next = decideNextSteps(now, maxParallel);
    if (next.kind === "finish") {
      return [...words, `${next.state} ${next.because} ${next.exitStatus}`];
    }
    if (next.kind === "start") {
      now = next.progress;
      running.push(...next.steps);
      words.push(next.steps.join("+"));
      continue;
    }
    const ended = running.shift() ?? "";
    now = noteEvent(now, ends(ended));
  }
}

describe("a step without side effects that alone was stopped", () => {
  const stopped = (step: string): JobEvent => ({ kind: "step-stopped", step });
  const stopLeft = (step: string): JobEvent => (step === "left" ? stopped(step) : done(step));

  test("keeps what needs it from starting, and leaves the job unfinished", () => {
    expect(play(begin(DIAMOND), stopLeft)).toEqual([
      "top",
      "left",
      "right",
      "interrupted step-stopped 143",
    ]);
    expect(play(begin(DIAMOND, { only: "top" }), stopped)).toEqual([
      "top",
      "interrupted step-stopped 143",
    ]);
  });

  test("counts less than one that has failed, and than one of which nobody knows", () => {
    const fail = (step: string): JobEvent => (step === "right" ? failed(step) : stopLeft(step));
    expect(play(begin(DIAMOND), fail).at(-1)).toBe("failed step-failed 7");
    const wonder = (step: string): JobEvent =>
      step === "right" ? { kind: "step-unknown", step } : stopLeft(step);
    expect(play(begin(DIAMOND), wonder).at(-1)).toBe("unknown step-unknown 3");
  });
});

describe("steps are started", () => {
  test("one after the other, each behind what it needs", () => {
    expect(play(begin(DIAMOND))).toEqual(["top", "left", "right", "end", "done all-done 0"]);
  });

  test("so many at a time as may be, and the next one when one has ended", () => {
    expect(play(begin(DIAMOND), done, 2)).toEqual(["top", "left+right", "end", "done all-done 0"]);
    const five = ["a", "b", "c", "d", "e"].map((name) => node(name));
    expect(play(begin(five), done, 3)).toEqual(["a+b+c", "d", "e", "done all-done 0"]);
    const [first, running] = start(begin(five), 3);
    expect(first).toEqual(["a", "b", "c"]);
    expect(decideNextSteps(running, 3)).toEqual({ kind: "wait" });
    expect(start(noteEvent(running, done("b")), 3)[0]).toEqual(["d"]);
  });

  test("never behind one that has failed; what does not need it goes on", () => {
    const ends = (step: string): JobEvent => (step === "left" ? failed(step) : done(step));
    expect(play(begin(DIAMOND), ends)).toEqual(["top", "left", "right", "failed step-failed 7"]);
  });

  test("never after somebody has asked for the end; those that run are waited for", () => {
    const [, running] = start(begin(DIAMOND));
    const stopped = noteEvent(running, { kind: "stop-asked", signal: 15 });
    expect(decideNextSteps(stopped, 4)).toEqual({ kind: "wait" });
    expect(play(noteEvent(stopped, { kind: "step-interrupted", step: "top" }))).toEqual([
      "interrupted stop-asked 143",
    ]);
    const again = noteEvent(stopped, { kind: "stop-asked", signal: 2 });
    expect(play(noteEvent(again, done("top")))).toEqual(["interrupted stop-asked 143"]);
  });

  test("where the journal calls all they need done, and not where they are done", () => {
    const states = { top: { state: "done" }, left: { state: "done" } } as const;
    expect(play(begin(DIAMOND, { states }))).toEqual(["right", "end", "done all-done 0"]);
  });
});

describe("once processes of a step have outlived KILL", () => {
  const hold = (progress: JobProgress) => noteEvent(progress, { kind: "step-not-ended" });
  const HELD = "interrupted step-not-ended 125";

  test("nothing is started; those that run are waited for", () => {
    const [, running] = start(begin(DIAMOND));
    expect(decideNextSteps(hold(running), 4)).toEqual({ kind: "wait" });
    expect(play(noteEvent(hold(running), done("top")))).toEqual([HELD]);
    const two = [node("a"), node("b"), node("c")];
    const [, both] = start(begin(two), 2);
    expect(play(noteEvent(noteEvent(hold(both), failed("a")), done("b")))).toEqual([HELD]);
  });

  test("an attempt that would follow is left to do, too", () => {
    const [, running] = start(begin([node("a")]));
    const kept: JobEvent = { kind: "step-interrupted", step: "a" };
    expect(play(noteEvent(hold(running), kept))).toEqual([HELD]);
  });

  test("a job of which nothing was left to do ends as it would have", () => {
    const [, running] = start(begin([node("a"), node("b", "a")]));
    expect(play(noteEvent(hold(running), failed("a", 124)))).toEqual(["failed step-failed 124"]);
    const unknown: JobEvent = { kind: "step-unknown", step: "a" };
    expect(play(noteEvent(hold(running), unknown))).toEqual(["unknown step-unknown 3"]);
    const [, last] = start(begin([node("a")]));
    expect(play(noteEvent(hold(last), done("a")))).toEqual(["done all-done 0"]);
  });

  test("of one step alone it counts what was to be done of that one", () => {
    const states = { b: { state: "interrupted" } } as const;
    const [, running] = start(begin([node("a"), node("b")], { only: "a", states }));
    expect(play(noteEvent(hold(running), done("a")))).toEqual(["interrupted only-done 0"]);
    const kept: JobEvent = { kind: "step-interrupted", step: "a" };
    expect(play(noteEvent(hold(running), kept))).toEqual([HELD]);
  });

  test("whoever asks for the end decides how it ends", () => {
    const [, running] = start(begin(DIAMOND));
    const stopped = noteEvent(hold(running), { kind: "stop-asked", signal: 2 });
    expect(play(noteEvent(stopped, done("top")))).toEqual(["interrupted stop-asked 130"]);
  });
});

describe("a job ends", () => {
  test("done although somebody asked for the end, where nothing was left to do", () => {
    const [, running] = start(begin([node("a")]));
    const stopped = noteEvent(running, { kind: "stop-asked", signal: 15 });
    expect(play(noteEvent(stopped, done("a")))).toEqual(["done all-done 0"]);
  });

  test.each(["step-unknown", "step-interrupted"] as const)(
    "with 3 where a step ended as %s, whatever has failed beside it",
    (kind) => {
      const two = [node("a"), node("b")];
      const ends = (step: string): JobEvent => (step === "a" ? failed(step) : { kind, step });
      expect(play(begin(two), ends)).toEqual(["a", "b", "unknown step-unknown 3"]);
    },
  );

  test("with the status of the first failed step in its order, not in time", () => {
    const two = [node("a"), node("b")];
    const [, running] = start(begin(two), 2);
    const ended = noteEvent(noteEvent(running, failed("b", 9)), failed("a", 8));
    expect(play(ended)).toEqual(["failed step-failed 8"]);
  });

  test.each([
    [{ exitCode: 9 }, 9],
    [{ exitCode: 0, because: "accepted-fail" }, 1],
    [{ exitCode: null, because: "accepted-fail" }, 1],
    [{ signal: "KILL" }, 137],
    [{ because: "timeout", signal: "TERM" }, 124],
  ] as const)("with what the journal says of a step that failed before: %j", (more, status) => {
    const states = { a: { state: "failed", ...more } } as const;
    expect(play(begin([node("a"), node("b", "a")], { states }))).toEqual([
      `failed step-failed ${status}`,
    ]);
  });
});

describe("of one step alone", () => {
  const before = { top: { state: "done" } } as const;

  test("nothing else is started, and the job stays to be gone on with", () => {
    const only = begin(DIAMOND, { only: "left", states: before });
    expect(play(only)).toEqual(["left", "interrupted only-done 0"]);
    const last = { top: before.top, left: { state: "done" }, right: { state: "done" } } as const;
    expect(play(begin(DIAMOND, { only: "end", states: last }))).toEqual(["end", "done all-done 0"]);
  });

  test("the exit status tells, and the state of the job that of all", () => {
    const states = { ...before, right: { state: "unknown" } } as const;
    expect(play(begin(DIAMOND, { only: "left", states }))).toEqual(["left", "unknown only-done 0"]);
    const older = { ...before, right: { state: "failed", exitCode: 9 } } as const;
    expect(play(begin(DIAMOND, { only: "left", states: older }), failed)).toEqual([
      "left",
      "failed step-failed 7",
    ]);
    expect(play(begin(DIAMOND, { only: "left" }))).toEqual(["interrupted only-blocked 1"]);
  });

  test("what others have come to is not told as its end", () => {
    const right = (more: Partial<StepRecord>) => ({ ...before, right: more });
    const alone = (more: Partial<StepRecord>, ends = done) =>
      play(begin(DIAMOND, { only: "left", states: right(more) }), ends);
    expect(alone({ state: "failed", exitCode: 9 })).toEqual(["left", "failed only-done 0"]);
    expect(alone({ state: "interrupted" })).toEqual(["left", "interrupted only-done 0"]);
    expect(alone({ state: "unknown" }, failed)).toEqual(["left", "unknown step-failed 7"]);
    const unclear = (step: string): JobEvent => ({ kind: "step-unknown", step });
    expect(alone({ state: "failed" }, unclear)).toEqual(["left", "unknown step-unknown 3"]);
  });

  test("a job with a step that is no longer as it was left is not done with it", () => {
    const states = { ...before, left: { state: "done" }, right: { state: "done" } } as const;
    const last = begin(DIAMOND, { only: "end", states, isDoubted: true });
    expect(play(last)).toEqual(["end", "interrupted only-done 0"]);
  });
});

describe("a mistake of whoever feeds it", () => {
  test("is told: an end of what did not run, and a step that ran before the beginning", () => {
    const [, running] = start(begin(DIAMOND));
    expect(() => noteEvent(running, done("left"))).toThrow("did not run");
    expect(() => noteEvent(noteEvent(running, done("top")), done("top"))).toThrow("did not run");
    expect(() => begin(DIAMOND, { states: { top: { state: "running" } } })).toThrow("begins");
  });
});

test("20,000 steps are gone through in little time", () => {
  const wide = Array.from({ length: 20_000 }, (_, index) =>
    node(`s${index}`, ...(index === 0 ? [] : ["s0"])),
  );
  expect(play(begin(wide), done, 8).at(-1)).toBe("done all-done 0");
}, 60_000);
