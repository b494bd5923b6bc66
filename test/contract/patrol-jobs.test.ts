/** What a patrol makes of the jobs that the journal knows: which run goes on, and what is told. */
import { afterAll, describe, expect, test } from "bun:test";
import { bootedAt, wallNow } from "../../src/os/clock.ts";
import { readProcessIdentity } from "../../src/os/machine.ts";
import { forgetJob, retirePatrol } from "../../src/patrol/forget.ts";
import { describeJudged, judgeJobs } from "../../src/patrol/jobs.ts";
import { Journal } from "../../src/journal/journal.ts";
import { openJournalScene, started } from "../support/journal-scene.ts";
import { HOUR_MS, scheduleOf } from "../support/schedules.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

describe("a run goes on", () => {
  const own = readProcessIdentity(process.pid) ?? { pid: 0, start_time: 0 };

  function since(startedAt: number, pid: number, pidStartTime: number | null): unknown {
    const schedule = scheduleOf({ everyMs: 60_000, declaredAt: startedAt });
    const job = { schedule, running: [{ startedAt, pid, pidStartTime }], longestGoodMs: undefined };
    return judgeJobs([job], wallNow())[0]?.runningSince;
  }

  test("while its watchdog lives", () => {
    const at = wallNow() - 1_000;
    expect(since(at, own.pid, own.start_time)).toBe(at);
  });

  test("not where its number is that of another process, or of none", async () => {
    const at = wallNow() - 1_000;
    expect(since(at, own.pid, own.start_time + 1)).toBeUndefined();
    expect(since(at, own.pid, null)).toBeUndefined();
    const gone = Bun.spawn(["true"]);
    await gone.exited;
    expect(since(at, gone.pid, own.start_time)).toBeUndefined();
  });

  test("not where it began before this boot, whoever has its number now", () => {
    expect(since(bootedAt() - 60_000, own.pid, own.start_time)).toBeUndefined();
  });
});

test("of a job that nobody can judge nothing is written down, so that what is told stays", () => {
  const now = wallNow();
  const told = { overdueState: "not-started", overdueSince: now - HOUR_MS, toldAt: now - HOUR_MS };
  const judged = (lastSuccessAt: number) =>
    judgeJobs(
      [
        {
          schedule: scheduleOf({ everyMs: HOUR_MS, lastSuccessAt, ...told }),
          running: [],
          longestGoodMs: undefined,
        },
      ],
      now,
    ).flatMap(describeJudged);
  expect(judged(now + 24 * HOUR_MS)).toEqual([]);
  expect(judged(now - HOUR_MS / 2)).toMatchObject([{ because: null, since: null }]);
  expect(judged(now - 24 * HOUR_MS)).toMatchObject([{ because: "not-started" }]);
});

describe("to forget", () => {
  test("what nobody knows is said, and writes nothing", () => {
    const state = scene.newState();
    expect(forgetJob(state, "nobody")).toEqual({ kind: "unknown", troubles: [] });
    expect(retirePatrol(state)).toEqual({ kind: "unknown", troubles: [] });
    const journal = new Journal(state, () => undefined);
    const schedule = { everyMs: HOUR_MS, cron: null, timeZone: null };
    journal.put({ ...started(1), schedule } as ReturnType<typeof started>);
    journal.close(5_000);
    expect(forgetJob(state, "nobody").kind).toBe("unknown");
    expect(forgetJob(state, "nightly")).toEqual({ kind: "done", troubles: [] });
    expect(forgetJob(state, "nightly").kind).toBe("unknown");
  });
});
