/** The words between the thread that wants probes and the Worker that makes them. */
import type { ProbeResult } from "../core/probe-result.ts";
import type { ProbeOrder } from "./probe.ts";

/** A ticket is used once in the life of a handle. */
export type ProbeTask =
  | { readonly kind: "probe"; readonly ticket: number; readonly order: ProbeOrder }
  | { readonly kind: "stop"; readonly ticket: number };

export type ProbeAnswer =
  /** What may not come to an end begins now: no message comes after it then, about any ticket. */
  | { readonly kind: "expression"; readonly ticket: number; readonly source: string }
  | { readonly kind: "result"; readonly ticket: number; readonly result: ProbeResult };
