/**
 * The state of a circuit and its settings as fields of JSON objects, and back. Pure; refuses to
 * know whose clock the instants are of: they are moved by whoever reads.
 *
 * Always: what is read is what was rendered; a state of another shape is none at all.
 */
import type { BackoffState } from "./backoff.ts";
import type { CircuitSettings, CircuitState } from "./circuit.ts";
import {
  type Fields,
  isCount,
  isInstant,
  isObject,
  isPositive,
  isSpan,
  object,
  orNull,
} from "./shapes.ts";
import type { MonotonicAt } from "./time.ts";

/** From the writer's clock to the reader's. */
export type Move = (instant: number) => MonotonicAt;

export const STATE_KINDS: readonly unknown[] = ["closed", "open", "half-open", "permanent"];

export function renderState(state: CircuitState): Fields {
  if (state.kind === "closed") {
    const window = state.window.map((isFailure) => (isFailure ? "-" : "+")).join("");
    return { state: "closed", consecutive_failures: state.consecutiveFailures, window };
  }
  const { startedAt, attempts, waits } = state.backoff;
  const backoff = { started_at_ms: startedAt, attempts, waits };
  const broken = { state: state.kind, opened_at_ms: state.openedAt, backoff };
  switch (state.kind) {
    case "open":
      return { ...broken, retry_at_ms: state.retryAt };
    case "half-open":
      return { ...broken, successes: state.successes, is_trial_out: state.isTrialOut };
    case "permanent":
      return { ...broken, retry_at_ms: state.retryAt, because: state.because };
  }
}

/** Undefined: a field is missing or of the wrong shape. Fields that are not known are passed by. */
export function parseState(fields: Fields, move: Move): CircuitState | undefined {
  if (fields["state"] === "closed") return parseClosed(fields);
  const openedAt = fields["opened_at_ms"];
  const backoff = parseBackoffState(fields["backoff"], move);
  if (!isInstant(openedAt) || backoff === undefined) return undefined;
  const broken = { openedAt: move(openedAt), backoff };
  if (fields["state"] === "half-open") {
    const { successes, is_trial_out: isTrialOut } = fields;
    if (!isCount(successes) || typeof isTrialOut !== "boolean") return undefined;
    return { kind: "half-open", ...broken, successes, isTrialOut };
  }
  const { retry_at_ms: retryAt, because } = fields;
  if (!isInstant(retryAt)) return undefined;
  if (fields["state"] === "open") return { kind: "open", ...broken, retryAt: move(retryAt) };
  if (because !== "max-attempts" && because !== "max-elapsed") return undefined;
  return { kind: "permanent", because, ...broken, retryAt: move(retryAt) };
}

function parseClosed(fields: Fields): CircuitState | undefined {
  const { consecutive_failures: consecutiveFailures, window } = fields;
  if (!isCount(consecutiveFailures)) return undefined;
  if (typeof window !== "string" || !/^[+-]*$/.test(window)) return undefined;
  const failures = Array.from(window, (sign) => sign === "-");
  return { kind: "closed", consecutiveFailures, window: failures };
}

function parseBackoffState(value: unknown, move: Move): BackoffState | undefined {
  if (!isObject(value)) return undefined;
  const { started_at_ms: startedAt, attempts, waits } = value;
  if (!isInstant(startedAt) || !isCount(attempts) || !isCount(waits)) return undefined;
  return { startedAt: move(startedAt), attempts, waits };
}

export interface SettingsText {
  readonly failure_threshold: number;
  readonly failure_window: { readonly failures: number; readonly size: number } | null;
  readonly success_threshold: number;
  readonly backoff: {
    readonly initial_ms: number;
    readonly cap_ms: number;
    readonly factor: number;
    readonly max_attempts: number;
    readonly max_elapsed_ms: number;
  };
}

export const isSettings = object({
  failure_threshold: isPositive,
  failure_window: orNull(object({ failures: isPositive, size: isPositive })),
  success_threshold: isPositive,
  backoff: object({
    initial_ms: isSpan,
    cap_ms: isSpan,
    factor: isSpan,
    max_attempts: isPositive,
    max_elapsed_ms: isSpan,
  }),
});

export function renderSettings({ backoff, ...settings }: CircuitSettings): SettingsText {
  return {
    failure_threshold: settings.failureThreshold,
    failure_window: settings.failureWindow ?? null,
    success_threshold: settings.successThreshold,
    backoff: {
      initial_ms: backoff.initialMs,
      cap_ms: backoff.capMs,
      factor: backoff.factor,
      max_attempts: backoff.maxAttempts,
      max_elapsed_ms: backoff.maxElapsedMs,
    },
  };
}

export function parseSettings({ backoff, ...settings }: SettingsText): CircuitSettings {
  const window = settings.failure_window;
  return {
    failureThreshold: settings.failure_threshold,
    failureWindow: window === null ? undefined : { failures: window.failures, size: window.size },
    successThreshold: settings.success_threshold,
    backoff: {
      initialMs: backoff.initial_ms,
      capMs: backoff.cap_ms,
      factor: backoff.factor,
      maxAttempts: backoff.max_attempts,
      maxElapsedMs: backoff.max_elapsed_ms,
    },
  };
}
