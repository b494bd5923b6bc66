/**
 * Whether git may go on in a checkout: anybody may while nobody runs under its key, and else only a
 * process of the run that does. Pure; asks no lock and opens no file.
 *
 * Always: it fails closed. Only a verdict that proves the key to be nobody's, or a record that
 * names a run around the one who asks, allows.
 */
import type { LeaseEvidence } from "./evidence.ts";
import { decideClaims, decideFenceRecord, type FenceEnvironment } from "./fence.ts";
import type { Verdict } from "./lease-verdict.ts";

export type HookReason =
  /** A living run has the key, and it is none around us. */
  | "held"
  /** The owner is dead, and not all of its tree is. */
  | "survivors"
  /** Somebody is just starting under the key: it is known in a moment who. */
  | "being-acquired"
  /** The owner is of another machine or container, or cannot be told. */
  | "elsewhere"
  | "unknowable";

export type HookDecision =
  | { readonly kind: "allow"; readonly because: "nobody" | "inside" }
  | { readonly kind: "refuse"; readonly because: HookReason };

export function decideGitHook(
  environment: FenceEnvironment,
  { evidence, verdict }: { readonly evidence: LeaseEvidence; readonly verdict: Verdict },
): HookDecision {
  switch (verdict.name) {
    case "free":
    case "dead":
      return { kind: "allow", because: "nobody" };
    case "elsewhere":
    case "unknowable":
      return { kind: "refuse", because: verdict.name };
    case "held":
    case "stalled":
    case "orphaned": {
      if (isInside(environment, evidence)) return { kind: "allow", because: "inside" };
      if (verdict.because === "being-acquired")
        return { kind: "refuse", because: "being-acquired" };
      const because = verdict.name === "orphaned" ? "survivors" : "held";
      return { kind: "refuse", because };
    }
  }
}

/** F2 of the fence: the record is held by a run around us, with the number that we were given. */
function isInside(environment: FenceEnvironment, { key, record }: LeaseEvidence): boolean {
  const decided = decideClaims(environment, [key]);
  if (decided.kind === "refuse" || record === undefined) return false;
  return decided.claims.every(
    (claim) => decideFenceRecord(claim, { kind: "read", record }).kind === "current",
  );
}
