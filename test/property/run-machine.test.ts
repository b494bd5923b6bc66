/**
 * Every course that a run can take, up to a length: each is judged by a table that looks at the
 * whole history instead of a state, and by what must hold whatever happens.
 */
import { describe, expect, test } from "bun:test";
import { decideNext } from "../../src/core/run-machine.ts";
import {
  FIRST_STATE,
  type RunAction,
  type RunEvent,
  type RunPolicy,
  type RunState,
  type StopRequest,
} from "../../src/core/run-state.ts";
import * as signals from "../../src/core/signals.ts";

const { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGSTOP, SIGUSR1, SIGWINCH } = signals;
const DEPTH = 4;
const GRACE_MS = 10_000;

interface Moment {
  readonly event: RunEvent;
  readonly actions: readonly RunAction[];
}
type History = readonly Moment[];

const received = (signal: number, interrupt = "unread", isTerminalGone = false): RunEvent =>
  ({ kind: "signal-received", signal, interrupt, isTerminalGone }) as RunEvent;

const ALPHABET: readonly RunEvent[] = [
  { kind: "main-ended", end: { kind: "exited", code: 0 } },
  { kind: "main-stopped", signal: SIGTSTP },
  { kind: "main-stopped", signal: SIGSTOP },
  received(SIGTERM),
  received(SIGINT, "caught"),
  received(SIGINT, "ignored"),
  received(SIGQUIT),
  received(SIGHUP, "unread", true),
  received(SIGHUP),
  received(SIGWINCH),
  received(SIGTSTP),
  received(SIGUSR1),
  { kind: "limit-reached", limit: "timeout" },
  { kind: "limit-reached", limit: "idle" },
  { kind: "grace-over" },
  { kind: "members-left" },
  { kind: "tree-empty" },
  { kind: "tree-stuck" },
  { kind: "output-ended" },
];

const POLICIES: readonly RunPolicy[] = [true, false].flatMap((hasTerminal) =>
  [undefined, 3_000].flatMap((killAfterMs) =>
    (["kill", "wait", "leave"] as const).map((leftovers) => {
      const rest = { defaultGraceMs: GRACE_MS, limitSignal: SIGQUIT };
      return { hasTerminal, killAfterMs, leftovers, ...rest };
    }),
  ),
);

const has = (history: History, kind: RunEvent["kind"]): boolean =>
  history.some((moment) => moment.event.kind === kind);
const did = (history: History, kind: RunAction["kind"]): boolean =>
  history.some((moment) => moment.actions.some((action) => action.kind === kind));

/**
 * What the world can bring about after a history; a main command ends once, a grace must have
 * begun.
 */
function isPossible(history: History, event: RunEvent): boolean {
  switch (event.kind) {
    case "main-ended":
      return !has(history, "main-ended");
    case "main-stopped":
      return !has(history, "main-ended") && !did(history, "end-output");
    case "grace-over":
      return did(history, "start-grace") && !has(history, "grace-over");
    case "members-left":
    case "tree-empty":
      return has(history, "main-ended");
    case "tree-stuck":
      return did(history, "kill-tree");
    case "output-ended":
      return did(history, "end-output");
    default:
      return true;
  }
}

/**
 * Somebody has asked the tree to end: an INT or QUIT that was only passed on is no such request.
 */
function wasAsked(history: History): boolean {
  const isAsk = (action: RunAction): boolean =>
    action.kind === "kill-tree" ||
    (action.kind === "signal-tree" && (action.why !== "forwarded" || action.signal === SIGTERM));
  return history.some((moment) => moment.actions.some(isAsk));
}

/** Which request a moment is, told by what came before it; only the first of a history counts. */
function requestOf(before: History, event: RunEvent, policy: RunPolicy): StopRequest | undefined {
  if (event.kind !== "signal-received" || did(before, "end-output")) return undefined;
  const byKey = { [SIGINT]: "interrupted", [SIGQUIT]: "quit" } as const;
  const key = byKey[event.signal as keyof typeof byKey];
  if (event.signal === SIGTERM) return "terminated";
  if (event.signal === SIGHUP && policy.hasTerminal && event.isTerminalGone) return "hung-up";
  if (key === undefined) return undefined;
  if (!policy.hasTerminal || has(before, "main-ended")) return key;
  const isSecondDeaf = event.interrupt === "ignored" && did(before, "tell-interrupt-ignored");
  return isSecondDeaf ? key : undefined;
}

function stopOf(history: History, policy: RunPolicy): StopRequest | undefined {
  return history
    .map(({ event }, index) => requestOf(history.slice(0, index), event, policy))
    .find((request) => request !== undefined);
}

type Received = Extract<RunEvent, { kind: "signal-received" }>;

/** The command was made to end: nobody waits long for its output. */
function isForced(history: History, policy: RunPolicy): boolean {
  const isEnded = did(history, "kill-tree") || has(history, "limit-reached");
  return isEnded || stopOf(history, policy) !== undefined;
}

function expected(history: History, event: RunEvent, policy: RunPolicy): RunAction[] {
  if (did(history, "finish")) return [];
  if (did(history, "end-output")) return expectedInDelivery(history, event, policy);
  switch (event.kind) {
    case "main-ended":
      return [{ kind: "look-at-tree" }];
    case "main-stopped":
      return event.signal === SIGTSTP ? stopIf(policy.hasTerminal) : [];
    case "limit-reached":
      return expectedForLimit(history, policy);
    case "grace-over":
      return did(history, "kill-tree") ? [] : [{ kind: "kill-tree", why: "grace-over" }];
    case "members-left":
      return expectedForLeft(history, policy);
    case "tree-empty":
    case "tree-stuck": {
      const isPatient = event.kind === "tree-empty" && !isForced(history, policy);
      return [{ kind: "end-output", isPatient }];
    }
    case "signal-received":
      return expectedForSignal(history, event, policy);
    case "output-ended":
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

/** Nobody takes the output: once it is given up, then the run ends without it. */
function giveUpOutput(history: History): RunAction[] {
  return [{ kind: did(history, "abandon-output") ? "finish" : "abandon-output" }];
}

function ask(
  signal: number,
  why: "limit" | "leftover" | "forwarded" | "hung-up",
  continues: boolean,
): RunAction {
  return { kind: "signal-tree", signal, why, continues };
}

function expectedForLeft(history: History, policy: RunPolicy): RunAction[] {
  if (did(history, "note-leftovers")) return [];
  const note: RunAction = { kind: "note-leftovers" };
  if (did(history, "kill-tree") || policy.leftovers === "wait") return [note];
  if (policy.leftovers === "leave" && !has(history, "limit-reached")) {
    return [note, { kind: "end-output", isPatient: !isForced(history, policy) }];
  }
  const grace = escalate(history, policy.killAfterMs ?? GRACE_MS);
  return wasAsked(history) ? [note, ...grace] : [note, ask(SIGTERM, "leftover", true), ...grace];
}

/** The kernel stops the group: we stop with our command, or at once when it is no more. */
const expectedForSuspend = (history: History): RunAction[] => stopIf(has(history, "main-ended"));

function expectedForSignal(history: History, event: Received, policy: RunPolicy): RunAction[] {
  const { signal } = event;
  const isKey = [SIGINT, SIGQUIT, SIGWINCH, SIGTSTP].includes(signal);
  if (isKey && policy.hasTerminal) return expectedForKey(history, event, policy);
  if (signal === SIGINT || signal === SIGQUIT) {
    return [ask(signal, "forwarded", false), ...escalate(history, policy.killAfterMs)];
  }
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

function killOnce(history: History): RunAction[] {
  return did(history, "kill-tree") ? [] : [{ kind: "kill-tree", why: "second-request" }];
}

/** Visits each possible history of each policy, the shortest first on every path. */
function visitAll(visit: (history: History, state: RunState, policy: RunPolicy) => void): number {
  let count = 0;
  const go = (history: History, state: RunState, policy: RunPolicy): void => {
    count += 1;
    visit(history, state, policy);
    if (history.length === DEPTH || did(history.slice(0, -1), "finish")) return;
    for (const event of ALPHABET) {
      if (!isPossible(history, event)) continue;
      const step = decideNext(state, event, policy);
      go([...history, { event, actions: step.actions }], step.state, policy);
    }
  };
  for (const policy of POLICIES) go([], FIRST_STATE, policy);
  return count;
}

/** A plain comparison: `expect` for a million histories takes minutes. */
const same = (a: unknown, b: unknown): boolean => Bun.deepEquals(a, b, true);

describe(`all possible courses of up to ${DEPTH} events`, () => {
  test("act as the history demands", () => {
    const wrong: unknown[] = [];
    const count = visitAll((history, _state, policy) => {
      const last = history.at(-1);
      if (last === undefined || wrong.length > 2) return;
      const wanted = expected(history.slice(0, -1), last.event, policy);
      if (!same(last.actions, wanted)) wrong.push({ policy, history, wanted });
    });
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(50_000);
  }, 60_000);

  test("remember who asked first, which limit came first, and how the command ended", () => {
    const wrong: unknown[] = [];
    visitAll((history, state, policy) => {
      if (did(history.slice(0, -1), "finish") || wrong.length > 2) return;
      const limits = history.map(({ event }) =>
        event.kind === "limit-reached" ? event.limit : undefined,
      );
      const limit = limits.find((each) => each !== undefined);
      const wanted = { stop: stopOf(history, policy), limit, hasEnd: has(history, "main-ended") };
      const found = { stop: state.stop, limit: state.limit, hasEnd: state.end !== undefined };
      if (!same(found, wanted)) wrong.push({ policy, history, wanted, found });
    });
    expect(wrong).toEqual([]);
  }, 60_000);

  test("finish last and once, kill once, begin one grace, and end the output once", () => {
    const wrong: unknown[] = [];
    visitAll((history) => {
      const actions = history.flatMap((moment) => moment.actions.map((action) => action.kind));
      const timesOf = (kind: RunAction["kind"]) => actions.filter((each) => each === kind).length;
      const once = ["finish", "kill-tree", "start-grace", "end-output", "abandon-output"] as const;
      const isOnce = once.every((kind) => timesOf(kind) <= 1);
      const isLast = timesOf("finish") === 0 || actions.at(-1) === "finish";
      const hasOutput = !has(history, "tree-empty") || timesOf("end-output") === 1;
      const isInOrder = timesOf("finish") === 0 || actions.includes("end-output");
      if (!(isOnce && isLast && hasOutput && isInOrder)) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 60_000);

  test("never signal anybody once the output is being delivered", () => {
    const wrong: unknown[] = [];
    visitAll((history) => {
      const actions = history.flatMap((moment) => moment.actions.map((action) => action.kind));
      const after = actions.slice(actions.indexOf("end-output") + 1);
      const isSignal = (kind: string) => /^(signal|kill)-/.test(kind);
      if (actions.includes("end-output") && after.some(isSignal)) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 60_000);

  test("never pass a key of the terminal on while the command lives", () => {
    const wrong: unknown[] = [];
    const keys: readonly number[] = [SIGINT, SIGQUIT, SIGTSTP, SIGWINCH];
    visitAll((history, _state, policy) => {
      const { event, actions } = history.at(-1) ?? { event: undefined, actions: [] };
      if (event?.kind !== "signal-received" || !keys.includes(event.signal)) return;
      if (!policy.hasTerminal || has(history, "main-ended")) return;
      if (actions.some((action) => action.kind.startsWith("signal-"))) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 60_000);

  test("also answer events that cannot be, and change nothing after the end", () => {
    const policy = POLICIES[0];
    if (policy === undefined) throw new Error("no policy");
    for (const first of ALPHABET) {
      for (const second of ALPHABET) {
        const step = decideNext(decideNext(FIRST_STATE, first, policy).state, second, policy);
        expect(step.actions.length).toBeLessThan(4);
        const finished = { ...step.state, phase: "finished" } as const;
        expect(decideNext(finished, first, policy)).toEqual({ state: finished, actions: [] });
      }
    }
  });
});
