/** What a person's reset makes of a circuit. */
import { describe, expect, test } from "bun:test";
import { decideReset } from "../../../src/core/circuit-reset.ts";
import { decideJoin } from "../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import {
  closedCircuit,
  halfOpenCircuit,
  openCircuit,
  permanentCircuit,
} from "../../support/circuit-views.ts";

const NOW = { nowMs: 200_000 as MonotonicAt, wallMs: 1_767_225_700_000 as WallAt };
const FREE = { ...NOW, isProbed: false };
const PROBED = { ...NOW, isProbed: true };
const ALL = [closedCircuit(), openCircuit(), halfOpenCircuit(), permanentCircuit()];

describe("a reset", () => {
  test.each(ALL.map((circuit) => [circuit.state.kind, circuit] as const))(
    "of a circuit that is %s closes it, as if nothing had ever failed",
    (kind, circuit) => {
      const { after, before, transition } = decideReset(circuit, PROBED);
      expect(after.state).toEqual({ kind: "closed", consecutiveFailures: 0, window: [] });
      expect([after.trialBy, after.probes, after.goodProbes]).toEqual([null, 0, 0]);
      expect(before).toBe(circuit);
      const isChange = kind !== "closed";
      expect(transition?.because).toBe(isChange ? "reset" : undefined);
      expect(after.changedAt).toBe(isChange ? NOW.wallMs : circuit.changedAt);
    },
  );

  test("keeps what the last probe has found, which a person may want to know", () => {
    expect(decideReset(openCircuit(), FREE).after.lastProbe).toEqual(openCircuit().lastProbe);
  });

  test("forgets whose settings it has, so that any other probe may join", () => {
    const { after, forgetsSettings } = decideReset(openCircuit(), FREE);
    expect([after.settingsHash, after.target, after.job]).toEqual([null, null, null]);
    expect(forgetsSettings).toBe(true);
    const other = { settingsHash: "other", job: "another" };
    expect(decideJoin(openCircuit(), other, false).kind).toBe("refused");
    expect(decideJoin(after, other, false)).toEqual({ kind: "begin", because: "no-probe-yet" });
  });

  test("beside somebody who probes leaves him his settings", () => {
    const { settingsHash, target, job } = openCircuit();
    const { after, forgetsSettings } = decideReset(openCircuit(), PROBED);
    expect([after.settingsHash, after.target, after.job]).toEqual([settingsHash, target, job]);
    expect(forgetsSettings).toBe(false);
  });

  test("has nothing to forget where only calls have used it", () => {
    const ofCalls = openCircuit({ settingsHash: null, target: null, job: null });
    expect(decideReset(ofCalls, FREE).forgetsSettings).toBe(false);
  });
});
