/**
 * Every course that a run can take, up to a length: each is judged by a table that looks at the
 * whole history instead of a state, and by what must hold whatever happens.
 */
import { describe, expect, test } from "bun:test";
import { decideNext } from "../../src/core/run-machine.ts";
import { FIRST_STATE, type RunAction } from "../../src/core/run-state.ts";
import * as signals from "../../src/core/signals.ts";
import {
  DEPENDENCIES,
  did,
  EVERYTHING,
  has,
  kindsOf,
  POLICIES,
  visitAll,
} from "../support/run-courses.ts";
import { dependencyOf, expected, isFrozen, itemsOf, stopOf } from "../support/run-oracle.ts";

const { SIGINT, SIGQUIT, SIGTSTP, SIGWINCH } = signals;

/** A plain comparison: `expect` for a million histories takes minutes. */
const same = (a: unknown, b: unknown): boolean => Bun.deepEquals(a, b, true);

describe.each([
  ["of all that can happen", EVERYTHING],
  ["of what concerns a dependency", DEPENDENCIES],
] as const)("all possible courses %s", (_name, range) => {
  test("act as the history demands", () => {
    const wrong: unknown[] = [];
    const count = visitAll(range, (history, _state, policy) => {
      const last = history.at(-1);
      if (last === undefined || wrong.length > 2) return;
      const wanted = expected(history.slice(0, -1), last.event, policy);
      if (!same(last.actions, wanted)) wrong.push({ policy, history, wanted });
    });
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(50_000);
  }, 180_000);

  test("remember who asked, what came first, whether the tree stands still, and the end", () => {
    const wrong: unknown[] = [];
    visitAll(range, (history, state, policy) => {
      if (did(history.slice(0, -1), "finish") || wrong.length > 2) return;
      const limits = history.map(({ event }) =>
        event.kind === "limit-reached" ? event.limit : undefined,
      );
      const limit = limits.find((each) => each !== undefined);
      const wanted = {
        stop: stopOf(history, policy),
        limit,
        dependency: dependencyOf(history),
        itemsFailure: itemsOf(history),
        hasEnd: has(history, "main-ended"),
        isPaused: isFrozen(history),
      };
      const { stop, dependency, itemsFailure, isPaused } = state;
      const hasEnd = state.end !== undefined;
      const found = { stop, limit: state.limit, dependency, itemsFailure, hasEnd, isPaused };
      if (!same(found, wanted)) wrong.push({ policy, history, wanted, found });
    });
    expect(wrong).toEqual([]);
  }, 180_000);

  test("finish last and once, kill once, begin one grace, and end the output once", () => {
    const wrong: unknown[] = [];
    visitAll(range, (history) => {
      const actions = kindsOf(history);
      const timesOf = (kind: RunAction["kind"]) => actions.filter((each) => each === kind).length;
      const once = ["finish", "kill-tree", "start-grace", "end-output", "abandon-output"] as const;
      const isOnce = once.every((kind) => timesOf(kind) <= 1);
      const isLast = timesOf("finish") === 0 || actions.at(-1) === "finish";
      const hasOutput = !has(history, "tree-empty") || timesOf("end-output") === 1;
      const isInOrder = timesOf("finish") === 0 || actions.includes("end-output");
      if (!(isOnce && isLast && hasOutput && isInOrder)) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 180_000);

  test("never signal, stop or continue anybody once the output is being delivered", () => {
    const wrong: unknown[] = [];
    visitAll(range, (history) => {
      const actions = kindsOf(history);
      const after = actions.slice(actions.indexOf("end-output") + 1);
      const isSignal = (kind: string) => /^(signal|kill|freeze|thaw)-/.test(kind);
      if (actions.includes("end-output") && after.some(isSignal)) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 180_000);

  test("never pass a key of the terminal on while the command lives", () => {
    const wrong: unknown[] = [];
    const keys: readonly number[] = [SIGINT, SIGQUIT, SIGTSTP, SIGWINCH];
    visitAll(range, (history, _state, policy) => {
      const { event, actions } = history.at(-1) ?? { event: undefined, actions: [] };
      if (event?.kind !== "signal-received" || !keys.includes(event.signal)) return;
      if (!policy.hasTerminal || has(history, "main-ended")) return;
      if (actions.some((action) => action.kind.startsWith("signal-"))) wrong.push(history);
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 180_000);
});

test("answers also events that cannot be, and changes nothing after the end", () => {
  const policy = POLICIES[0];
  if (policy === undefined) throw new Error("no policy");
  for (const first of EVERYTHING.alphabet) {
    for (const second of EVERYTHING.alphabet) {
      const step = decideNext(decideNext(FIRST_STATE, first, policy).state, second, policy);
      expect(step.actions.length).toBeLessThan(4);
      const finished = { ...step.state, phase: "finished" } as const;
      expect(decideNext(finished, first, policy)).toEqual({ state: finished, actions: [] });
    }
  }
});
