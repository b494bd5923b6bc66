/**
 * What follows from a circuit for whoever looks at it, and the circuit under the names of `--json`.
 * Pure; decides nothing about it (core/circuit.ts).
 *
 * Always: an instant that cannot be of this clock is no wait, as for whoever wants to try.
 */
import { renderSettings } from "../core/circuit-fields.ts";
import type { SharedCircuit } from "../core/shared-circuit.ts";
import { type MonotonicAt, renderIso, spanMs, type WallAt } from "../core/time.ts";
import type { CircuitView } from "./circuits.ts";

/** How long until a trial is let through, 0: now; undefined: there is nothing to wait for. */
export function retryInMs({ circuit, nowMs }: CircuitView): number | undefined {
  const { state, settings } = circuit;
  if (state.kind !== "open" && state.kind !== "permanent") return undefined;
  const restMs = spanMs(nowMs, state.retryAt);
  // As decideCircuit has it: no wait is longer than the cap.
  return restMs > 0 && restMs <= settings.backoff.capMs + 1 ? restMs : 0;
}

/** Since when it is as it is: not closed since it opened, whatever trials have failed since. */
export function sinceWallAt({ circuit, nowMs, wallMs }: CircuitView): WallAt {
  const { state, changedAt } = circuit;
  if (state.kind === "closed") return changedAt;
  return (wallMs - Math.max(0, spanMs(state.openedAt, nowMs))) as WallAt;
}

/** Failures among the last answers, where those are counted. */
export function failuresInWindow({ state, settings }: SharedCircuit): number | undefined {
  if (state.kind !== "closed" || settings.failureWindow === undefined) return undefined;
  return state.window.filter((isFailure) => isFailure).length;
}

/** As `circuit list --json` and `circuit show` have it. A contract; ignore unknown fields. */
export function showCircuit(view: CircuitView): Record<string, unknown> {
  const { circuit, isProbed, nowMs } = view;
  const { state, lastProbe, lastGoodAt } = circuit;
  const ageMs = (at: MonotonicAt): number => Math.max(0, Math.round(spanMs(at, nowMs)));
  const retryMs = retryInMs(view);
  const isClosed = state.kind === "closed";
  return {
    name: circuit.name,
    state: state.kind,
    because: state.kind === "permanent" ? state.because : null,
    changed_at: renderIso(circuit.changedAt),
    open_for_ms: isClosed ? null : ageMs(state.openedAt),
    retry_in_ms: retryMs === undefined ? null : Math.ceil(retryMs),
    consecutive_failures: isClosed ? state.consecutiveFailures : null,
    failures_in_window: failuresInWindow(circuit) ?? null,
    attempts: isClosed ? null : state.backoff.attempts,
    successes: state.kind === "half-open" ? state.successes : null,
    is_trial_out: state.kind === "half-open" && state.isTrialOut,
    trial_pid: circuit.trialBy?.pid ?? null,
    is_probed: isProbed ?? null,
    probes: circuit.probes,
    good_probes: circuit.goodProbes,
    last_good_age_ms: lastGoodAt === null ? null : ageMs(lastGoodAt),
    last_probe:
      lastProbe === null
        ? null
        : {
            because: lastProbe.because,
            detail: lastProbe.detail,
            at: renderIso(lastProbe.wallAt),
            age_ms: ageMs(lastProbe.at),
          },
    target: circuit.target,
    job: circuit.job,
    settings_hash: circuit.settingsHash,
    settings: renderSettings(circuit.settings),
  };
}
