/** What a job of many steps says on standard error, and what it tells a person to do. */

import { expect, test } from "bun:test";
import { firstRecord } from "../../../src/core/job-plan.ts";
import { messages } from "../../../src/job/messages.ts";

const JOB = { name: "nightly", file: "/srv/nightly.yaml" };

test("a step that runs again says why in words that are no codes", () => {
  const record = { ...firstRecord("dump"), because: "exited" as const };
  expect(messages.sentBack(record)).toBe("watchdog: step dump runs again: its command has failed");
  const changed = { ...record, because: "artifact-changed" as const, detail: "d has 5 bytes" };
  expect(messages.sentBack(changed)).toBe(
    "watchdog: step dump runs again: its artifacts are not those that it has left: d has 5 bytes",
  );
});

test("a refusal names the file of the unfinished job, and the line that begins anew", () => {
  const because = "other-file";
  expect(messages.refusal(JOB, { because, steps: [], otherFile: "/srv/a\nb.yaml" })).toEqual([
    "watchdog: job nightly is not run: the unfinished job of this name is that of another file: " +
      "/srv/a\\nb.yaml",
    "watchdog: hint: watchdog job run --fresh /srv/nightly.yaml",
  ]);
});

test("a resume of nothing names the line that begins a job", () => {
  expect(messages.refusal(JOB, { because: "nothing-to-resume", steps: [] })).toEqual([
    "watchdog: job nightly is not run: no job of this name is unfinished",
    "watchdog: hint: watchdog job run /srv/nightly.yaml",
  ]);
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
