/** What a job of many steps says on standard error, and what it tells a person to do. */

import { expect, test } from "bun:test";
import { firstRecord } from "../../../src/core/job-plan.ts";
import { messages } from "../../../src/job/messages.ts";

const JOB = { name: "nightly", file: "/srv/nightly.yaml" };

test("a step that runs again says why in words that are no codes", () => {
  const record = { ...firstRecord("dump"), because: "exited" as const };
  expect(messages.sentBack(record, true)).toBe(
    "watchdog: step dump runs again: its command has failed",
  );
  // What it needs may fail before it.
  expect(messages.sentBack(record, false)).toBe(
    "watchdog: step dump is to run again: its command has failed",
  );
  const changed = { ...record, because: "artifact-changed" as const, detail: "d has 5 bytes" };
  expect(messages.sentBack(changed, true)).toBe(
    "watchdog: step dump runs again: its artifacts are not those that it has left: d has 5 bytes",
  );
});

const ADVICE =
  "watchdog: give one of the two another name: in its file, or move this one back to where it " +
  "was; --fresh would throw away what the other has done";

test("a refusal names the file of the unfinished job, and no line that throws it away", () => {
  const because = "other-file";
  const otherFile = "/srv/a\nb.yaml";
  const line =
    "watchdog: job nightly is not run: the unfinished job of this name is that of another file: " +
    "/srv/a\\nb.yaml";
  const hint = "watchdog: hint: watchdog job status nightly";
  const refusal = { because, steps: [], otherFile } as const;
  expect(messages.refusal(JOB, refusal)).toEqual([line, ADVICE, hint]);
  const pay = { step: "pay", because: "unknown", detail: null } as const;
  expect(messages.refusal({ ...JOB, name: "-n" }, { ...refusal, steps: [pay] })).toEqual([
    line.replace("nightly", "-n"),
    `${ADVICE}, and the question whether pay has happened`,
    "watchdog: hint: watchdog job status -- -n",
  ]);
});

test("an unknown step that was taken out is asked back, and no line throws it away", () => {
  const steps = [{ step: "pay", because: "unknown", detail: null }] as const;
  expect(messages.refusal(JOB, { because: "undecided-removed", steps })).toEqual([
    "watchdog: job nightly is not run: the file no longer has a step of which nobody knows " +
      "whether it has happened: pay (unknown)",
    "watchdog: put pay back into the file under the old name, and decide; --fresh would throw " +
      "away what the job has done, and that question",
    "watchdog: hint: watchdog job status nightly",
  ]);
});

test("of a job that is lost no hint begins anew", () => {
  const lines = messages.lost("nightly", "journal.db does not know job 7");
  expect(lines.filter((line) => line.includes("hint:"))).toEqual([]);
  expect(lines.join("\n")).toContain("--fresh begins anew, and runs again what has happened");
});

test("a resume of nothing names the line that begins a job", () => {
  expect(messages.refusal(JOB, { because: "nothing-to-resume", steps: [] })).toEqual([
    "watchdog: job nightly is not run: no job of this name is unfinished",
    "watchdog: hint: watchdog job run /srv/nightly.yaml",
  ]);
  // With a decision it would run again what has happened.
  const asked = { accepted: new Map([["pay", "done"]] as const) };
  const refusal = { because: "nothing-to-resume", steps: [] } as const;
  expect(messages.refusal(JOB, refusal, asked)[1]).toBe(
    "watchdog: hint: watchdog job status nightly",
  );
});

test("what must be done before is named with what has become of it", () => {
  const steps = [
    { step: "pay", because: "not-begun", detail: null },
    { step: "pack", because: "failed", detail: "p is not there" },
  ] as const;
  expect(messages.refusal(JOB, { because: "not-done", steps })).toEqual([
    "watchdog: job nightly is not run: what must be done before is not: pay (never begun), " +
      "pack (failed: p is not there)",
  ]);
});
