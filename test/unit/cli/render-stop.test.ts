/** What `watchdog stop` says of each end, and the status that the help promises. */
import { expect, test } from "bun:test";
import { type LastRun, renderStopEnd, renderStopStep } from "../../../src/cli/render-stop.ts";
import { decideVerdict } from "../../../src/core/lease-verdict.ts";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import type { RunningRun } from "../../../src/inspect/running.ts";
import type { StopEnd } from "../../../src/inspect/stop.ts";
import { deadView, runningRun, sampleRun, sampleView } from "../../support/lease-views.ts";

const run: RunningRun = {
  runId: "run-7",
  job: "backup",
  supervisor: { pid: 4711, start_time: 1 },
  key: { kind: "job", name: "backup" },
};

function say(end: StopEnd, last?: LastRun) {
  return renderStopEnd("backup", end, last);
}

const NOT_RUNNING: StopEnd = { kind: "not-running", left: [], isKnown: true };

test("a run that has ended is the answer, on stdout", () => {
  expect(say({ kind: "stopped", run })).toEqual({
    text: "stopped backup (run run-7)\n",
    lines: [],
    code: 0,
  });
});

test("no such run is 1, with how it last ended", () => {
  expect(say(NOT_RUNNING)).toEqual({
    lines: ['no run is known of "backup"', "hint: watchdog status"],
    code: 1,
  });
  const { lines, code } = say(NOT_RUNNING, { run: sampleRun(), isGoingOn: false });
  expect([code, lines.length]).toEqual([1, 1]);
  expect(lines[0]).toStartWith('"backup" is not running; last run: ok, status 0, ended ');
});

test("nothing that may run is called not running", () => {
  const unread = say({ kind: "not-running", left: [], isKnown: false });
  expect(unread).toEqual({
    lines: ['error: "backup" holds no lease; whether it runs without one is not known'],
    code: 125,
  });
  expect(say(NOT_RUNNING, { run: runningRun(), isGoingOn: true })).toEqual({
    lines: [
      'error: "backup" is not all of the id of a run, expected run-7',
      "hint: watchdog stop run-7",
    ],
    code: 64,
  });
  const unseen = say(NOT_RUNNING, { run: runningRun(), isGoingOn: false });
  expect(unseen.lines[0]).toStartWith('"backup" is not seen to run; last run: unfinished, ');
});

test("what a dead watchdog has left is named, and nobody is asked about it", () => {
  const { lines, code } = say({ ...NOT_RUNNING, left: [deadView("unread")] });
  expect([code, lines[1]]).toEqual([
    1,
    "its lease job:backup was not given back: its watchdog is dead; " +
      "the next run of it settles that",
  ]);
});

test.each([
  [
    "its pid is still there: it is just being killed",
    { ownerAlive: "yes" },
    "its watchdog is dead",
  ],
  ["it was in another pid namespace", { ownerAlive: "unread" }, "its watchdog is dead"],
  ["nothing tells of which boot", { ownerAlive: "unread", sameBoot: "unread" }, "R5 boot-unread"],
  ["of another boot", { ownerAlive: "unread", sameBoot: "no" }, "R5 other-boot"],
] as const)("trees are not looked for, and of those nothing is told: %s", (_, facts, what) => {
  const view = deadView("unread");
  const evidence = { ...view.evidence, ...facts };
  const left = [{ ...view, evidence, verdict: decideVerdict(evidence) }];
  const { lines } = say({ ...NOT_RUNNING, left });
  expect(lines[1]).toContain(`was not given back: ${what}; `);
});

test("a name that means two runs ends neither, and the hint can be pasted", () => {
  const another = { ...run, runId: "run-8" };
  expect(say({ kind: "ambiguous", runs: [run, another] })).toEqual({
    lines: [
      'error: "backup" means 2 runs, expected one: run-7, run-8',
      "hint: watchdog stop run-7",
    ],
    code: 64,
  });
});

test("who may not be signalled is 77", () => {
  for (const because of ["another-user", "ancestor", "process-one", "self"] as const) {
    const { lines, code } = say({ kind: "not-allowed", run, because });
    expect([because, code, lines.length]).toEqual([because, 77, 1]);
    expect(lines[0]).toStartWith("error: backup (run run-7): ");
  }
});

test("a run that could not be ended, or not be seen, is 125", () => {
  const lease = sampleView({ ownerAlive: "unread" });
  const ends: StopEnd[] = [
    { kind: "not-ended", run, because: "still-there" },
    { kind: "not-ended", run, because: "no-descriptor" },
    { kind: "unseen", lease },
  ];
  expect(ends.map((end) => say(end).code)).toEqual([125, 125, 125]);
  expect(say({ kind: "unseen", lease }).lines).toEqual([
    "error: nothing tells from here which process holds job:backup (held, R2 beat-fresh)",
  ]);
});

test("a start that waits before it is granted the lease is named by who has the fence", () => {
  const { evidence, key } = sampleView({ ownerAlive: "no" });
  const verdict = { name: "held", rule: "R3", because: "being-acquired" } as const;
  const by = [{ pid: 4712, command: "watchdog run" }];
  const starting = (fence: LeaseEvidence["fence"]) =>
    say({ kind: "unseen", lease: { key, verdict, evidence: { ...evidence, fence } } });
  const line =
    "error: nothing tells from here which process holds job:backup (held, R3 being-acquired): " +
    "a start that was not granted it yet, and may wait for a dependency; " +
    "TERM to that process ends it";
  expect(starting({ isTaken: "yes", by })).toEqual({
    lines: [line, "hint: ps -fp 4712"],
    code: 125,
  });
  expect(starting(undefined).lines).toEqual([line]);
});

test("what was done meanwhile is told", () => {
  expect(renderStopStep("was-stopped", run)).toContain("was stopped");
  expect(renderStopStep("asked-again", run)).toContain("sent TERM once more");
});
