/**
 * The table of outcomes by hand: facts on the left, the word and the way of leaving on the right.
 */
import { describe, expect, test } from "bun:test";
import {
  decideOutcome,
  outcomeOfConflict,
  outcomeOfDependency,
  type OutcomeFacts,
  outcomeOfRefusal,
} from "../../../src/core/outcome.ts";
import * as signals from "../../../src/core/signals.ts";

const { SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1 } = signals;
const NONE = {
  end: undefined,
  limit: undefined,
  hasLostLease: false,
  dependency: undefined,
  itemsFailure: undefined,
  finalItemsFailure: undefined,
  stop: undefined,
  seen: [],
  successExitCodes: [0],
  hasLostOutput: false,
  failedChecks: [],
};
const SERVER = { name: "server", because: "circuit-opened" } as const;
const DATABASE = { name: "database", because: "max-elapsed" } as const;
const MANY = { because: "too-many-failed", failed: 9, done: 30, failedInRow: 1 } as const;
const IN_ROW = { ...MANY, because: "too-many-failed-in-row", failedInRow: 5 } as const;
const exits = (code: number) => ({ end: { kind: "exited", code } as const });
const dies = (signal: number) => ({ end: { kind: "signaled", signal } as const });

type Row = readonly [Partial<OutcomeFacts>, string, string, string, string];

/** Facts · outcome · because · status of · how watchdog leaves. */
const TABLE: readonly Row[] = [
  [exits(0), "ok", "exited", "command", "status 0"],
  [exits(1), "failed", "exited", "command", "status 1"],
  [exits(255), "failed", "exited", "command", "status 255"],
  [exits(124), "failed", "exited", "command", "status 124"],
  [{ ...exits(24), successExitCodes: [0, 24] }, "ok", "exited", "command", "status 24"],
  [{ ...exits(0), successExitCodes: [24] }, "failed", "exited", "command", "status 0"],
  [dies(SIGTERM), "signaled", "killed-by-signal", "command", "signal 15"],
  [dies(SIGKILL), "signaled", "killed-by-signal", "command", "signal 9"],
  [
    { ...dies(SIGTERM), successExitCodes: [0, 143] },
    "signaled",
    "killed-by-signal",
    "command",
    "signal 15",
  ],
  [{ ...dies(SIGTERM), stop: "terminated" }, "stopped", "terminated", "command", "signal 15"],
  [{ ...exits(0), stop: "terminated" }, "stopped", "terminated", "command", "status 0"],
  [{ ...exits(9), stop: "hung-up" }, "stopped", "hung-up", "command", "status 9"],
  [{ ...dies(SIGKILL), stop: "interrupted" }, "stopped", "interrupted", "command", "signal 9"],
  [{ ...dies(SIGINT), seen: [SIGINT] }, "stopped", "interrupted", "command", "signal 2"],
  [{ ...exits(130), seen: [SIGINT] }, "stopped", "interrupted", "command", "status 130"],
  [{ ...dies(SIGQUIT), seen: [SIGINT, SIGQUIT] }, "stopped", "quit", "command", "signal 3"],
  [{ ...dies(SIGHUP), seen: [SIGHUP] }, "stopped", "hung-up", "command", "signal 1"],
  [{ ...exits(0), seen: [SIGINT] }, "ok", "exited", "command", "status 0"],
  [{ ...exits(7), seen: [SIGINT] }, "failed", "exited", "command", "status 7"],
  [{ ...exits(130), seen: [] }, "failed", "exited", "command", "status 130"],
  [{ ...dies(SIGINT), seen: [SIGHUP] }, "signaled", "killed-by-signal", "command", "signal 2"],
  [{ ...dies(SIGUSR1), seen: [SIGINT] }, "signaled", "killed-by-signal", "command", "signal 10"],
  [{ ...exits(0), limit: "timeout" }, "timeout", "timeout", "watchdog", "status 124"],
  [{ ...dies(SIGKILL), limit: "timeout" }, "timeout", "timeout", "watchdog", "status 124"],
  [{ ...dies(SIGTERM), limit: "not-after" }, "timeout", "not-after", "watchdog", "status 124"],
  [{ ...exits(3), limit: "idle" }, "idle_timeout", "idle", "watchdog", "status 124"],
  [
    { ...exits(3), limit: "idle", stop: "terminated" },
    "idle_timeout",
    "idle",
    "watchdog",
    "status 124",
  ],
  [{ limit: "timeout" }, "timeout", "timeout", "watchdog", "status 124"],
  [{}, "wrapper_error", "tree-not-ended", "watchdog", "status 125"],
  [
    { ...exits(0), hasLostOutput: true },
    "wrapper_error",
    "output-not-written",
    "watchdog",
    "status 125",
  ],
  [
    { ...exits(0), hasLostOutput: true, failedChecks: ["no-output"] },
    "wrapper_error",
    "output-not-written",
    "watchdog",
    "status 125",
  ],
  [
    { ...exits(0), failedChecks: ["file-empty", "no-output"] },
    "bad_output",
    "file-empty",
    "watchdog",
    "status 65",
  ],
  [
    { ...exits(24), successExitCodes: [0, 24], failedChecks: ["no-output"] },
    "bad_output",
    "no-output",
    "watchdog",
    "status 65",
  ],
  [{ ...exits(9), failedChecks: ["no-output"] }, "failed", "exited", "command", "status 9"],
  [
    { ...exits(0), stop: "terminated", failedChecks: ["no-output"] },
    "stopped",
    "terminated",
    "command",
    "status 0",
  ],
  [{ ...exits(3), hasLostOutput: true }, "failed", "exited", "command", "status 3"],
  [{ ...dies(13), hasLostOutput: true }, "signaled", "killed-by-signal", "command", "signal 13"],
  [{ ...exits(0), hasLostLease: true }, "lease_lost", "lease-not-ours", "watchdog", "status 76"],
  [
    { ...exits(0), hasLostLease: true, limit: "timeout", stop: "terminated" },
    "lease_lost",
    "lease-not-ours",
    "watchdog",
    "status 76",
  ],
  [
    { ...exits(0), dependency: SERVER },
    "dependency_down",
    "circuit-opened",
    "watchdog",
    "status 69",
  ],
  [
    { ...dies(SIGKILL), dependency: DATABASE, limit: "timeout", stop: "terminated" },
    "dependency_down",
    "max-elapsed",
    "watchdog",
    "status 69",
  ],
  [{ dependency: SERVER }, "dependency_down", "circuit-opened", "watchdog", "status 69"],
  [
    { ...exits(0), dependency: SERVER, hasLostLease: true },
    "lease_lost",
    "lease-not-ours",
    "watchdog",
    "status 76",
  ],
  [{ stop: "terminated" }, "wrapper_error", "tree-not-ended", "watchdog", "status 125"],
  [
    { ...dies(SIGTERM), itemsFailure: IN_ROW, stop: "terminated" },
    "bad_output",
    "too-many-failed-in-row",
    "watchdog",
    "status 65",
  ],
  [
    { ...dies(SIGTERM), itemsFailure: MANY, limit: "timeout" },
    "timeout",
    "timeout",
    "watchdog",
    "status 124",
  ],
  [{ itemsFailure: MANY }, "bad_output", "too-many-failed", "watchdog", "status 65"],
  [
    { ...exits(0), finalItemsFailure: MANY },
    "bad_output",
    "too-many-failed",
    "watchdog",
    "status 65",
  ],
  [{ ...exits(1), finalItemsFailure: MANY }, "failed", "exited", "command", "status 1"],
  [
    { ...exits(0), finalItemsFailure: MANY, stop: "terminated" },
    "stopped",
    "terminated",
    "command",
    "status 0",
  ],
];

describe("the outcome", () => {
  test.each(TABLE)("of %j is %s because %s", (facts, ...wanted) => {
    const outcome = decideOutcome({ ...NONE, ...facts });
    const { kind, ...rest } = outcome.leaving;
    const left = `${kind} ${Object.values(rest).join()}`;
    const found: readonly string[] = [outcome.name, outcome.because, outcome.statusOf, left];
    expect(found).toEqual([...wanted] as readonly string[]);
  });
});

test.each([
  ["not-found", "not_found", "command-not-found", 127],
  ["not-executable", "not_executable", "command-not-executable", 126],
  ["system", "wrapper_error", "command-not-started", 125],
] as const)("a command that is not started, %s, is %s", (reason, name, because, code) => {
  const leaving = { kind: "status", code } as const;
  expect(outcomeOfRefusal(reason)).toEqual({ name, because, statusOf: "watchdog", leaving });
});

test.each([75, 0, 255])(
  "a refused start is locked and leaves with the status asked for: %d",
  (code) => {
    expect(outcomeOfConflict(code)).toEqual({
      name: "locked",
      because: "lease-held",
      statusOf: "watchdog",
      leaving: { kind: "status", code },
    });
  },
);

test.each(["circuit-open", "trial-failed", "startup-wait", "max-attempts", "max-elapsed"] as const)(
  "a start that a dependency refuses leaves with 69, because %s",
  (because) => {
    expect(outcomeOfDependency(because)).toEqual({
      name: "dependency_down",
      because,
      statusOf: "watchdog",
      leaving: { kind: "status", code: 69 },
    });
  },
);
