/** What `watchdog repair` shows: the evidence, the plans with the lines that do them, the acts. */
import { describe, expect, test } from "bun:test";
import { renderRepair, showRepair } from "../../../src/cli/render-repair.ts";
import { decideRepair, type RepairView } from "../../../src/core/repair-plan.ts";
import { codeOfReport } from "../../../src/repair/exit-code.ts";
import { describeAfter } from "../../../src/repair/lines.ts";
import type {
  InterruptedAct,
  RepairAct,
  RepairLease,
  RepairOptions,
  RepairReport,
} from "../../../src/repair/repair-command.ts";
import { releasedView, sampleView } from "../../support/lease-views.ts";
import { deserted, found, stalled, STOPPED, viewOf } from "../../support/repair-views.ts";

const OPTIONS: RepairOptions = {
  keys: [],
  isApplying: false,
  approve: undefined,
  setGeneration: undefined,
  repairIntervalMs: 600_000,
  maxRepairs: 3,
  isJson: false,
};

function leaseOf(view: RepairView, changes: Partial<RepairLease> = {}): RepairLease {
  const options = decideRepair(view).options.map((option, index) => ({
    ...option,
    planId: option.action === "none" ? null : `000000000${index}`,
  }));
  const { key } = view.evidence;
  return { ...view, key, options, limit: undefined, leastGeneration: undefined, ...changes };
}

function report(changes: Partial<RepairReport> = {}): RepairReport {
  return {
    stateDirectory: "/state",
    mode: "dry-run",
    isBusy: false,
    leases: [],
    interrupted: [],
    acts: [],
    isPlanKnown: true,
    troubles: [],
    ...changes,
  };
}

function lines(changes: Partial<RepairReport>): string[] {
  return renderRepair(report(changes), OPTIONS).trimEnd().split("\n");
}

const INTERRUPTED: InterruptedAct = {
  settled: "given-up",
  askedRun: undefined,
  act: {
    actId: "a",
    planId: "0123456789",
    key: "job:backup",
    generation: 7,
    action: "mark",
    because: "tree-empty",
    phase: "intended",
    evidence: {},
    who: "ops@nightly",
    pid: 4711,
    at: 0,
    bootId: "b",
    monotonicMs: 1,
  },
};

function act(changes: Partial<RepairAct> = {}): RepairAct {
  return {
    key: { kind: "job", name: "backup" },
    action: "mark",
    planId: "0123456789",
    end: "done",
    because: "marked",
    text: "job:backup is free",
    ...changes,
  };
}

describe("a dry run", () => {
  test("of nothing says so", () => {
    expect(lines({})).toEqual(["nothing is to be repaired"]);
  });

  test("shows each plan with the line that does it", () => {
    const shown = lines({ leases: [leaseOf(stalled({ owner: STOPPED }))] });
    expect(shown.slice(-4)).toEqual([
      "  plan      0000000000  continue the stopped owner (SIGCONT) (owner-stopped)",
      "            watchdog repair job:backup --approve 0000000000",
      "  plan      0000000001  end the living owner and its processes, prove it dead, " +
        "free the key (beat-old)",
      "            watchdog repair job:backup --approve 0000000001",
    ]);
    const members = lines({ leases: [leaseOf(deserted({ members: [found(7)], suspects: [] }))] });
    expect(members).toContain("  survivor  7 work 7");
    expect(members.at(-1)).toBe("            watchdog repair job:backup --apply");
  });

  test("does not call a key that is free well while somebody has its fence", () => {
    const plan = (isTaken: "yes" | "no") => {
      const { evidence } = releasedView();
      return lines({ leases: [leaseOf(viewOf({ ...evidence, fence: { isTaken, by: [] } }))] }).at(
        -1,
      );
    };
    expect(plan("yes")).toBe(
      "  plan      nothing can be done from here: " +
        "an operation is in progress under its fence, which ends by itself",
    );
    expect(plan("no")).toBe("  plan      nothing has to be done");
  });

  test("says what is missing where nothing can be done", () => {
    const other = stalled({ owner: { state: "running", signal: "another-user" } });
    expect(lines({ leases: [leaseOf(other)] }).at(-1)).toBe(
      "  plan      nothing can be done from here: " +
        "the owner is another user's and may not be signalled",
    );
  });

  test("names the smallest number that may be given", () => {
    const lost = { lock: { kind: "free" }, source: { kind: "unreadable", reason: "x" } } as const;
    const view = viewOf(sampleView(lost).evidence, { recordFile: "unreadable" });
    expect(lines({ leases: [leaseOf(view, { leastGeneration: 41 })] }).at(-1)).toBe(
      "            watchdog repair job:backup --set-generation 41",
    );
  });

  test("tells of a repair that was interrupted, and of one that is at work", () => {
    const [busy, , interrupted] = lines({ isBusy: true, interrupted: [INTERRUPTED] });
    expect(busy).toBe("another repair is at work at this moment");
    expect(interrupted).toMatch(
      /^repair 0123456789 of job:backup \(mark, by ops@nightly\) was interrupted at 19.*anew$/,
    );
    const [asked] = lines({ interrupted: [{ ...INTERRUPTED, askedRun: "run-7" }] });
    expect(asked).toMatch(/asked to end and still has the key: watchdog stop run-7$/);
    const atWork = lines({ isBusy: true, interrupted: [{ ...INTERRUPTED, settled: "at-work" }] });
    expect(atWork[2]).toMatch(
      /^repair 0123456789 of job:backup \(mark, by ops@nightly\) is at work since 19.*4711\)$/,
    );
    expect(atWork.at(-1)).toBe("nothing is to be repaired beside that");
  });
});

describe("after acts", () => {
  test("each is told with its plan; nothing foreign moves the cursor", () => {
    const shown = lines({ mode: "apply", acts: [act({ text: "a\u001b[2Jb" })] });
    expect(shown.at(-1)).toBe("done: a\\x1b[2Jb (plan 0123456789)");
  });

  test("JSON has what the text has, and more", () => {
    const lease = leaseOf(stalled(), {
      limit: { kind: "stop", because: "repair-interval", remainingMs: 1.5, end: "repaired" },
    });
    const shown = JSON.parse(
      renderRepair(report({ leases: [lease], acts: [act()], interrupted: [INTERRUPTED] }), {
        ...OPTIONS,
        isJson: true,
      }),
    );
    expect(shown).toMatchObject({
      format: 1,
      state_directory: "/state",
      mode: "dry-run",
      leases: [
        {
          key: "job:backup",
          verdict: "stalled",
          owner_state: "running",
          plans: [{ plan_id: "0000000000", action: "end-owner", needs: "approval" }],
          stopped_by: "repair-interval",
          stopped_for_ms: 2,
        },
      ],
      interrupted: [{ plan_id: "0123456789", settled: "given-up", at: "1970-01-01T00:00:00.000Z" }],
      acts: [{ key: "job:backup", end: "done", because: "marked", plan_id: "0123456789" }],
    });
    expect(Object.keys(showRepair(report()))).toEqual([
      "format",
      "state_directory",
      "mode",
      "is_busy",
      "leases",
      "interrupted",
      "acts",
      "troubles",
    ]);
  });
});

describe("the status", () => {
  const dead = leaseOf(deserted({ members: [], suspects: [] }));
  test("of a look is 0, whatever was found", () => {
    expect(codeOfReport(report({ leases: [leaseOf(stalled())] }))).toBe(0);
  });

  test.each<[string, Partial<RepairReport>, number]>([
    ["everything was settled", { leases: [dead], acts: [act()] }, 0],
    ["nothing was wrong", { leases: [leaseOf(viewOf(sampleView().evidence))] }, 0],
    ["a person is needed", { leases: [leaseOf(stalled())] }, 77],
    ["one is left beside another", { leases: [leaseOf(stalled()), dead], acts: [] }, 77],
    ["it failed", { leases: [dead], acts: [act({ end: "failed", because: "system-error" })] }, 125],
    ["it was busy", { leases: [dead], acts: [act({ end: "refused", because: "lock-busy" })] }, 75],
    [
      "names are missing",
      { leases: [dead], acts: [act({ end: "failed", because: "too-many-kept" })] },
      78,
    ],
  ])("of --apply where %s", (_, changes, code) => {
    expect(codeOfReport(report({ mode: "apply", ...changes }))).toBe(code);
  });

  test("of an approval of nothing that is there is 77, with the way on", () => {
    const unknown = report({ mode: "approve", isPlanKnown: false });
    expect(codeOfReport(unknown)).toBe(77);
    expect(describeAfter(unknown, { ...OPTIONS, approve: "0123456789" })).toEqual([
      "error: no plan has the id 0123456789 now: the evidence has changed",
      "hint: watchdog repair",
    ]);
  });

  test("of a lease that only has to be waited for is 0", () => {
    const away = { lock: { kind: "free" }, sameBoot: "no", sameMachine: "no" } as const;
    const view = viewOf(sampleView({ ...away, note: "young" }).evidence);
    expect(codeOfReport(report({ mode: "apply", leases: [leaseOf(view)] }))).toBe(0);
  });
});
