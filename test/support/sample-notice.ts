/** A notice with everything in it, for tests to change a part of. */
import type { Notice } from "../../src/core/notice.ts";

export const SAMPLE_NOTICE: Notice = {
  id: "0193-a",
  at: "2026-11-30T02:00:05.000Z",
  event: "failure",
  job: "nightly",
  run_id: "019375aa-1f2e-7c41-9d7e-3c1a52f0a111",
  host: "host1",
  runner: "ops@host1",
  outcome: "failed",
  because: "exited",
  exit_status: 3,
  status_of: "command",
  summary: "nightly ended with status 3",
  started_at: "2026-11-30T02:00:00.000Z",
  ended_at: "2026-11-30T02:00:05.000Z",
  duration_ms: 5_000,
  command: ["./nightly.sh", "--all"],
  cwd: "/srv/app",
  log_tail: "first line\nlast line\n",
  is_reminder: false,
  since: null,
  failures_in_row: 1,
  details: {},
};

export function sampleNotice(changes: Partial<Notice> = {}): Notice {
  return { ...SAMPLE_NOTICE, ...changes };
}
