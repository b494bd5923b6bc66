/** One notice from what has happened: its key, what it carries of a run, and its bounds. */
import { describe, expect, test } from "bun:test";
import {
  makeKeyedId,
  noticeOfEvent,
  noticeOfRun,
  noticeOfTest,
} from "../../../src/core/make-notice.ts";
import type { NoticeEvent } from "../../../src/core/notice.ts";
import type { RunRecord } from "../../../src/core/run-record.ts";
import { endedRecord } from "../../support/journal-scene.ts";

const AT = Date.parse("2025-03-04T05:06:07.000Z");
const ORIGIN = { host: "host", runner: "me@host" };
const KEY = { entryId: "end:r1", sinkId: "s1", at: AT };

function decided(event: NoticeEvent) {
  return { event, isReminder: false, since: AT - 1_000, failuresInRow: 2 };
}

function ofRun(changes: Partial<RunRecord> = {}, event: NoticeEvent = "failure") {
  const run = endedRecord(1, changes);
  return noticeOfRun(KEY, run, decided(event), { origin: ORIGIN, tail: "last line\n" });
}

describe("the key of a notice", () => {
  test("is that of its entry and its sink, whenever it is made", () => {
    expect(makeKeyedId({ ...KEY, at: AT + 86_400_000 })).toBe(makeKeyedId(KEY));
    expect(ofRun().id).toBe(makeKeyedId(KEY));
    const event = { job: "nightly", runId: null, because: null, data: {} };
    expect(noticeOfEvent(KEY, event, decided("overdue"), ORIGIN).id).toBe(makeKeyedId(KEY));
  });

  test("is another one for another entry, and for another sink of the same", () => {
    const ids = [KEY, { ...KEY, entryId: "end:r2" }, { ...KEY, sinkId: "s2" }].map(makeKeyedId);
    expect(new Set(ids).size).toBe(3);
    expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  });
});

describe("a notice of a run", () => {
  test("says what was found, and since when", () => {
    const checks = [
      {
        check: "expect-file",
        target: "dump",
        passed: false,
        because: "file-empty",
        found: "0 bytes",
        expected: "not empty",
      },
    ] as const;
    expect(ofRun({ checks })).toMatchObject({
      at: new Date(AT).toISOString(),
      since: new Date(AT - 1_000).toISOString(),
      failures_in_row: 2,
      log_tail: "last line\n",
      details: { checks },
    });
  });

  test("carries the end of the output, but of a start that of nobody", () => {
    expect(ofRun({}, "start").log_tail).toBeNull();
    expect(ofRun({}, "recovered").log_tail).toBe("last line\n");
  });

  test("has a bound, whatever the command and the record hold", () => {
    const words = ["x".repeat(3_000), "y".repeat(3_000), "z"];
    const { command } = ofRun({ command: words });
    expect(command).toEqual(["x".repeat(3_000), `${"y".repeat(1_096)}…`, "…"]);
    const many = Array.from({ length: 500 }, (_, pid) => ({
      pid,
      command: "w".repeat(100),
      ended_by: "TERM" as const,
    }));
    const leftovers = ofRun({ leftovers: many }).details["leftovers"];
    expect(leftovers).toHaveLength(20);
    const check = { check: "fail-match", target: "t".repeat(1_000), passed: true, because: null };
    const checks = Array.from({ length: 100 }, () => ({ ...check, found: "", expected: "" }));
    expect(ofRun({ checks } as unknown as Partial<RunRecord>).details).toEqual({});
  });
});

test("a notice of an event has a bound, too", () => {
  const of = (length: number) => {
    const data = { text: "x".repeat(length) };
    const event = { job: "nightly", runId: null, because: null, data };
    return noticeOfEvent(KEY, event, decided("overdue"), ORIGIN).details;
  };
  expect(of(32_000)).toEqual({ text: "x".repeat(32_000) });
  expect(of(33_000)).toEqual({});
});

test("a notice that is a test says so to machines and to people", () => {
  const notice = noticeOfTest({ sinkId: "s1", at: AT, origin: ORIGIN });
  expect(notice.details).toEqual({ is_test: true });
  expect(notice.summary).toBe("this is a test of watchdog on host; nothing has failed");
});
