/** Runs of the journal in words: the history, and how a job last ended. */
import { describe, expect, test } from "bun:test";
import { describeLastRun, renderHistory } from "../../../src/cli/render-run.ts";
import { renderInstant } from "../../../src/cli/render-words.ts";
import type { RecordedDependency } from "../../../src/core/run-record.ts";
import type { HistoryRun } from "../../../src/inspect/history.ts";
import { runningRun, sampleRun, sampleRunRecord } from "../../support/lease-views.ts";

const STARTED = renderInstant(sampleRun().startedAt);
const ENDED = renderInstant(sampleRun().endedAt);

function history(runs: readonly HistoryRun[], target: string | undefined = "backup"): string[] {
  const text = renderHistory({ target, runs, isReadable: true, troubles: [] });
  return text.trimEnd().split("\n");
}

const ended = (changes: Parameters<typeof sampleRun>[0] = {}): HistoryRun => ({
  run: sampleRun(changes),
  isGoingOn: false,
});

describe("the history", () => {
  test("has time, outcome, status, duration and run id, and the job where all are asked", () => {
    expect(history([ended()])).toEqual([`${STARTED}  ok  0  5 min 3 s  run-7`]);
    const all = renderHistory({
      target: undefined,
      runs: [ended()],
      isReadable: true,
      troubles: [],
    });
    expect(all).toBe(`${STARTED}  ok  0  5 min 3 s  run-7  backup\n`);
    expect(history([ended()], "lane:gpu")).toEqual([all.trimEnd()]);
  });

  test("says who held the key of a run that was refused", () => {
    const held_by = {
      key: "job:backup",
      because: "beat-fresh",
      run_id: "run-6",
      runner: "ops@nightly",
      pid: 4700,
      since: null,
    };
    const record = sampleRunRecord({ held_by });
    const refused = { outcome: "locked", because: "lease-held", exitStatus: 75 };
    expect(history([ended({ ...refused, durationMs: 3, record })])).toEqual([
      `${STARTED}  locked  75  3 ms  run-7  ` +
        "job:backup was held by run run-6 (pid 4700, ops@nightly)",
    ]);
    const unknown = { ...held_by, run_id: null, runner: null, pid: null };
    const bare = ended({ ...refused, record: sampleRunRecord({ held_by: unknown }) });
    expect(history([bare])[0]).toEndWith("job:backup was held by another run");
    expect(history([ended(refused)])[0]).toEndWith("the holder is not known");
  });

  test.each([
    ["beat-old", "was held by run run-6 (pid 4700, ops@nightly)"],
    ["held-by-run-around", "was held by run run-6 (pid 4700, ops@nightly)"],
    ["being-acquired", "was just being acquired by another run"],
    ["survivors-alive", "was left by run run-6 (pid 4700, ops@nightly), which is dead (%s)"],
    ["suspects", "was left by run run-6 (pid 4700, ops@nightly), which is dead (%s)"],
    [
      "other-namespace",
      "was last held by run run-6 (pid 4700, ops@nightly), which was not to be seen (%s)",
    ],
    ["worktree-in-use", "was worked in by run run-6 (pid 4700, ops@nightly)"],
    ["worktree-unread", "was free, and who worked in it could not be looked for"],
    ["fenced-operation", "had an operation in progress under its fence (pid 4700, ops@nightly)"],
    ["repair-cooldown", "was granted to nobody: a repair had ended its living owner"],
    ["repair-at-work", "was in the hands of watchdog repair (pid 4700, ops@nightly)"],
  ])("names no holder where there was none: %s", (because, text) => {
    const who = { run_id: "run-6", runner: "ops@nightly", pid: 4700, since: null };
    const record = sampleRunRecord({ held_by: { ...who, key: "lane:gpu", because } });
    const refused = ended({ outcome: "locked", because: "lease-held", exitStatus: 75, record });
    expect(history([refused])[0]).toEndWith(`  lane:gpu ${text.replace("%s", because)}`);
  });

  test("names the dependency that was down, and what was found of it", () => {
    const db: RecordedDependency = {
      name: "db",
      role: "liveness",
      target: "tcp://db:5432",
      policy: "stop",
      state: "open",
      probes: 7,
      failed_probes: 3,
      last_because: "refused",
      last_detail: "connection refused",
      last_at: null,
    };
    const url = "http://api/";
    const api = { ...db, name: `${url}#0123456789abcdef`, target: url, last_detail: "status 500" };
    const why = (because: string, ...dependencies: RecordedDependency[]): string => {
      const record = sampleRunRecord({ dependencies });
      const down = { outcome: "dependency_down", because, exitStatus: 69, record };
      return describeLastRun(sampleRun(down)).replace(/^.*; /, "");
    };
    expect(why("circuit-opened", db)).toBe("circuit-opened: db, connection refused");
    expect(why("circuit-opened", db, api)).toEndWith(": db, connection refused and 1 more");
    // Those that are told alone, or answered well, are not to blame.
    const told = { ...db, policy: "notify" } as const;
    const well = { ...db, state: "closed", last_because: "good" } as const;
    expect(why("circuit-opened", told, well, api)).toBe("circuit-opened: http://api/, status 500");
    const unready = { ...db, role: "readiness", state: "unready" } as const;
    expect(why("startup-wait", unready, well, { ...api, state: "closed" })).toBe(
      "startup-wait: http://api/, status 500",
    );
    const unasked = { ...db, last_because: null, last_detail: null };
    expect(why("circuit-open", unasked)).toBe("circuit-open: db");
    expect(why("max-attempts")).toBe("max-attempts");
  });

  test("says who has written down that a run was abandoned", () => {
    const abandoned = { outcome: "abandoned", exitStatus: null };
    const because = "watchdog-killed";
    expect(history([ended({ ...abandoned, because, abandonedBy: "guard" })])).toEqual([
      `${STARTED}  abandoned  -  5 min 3 s  run-7  ` +
        "watchdog was killed; its guard has written this",
    ]);
    const byNext = ended({ ...abandoned, because, abandonedBy: "next-run" });
    expect(history([byNext])[0]).toEndWith(
      "watchdog was killed; the next run has written this (watchdog-killed)",
    );
    const byRepair = ended({ ...abandoned, because: "R6 tree-empty", abandonedBy: "repair" });
    expect(history([byRepair])[0]).toEndWith(
      "watchdog was killed; watchdog repair has written this (R6 tree-empty)",
    );
    expect(history([ended({ ...abandoned, because })])[0]).toEndWith(
      "watchdog was killed (watchdog-killed)",
    );
  });

  test("tells the signal, and the reason where it says more than the outcome", () => {
    const record = sampleRunRecord({ signal: "KILL" });
    const killed = { outcome: "signaled", because: "killed-by-signal", exitStatus: 137, record };
    expect(history([ended(killed)])[0]).toEndWith("137  5 min 3 s  run-7  died of KILL");
    const limited = { outcome: "timeout", because: "not-after", exitStatus: 124 };
    expect(history([ended(limited)])[0]).toEndWith("run-7  not-after");
    expect(history([ended({ outcome: "failed", exitStatus: 3 })])[0]).toEndWith("run-7");
  });

  test("tells a run that goes on from one whose end nobody has written down", () => {
    const lines = history([
      { run: runningRun(), isGoingOn: true },
      { run: runningRun({ runId: "run-6" }), isGoingOn: false },
    ]);
    expect(lines).toEqual([
      `${STARTED}  running     -  -  run-7  pid 4711`,
      `${STARTED}  unfinished  -  -  run-6  ` +
        "its watchdog is not seen here, and its end is not known",
    ]);
  });

  test("says where there is nothing, and nothing where nothing can be had", () => {
    expect(history([])).toEqual(["no run of backup is known"]);
    const all = { target: undefined, runs: [], troubles: [] };
    expect(renderHistory({ ...all, isReadable: true })).toBe("no run is known\n");
    expect(renderHistory({ ...all, isReadable: false })).toBe("");
  });

  test("cannot be made to begin a line by the name of a job", () => {
    const all = renderHistory({
      target: undefined,
      runs: [ended({ job: "a\nb\u001b[1m" })],
      isReadable: true,
      troubles: [],
    });
    expect(all.split("\n")).toHaveLength(2);
    expect(all).not.toContain("\u001b");
  });
});

describe("how a job last ended", () => {
  test("is one line", () => {
    expect(describeLastRun(sampleRun())).toBe(`ok, status 0, ended ${ENDED}, took 5 min 3 s`);
  });

  test("has no status and no duration where nobody knows them", () => {
    const abandoned = {
      outcome: "abandoned",
      abandonedBy: "next-run",
      because: "members",
      exitStatus: null,
    };
    expect(describeLastRun(sampleRun({ ...abandoned, durationMs: null }))).toBe(
      `abandoned, ended ${ENDED}; watchdog was killed; the next run has written this (members)`,
    );
  });

  test("is unknown where the row still says that it runs", () => {
    expect(describeLastRun(runningRun())).toBe(
      `unfinished, started ${STARTED}; its watchdog is not seen here, and its end is not known`,
    );
  });
});
