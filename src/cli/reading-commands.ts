/**
 * The commands that wrap no other: those that look at what runs have left, at the configuration or
 * at what a job depends on, those that stop a run or reset a circuit, and the one that repairs:
 * which of them answers what.
 *
 * Loaded only for an answer, never on the path of `watchdog run`. Always: stdout holds the answer
 * and nothing else; an answer is a success, whatever it says, where the help promises so.
 */

import type { Leaving } from "../core/outcome.ts";
import type { RunRecord } from "../core/run-record.ts";
import { checkPlace } from "../inspect/state.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { say, writeAnswer } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { takeUmaskOf } from "../os/state-sharing.ts";
import { type Answer, type AnswerContext, UNANSWERED } from "./answer.ts";
import { answerCircuitList, answerCircuitReset, answerCircuitShow } from "./answer-circuits.ts";
import { answerConfigCheck, answerConfigShow } from "./answer-config.ts";
import type { ConfigAround } from "./answer-config.ts";
import { answerLeaseExplain, answerLeaseList, answerLeaseShow } from "./answer-leases.ts";
import { answerHistory, answerLogs, answerStatus, answerStop } from "./answer-runs.ts";
import type {
  CircuitListCut,
  CircuitResetCut,
  CircuitShowCut,
  ConfigCheckCut,
  ConfigShowCut,
  DoctorCut,
  HistoryCut,
  JobPlanCut,
  JobStatusCut,
  JobVerifyCut,
  LeaseExplainCut,
  LeaseListCut,
  LeaseShowCut,
  LogsCut,
  NotifyCut,
  PatrolCut,
  ProbeCut,
  RepairCut,
  ReportCut,
  StatusCut,
  StopCut,
  WhyCut,
} from "./cut.ts";

export type AnswerCut =
  | StatusCut
  | HistoryCut
  | ReportCut
  | WhyCut
  | LogsCut
  | LeaseListCut
  | LeaseShowCut
  | LeaseExplainCut
  | CircuitListCut
  | CircuitShowCut
  | CircuitResetCut
  | StopCut
  | ProbeCut
  | NotifyCut
  | RepairCut
  | PatrolCut
  | DoctorCut
  | OfJob
  | ConfigShowCut
  | ConfigCheckCut;

/** What the front door hands in. */
export interface AnswerAround extends ConfigAround {
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  /** Of probe/probe-worker.ts. */
  readonly probeUrl: URL;
  /** Of job/artifact-worker.ts. */
  readonly artifactUrl: URL;
  readonly build: RunRecord["watchdog"];
  readonly inherited: Inheritance;
}

/**
 * Answers one of them: writes the answer and says the lines.
 *
 * @throws WatchdogError "state.refused", "config.refused" (78); "state.unusable",
 *   "lease.unusable" (125)
 */
export async function answerCommand(cut: AnswerCut, around: AnswerAround): Promise<Leaving> {
  const leaving = tell(await answerCut(cut, around));
  await tellOnTheWay(cut, around);
  return leaving;
}

/** Jobs that are overdue, and a patrol that has stopped: to whoever looks at something else. */
async function tellOnTheWay(cut: AnswerCut, { readSettings }: AnswerAround): Promise<void> {
  // They tell of it in their own answer.
  if (cut.kind === "patrol" || cut.kind === "report") return;
  const { findOnTheWay } = await import("./on-the-way.ts");
  for (const line of findOnTheWay(cut, readSettings)) say(`watchdog: ${line}`);
}

/** Writes the answer and says the lines. */
export function tell(answer: Answer): Leaving {
  const isWritten = answer.text === undefined || writeAnswer(answer.text);
  for (const line of answer.lines) say(`watchdog: ${line}`);
  const { signal } = answer;
  if (signal !== undefined) return { kind: "signal", signal };
  return { kind: "status", code: isWritten ? answer.code : UNANSWERED };
}

async function answerCut(cut: AnswerCut, around: AnswerAround): Promise<Answer> {
  switch (cut.kind) {
    case "config-show":
      return answerConfigShow(cut, around);
    case "config-check":
      return answerConfigCheck(cut);
    case "repair": {
      const { answerRepair } = await import("./answer-repair.ts");
      const { policies } = around.readSettings(cut.configFile);
      return answerRepair(cut, { ...around, policies });
    }
    case "patrol": {
      const { answerPatrol } = await import("./answer-patrol.ts");
      const { policies } = around.readSettings(cut.configFile);
      return answerPatrol(cut, { ...around, policies });
    }
    case "probe": {
      const { answerProbe } = await import("./answer-probe.ts");
      return answerProbe(cut, around);
    }
    case "notify": {
      const { answerNotify } = await import("./answer-notify.ts");
      const { stateDirectory } = openContext(cut, around);
      return answerNotify(cut, { ...around, stateDirectory });
    }
    case "job-status":
    case "job-plan":
    case "job-verify": {
      const { answerJobLook } = await import("./answer-job-look.ts");
      return answerJobLook(cut, { ...around, ...openContext(cut, around) });
    }
    case "doctor": {
      const { answerDoctor } = await import("./answer-doctor.ts");
      return answerDoctor(cut, around);
    }
    default:
      return answerFromState(cut, openContext(cut, around));
  }
}

function openContext(
  cut: StateCut | NotifyCut | OfJob,
  { scanUrl, variables, inherited }: AnswerAround,
): AnswerContext {
  const stateDirectory = resolveStateDirectory(cut.stateDir);
  checkPlace(stateDirectory);
  takeUmaskOf(stateDirectory);
  return {
    stateDirectory,
    scanUrl,
    runPath: variables["WATCHDOG_RUN_PATH"],
    terminalKind: variables["TERM"],
    ignoredSignals: inherited.ignoredSignals,
  };
}

type OfJob = JobStatusCut | JobPlanCut | JobVerifyCut;
type OfConfig = ConfigShowCut | ConfigCheckCut;
type StateCut = Exclude<
  AnswerCut,
  ProbeCut | NotifyCut | RepairCut | PatrolCut | DoctorCut | OfConfig | OfJob
>;

async function answerFromState(cut: StateCut, context: AnswerContext): Promise<Answer> {
  switch (cut.kind) {
    case "status":
      return answerStatus(cut, context);
    case "history":
      return answerHistory(cut, context);
    case "report": {
      const { answerReport } = await import("./answer-report.ts");
      return answerReport(cut, context);
    }
    case "why": {
      const { answerWhy } = await import("./answer-report.ts");
      return answerWhy(cut, context);
    }
    case "logs":
      return answerLogs(cut, context);
    case "lease-list":
      return answerLeaseList(cut, context);
    case "lease-show":
      return answerLeaseShow(cut, context);
    case "lease-explain":
      return answerLeaseExplain(cut, context);
    case "circuit-list":
      return answerCircuitList(cut, context);
    case "circuit-show":
      return answerCircuitShow(cut, context);
    case "circuit-reset":
      return answerCircuitReset(cut, context);
    case "stop":
      return answerStop(cut, context);
  }
}
