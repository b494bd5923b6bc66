/** Where a run stands, as the beat says it: every combination of what the state can hold. */
import { expect, test } from "bun:test";
import { decideNext } from "../../../src/core/run-machine.ts";
import { FIRST_STATE, type RunEvent, type RunState } from "../../../src/core/run-state.ts";
import { SIGTERM } from "../../../src/core/signals.ts";
import { slotStateOf } from "../../../src/run/slot-state.ts";

const server = { name: "server", because: "circuit-opened" } as const;
/** Each is a reason by itself for which watchdog is ending the tree. */
const REASONS: readonly Partial<RunState>[] = [
  { limit: "timeout" },
  { stop: "terminated" },
  { dependency: server },
  { hasLostLease: true },
  { isKilling: true },
];

function listStates(): RunState[] {
  return Array.from({ length: 2 ** REASONS.length }, (_, bits) => bits).flatMap((bits) =>
    (["running", "delivering", "finished"] as const).flatMap((phase) =>
      [false, true].map((isPaused) => {
        const reasons = REASONS.filter((_reason, index) => (bits & (1 << index)) !== 0);
        return Object.assign({}, FIRST_STATE, { phase, isPaused }, ...reasons) as RunState;
      }),
    ),
  );
}

function expected(state: RunState): string {
  const isAsked = REASONS.some((reason) =>
    Object.entries(reason).every(([key, value]) => state[key as keyof RunState] === value),
  );
  switch (state.phase) {
    case "delivering":
    case "finished":
      return "ending";
    case "running":
      if (isAsked) return "stopping";
      return state.isPaused ? "paused" : "running";
  }
}

test("what ends a run outweighs that its tree stands still", () => {
  const states = listStates();
  expect(states.length).toBe(192);
  const wrong = states.filter((state) => slotStateOf(state) !== expected(state));
  expect(wrong.slice(0, 3)).toEqual([]);
  expect(new Set(states.map(slotStateOf)).size).toBe(4);
});

test("a run tells running, paused, running, stopping and ending in their turn", () => {
  const events: readonly RunEvent[] = [
    { kind: "pause-wanted" },
    { kind: "pause-over" },
    { kind: "pause-wanted" },
    { kind: "signal-received", signal: SIGTERM, interrupt: "unread", isTerminalGone: false },
    { kind: "main-ended", end: { kind: "signaled", signal: SIGTERM } },
    { kind: "tree-empty" },
  ];
  const policy = {
    hasTerminal: false,
    killAfterMs: undefined,
    defaultGraceMs: 10_000,
    limitSignal: SIGTERM,
    leftovers: "kill",
  } as const;
  let state = FIRST_STATE;
  const told = events.map((event) => {
    state = decideNext(state, event, policy).state;
    return slotStateOf(state);
  });
  expect([slotStateOf(FIRST_STATE), ...told]).toEqual([
    "running",
    "paused",
    "running",
    "paused",
    "stopping",
    "stopping",
    "ending",
  ]);
});
