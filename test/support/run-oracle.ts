/**
 * What is to be done about an event of a run: told by a table that looks at the whole history
 * instead of a state.
 */
import type { ItemsFailure } from "../../src/core/item-counts.ts";
import type {
  DependencyFailure,
  RunAction,
  RunEvent,
  RunPolicy,
  SignalReason,
  StopRequest,
} from "../../src/core/run-state.ts";
import * as signals from "../../src/core/signals.ts";
import { did, GRACE_MS, has, type History, kindsOf } from "./run-courses.ts";

const { SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH } = signals;

/**
 * Somebody has asked the tree to end: an INT or QUIT that was only passed on is no such request.
 */
function wasAsked(history: History): boolean {
  const isAsk = (action: RunAction): boolean =>
    action.kind === "kill-tree" ||
    (action.kind === "signal-tree" && (action.why !== "forwarded" || action.signal === SIGTERM));
  return history.some((moment) => moment.actions.some(isAsk));
}

/** Of what has stopped or continued the tree, the last counts; KILL reaches a stopped one too. */
export function isFrozen(history: History): boolean {
  const matters: readonly string[] = ["freeze-tree", "thaw-tree", "kill-tree"];
  return kindsOf(history).findLast((kind) => matters.includes(kind)) === "freeze-tree";
}

/** Nobody has sent the tree a signal, no limit was reached, and it is not gone. */
function goesOn(history: History): boolean {
  const ends = ["signal-tree", "kill-tree", "end-output"] as const;
  return !has(history, "limit-reached") && !ends.some((kind) => did(history, kind));
}

/** The command lives, or others are waited for in its place. */
function isAtWork(history: History): boolean {
  return !has(history, "main-ended") || did(history, "note-leftovers");
}

/** What the run is ended for; whatever came later does not count. */
export function dependencyOf(history: History): DependencyFailure | undefined {
  for (const [index, { event }] of history.entries()) {
    if (event.kind === "dependency-failed" && wasHeard(history, index)) return event.failure;
  }
  return undefined;
}

/** The same of the items. */
export function itemsOf(history: History): ItemsFailure | undefined {
  for (const [index, { event }] of history.entries()) {
    if (event.kind === "items-failed" && wasHeard(history, index)) return event.failure;
  }
  return undefined;
}

function wasHeard(history: History, index: number): boolean {
  const before = history.slice(0, index);
  return goesOn(before) && isAtWork(before);
}

/** Which request a moment is, told by what came before it; only the first of a history counts. */
function requestOf(before: History, event: RunEvent, policy: RunPolicy): StopRequest | undefined {
  if (event.kind !== "signal-received" || did(before, "end-output")) return undefined;
  const byKey = { [SIGINT]: "interrupted", [SIGQUIT]: "quit" } as const;
  const key = byKey[event.signal as keyof typeof byKey];
  if (event.signal === SIGTERM) return "terminated";
  if (event.signal === SIGHUP && policy.hasTerminal && event.isTerminalGone) return "hung-up";
  if (key === undefined) return undefined;
  if (hasDiedOfKey(before, event, policy)) return undefined;
  if (!policy.hasTerminal || has(before, "main-ended")) return key;
  const isSecondDeaf = event.interrupt === "ignored" && did(before, "tell-interrupt-ignored");
  return isSecondDeaf ? key : undefined;
}

export function stopOf(history: History, policy: RunPolicy): StopRequest | undefined {
  return history
    .map(({ event }, index) => requestOf(history.slice(0, index), event, policy))
    .find((request) => request !== undefined);
}

type Received = Extract<RunEvent, { kind: "signal-received" }>;

/** The same keystroke that has ended the command already, and nobody else is known to be left. */
function hasDiedOfKey(before: History, event: Received, policy: RunPolicy): boolean {
  const isOfIt = before.some(
    (moment) =>
      moment.event.kind === "main-ended" &&
      moment.event.end.kind === "signaled" &&
      moment.event.end.signal === event.signal,
  );
  return policy.hasTerminal && isOfIt && !did(before, "note-leftovers");
}

/** The command was made to end: nobody waits long for its output. */
function isForced(history: History, policy: RunPolicy): boolean {
  const isEnded = did(history, "kill-tree") || isMeantWhole(history);
  return isEnded || stopOf(history, policy) !== undefined;
}

/** Watchdog itself has ended it: then nobody is left behind. */
function isMeantWhole(history: History): boolean {
  const reasons = [dependencyOf(history), itemsOf(history)];
  return has(history, "limit-reached") || reasons.some((one) => one !== undefined);
}

/** As if nothing stood still, and then what makes it go on. */
export function expected(history: History, event: RunEvent, policy: RunPolicy): RunAction[] {
  if (did(history, "finish")) return [];
  if (did(history, "end-output")) return expectedInDelivery(history, event, policy);
  const actions = expectedAlone(history, event, policy);
  if (!isFrozen(history) || !mustGoOn(event, policy, actions)) return actions;
  const at = actions.findIndex(({ kind }) => kind === "end-output");
  return actions.toSpliced(at === -1 ? actions.length : at, 0, { kind: "thaw-tree" });
}

function mustGoOn(event: RunEvent, policy: RunPolicy, actions: readonly RunAction[]): boolean {
  if (actions.some(({ kind }) => kind === "kill-tree")) return false;
  if (event.kind === "pause-over" || isKeyOfTerminal(event, policy)) return true;
  const endsOrLeaves: readonly string[] = ["signal-tree", "end-output"];
  return actions.some(({ kind }) => endsOrLeaves.includes(kind));
}

function isKeyOfTerminal(event: RunEvent, policy: RunPolicy): boolean {
  if (event.kind !== "signal-received" || !policy.hasTerminal) return false;
  return event.signal === SIGINT || event.signal === SIGQUIT;
}

function expectedAlone(history: History, event: RunEvent, policy: RunPolicy): RunAction[] {
  switch (event.kind) {
    case "pause-wanted":
      return expectedForPause(history);
    case "pause-over":
      return [];
    case "main-ended":
      return [{ kind: "look-at-tree" }];
    case "main-stopped":
      return event.signal === SIGTSTP ? stopIf(policy.hasTerminal) : [];
    case "limit-reached":
      return expectedForLimit(history, policy);
    case "lease-lost":
    case "grace-over":
      return killOnce(history, event.kind);
    case "dependency-failed":
      return expectedForReason(history, policy, "dependency-down");
    case "items-failed":
      return expectedForReason(history, policy, "items-failed");
    case "signal-received":
      return expectedForSignal(history, event, policy);
    default:
      return expectedOfTree(history, event, policy);
  }
}

function expectedOfTree(history: History, event: RunEvent, policy: RunPolicy): RunAction[] {
  switch (event.kind) {
    case "members-left":
      return expectedForLeft(history, policy);
    case "tree-empty":
      return [{ kind: "end-output", isPatient: !isForced(history, policy) }];
    case "tree-stuck":
      return [{ kind: "end-output", isPatient: false }];
    default:
      throw new Error("no output ends before the tree does");
  }
}

/** The tree is gone: only the reader of the output is waited for. */
function expectedInDelivery(history: History, event: RunEvent, policy: RunPolicy): RunAction[] {
  switch (event.kind) {
    case "output-ended":
      return [{ kind: "finish" }];
    case "main-ended":
      return [{ kind: "look-at-tree" }];
    case "limit-reached":
      return has(history, "limit-reached") ? [] : giveUpOutput(history);
    case "signal-received": {
      if (event.signal === SIGTSTP && policy.hasTerminal) return expectedForSuspend(history);
      const isStop = [SIGTERM, SIGINT, SIGQUIT, SIGHUP].includes(event.signal);
      return isStop ? giveUpOutput(history) : [];
    }
    default:
      return [];
  }
}

const stopIf = (isOurs: boolean): RunAction[] =>
  isOurs ? [{ kind: "stop-self", signal: SIGTSTP }] : [];

/** The one clock of a run, if it does not run yet. */
function escalate(history: History, graceMs: number | undefined): RunAction[] {
  if (graceMs === undefined || did(history, "start-grace")) return [];
  return [{ kind: "start-grace", graceMs }];
}

function expectedForLimit(history: History, policy: RunPolicy): RunAction[] {
  if (has(history, "limit-reached") || did(history, "kill-tree")) return [];
  const grace = escalate(history, policy.killAfterMs ?? GRACE_MS);
  return [ask(policy.limitSignal, "limit", true), ...grace];
}

function expectedForReason(history: History, policy: RunPolicy, why: SignalReason): RunAction[] {
  if (!goesOn(history) || !isAtWork(history)) return [];
  const graceMs = policy.killAfterMs ?? GRACE_MS;
  return [ask(policy.limitSignal, why, true), { kind: "start-grace", graceMs }];
}

/** Nobody takes the output: once it is given up, then the run ends without it. */
function giveUpOutput(history: History): RunAction[] {
  return [{ kind: did(history, "abandon-output") ? "finish" : "abandon-output" }];
}

function ask(signal: number, why: SignalReason, continues: boolean): RunAction {
  return { kind: "signal-tree", signal, why, continues };
}

function expectedForPause(history: History): RunAction[] {
  const isMeant = goesOn(history) && isAtWork(history) && !isFrozen(history);
  return isMeant ? [{ kind: "freeze-tree" }] : [];
}

function expectedForLeft(history: History, policy: RunPolicy): RunAction[] {
  if (did(history, "note-leftovers")) return [];
  const note: RunAction = { kind: "note-leftovers" };
  if (did(history, "kill-tree") || policy.leftovers === "wait") return [note];
  if (policy.leftovers === "leave" && !isMeantWhole(history)) {
    return [note, { kind: "end-output", isPatient: !isForced(history, policy) }];
  }
  const grace = escalate(history, policy.killAfterMs ?? GRACE_MS);
  return wasAsked(history) ? [note, ...grace] : [note, ask(SIGTERM, "leftover", true), ...grace];
}

/**
 * The kernel stops the group: we stop with our command, or at once when that is no more, or stands
 * still already and so does not tell.
 */
const expectedForSuspend = (history: History): RunAction[] =>
  stopIf(has(history, "main-ended") || isFrozen(history));

function expectedForSignal(history: History, event: Received, policy: RunPolicy): RunAction[] {
  const { signal } = event;
  const isKey = [SIGINT, SIGQUIT, SIGWINCH, SIGTSTP].includes(signal);
  if (isKey && policy.hasTerminal) return expectedForKey(history, event, policy);
  if (signal === SIGINT || signal === SIGQUIT) {
    return [ask(signal, "forwarded", false), ...escalate(history, policy.killAfterMs)];
  }
  if (signal === SIGCONT && isFrozen(history)) return [];
  if (signal === SIGTERM) return expectedForRequest(history, policy, "forwarded");
  const toMain: RunAction = { kind: "signal-main", signal, why: "forwarded" };
  if (signal !== SIGHUP || !policy.hasTerminal || !event.isTerminalGone) return [toMain];
  if (stopOf(history, policy) !== undefined) return [];
  const asked = expectedForRequest(history, policy, "hung-up");
  return wasAsked(history) ? asked : [toMain, ...asked];
}

function expectedForKey(history: History, event: Received, policy: RunPolicy): RunAction[] {
  if (event.signal === SIGTSTP) return expectedForSuspend(history);
  if (event.signal === SIGWINCH) return [];
  if (hasDiedOfKey(history, event, policy)) return [];
  if (has(history, "main-ended")) return expectedForRequest(history, policy, "forwarded");
  if (event.signal !== SIGINT || event.interrupt !== "ignored") return [];
  if (!did(history, "tell-interrupt-ignored")) return [{ kind: "tell-interrupt-ignored" }];
  return killOnce(history);
}

/** The first one asks, the next one kills, whoever asked before. */
function expectedForRequest(
  history: History,
  policy: RunPolicy,
  why: "forwarded" | "hung-up",
): RunAction[] {
  if (wasAsked(history)) return killOnce(history);
  return [ask(SIGTERM, why, false), ...escalate(history, policy.killAfterMs)];
}

function killOnce(history: History, why: SignalReason = "second-request"): RunAction[] {
  return did(history, "kill-tree") ? [] : [{ kind: "kill-tree", why }];
}
