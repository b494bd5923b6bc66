/** The record of attempts: each one as it was, and of many the first ones and the last ones. */
import { expect, test } from "bun:test";
import {
  type AttemptNotes,
  keepAttempts,
  MOST_FIRST_ATTEMPTS,
  MOST_LAST_ATTEMPTS,
  recordAttempt,
  type RecordedAttempt,
} from "../../../src/core/retry-record.ts";
import type { WallAt } from "../../../src/core/time.ts";

const NOTES: AttemptNotes = {
  attempt: 2,
  startedWallAt: 1_893_553_445_000 as WallAt,
  durationMs: 12.4,
  waitedMs: 800.6,
  end: { kind: "exited", code: 7 },
  because: "failed",
};

test("an attempt is recorded with its status, in whole milliseconds", () => {
  expect(recordAttempt(NOTES)).toEqual({
    attempt: 2,
    started_at: "2030-01-02T03:04:05.000Z",
    duration_ms: 12,
    exit_code: 7,
    signal: null,
    status: 7,
    because: "failed",
    waited_ms: 801,
  });
});

test.each([
  [{ kind: "signaled", signal: 15 }, null, "TERM", 143],
  [{ kind: "timed-out" }, null, null, 124],
  [{ kind: "not-started", because: "not-found" }, null, null, 127],
] as const)(
  "one that ended as %j has no exit code of its own",
  (end, exit_code, signal, status) => {
    expect(recordAttempt({ ...NOTES, end })).toMatchObject({ exit_code, signal, status });
  },
);

test("of many the first and the last ones are kept, in their order", () => {
  let kept: readonly RecordedAttempt[] = [];
  const most = MOST_FIRST_ATTEMPTS + MOST_LAST_ATTEMPTS;
  for (let attempt = 1; attempt <= 3 * most; attempt += 1) {
    kept = keepAttempts(kept, recordAttempt({ ...NOTES, attempt }));
    const count = Math.min(attempt, most);
    const first = Array.from({ length: Math.min(count, MOST_FIRST_ATTEMPTS) }, (_, i) => i + 1);
    const rest = count - first.length;
    const last = Array.from({ length: rest }, (_, i) => attempt - rest + 1 + i);
    expect(kept.map((one) => one.attempt)).toEqual([...first, ...last]);
  }
});
