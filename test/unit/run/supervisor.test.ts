/** A grace that is longer than the longest wait of one timer. */
import { afterEach, expect, jest, test } from "bun:test";
import { DEFAULT_KILL_AFTER_MS } from "../../../src/core/run-options.ts";
import { SIGTERM } from "../../../src/core/signals.ts";
import { monotonicNow } from "../../../src/os/clock.ts";
import { LONGEST_WAIT_MS } from "../../../src/os/timers.ts";
import { RunLedger } from "../../../src/run/ledger.ts";
import { Supervisor } from "../../../src/run/supervisor.ts";
import type { Tree } from "../../../src/tree/tree.ts";

afterEach(() => jest.useRealTimers());

function superviseWithGrace(killAfterMs: number): Supervisor {
  const tally = { sent: [], refused: [], faults: [] };
  const tree = { ask: () => tally, killRound: () => tally, members: () => [], isEmpty: () => true };
  return new Supervisor({
    main: 2 ** 22 + 1,
    tree: tree as unknown as Tree,
    policy: {
      hasTerminal: false,
      killAfterMs,
      defaultGraceMs: DEFAULT_KILL_AFTER_MS,
      limitSignal: SIGTERM,
      leftovers: "kill",
    },
    ledger: new RunLedger(monotonicNow()),
    output: { end: () => Promise.resolve(), abandon: () => undefined },
    pause: { freeze: () => undefined, thaw: () => undefined, end: () => undefined },
    signalMain: () => undefined,
    onCollected: () => undefined,
    onState: () => undefined,
  });
}

test("is not over when the timer wakes, but when the clock says so", () => {
  jest.useFakeTimers();
  const supervisor = superviseWithGrace(LONGEST_WAIT_MS + 1);
  supervisor.reachLimit("timeout");
  // The timers run ahead of the clock that counts: no time has passed.
  jest.advanceTimersByTime(LONGEST_WAIT_MS * 3);
  expect(supervisor.state).toMatchObject({ limit: "timeout", hasGrace: true, isKilling: false });
});

test("is over at once when it is none, so the test above proves something", () => {
  const supervisor = superviseWithGrace(0);
  supervisor.reachLimit("timeout");
  expect(supervisor.state).toMatchObject({ limit: "timeout", isKilling: true });
});
