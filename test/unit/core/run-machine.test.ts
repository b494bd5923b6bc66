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

const { SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGQUIT } = signals;
const { SIGSTOP, SIGTERM, SIGTSTP, SIGTTIN, SIGUSR1 } = signals;
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
const away: RunEvent = { kind: "pause-wanted" };
const back: RunEvent = { kind: "pause-over" };
const server = { name: "server", because: "circuit-opened" } as const;
const down: RunEvent = { kind: "dependency-failed", failure: server };

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

describe("a dependency that fails", () => {
  test("asks the whole tree as a limit does, with a grace that nobody has to give", () => {
    const policy = { ...POLICY, limitSignal: SIGUSR1 };
    const { told, state } = play(policy, down, down, graceOver, ended, left, empty, delivered);
    expect(told).toEqual([
      ["signal-tree 10 dependency-down yes", "start-grace 10000"],
      [],
      ["kill-tree grace-over"],
      ["look-at-tree"],
      ["note-leftovers"],
      ["end-output"],
      ["finish"],
    ]);
    expect([state.dependency, state.stop, state.limit]).toEqual([server, undefined, undefined]);
    const given = play({ ...POLICY, killAfterMs: 700 }, down);
    expect(given.told).toEqual([["signal-tree 15 dependency-down yes", "start-grace 700"]]);
  });

  test("means the whole tree even where leftovers are to be left, and waits for no reader", () => {
    const { told } = play({ ...POLICY, leftovers: "leave" }, down, ended, left, empty);
    expect(told.slice(1)).toEqual([["look-at-tree"], ["note-leftovers"], ["end-output"]]);
  });

  test("is killed for by the next request of the user", () => {
    const { told, state } = play(POLICY, down, comes(SIGTERM));
    expect(told.slice(1)).toEqual([["kill-tree second-request"]]);
    expect(state).toMatchObject({ dependency: server, stop: "terminated" });
  });

  test("is no matter to a run that is being ended for another reason", () => {
    const others = [limit, comes(SIGTERM), comes(SIGINT), ended, { kind: "lease-lost" } as const];
    for (const other of others) {
      const { told, state } = play(POLICY, other, down, away);
      expect([other, told.slice(1)]).toEqual([other, [[], []]]);
      expect(state.dependency).toBeUndefined();
    }
  });

  test("ends those who are waited for in the place of the command", () => {
    const { told, state } = play({ ...POLICY, leftovers: "wait" }, ended, left, away, down);
    expect(told.slice(2)).toEqual([
      ["freeze-tree"],
      ["signal-tree 15 dependency-down yes", "start-grace 10000", "thaw-tree"],
    ]);
    expect(state.dependency).toEqual(server);
  });

  test("is remembered as the first one, and beside a limit that comes later", () => {
    const other = { name: "database", because: "max-elapsed" } as const;
    const { state } = play(POLICY, down, { kind: "dependency-failed", failure: other }, limit);
    expect(state).toMatchObject({ dependency: server, limit: "timeout" });
  });
});

describe("a tree that stands still for a dependency", () => {
  test("is frozen once and thawed once, as often as it is wanted", () => {
    const { told, state } = play(POLICY, back, away, away, back, back, away);
    expect(told).toEqual([[], ["freeze-tree"], [], ["thaw-tree"], [], ["freeze-tree"]]);
    expect(state.isPaused).toBe(true);
  });

  test("hears the signal when it goes on, whoever asks", () => {
    const asked: [RunPolicy, RunEvent, string[]][] = [
      [POLICY, comes(SIGTERM), ["signal-tree 15 forwarded", "thaw-tree"]],
      [POLICY, comes(SIGINT), ["signal-tree 2 forwarded", "thaw-tree"]],
      [POLICY, limit, ["signal-tree 15 limit yes", "start-grace 10000", "thaw-tree"]],
      [POLICY, down, ["signal-tree 15 dependency-down yes", "start-grace 10000", "thaw-tree"]],
      [
        AT_TERMINAL,
        comes(SIGHUP, { gone: true }),
        ["signal-main 1 forwarded", "signal-tree 15 hung-up", "thaw-tree"],
      ],
    ];
    for (const [policy, event, wanted] of asked) {
      const { told, state } = play(policy, away, event, away);
      expect(told).toEqual([["freeze-tree"], wanted, []]);
      expect(state.isPaused).toBe(false);
    }
  });

  test("is killed as it stands", () => {
    const { told, state } = play(POLICY, away, { kind: "lease-lost" }, back);
    expect(told).toEqual([["freeze-tree"], ["kill-tree lease-lost"], []]);
    expect(state).toMatchObject({ isPaused: false, isKilling: true });
  });

  test("goes on to be ended or left when its command was killed from outside", () => {
    const ask = ["note-leftovers", "signal-tree 15 leftover yes", "start-grace 10000"];
    const lasts = {
      kill: [...ask, "thaw-tree"],
      wait: ["note-leftovers"],
      leave: ["note-leftovers", "thaw-tree", "end-output yes"],
    };
    for (const leftovers of ["kill", "wait", "leave"] as const) {
      const { told } = play({ ...POLICY, leftovers }, away, ended, left);
      expect(told).toEqual([["freeze-tree"], ["look-at-tree"], lasts[leftovers]]);
    }
    const alone = play(POLICY, away, ended, empty, back);
    expect(alone.told.slice(2)).toEqual([["thaw-tree", "end-output yes"], []]);
  });

  test("hears a key of the terminal, and may be made to stand still again", () => {
    for (const key of [SIGINT, SIGQUIT]) {
      const { told, state } = play(AT_TERMINAL, away, comes(key), away);
      expect(told).toEqual([["freeze-tree"], ["thaw-tree"], ["freeze-tree"]]);
      expect([state.seen, state.stop]).toEqual([[key], undefined]);
    }
  });

  test("is killed by the second Ctrl-C where it ignores it, and the first one says so", () => {
    const deaf = comes(SIGINT, { interrupt: "ignored" });
    const { told, state } = play(AT_TERMINAL, away, deaf, away, deaf);
    expect(told).toEqual([
      ["freeze-tree"],
      ["tell-interrupt-ignored", "thaw-tree"],
      ["freeze-tree"],
      ["kill-tree second-request"],
    ]);
    expect(state).toMatchObject({ stop: "interrupted", isPaused: false });
  });

  test("is not continued by CONT, and hears of other signals when it goes on", () => {
    const { told } = play(POLICY, away, comes(SIGCONT), comes(SIGUSR1), comes(SIGHUP), back);
    const rest = [["signal-main 10 forwarded"], ["signal-main 1 forwarded"], ["thaw-tree"]];
    expect(told).toEqual([["freeze-tree"], [], ...rest]);
    expect(play(POLICY, comes(SIGCONT)).told).toEqual([["signal-main 18 forwarded"]]);
    expect(play(POLICY, away, back, comes(SIGCONT)).told.at(-1)).toEqual([
      "signal-main 18 forwarded",
    ]);
  });

  test("does not tell of Ctrl-Z, so that watchdog stops by itself", () => {
    for (const signal of [SIGTSTP, SIGTTIN]) {
      const still = play(AT_TERMINAL, away, comes(signal), back, comes(signal));
      expect(still.told.slice(1)).toEqual([[`stop-self ${signal}`], ["thaw-tree"], []]);
    }
    expect(play(AT_TERMINAL, ended, comes(SIGTSTP)).told.at(-1)).toEqual(["stop-self 20"]);
    expect(play(POLICY, away, comes(SIGTSTP)).told.at(-1)).toEqual(["signal-main 20 forwarded"]);
  });

  test("is stopped by STOP, which stops nobody else", () => {
    const stopped: RunEvent = { kind: "main-stopped", signal: SIGSTOP };
    expect(play(AT_TERMINAL, away, stopped).told).toEqual([["freeze-tree"], []]);
  });
});

test("the key that the command has died of asks for nothing more, unless others are left", () => {
  const died: RunEvent = { kind: "main-ended", end: { kind: "signaled", signal: SIGINT } };
  expect(play(AT_TERMINAL, died, comes(SIGINT)).told.at(-1)).toEqual([]);
  expect(play(AT_TERMINAL, died, comes(SIGQUIT)).told.at(-1)).toEqual(["signal-tree 15 forwarded"]);
  const waiting = play({ ...AT_TERMINAL, leftovers: "wait" }, died, left, comes(SIGINT));
  expect(waiting.told.at(-1)).toEqual(["signal-tree 15 forwarded"]);
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
