/** A job and its plan, for people and for programs. */

import { describe, expect, test } from "bun:test";
import { jobFields } from "../../../src/cli/job-fields.ts";
import { renderJobWatch } from "../../../src/cli/render-job-watch.ts";
import { renderJobStatus } from "../../../src/cli/render-job.ts";
import type { JobPicture } from "../../../src/cli/render-job.ts";
import { showJob, showNoJob } from "../../../src/cli/show-job.ts";
import { readJobText } from "../../../src/cli/load-job.ts";
import { viewOfJob } from "../../../src/core/job-view.ts";
import type { ArtifactRecord, JobRecord, StepRecord } from "../../../src/core/step-record.ts";
import { STEP_REASONS } from "../../../src/core/step-reasons.ts";
import { renderInstant } from "../../../src/cli/render-words.ts";
import { BEGUN, DONE, JOB_TEXT, pathsOf, RUN_ID, stepOf } from "../../support/job-views.ts";

const JOB_ID = "01900000-0000-7000-8000-000000000002";

interface Asked {
  readonly steps?: readonly StepRecord[];
  readonly job?: Partial<JobRecord>;
  readonly isLive?: boolean;
  readonly columns?: number;
  readonly artifacts?: readonly ArtifactRecord[];
}

function pictureOf({
  steps = [],
  job,
  isLive = false,
  columns,
  artifacts = [],
}: Asked): JobPicture {
  const reading = readJobText(JOB_TEXT, "/srv/app/nightly.yaml");
  if (reading.kind !== "job") throw new Error("refused");
  const record: JobRecord = {
    jobId: JOB_ID,
    name: "nightly",
    file: "/srv/app/nightly.yaml",
    directory: "/srv/app",
    state: "running",
    runId: RUN_ID,
    generation: 7,
    createdAt: BEGUN,
    updatedAt: BEGUN + 5_000,
    endedAt: null,
    steps,
    artifacts,
    ...job,
  };
  const view = viewOfJob({
    record,
    because: null,
    isLive,
    steps: reading.spec.steps,
    startedAs: new Map(),
  });
  return { record, view, askedFile: undefined, now: BEGUN + 60_000, columns };
}

const KILLED_WHILE_PAYING = [
  stepOf("dump", DONE),
  stepOf("pack", { ...DONE, because: "unchanged" }),
  stepOf("pay", { ...DONE, state: "running", because: null, endedAt: null, exitCode: null }),
  stepOf("clean", {}),
];

describe("job status", () => {
  test("shows the steps in order, and what a person must decide with the lines for it", () => {
    const at = renderInstant(BEGUN);
    expect(renderJobStatus(pictureOf({ steps: KILLED_WHILE_PAYING })).split("\n")).toEqual([
      "job nightly  interrupted, can be resumed (its watchdog is gone)",
      "  file   /srv/app/nightly.yaml",
      `  begun  ${at}, 1 min ago`,
      `  id     ${JOB_ID}, last run ${RUN_ID}`,
      "  steps  2 of 4 done, 1 interrupted, 1 blocked",
      "",
      `  dump   done         attempt 1  ${at}  3 s`,
      `  pack   done         attempt 1  ${at}  3 s  ${STEP_REASONS.unchanged}`,
      `  pay    interrupted  attempt 1  ${at}       a person must decide`,
      "  clean  blocked                                           waits for pay",
      "",
      "to decide: has pay happened? its watchdog was killed while it ran",
      "  it has not happened, or may happen twice: run it again",
      "    watchdog job resume /srv/app/nightly.yaml --accept-unknown pay=retry",
      "  it has happened",
      "    watchdog job resume /srv/app/nightly.yaml --accept-unknown pay=done",
      "  it has failed, and nothing that needs it is to run",
      "    watchdog job resume /srv/app/nightly.yaml --accept-unknown pay=fail",
      "",
    ]);
  });

  test("names the file that was asked about where the job is that of another", () => {
    const picture = { ...pictureOf({ steps: KILLED_WHILE_PAYING }), askedFile: "/srv/b\n.yaml" };
    expect(renderJobStatus(picture).split("\n").slice(0, 3)).toEqual([
      "the newest job nightly is that of /srv/app/nightly.yaml, and not of /srv/b\\n.yaml:",
      "job nightly  interrupted, can be resumed (its watchdog is gone)",
      "  file   /srv/app/nightly.yaml",
    ]);
  });

  test("a step that was taken out of the file is asked back, to be decided about", () => {
    const unclear = { ...DONE, state: "unknown", because: "no-settle" } as const;
    const steps = [stepOf("dump", DONE), stepOf("gone", unclear)];
    const lines = renderJobStatus(pictureOf({ steps, job: { state: "unknown" } })).split("\n");
    expect(lines.slice(lines.findIndex((line) => line.startsWith("to decide: ")))).toEqual([
      `to decide: has gone happened? ${STEP_REASONS["no-settle"]}`,
      "  the file has it no more: put it back under its old name, and ask again",
      "",
    ]);
  });

  test("a foreign word in what is unclear moves no cursor and begins no second line", () => {
    const detail = "settle: \u001b[2Jall is well\nto decide: nothing";
    const unclear = { ...DONE, state: "unknown", because: "settle-unclear", detail } as const;
    const steps = [stepOf("dump", DONE), stepOf("pack", DONE), stepOf("pay", unclear)];
    const text = renderJobStatus(pictureOf({ steps, job: { state: "unknown" } }));
    expect(text).toContain("to decide: has pay happened? ");
    expect(text).not.toContain("\u001b");
    expect(text.split("\n").filter((line) => line.startsWith("to decide:"))).toHaveLength(1);
  });

  test("calls a job running only while somebody runs it, and else says how to go on (A-92)", () => {
    const steps = [stepOf("dump", { ...DONE, state: "running", because: null, endedAt: null })];
    const live = renderJobStatus(pictureOf({ steps, isLive: true }));
    expect(live).toStartWith("job nightly  running\n");
    expect(live).toContain("  dump   running  attempt 1");
    expect(live).not.toContain("resume");
    const dead = renderJobStatus(pictureOf({ steps }));
    expect(dead).not.toMatch(/\brunning\b/);
    expect(dead).toEndWith("\nto go on with it\n    watchdog job resume /srv/app/nightly.yaml\n");
  });

  test("says of a step that failed how, and of one that is done nothing", () => {
    const failed = { ...DONE, state: "failed", exitCode: 3 } as const;
    const text = (changes: Partial<StepRecord>) =>
      renderJobStatus(
        pictureOf({ steps: [stepOf("dump", { ...failed, ...changes })], job: { state: "failed" } }),
      );
    expect(text({})).toContain("3 s  status 3\n");
    expect(text({ because: "killed-by-signal", exitCode: null, signal: "SEGV" })).toContain(
      "its command died of a signal: signal SEGV\n",
    );
    expect(text({ because: "artifact-empty", exitCode: 0, detail: "d has 0 bytes" })).toContain(
      "3 s  d has 0 bytes\n",
    );
  });

  test("of a step with a run around it that failed says its status, and what tells more", () => {
    const fail = { ...DONE, state: "failed", because: "run-failed", exitCode: 65 } as const;
    const text = renderJobStatus(
      pictureOf({ steps: [stepOf("dump", fail)], job: { state: "failed" } }),
    );
    expect(text).toContain(`3 s  ${STEP_REASONS["run-failed"]}: status 65\n`);
    expect(text).toContain("\nto see what went wrong\n    watchdog why nightly/dump\n");
    const own = renderJobStatus(
      pictureOf({ steps: [stepOf("dump", { ...fail, because: "exited" })] }),
    );
    expect(own).not.toContain("to see what went wrong");
  });

  test("of a step that a person has called failed says only what runs it after all", () => {
    const fail = { ...DONE, state: "failed", because: "accepted-fail" } as const;
    const steps = [
      stepOf("dump", DONE),
      stepOf("pack", DONE),
      stepOf("pay", fail),
      stepOf("clean", {}),
    ];
    const job = { state: "failed" } as const;
    const text = renderJobStatus(pictureOf({ steps, job }));
    expect(text).toEndWith(
      "\npay stays failed, as a person said; to run it after all\n" +
        "    watchdog job resume --redo pay /srv/app/nightly.yaml\n",
    );
    expect(text).not.toContain("to go on with it");
    // Others would run: then the usual line goes on with them.
    const other = steps.with(1, stepOf("pack", { ...DONE, state: "failed", exitCode: 3 }));
    const both = renderJobStatus(pictureOf({ steps: other, job }));
    expect(both).toContain("to run it after all");
    expect(both).toEndWith("to go on with it\n    watchdog job resume /srv/app/nightly.yaml\n");
  });

  test("has a bar on a terminal that is wide enough", () => {
    const steps = KILLED_WHILE_PAYING;
    expect(renderJobStatus(pictureOf({ steps, columns: 80 }))).toContain(
      "  steps  [###################-------------------]  2 of 4 done",
    );
    expect(renderJobStatus(pictureOf({ steps, columns: 45 }))).toContain("  steps  2 of 4 done");
  });

  test("lets no foreign word move the cursor or begin a line", () => {
    const steps = [stepOf("dump", { ...DONE, state: "failed", detail: "a\nb\u001b[2J" })];
    const text = renderJobStatus(
      pictureOf({ steps, job: { file: "/srv/\u001b[2J", name: "n\nx" } }),
    );
    expect(text).not.toMatch(/[^\n\x20-\x7e]/);
    expect(text).toContain("job n\\nx  ");
  });
});

describe("job status --watch", () => {
  const draw = (rows: number, columns: number, askedFile?: string) => {
    const steps = KILLED_WHILE_PAYING;
    const picture = { ...pictureOf({ steps }), askedFile };
    return renderJobWatch({ ...picture, size: { rows, columns }, clock: "02:01:00" });
  };

  test("has a bar, and first the steps that a person looks for", () => {
    expect(draw(24, 100)).toEqual([
      "watchdog job nightly  interrupted-can-resume  02:01:00  (q ends)",
      `[${"#".repeat(29)}${"-".repeat(29)}]`,
      "2 of 4 done, 1 interrupted, 1 blocked",
      "",
      "pay    interrupted       a person must decide",
      "clean  blocked",
      "dump   done         3 s",
      "pack   done         3 s",
    ]);
  });

  test("says so where the job is that of another file", () => {
    expect(draw(24, 100, "/srv/b.yaml")[3]).toBe("of another file: /srv/app/nightly.yaml");
  });

  test("is never larger than the window, and counts what has no room", () => {
    for (const [rows, columns] of [
      [24, 10],
      [7, 80],
      [3, 20],
      [1, 1],
    ] as const) {
      const lines = draw(rows, columns);
      expect(lines.length).toBeLessThanOrEqual(rows);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(columns);
    }
    expect(draw(7, 80).at(-1)).toBe("2 steps more: make the window higher");
  });
});

describe("in JSON", () => {
  const artifacts = [
    { step: "dump", path: "d", kind: "file", bytes: 5, sha256: "0".repeat(64) },
  ] as const;

  test("a job has each field that is told of it, and no other", () => {
    const { record, view } = pictureOf({ steps: KILLED_WHILE_PAYING, artifacts });
    const shown = showJob({ record, view, isOfOtherFile: true, troubles: [] });
    expect(pathsOf(shown)).toEqual(new Set([...Object.keys(jobFields()), "format", "troubles"]));
    expect(shown).toMatchObject({
      format: 1,
      job: "nightly",
      is_of_other_file: true,
      state: "interrupted-can-resume",
      begun_at: "2026-11-30T02:00:00.000Z",
      ended_at: null,
      steps: [
        { step: "dump", state: "done", artifacts: [{ path: "d", bytes: 5 }] },
        { step: "pack" },
        { step: "pay", state: "interrupted", waits_for_person: true },
        { step: "clean", state: "blocked", blocked_by: ["pay"] },
      ],
      questions: [{ step: "pay", answers: [{ answer: "retry" }, {}, {}] }],
      resume: "watchdog job resume /srv/app/nightly.yaml",
    });
  });

  test("one that was never begun has the same fields, as null where there is nothing", () => {
    const { record, view } = pictureOf({ steps: [] });
    const shown = showJob({ record, view, isOfOtherFile: false, troubles: [] });
    const none = showNoJob("nightly", []);
    expect(Object.keys(none)).toEqual(Object.keys(shown));
    const said = Object.entries(none).filter(([, value]) => value !== null);
    expect(Object.fromEntries(said)).toEqual({
      format: 1,
      job: "nightly",
      is_of_other_file: false,
      steps: [],
      questions: [],
      troubles: [],
    });
  });
});
