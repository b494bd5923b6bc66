/**
 * Where the time of a start goes: instants of named steps, in the fault build only, for the
 * benchmark's table. In the release build the body is gone.
 */
import { appendFileSync } from "node:fs";
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "./clock.ts";

declare const FAULT_BUILD: boolean;

const steps: { readonly step: string; readonly at: MonotonicAt }[] = [];

/** Remembers when this step was reached; nothing is written before `writeTrace`. */
export function traceStep(step: string): void {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) steps.push({ step, at: monotonicNow() });
}

/**
 * One JSON line with all steps, CLOCK_MONOTONIC in ms, to the file named by WATCHDOG_FAULT_TRACE.
 */
export function writeTrace(): void {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) {
    const path = process.env["WATCHDOG_FAULT_TRACE"];
    if (path !== undefined) appendFileSync(path, `${JSON.stringify(steps)}\n`);
  }
}
