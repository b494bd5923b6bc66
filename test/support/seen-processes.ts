/** A dead run and processes as a look shows them, and who of them is told to be of it. */
import { decideSurvivors } from "../../src/core/survivors.ts";
import type { DeadRun, SeenProcess, SurvivorView } from "../../src/core/survivors-view.ts";

export const RUN: DeadRun = {
  runId: "x",
  owner: { pid: 50, start_time: 500 },
  recorded: [],
  guard: { pid: 51, start_time: 501 },
  adopters: [{ pid: 30, start_time: 300 }],
  cgroup: "/user/cron",
  mainGroup: null,
  unrecordedIn: [],
  countedIn: null,
  isBlind: false,
};

export function see(pid: number, ppid: number, more: Partial<SeenProcess> = {}): SeenProcess {
  return {
    pid,
    ppid,
    startTicks: pid * 10,
    groupId: 7,
    sessionId: 7,
    state: "S",
    isKernelThread: false,
    runPath: [],
    keptToken: undefined,
    cgroup: "/user/cron",
    isNamespaceInit: false,
    isSignalable: true,
    isGuard: false,
    ...more,
  };
}

export function bear(pid: number, ppid: number, more: Partial<SeenProcess> = {}): SeenProcess {
  return see(pid, ppid, { runPath: ["outer", "x"], ...more });
}

/** Pids of members, a bar, pids of suspects. */
export function tell(
  processes: readonly SeenProcess[],
  run: Partial<DeadRun> = {},
  view: Partial<SurvivorView> = {},
): string {
  const { members, suspects } = decideSurvivors({
    processes: [see(1, 0), see(30, 1), see(90, 80), see(80, 1), ...processes],
    run: { ...RUN, ...run },
    self: 90,
    ancestors: new Set([80, 1]),
    kept: { identities: new Set(), tokens: new Set() },
    ...view,
  });
  const pids = (list: readonly SeenProcess[]) => list.map(({ pid }) => pid).join(" ");
  return `${pids(members)} | ${pids(suspects)}`;
}
