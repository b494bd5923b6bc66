/**
 * The course of one run as a pure machine: `decideNext(state, event, policy)` gives the next state
 * and what is to be done. Knows no process, clock or descriptor; a run can be replayed from its
 * events.
 *
 * Always true: the tree is asked to end before it is killed, except by a second request of the
 * user; once killing has begun it goes on until the tree is empty or proven stuck; `finish` is the
 * last action, and comes once.
 */
import type { ItemsFailure } from "./item-counts.ts";
import type {
  DependencyFailure,
  LimitName,
  RunAction,
  RunEvent,
  RunPolicy,
  RunState,
  SignalReason,
  Step,
  StopRequest,
} from "./run-state.ts";
import {
  SIGCONT,
  SIGHUP,
  SIGINT,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
  SIGTTIN,
  SIGTTOU,
  SIGWINCH,
  SIGXCPU,
} from "./signals.ts";

export function decideNext(state: RunState, event: RunEvent, policy: RunPolicy): Step {
  if (state.phase === "finished") return { state, actions: [] };
  return endPause(decideEvent(state, event, policy));
}

/**
 * A tree that is asked to end, or left, must not stand still: after the signal it is continued, so
 * that it finds the signal when it wakes. KILL needs none of this (signal(7)).
 */
function endPause(step: Step): Step {
  const { state, actions } = step;
  if (!state.isPaused || !isBeingEnded(state)) return step;
  return state.isKilling ? { state: { ...state, isPaused: false }, actions } : thaw(step);
}

/** After what was sent, and before the output of those who go on is waited for. */
function thaw({ state, actions }: Step): Step {
  const isDelivery = (action: RunAction): boolean => action.kind === "end-output";
  const before = actions.filter((action) => !isDelivery(action));
  const behind = actions.filter(isDelivery);
  return {
    state: { ...state, isPaused: false },
    actions: [...before, { kind: "thaw-tree" }, ...behind],
  };
}

function decideEvent(state: RunState, event: RunEvent, policy: RunPolicy): Step {
  switch (event.kind) {
    case "main-ended":
      return { state: { ...state, end: event.end }, actions: [{ kind: "look-at-tree" }] };
    case "main-stopped":
      return decideStopped(state, event.signal, policy);
    case "signal-received":
      return decideReceived(state, event, policy);
    case "limit-reached":
      return decideLimit(state, event.limit, policy);
    case "lease-lost":
      return decideLeaseLost(state);
    case "dependency-failed":
      return decideDependencyFailed(state, event.failure, policy);
    case "items-failed":
      return decideItemsFailed(state, event.failure, policy);
    case "pause-wanted":
      return decidePause(state);
    case "pause-over":
      return decidePauseOver(state);
    case "grace-over":
      return state.phase === "running" ? kill(state, "grace-over") : { state, actions: [] };
    default:
      return decideTreeEvent(state, event, policy);
  }
}

type TreeEventKind = "members-left" | "tree-empty" | "tree-stuck" | "output-ended";

/** What has become of the tree, and then of its output. */
function decideTreeEvent(
  state: RunState,
  event: Extract<RunEvent, { kind: TreeEventKind }>,
  policy: RunPolicy,
): Step {
  switch (event.kind) {
    case "members-left":
      return decideMembersLeft(state, policy);
    case "tree-empty":
      return deliver(state);
    case "tree-stuck":
      return deliver({ ...state, isStuck: true });
    case "output-ended":
      return finish(state);
  }
}

const JOB_CONTROL: readonly number[] = [SIGTSTP, SIGTTIN, SIGTTOU];

function decideReceived(state: RunState, event: SignalEvent, policy: RunPolicy): Step {
  // The kernel stops the whole group. While the command lives we stop when it has; after it, at
  // once: nobody else would tell the shell.
  if (policy.hasTerminal && JOB_CONTROL.includes(event.signal)) {
    const stop: RunAction = { kind: "stop-self", signal: event.signal };
    // A command that stands still already does not tell us that it was stopped.
    return { state, actions: state.end === undefined && !state.isPaused ? [] : [stop] };
  }
  return state.phase === "delivering"
    ? decideSignalWhileDelivering(state, event)
    : decideSignal(state, event, policy);
}

function decideStopped(state: RunState, signal: number, policy: RunPolicy): Step {
  if (!policy.hasTerminal || !JOB_CONTROL.includes(signal)) return { state, actions: [] };
  return { state, actions: [{ kind: "stop-self", signal }] };
}

type SignalEvent = Extract<RunEvent, { kind: "signal-received" }>;

function decideSignal(state: RunState, event: SignalEvent, policy: RunPolicy): Step {
  switch (event.signal) {
    case SIGTERM:
      return decideTermination(state, policy, "terminated", []);
    case SIGINT:
    case SIGQUIT:
      return policy.hasTerminal
        ? decideKeystroke(state, event, policy)
        : decideInterruption(state, event.signal, policy);
    case SIGHUP:
      return decideHangUp(state, event.isTerminalGone, policy);
    case SIGCONT:
      return state.isPaused ? { state, actions: [] } : forward(state, SIGCONT);
    case SIGXCPU:
      // Our own CPU time has reached the caller's soft limit: handled, so that it does not end us.
      return { state, actions: [] };
    case SIGWINCH:
      // In the shared group the kernel has told the command already.
      return policy.hasTerminal ? { state, actions: [] } : forward(state, SIGWINCH);
    default:
      return forward(state, event.signal);
  }
}

function forward(state: RunState, signal: number): Step {
  return { state, actions: [{ kind: "signal-main", signal, why: "forwarded" }] };
}

/** The first request asks the whole tree, once; the next one, whoever asked before, kills it. */
function decideTermination(
  state: RunState,
  policy: RunPolicy,
  stop: StopRequest,
  before: readonly RunAction[],
): Step {
  const stopped = { ...state, stop: state.stop ?? stop };
  if (state.isAsked) return kill(stopped, "second-request");
  const why = stop === "hung-up" ? "hung-up" : "forwarded";
  const ask: RunAction = { kind: "signal-tree", signal: SIGTERM, why, continues: false };
  return withGraceIfGiven({ ...stopped, isAsked: true }, policy, [...before, ask]);
}

/**
 * INT or QUIT without a terminal: passed on to everybody each time, as the kernel would to a group.
 */
function decideInterruption(state: RunState, signal: number, policy: RunPolicy): Step {
  const stop = signal === SIGINT ? "interrupted" : "quit";
  const ask: RunAction = { kind: "signal-tree", signal, why: "forwarded", continues: false };
  return withGraceIfGiven({ ...state, stop: state.stop ?? stop }, policy, [ask]);
}

/**
 * Ctrl-C or Ctrl-\ : the kernel has told the whole group; here only the commands that cannot hear
 * it matter.
 */
function decideKeystroke(state: RunState, event: SignalEvent, policy: RunPolicy): Step {
  const step = decideKey(state, event, policy);
  // The key waits at each of the stopped ones: they hear it when they go on.
  return state.isPaused && !step.state.isKilling ? thaw(step) : step;
}

function decideKey(state: RunState, event: SignalEvent, policy: RunPolicy): Step {
  const seen = { ...state, seen: [...state.seen, event.signal].slice(-MOST_SEEN) };
  const stop = event.signal === SIGINT ? "interrupted" : "quit";
  if (state.end !== undefined) {
    // The key that the command has died of comes to us a moment later: it asks for nothing more.
    const hasDiedOfIt = state.end.kind === "signaled" && state.end.signal === event.signal;
    if (hasDiedOfIt && !state.hasLeftovers) return { state: seen, actions: [] };
    return decideTermination(seen, policy, stop, []);
  }
  if (event.signal !== SIGINT || event.interrupt !== "ignored") return { state: seen, actions: [] };
  if (state.ignoredInterrupts > 0) {
    return kill({ ...seen, stop: state.stop ?? "interrupted" }, "second-request");
  }
  return {
    state: { ...seen, ignoredInterrupts: 1 },
    actions: [{ kind: "tell-interrupt-ignored" }],
  };
}

/** How many keystrokes are remembered: only which signals they were matters. */
const MOST_SEEN = 8;

function decideHangUp(state: RunState, isTerminalGone: boolean, policy: RunPolicy): Step {
  const tell: RunAction = { kind: "signal-main", signal: SIGHUP, why: "forwarded" };
  const seen = { ...state, seen: [...state.seen, SIGHUP].slice(-MOST_SEEN) };
  if (!policy.hasTerminal || !isTerminalGone) return { state: seen, actions: [tell] };
  // A dying session sends more than one HUP: only the first counts as a request.
  if (state.stop !== undefined) return { state: seen, actions: [] };
  return decideTermination(seen, policy, "hung-up", [tell]);
}

function withGraceIfGiven(state: RunState, policy: RunPolicy, actions: readonly RunAction[]): Step {
  if (policy.killAfterMs === undefined) return { state, actions };
  return startGrace(state, policy.killAfterMs, actions);
}

function startGrace(state: RunState, graceMs: number, actions: readonly RunAction[]): Step {
  if (state.hasGrace) return { state, actions };
  return {
    state: { ...state, hasGrace: true },
    actions: [...actions, { kind: "start-grace", graceMs }],
  };
}

function decideLimit(state: RunState, limit: LimitName, policy: RunPolicy): Step {
  if (state.limit !== undefined) return { state, actions: [] };
  const limited = { ...state, limit };
  if (state.phase === "delivering") return abandonOutput(limited);
  if (state.isKilling) return { state: limited, actions: [] };
  return askFor(limited, "limit", policy);
}

/** No grace: another run may have begun under the key, and the two must not overlap. */
function decideLeaseLost(state: RunState): Step {
  const lost = { ...state, hasLostLease: true };
  return state.phase === "running" ? kill(lost, "lease-lost") : { state: lost, actions: [] };
}

/**
 * As a limit of watchdog's own: asked, and killed after the grace. A command that has ended by
 * itself needs nobody any more, unless it has left some who go on with the work.
 */
function decideDependencyFailed(
  state: RunState,
  dependency: DependencyFailure,
  policy: RunPolicy,
): Step {
  if (!isAtWork(state)) return { state, actions: [] };
  return askFor({ ...state, dependency }, "dependency-down", policy);
}

/** The same: a job that only burns its items is ended, one that has ended is judged later. */
function decideItemsFailed(state: RunState, failure: ItemsFailure, policy: RunPolicy): Step {
  if (!isAtWork(state)) return { state, actions: [] };
  return askFor({ ...state, itemsFailure: failure }, "items-failed", policy);
}

function askFor(state: RunState, why: SignalReason, policy: RunPolicy): Step {
  const signal = policy.limitSignal;
  const ask: RunAction = { kind: "signal-tree", signal, why, continues: true };
  const graceMs = policy.killAfterMs ?? policy.defaultGraceMs;
  return startGrace({ ...state, isAsked: true }, graceMs, [ask]);
}

/** INT and QUIT are passed on without being counted as a request that the next one follows up. */
function isBeingEnded({ phase, isAsked, stop }: RunState): boolean {
  return phase !== "running" || isAsked || stop !== undefined;
}

/** By itself: the command, or whom it has left where those are waited for. */
function isAtWork(state: RunState): boolean {
  const isThere = state.end === undefined || state.hasLeftovers;
  return isThere && !isBeingEnded(state);
}

function decidePause(state: RunState): Step {
  if (state.isPaused || !isAtWork(state)) return { state, actions: [] };
  return { state: { ...state, isPaused: true }, actions: [{ kind: "freeze-tree" }] };
}

function decidePauseOver(state: RunState): Step {
  const step = { state, actions: [] };
  return state.isPaused ? thaw(step) : step;
}

/**
 * The main command has ended, members live. A limit asks for the whole tree, whatever the policy.
 */
function decideMembersLeft(state: RunState, policy: RunPolicy): Step {
  if (state.phase !== "running" || state.end === undefined || state.hasLeftovers) {
    return { state, actions: [] };
  }
  const left = { ...state, hasLeftovers: true };
  const note: RunAction = { kind: "note-leftovers" };
  if (state.isKilling) return { state: left, actions: [note] };
  if (policy.leftovers === "wait") return { state: left, actions: [note] };
  if (policy.leftovers === "leave" && !isEndedByUs(state)) {
    const delivered = deliver(left);
    return { state: delivered.state, actions: [note, ...delivered.actions] };
  }
  const graceMs = policy.killAfterMs ?? policy.defaultGraceMs;
  if (state.isAsked) return startGrace(left, graceMs, [note]);
  const ask: RunAction = { kind: "signal-tree", signal: SIGTERM, why: "leftover", continues: true };
  return startGrace({ ...left, isAsked: true }, graceMs, [note, ask]);
}

/** Then the whole tree was meant, whatever the policy for leftovers. */
function isEndedByUs(state: RunState): boolean {
  const reasons = [state.limit, state.dependency, state.itemsFailure];
  return reasons.some((one) => one !== undefined);
}

function kill(state: RunState, why: SignalReason): Step {
  if (state.isKilling) return { state, actions: [] };
  return {
    state: { ...state, isKilling: true, isAsked: true },
    actions: [{ kind: "kill-tree", why }],
  };
}

/** Whoever asks now means the wrapper itself: the command is gone, only its reader is slow. */
function decideSignalWhileDelivering(state: RunState, event: SignalEvent): Step {
  const stops: readonly number[] = [SIGTERM, SIGINT, SIGQUIT, SIGHUP];
  return stops.includes(event.signal) ? abandonOutput(state) : { state, actions: [] };
}

/** The first time the log may still be finished; whoever asks again gets the end at once. */
function abandonOutput(state: RunState): Step {
  if (state.hasAbandonedOutput) return finish(state);
  return {
    state: { ...state, hasAbandonedOutput: true },
    actions: [{ kind: "abandon-output" }],
  };
}

/**
 * Output of a command that ended by itself is waited for; that of one that was made to end only for
 * a moment.
 */
function deliver(state: RunState): Step {
  if (state.phase !== "running") return { state, actions: [] };
  const wasForced = state.isKilling || isEndedByUs(state) || state.stop !== undefined;
  return {
    state: { ...state, phase: "delivering" },
    actions: [{ kind: "end-output", isPatient: !wasForced }],
  };
}

function finish(state: RunState): Step {
  return { state: { ...state, phase: "finished" }, actions: [{ kind: "finish" }] };
}
