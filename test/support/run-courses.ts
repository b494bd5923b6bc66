/**
 * Every course that a run can take, up to a length: what can happen to it, under which policies,
 * and a walk over all of it.
 */
import { decideNext } from "../../src/core/run-machine.ts";
import {
  type DependencyFailure,
  FIRST_STATE,
  type RunAction,
  type RunEvent,
  type RunPolicy,
  type RunState,
} from "../../src/core/run-state.ts";
import * as signals from "../../src/core/signals.ts";

const { SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGSTOP, SIGUSR1, SIGWINCH } = signals;
export const GRACE_MS = 10_000;

export interface Moment {
  readonly event: RunEvent;
  readonly actions: readonly RunAction[];
}
export type History = readonly Moment[];

const received = (signal: number, interrupt = "unread", isTerminalGone = false): RunEvent =>
  ({ kind: "signal-received", signal, interrupt, isTerminalGone }) as RunEvent;
const failed = (name: string, because: DependencyFailure["because"]): RunEvent => ({
  kind: "dependency-failed",
  failure: { name, because },
});
const ITEMS_FAILED: RunEvent = {
  kind: "items-failed",
  failure: { because: "too-many-failed", failed: 5, done: 20, failedInRow: 1 },
};
const ENDED: RunEvent = { kind: "main-ended", end: { kind: "exited", code: 0 } };

/** All that can happen. */
const ALPHABET: readonly RunEvent[] = [
  ENDED,
  { kind: "main-ended", end: { kind: "signaled", signal: SIGINT } },
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
  received(SIGCONT),
  received(SIGUSR1),
  { kind: "limit-reached", limit: "timeout" },
  { kind: "limit-reached", limit: "idle" },
  { kind: "lease-lost" },
  failed("server", "circuit-opened"),
  ITEMS_FAILED,
  { kind: "pause-wanted" },
  { kind: "pause-over" },
  { kind: "grace-over" },
  { kind: "members-left" },
  { kind: "tree-empty" },
  { kind: "tree-stuck" },
  { kind: "output-ended" },
];

/** What matters to a tree that stands still, or to one that is ended for a dependency. */
const OF_DEPENDENCIES: readonly RunEvent[] = [
  ENDED,
  received(SIGTERM),
  received(SIGINT, "caught"),
  received(SIGINT, "ignored"),
  received(SIGTSTP),
  { kind: "limit-reached", limit: "timeout" },
  { kind: "lease-lost" },
  failed("server", "circuit-opened"),
  failed("database", "max-elapsed"),
  ITEMS_FAILED,
  { kind: "pause-wanted" },
  { kind: "pause-over" },
  { kind: "grace-over" },
  { kind: "members-left" },
  { kind: "tree-empty" },
  { kind: "output-ended" },
];

export interface Range {
  readonly alphabet: readonly RunEvent[];
  readonly depth: number;
}
export const EVERYTHING: Range = { alphabet: ALPHABET, depth: 4 };
export const DEPENDENCIES: Range = { alphabet: OF_DEPENDENCIES, depth: 5 };

export const POLICIES: readonly RunPolicy[] = [true, false].flatMap((hasTerminal) =>
  [undefined, 3_000].flatMap((killAfterMs) =>
    (["kill", "wait", "leave"] as const).map((leftovers) => {
      const rest = { defaultGraceMs: GRACE_MS, limitSignal: SIGQUIT };
      return { hasTerminal, killAfterMs, leftovers, ...rest };
    }),
  ),
);

export const has = (history: History, kind: RunEvent["kind"]): boolean =>
  history.some((moment) => moment.event.kind === kind);
export const did = (history: History, kind: RunAction["kind"]): boolean =>
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

type Visit = (history: History, state: RunState, policy: RunPolicy) => void;

/**
 * Visits each possible history of each policy, the shortest first on every path.
 * @returns how many there are
 */
export function visitAll({ alphabet, depth }: Range, visit: Visit): number {
  let count = 0;
  const go = (history: History, state: RunState, policy: RunPolicy): void => {
    count += 1;
    visit(history, state, policy);
    if (history.length === depth || did(history.slice(0, -1), "finish")) return;
    for (const event of alphabet) {
      if (!isPossible(history, event)) continue;
      const step = decideNext(state, event, policy);
      go([...history, { event, actions: step.actions }], step.state, policy);
    }
  };
  for (const policy of POLICIES) go([], FIRST_STATE, policy);
  return count;
}

/** The kinds of all that was done, in order. */
export function kindsOf(history: History): RunAction["kind"][] {
  return history.flatMap((moment) => moment.actions.map((action) => action.kind));
}
