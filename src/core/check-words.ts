/**
 * Checks and suspicions as clauses for people: the same on standard error, in a report and in a
 * notice. Pure.
 */
import type { CheckResult } from "./checks.ts";
import type { Suspicion } from "./suspicion.ts";

/** The option that asked for it, with its value: `--expect-file out.tgz`. */
export function nameCheck({ check, target }: Pick<CheckResult, "check" | "target">): string {
  return check === "strict" || target === null ? `--${check}` : `--${check} ${target}`;
}

/** `--expect-file out.tgz failed: found …; expected …`. */
export function describeCheck(result: CheckResult): string {
  const name = nameCheck(result);
  if (result.passed) return `${name} passed`;
  return `${name} failed: found ${result.found}; expected ${result.expected}`;
}

/** `a duration of 2.0 s; usual: about 40 min, by 12 good runs before`. */
export function describeSuspicion(suspicion: Suspicion): string {
  const { found, expected } = showSuspicion(suspicion);
  return `${found}; usual: ${expected}`;
}

/** `duration 2.0 s`, `40 min 0 s in 12 good runs before`. */
export function showSuspicion({ measure, value, usual, runs }: Suspicion): {
  readonly found: string;
  readonly expected: string;
} {
  const [name = "", ...rest] = measure.split(":");
  const show = name === "duration_ms" ? showSpan : showBytes;
  const label =
    { duration_ms: "a duration of", output_bytes: "output of" }[name] ?? `${rest.join(":")} with`;
  return {
    found: `${label} ${show(value)}`,
    expected: `about ${show(usual)}, by ${runs} good runs before`,
  };
}

function showSpan(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function showBytes(bytes: number): string {
  return bytes === 1 ? "1 byte" : `${bytes} bytes`;
}
