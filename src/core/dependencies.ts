/**
 * What becomes of a run because of what it depends on: from where each dependency stands and what
 * the user wants done about it. Pure.
 *
 * Always: a dependency that is told alone (`notify`) never stops or holds a job; one that has
 * failed for good outweighs all that are only away.
 */
import type { BackoffEnd } from "./backoff.ts";
import type { CircuitState } from "./circuit.ts";
import type { OnOpen, OnUnready } from "./probe-settings.ts";
import type { DependencyFailure } from "./run-state.ts";

/** Where one stands; `unknown` is a readiness that was not asked yet. */
export type DependencyState =
  | { readonly kind: "closed" | "open" | "half-open" | "ready" | "unready" | "unknown" }
  | { readonly kind: "permanent"; readonly because: BackoffEnd };

export interface Dependency {
  readonly name: string;
  readonly policy: OnOpen | OnUnready;
  readonly state: DependencyState;
}

export type DependencyDecision =
  | { readonly kind: "fail"; readonly failure: DependencyFailure }
  /** The job is to stand still; by whom. */
  | { readonly kind: "hold"; readonly names: readonly string[] }
  | { readonly kind: "go" };

export function decideDependencies(dependencies: readonly Dependency[]): DependencyDecision {
  const failures = dependencies.flatMap((each) => failureOf(each) ?? []);
  const [failure] = failures;
  if (failure !== undefined) return { kind: "fail", failure };
  const names = dependencies.filter(isHolding).map(({ name }) => name);
  return names.length > 0 ? { kind: "hold", names } : { kind: "go" };
}

function failureOf({ name, policy, state }: Dependency): DependencyFailure | undefined {
  if (policy === "notify") return undefined;
  if (state.kind === "permanent") return { name, because: state.because };
  const isStopped = policy === "stop" && (state.kind === "open" || state.kind === "half-open");
  return isStopped ? { name, because: "circuit-opened" } : undefined;
}

function isHolding({ policy, state }: Dependency): boolean {
  if (policy !== "pause") return false;
  return state.kind === "open" || state.kind === "half-open" || state.kind === "unready";
}

export function stateOfCircuit(state: CircuitState): DependencyState {
  return state.kind === "permanent"
    ? { kind: "permanent", because: state.because }
    : { kind: state.kind };
}
