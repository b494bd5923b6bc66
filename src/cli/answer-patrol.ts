/**
 * `watchdog patrol`: hands the pieces of other rooms to the patrol, and its answers to whoever
 * prints them. Decides nothing.
 *
 * Always: stdout holds the answer and nothing else; with `--loop` the first round of a process
 * answers as one alone, and each later one only tells what has changed; with `--json` each is one
 * document a line.
 */
import { recordOfLost } from "../core/burial.ts";
import { EXIT, WatchdogError } from "../core/errors.ts";
import type { PolicyFile } from "../core/policy.ts";
import type { RunRecord } from "../core/run-record.ts";
import { deadRunOf } from "../core/survivors.ts";
import { sinceWallAt } from "../inspect/circuit-facts.ts";
import { readBrokenCircuits } from "../inspect/circuits.ts";
import { jobOf, runIdOf } from "../inspect/lease-facts.ts";
import { type LeaseView, readLeases } from "../inspect/leases.ts";
import { checkPlace } from "../inspect/state.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { isAlive } from "../os/machine.ts";
import { renewProcess } from "../os/renew.ts";
import { askRight } from "../os/rights.ts";
import { say, writeAnswerBytes } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { takeUmaskOf } from "../os/state-sharing.ts";
import { type Forgotten, forgetJob, retirePatrol } from "../patrol/forget.ts";
import { lockPatrol, waitForPatrol } from "../patrol/lock.ts";
import { isWornOut, patrolForEver } from "../patrol/loop.ts";
import type {
  CircuitSights,
  LeaseSight,
  LostRun,
  MarkedLeases,
  PatrolReport,
  PatrolRequest,
} from "../patrol/request.ts";
import { patrolOnce } from "../patrol/round.ts";
import { repairCommand, type RepairReport } from "../repair/repair-command.ts";
import { keptProcesses } from "../run/claim-for-run.ts";
import { type Answer, UNANSWERED } from "./answer.ts";
import { CARE_DEFAULTS } from "./care-table.ts";
import type { PatrolCut } from "./cut.ts";
import { couriersOf } from "./patrol-couriers.ts";
import { renderNews, renderPatrol, showPatrol } from "./render-patrol.ts";
import { renderJson } from "./render-words.ts";
import { showWord } from "./shown-words.ts";

export interface PatrolAround {
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  readonly policies: readonly PolicyFile[];
  readonly build: RunRecord["watchdog"];
  readonly inherited: Inheritance;
}

/** Of a job, or of patrols, nothing is known. */
const NOT_FOUND = 1;

export async function answerPatrol(cut: PatrolCut, around: PatrolAround): Promise<Answer> {
  const stateDirectory = resolveStateDirectory(cut.stateDir);
  checkPlace(stateDirectory);
  takeUmaskOf(stateDirectory);
  if (cut.forget !== undefined) return tellForgotten(cut.forget, stateDirectory);
  if (cut.isRetiring) return tellRetired(stateDirectory);
  const isEndless = cut.loopMs !== undefined;
  const locked = isEndless ? waitForPatrol(stateDirectory) : lockPatrol(stateDirectory);
  if (locked.kind === "busy") {
    const named = locked.pid === undefined ? "" : ` (pid ${locked.pid})`;
    const line = `error: another patrol is at work in ${stateDirectory}${named}`;
    return { lines: [line, "hint: watchdog status"], code: EXIT.locked };
  }
  if (locked.kind === "no-state") return answerNothing(cut, stateDirectory);
  try {
    const request = makeRequest(cut, around, stateDirectory);
    if (cut.loopMs !== undefined) return await loop(cut, cut.loopMs, request);
    return describe(cut, await patrolOnce(request), true);
  } finally {
    locked.lock.release();
  }
}

/** Nothing ran here yet. */
function answerNothing(cut: PatrolCut, stateDirectory: string): Answer {
  if (cut.loopMs !== undefined) {
    const message = `${stateDirectory}: there is no state directory yet, nothing to look after`;
    throw new WatchdogError("state.unusable", message, { hint: "watchdog run -- COMMAND" });
  }
  const line = cut.isJson ? renderJson({ format: 1, state_directory: stateDirectory }) : "";
  return { text: line, lines: [], code: EXIT.ok };
}

function describe(cut: PatrolCut, report: PatrolReport, isFirst: boolean): Answer {
  const lines = report.troubles;
  if (cut.isJson) return { text: renderJson(showPatrol(report)), lines, code: EXIT.ok };
  const isBrief = cut.isQuiet || !isFirst;
  return { text: isBrief ? renderNews(report) : renderPatrol(report), lines, code: EXIT.ok };
}

/** Never comes back but by an error of the first round. */
async function loop(cut: PatrolCut, loopMs: number, request: PatrolRequest): Promise<Answer> {
  let isFirst = true;
  const told = new Set<string>();
  const tell = (line: string): void => {
    if (!told.has(line)) say(`watchdog: ${line}`);
  };
  const round = async (): Promise<void> => {
    try {
      const report = await patrolOnce(request);
      const answer = describe(cut, report, isFirst);
      const text = cut.isJson ? `${JSON.stringify(showPatrol(report))}\n` : (answer.text ?? "");
      // A reader who has gone away takes nothing from the patrol.
      writeAnswerBytes(Buffer.from(text));
      for (const line of answer.lines) tell(line);
      // What has gone meanwhile is news when it comes again.
      told.clear();
      for (const line of answer.lines) told.add(line);
    } catch (error) {
      if (isFirst) throw error;
      const line = `error: ${error instanceof Error ? error.message : String(error)}`;
      tell(line);
      told.add(line);
    }
    isFirst = false;
  };
  return patrolForEver({ periodMs: loopMs, round, isWorn: isWornOut, renew: renewProcess });
}

function makeRequest(cut: PatrolCut, around: PatrolAround, stateDirectory: string): PatrolRequest {
  const { scanUrl, build } = around;
  const readKept = (runId: string) => keptProcesses(stateDirectory, runId);
  return {
    stateDirectory,
    periodMs: cut.periodMs ?? cut.loopMs,
    configured: cut.configured,
    readLeases: async () => {
      const views = await readLeases({ stateDirectory }, { scanUrl, readKept });
      return views.map((view) => sightOf(view, build));
    },
    markDead: () => markDead(stateDirectory, around),
    readCircuits: () => sightCircuits(stateDirectory),
    ...couriersOf(cut, { ...around, stateDirectory }),
  };
}

function sightOf(view: LeaseView, build: RunRecord["watchdog"]): LeaseSight {
  const { key, evidence, verdict } = view;
  return {
    key,
    verdict: verdict.name,
    rule: verdict.rule,
    because: verdict.because,
    runId: runIdOf(view) ?? null,
    job: jobOf(view) ?? null,
    beatAgeMs: evidence.beatAgeMs ?? null,
    lost: lostIn(view, build),
  };
}

/** Only where its owner is proven dead: `dead` and `orphaned`, and never across a boot unseen. */
function lostIn(view: LeaseView, build: RunRecord["watchdog"]): LostRun | undefined {
  const { key, evidence, verdict } = view;
  if (verdict.name !== "dead" && verdict.name !== "orphaned") return undefined;
  const { source, record } = evidence;
  if (source.kind !== "read") return undefined;
  const guard = deadRunOf(evidence)?.guard ?? null;
  return {
    runId: source.runId,
    run: record?.run_id === source.runId ? recordOfLost(record, build) : null,
    leases: [{ ...key, generation: source.generation }],
    isGuarded: guard !== null && isAlive(guard) !== "no",
  };
}

/** As `repair --apply`, but that it marks and does nothing else. */
async function markDead(
  stateDirectory: string,
  { scanUrl, policies, build }: PatrolAround,
): Promise<MarkedLeases> {
  const { repairIntervalMs, maxRepairs } = CARE_DEFAULTS;
  const limits = { repairIntervalMs, maxRepairs };
  const nothing = { approve: undefined, setGeneration: undefined, isJson: false };
  let report: RepairReport | undefined;
  const { lines, code } = await repairCommand({
    stateDirectory,
    options: { keys: [], isApplying: true, ...nothing, ...limits },
    scanUrl,
    readKept: (runId) => keptProcesses(stateDirectory, runId),
    decideRight: (right) => askRight(right, stateDirectory, policies),
    build,
    onStep: (line) => say(`watchdog: ${line}`),
    render: (found) => {
      report = found;
      return "";
    },
    isOnlyMarking: true,
  });
  const acts = report?.acts ?? [];
  const marked = acts.filter(({ end, because }) => end === "done" && because === "marked");
  return {
    marked: marked.map(({ key }) => key),
    // A repair that is at work does it better; the next patrol looks again.
    lines: code === EXIT.locked ? [] : lines.filter((line) => !line.startsWith("hint: ")),
  };
}

function sightCircuits(stateDirectory: string): CircuitSights {
  const { circuits, isReadable, troubles } = readBrokenCircuits(stateDirectory);
  const sights = circuits.map((view) => ({
    name: view.circuit.name,
    state: view.circuit.state.kind,
    target: view.circuit.target,
    job: view.circuit.job,
    sinceAt: sinceWallAt(view),
  }));
  return { circuits: sights, isReadable, troubles };
}

function tellForgotten(job: string, stateDirectory: string): Answer {
  const forgotten = forgetJob(stateDirectory, job);
  return describeForgotten(forgotten, {
    done: `nothing is expected of ${showWord(job)} any more`,
    unknown: `no schedule is known of ${showWord(job)}`,
  });
}

function tellRetired(stateDirectory: string): Answer {
  return describeForgotten(retirePatrol(stateDirectory), {
    done: "no patrol is expected any more",
    unknown: "no patrol was ever here",
  });
}

function describeForgotten(
  { kind, troubles }: Forgotten,
  texts: { readonly done: string; readonly unknown: string },
): Answer {
  if (kind === "done") return { text: `${texts.done}\n`, lines: troubles, code: EXIT.ok };
  if (kind === "unread") return { lines: troubles, code: UNANSWERED };
  return { lines: [`error: ${texts.unknown}`, "hint: watchdog patrol"], code: NOT_FOUND };
}
