/** The course of a run, told as stories: what happened, what was done about it. */
import { describe, expect, test } from "bun:test";
import { decideNext } from "../../../src/core/run-machine.ts";
import {
  FIRST_STATE,
  HANDLED_SIGNALS,
  type RunAction,
  type RunEvent,
  type RunPolicy,
  type RunState,
} from "../../../src/core/run-state.ts";
import * as signals from "../../../src/core/signals.ts";

const { SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1 } = signals;
const POLICY: RunPolicy = {
  hasTerminal: false,
  killAfterMs: undefined,
  defaultGraceMs: 10_000,
  limitSignal: SIGTERM,
  leftovers: "kill",
};
const AT_TERMINAL: RunPolicy = { ...POLICY, hasTerminal: true };

/** Plays events and tells the actions of each as short words. */
function play(policy: RunPolicy, ...events: RunEvent[]): { told: string[][]; state: RunState } {
  let state = FIRST_STATE;
  const told = events.map((event) => {
    const step = decideNext(state, event, policy);
    state = step.state;
    return step.actions.map(tell);
  });
  return { told, state };
}

function tell(action: RunAction): string {
  const { kind, ...rest } = action;
  const words = Object.values(rest).filter((word) => word !== false);
  return [kind, ...words.map((word) => (word === true ? "yes" : String(word)))].join(" ");
}

const ended: RunEvent = { kind: "main-ended", end: { kind: "exited", code: 0 } };
const limit: RunEvent = { kind: "limit-reached", limit: "timeout" };
const left: RunEvent = { kind: "members-left" };
const empty: RunEvent = { kind: "tree-empty" };
const delivered: RunEvent = { kind: "output-ended" };
const graceOver: RunEvent = { kind: "grace-over" };

function comes(signal: number, more: { interrupt?: "ignored"; gone?: boolean } = {}): RunEvent {
  const interrupt = more.interrupt ?? "default";
  return { kind: "signal-received", signal, interrupt, isTerminalGone: more.gone ?? false };
}

describe("a run that ends by itself", () => {
  test("waits for its output and finishes", () => {
    const { told } = play(POLICY, ended, empty, delivered, ended);
    expect(told).toEqual([["look-at-tree"], ["end-output yes"], ["finish"], []]);
  });

  test("names, asks and then kills what is left", () => {
    const { told } = play(POLICY, ended, left, left, graceOver, graceOver, empty, delivered);
    expect(told).toEqual([
      ["look-at-tree"],
      ["note-leftovers", "signal-tree 15 leftover yes", "start-grace 10000"],
      [],
      ["kill-tree grace-over"],
      [],
      ["end-output"],
      ["finish"],
    ]);
  });

  test("waits for what is left without a clock, or leaves it", () => {
    const wait = play({ ...POLICY, leftovers: "wait" }, ended, left, empty);
    expect(wait.told.slice(1)).toEqual([["note-leftovers"], ["end-output yes"]]);
    const leave = play({ ...POLICY, leftovers: "leave" }, ended, left, delivered);
    expect(leave.told.slice(1)).toEqual([["note-leftovers", "end-output yes"], ["finish"]]);
  });
});

describe("a limit", () => {
  test("asks with its signal and CONT, and kills after the grace", () => {
    const policy = { ...POLICY, limitSignal: SIGUSR1, killAfterMs: 700 };
    const { told, state } = play(policy, limit, limit, graceOver, ended, left, empty, delivered);
    expect(told).toEqual([
      ["signal-tree 10 limit yes", "start-grace 700"],
      [],
      ["kill-tree grace-over"],
      ["look-at-tree"],
      ["note-leftovers"],
      ["end-output"],
      ["finish"],
    ]);
    expect([state.limit, state.stop]).toEqual(["timeout", undefined]);
  });

  test("means the whole tree even where leftovers are to be left", () => {
    const { told } = play({ ...POLICY, leftovers: "leave" }, limit, ended, left, graceOver);
    expect(told.slice(1)).toEqual([["look-at-tree"], ["note-leftovers"], ["kill-tree grace-over"]]);
  });

  test("cuts a delivery short that nobody takes", () => {
    const { told } = play(POLICY, ended, empty, limit, delivered);
    expect(told.slice(2)).toEqual([["abandon-output"], ["finish"]]);
  });
});

describe("a request", () => {
  test("by TERM is passed on once without a clock, and the second one kills", () => {
    const { told, state } = play(POLICY, comes(SIGTERM), comes(SIGTERM), comes(SIGTERM));
    expect(told).toEqual([["signal-tree 15 forwarded"], ["kill-tree second-request"], []]);
    expect(state.stop).toBe("terminated");
  });

  test("by TERM starts the clock that was given on the line, once", () => {
    const { told } = play({ ...POLICY, killAfterMs: 5 }, comes(SIGINT), comes(SIGTERM));
    expect(told).toEqual([
      ["signal-tree 2 forwarded", "start-grace 5"],
      ["signal-tree 15 forwarded"],
    ]);
  });

  test("by INT without a terminal is passed on each time and never kills", () => {
    const { told, state } = play(POLICY, comes(SIGINT), comes(SIGINT), comes(SIGINT));
    expect(told).toEqual(Array.from({ length: 3 }, () => ["signal-tree 2 forwarded"]));
    expect(state.stop).toBe("interrupted");
  });

  test("by Ctrl-C is the kernel's: only a command that ignores it is told of and killed", () => {
    const deaf = comes(SIGINT, { interrupt: "ignored" });
    expect(play(AT_TERMINAL, comes(SIGINT), comes(SIGINT)).told).toEqual([[], []]);
    const { told, state } = play(AT_TERMINAL, deaf, deaf);
    expect(told).toEqual([["tell-interrupt-ignored"], ["kill-tree second-request"]]);
    expect(state.stop).toBe("interrupted");
  });

  test("by HUP is one only if the terminal is gone, and then once", () => {
    const there = play(AT_TERMINAL, comes(SIGHUP), comes(SIGHUP));
    expect(there.told).toEqual([["signal-main 1 forwarded"], ["signal-main 1 forwarded"]]);
    expect(there.state.stop).toBeUndefined();
    const gone = play(AT_TERMINAL, comes(SIGHUP, { gone: true }), comes(SIGHUP, { gone: true }));
    expect(gone.told).toEqual([["signal-main 1 forwarded", "signal-tree 15 hung-up"], []]);
    expect(gone.state.stop).toBe("hung-up");
    expect(play(POLICY, comes(SIGHUP, { gone: true })).told).toEqual([["signal-main 1 forwarded"]]);
  });

  test("while only the output is on its way gives it up, and the second one ends the run", () => {
    for (const signal of [SIGTERM, SIGINT, SIGHUP]) {
      const { told } = play(POLICY, ended, empty, comes(signal), comes(signal));
      expect(told.slice(2)).toEqual([["abandon-output"], ["finish"]]);
    }
    expect(play(POLICY, ended, empty, comes(SIGUSR1)).told.at(-1)).toEqual([]);
  });
});

describe("stopping", () => {
  test("follows the command at a terminal, for signals of job control alone", () => {
    const stopped = (signal: number): RunEvent => ({ kind: "main-stopped", signal });
    expect(play(AT_TERMINAL, stopped(SIGTSTP)).told).toEqual([["stop-self 20"]]);
    expect(play(AT_TERMINAL, stopped(SIGSTOP)).told).toEqual([[]]);
    expect(play(POLICY, stopped(SIGTSTP)).told).toEqual([[]]);
  });
});

test("a tree that outlives KILL is given up, and the output with it", () => {
  const stuck: RunEvent = { kind: "tree-stuck" };
  const { told, state } = play(POLICY, comes(SIGTERM), comes(SIGTERM), stuck, delivered);
  expect(told.slice(2)).toEqual([["end-output"], ["finish"]]);
  expect([state.isStuck, state.end]).toEqual([true, undefined]);
});

test("remembers only the last keys, however many there are", () => {
  const keys = Array.from({ length: 100 }, () => comes(SIGINT));
  expect(play(AT_TERMINAL, ...keys).state.seen).toHaveLength(8);
});

test("handles each signal once, and none that cannot or must not be", () => {
  expect(new Set(HANDLED_SIGNALS).size).toBe(HANDLED_SIGNALS.length);
  for (const signal of [SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE]) {
    expect(HANDLED_SIGNALS).not.toContain(signal);
  }
});
