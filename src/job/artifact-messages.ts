/** Messages between `ArtifactHandle` and the Worker that looks at artifacts: plain data. */
import type { ArtifactCheck, ArtifactSight, ArtifactVerdict, Hashing } from "../core/artifact.ts";
import type { ArtifactSpec } from "../core/job-spec.ts";
import type { ArtifactRecord } from "../core/step-record.ts";
import type { Removal } from "./removal.ts";

export type ArtifactTask = { readonly directory: string } & (
  | { readonly kind: "hash"; readonly path: string }
  | { readonly kind: "verify"; readonly records: readonly ArtifactRecord[] }
  | { readonly kind: "look"; readonly specs: readonly ArtifactSpec[] }
  | {
      readonly kind: "check";
      readonly specs: readonly ArtifactSpec[];
      readonly before: readonly ArtifactSight[];
    }
  | { readonly kind: "remove"; readonly paths: readonly string[] }
);

export interface ArtifactAnswers {
  readonly hash: Hashing;
  readonly verify: readonly ArtifactCheck[];
  readonly look: readonly ArtifactSight[];
  readonly check: readonly ArtifactVerdict[];
  readonly remove: readonly Removal[];
}

export type ArtifactAnswer = ArtifactAnswers[ArtifactTask["kind"]];

/** To the Worker, which has one task at a time. */
export interface ArtifactOrder {
  readonly task: ArtifactTask;
  /** One Int32, counted up as long as something is read. */
  readonly pulse: SharedArrayBuffer;
}

/** From the Worker, one for each order. */
export type ArtifactMessage =
  | { readonly kind: "answer"; readonly answer: ArtifactAnswer }
  /** A bug, or no C library to call. */
  | { readonly kind: "failed"; readonly reason: string };
