/**
 * What `watchdog stop` says, and with which status it leaves. Pure; the end was decided before.
 */

import { EXIT } from "../core/errors.ts";
import { renderKey } from "../core/lease-key.ts";
import type { LeaseView } from "../inspect/leases.ts";
import type { RunningRun } from "../inspect/running.ts";
import type { StopEnd, StopStep } from "../inspect/stop.ts";
import type { JournalRun } from "../journal/queries.ts";
import { describeLastRun } from "./render-run.ts";
import { showWord } from "./shown-words.ts";

export interface Said {
  /** For stdout. */
  readonly text?: string;
  /** For stderr, without who says them. */
  readonly lines: readonly string[];
  readonly code: number;
  /** The one that ended it, and that watchdog leaves by, in the place of the code. */
  readonly signal?: number;
}

/** No such run goes on: answered, and nothing was done. */
const NOT_RUNNING = 1;
const NOT_ENDED = EXIT.wrapper_error;

/**
 * What the journal knows of the run that is meant: how it ended, or that it goes on, which nobody
 * proves who is not named whole.
 */
export interface LastRun {
  readonly run: JournalRun;
  readonly isGoingOn: boolean;
}

export function renderStopEnd(target: string, end: StopEnd, last: LastRun | undefined): Said {
  switch (end.kind) {
    case "stopped":
      return { text: `stopped ${nameRun(end.run)}\n`, lines: [], code: EXIT.ok };
    case "not-running":
      return describeNotRunning(target, end, last);
    case "ambiguous":
      return { lines: describeAmbiguous(target, end.runs), code: EXIT.usage_error };
    case "unseen":
      return { lines: describeUnseen(end.lease), code: NOT_ENDED };
    case "not-allowed":
      return { lines: describeNotAllowed(end.run, end.because), code: EXIT.refused };
    case "not-ended":
      return { lines: describeNotEnded(end.run, end.because), code: NOT_ENDED };
  }
}

/** What is worth a line before the end. */
export function renderStopStep(step: StopStep, run: RunningRun): string {
  const who = `the watchdog of ${nameRun(run)}`;
  return step === "was-stopped"
    ? `${who} was stopped (SIGSTOP, Ctrl-Z): continued it, so that it hears TERM`
    : `${nameRun(run)} still runs: sent TERM once more, which has its tree killed`;
}

function nameRun({ job, runId }: RunningRun): string {
  return `${job} (run ${runId})`;
}

/**
 * A start that waits for a dependency has the fence too, and no record yet: it can be named, but
 * not proven, so that it is for a person to ask it.
 */
function describeUnseen({ key, verdict, evidence }: LeaseView): string[] {
  const line = `error: nothing tells from here which process holds ${renderKey(key)}`;
  const why = `${verdict.name}, ${verdict.rule} ${verdict.because}`;
  const pids = (evidence.fence?.by ?? []).map(({ pid }) => pid);
  if (verdict.because !== "being-acquired") return [`${line} (${why})`];
  const waits = "a start that was not granted it yet, and may wait for a dependency";
  const hint = pids.length === 0 ? [] : [`hint: ps -fp ${pids.join(",")}`];
  return [`${line} (${why}): ${waits}; TERM to that process ends it`, ...hint];
}

/** Never that something is not running which may run. */
function describeNotRunning(
  target: string,
  { left, isKnown }: Extract<StopEnd, { kind: "not-running" }>,
  last: LastRun | undefined,
): Said {
  const word = showWord(target);
  const leases = left.map(describeLeft);
  if (!isKnown) {
    const line = `error: ${word} holds no lease; whether it runs without one is not known`;
    return { lines: [line, ...leases], code: NOT_ENDED };
  }
  if (last === undefined) {
    if (left.length > 0) return { lines: [`${word} is not running`, ...leases], code: NOT_RUNNING };
    // Not the job whose name is like it: that is not to be ended by a slip.
    return { lines: [`no run is known of ${word}`, "hint: watchdog status"], code: NOT_RUNNING };
  }
  const { run, isGoingOn } = last;
  if (isGoingOn) {
    const line = `error: ${word} is not all of the id of a run, expected ${run.runId}`;
    return { lines: [line, `hint: watchdog stop ${run.runId}`], code: EXIT.usage_error };
  }
  const isSeen = run.state === "ended" ? "is not running" : "is not seen to run";
  const line = `${word} ${isSeen}; last run: ${describeLastRun(run)}`;
  return { lines: [line, ...leases], code: NOT_RUNNING };
}

/** What nobody can be asked about any more. */
function describeLeft(view: LeaseView): string {
  const what = isDead(view) ? "its watchdog is dead" : describeUnsettled(view);
  const lease = `its lease ${renderKey(view.key)} was not given back`;
  return `${lease}: ${what}; the next run of it settles that`;
}

/** Its processes are not looked for here, and of those nothing is told. */
function describeUnsettled({ verdict: { rule, because } }: LeaseView): string {
  return `${rule} ${because === "tree-unread" ? "boot-unread" : because}`;
}

/**
 * The kernel has given back its lock, or nothing has its pid and start. One that is just being
 * killed shows its pid for a moment longer than its lock; that of another pid namespace cannot be
 * looked up.
 */
function isDead({ evidence, verdict }: LeaseView): boolean {
  const isLockBack = verdict.rule === "R6" && verdict.name !== "elsewhere";
  return evidence.ownerAlive === "no" || isLockBack;
}

function describeAmbiguous(target: string, runs: readonly RunningRun[]): string[] {
  const ids = runs.map(({ runId }) => runId);
  return [
    `error: ${showWord(target)} means ${runs.length} runs, expected one: ${ids.join(", ")}`,
    `hint: watchdog stop ${ids[0]}`,
  ];
}

type NotAllowed = Extract<StopEnd, { kind: "not-allowed" }>["because"];

const NOT_ALLOWED: Readonly<Record<NotAllowed, string>> = {
  "another-user": "its watchdog is another user's and may not be signalled",
  ancestor: "this command is a part of it; end the command instead",
  "process-one": "its watchdog is process 1, which is ended from outside its container",
  self: "its watchdog is this process",
};

function describeNotAllowed(run: RunningRun, because: NotAllowed): string[] {
  return [`error: ${nameRun(run)}: ${NOT_ALLOWED[because]}`];
}

function describeNotEnded(run: RunningRun, because: "no-descriptor" | "still-there"): string[] {
  const who = `${nameRun(run)}, pid ${run.supervisor.pid}`;
  if (because === "no-descriptor") {
    return [
      `error: ${who}: no descriptor is to be had, so nobody was signalled`,
      "hint: ulimit -n",
    ];
  }
  return [`error: ${who}, was asked twice and has not ended`, `hint: watchdog status ${run.runId}`];
}
