/** One notice of many: what it counts, and that good news hides nothing. */
import { describe, expect, test } from "bun:test";
import { joinNotices } from "../../../src/core/join-notices.ts";
import { noticeOfEvent } from "../../../src/core/make-notice.ts";
import type { Notice, NoticeEvent } from "../../../src/core/notice.ts";

const AT = Date.parse("2025-03-04T05:06:07.000Z");
const ORIGIN = { host: "host", runner: "me@host" };

function noticeOf(job: string, event: NoticeEvent, isReminder = false): Notice {
  const key = { entryId: `${job}:${event}`, sinkId: "s", at: AT };
  const decided = { event, isReminder, since: null, failuresInRow: 1 };
  return noticeOfEvent(key, { job, runId: null, because: null, data: {} }, decided, ORIGIN);
}

const KEY = { entryId: "joined:1-4", sinkId: "s", at: AT + 1000 };

describe("many notices", () => {
  test("become one that counts events and names jobs, each with its last event", () => {
    const joined = joinNotices(
      [
        noticeOf("a", "failure"),
        noticeOf("b", "timeout"),
        noticeOf("a", "recovered"),
        noticeOf("c", "failure"),
      ],
      KEY,
    );
    expect(joined).toMatchObject({
      event: "failure",
      job: null,
      run_id: null,
      host: "host",
      summary: "4 notices of 3 jobs on host: 2 failure, 1 timeout, 1 recovered (a, b, c)",
      since: "2025-03-04T05:06:07.000Z",
      at: "2025-03-04T05:06:08.000Z",
      details: {
        joined: 4,
        events: { failure: 2, timeout: 1, recovered: 1 },
        jobs: { a: "recovered", b: "timeout", c: "failure" },
      },
    });
  });

  test("are bad news where one of them is, else what the first is", () => {
    const eventOf = (...events: readonly NoticeEvent[]): string => {
      const [first = "failure", ...more] = events;
      return joinNotices([noticeOf("a", first), ...more.map((event) => noticeOf("a", event))], KEY)
        .event;
    };
    expect(eventOf("recovered", "abandoned")).toBe("failure");
    expect(eventOf("recovered", "circuit_open")).toBe("recovered");
  });

  test("name some jobs and count the rest; have a key of their own", () => {
    const jobs = Array.from({ length: 9 }, (_, index) => noticeOf(`j${index}`, "failure"));
    const joined = joinNotices(jobs as [Notice, ...Notice[]], KEY);
    expect(joined.summary).toEndWith("(j0, j1, j2, j3, j4 and 4 more)");
    expect(jobs.map(({ id }) => id)).not.toContain(joined.id);
    expect(joinNotices(jobs as [Notice, ...Notice[]], KEY).id).toBe(joined.id);
  });

  test("carry the output and the command of none of them, and a bounded list of their jobs", () => {
    const jobs = Array.from({ length: 300 }, (_, index) => ({
      ...noticeOf(`j${index}`, "failure"),
      log_tail: "of one job",
      command: ["of", "one"],
      cwd: "/of/one",
    }));
    const joined = joinNotices(jobs as unknown as [Notice, ...Notice[]], KEY);
    expect([joined.log_tail, joined.command, joined.cwd]).toEqual([null, null, null]);
    expect(joined.details["joined"]).toBe(300);
    expect(Object.keys(joined.details["jobs"] as object)).toHaveLength(200);
  });

  test("are a reminder only where each of them is one", () => {
    const [again, news] = [noticeOf("a", "failure", true), noticeOf("b", "failure")];
    expect(joinNotices([again, again], KEY).is_reminder).toBe(true);
    expect(joinNotices([again, news], KEY).is_reminder).toBe(false);
  });
});
