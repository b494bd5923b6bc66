/**
 * What was found at the place of an artifact, and what that says of the step that was to leave it.
 * Plain data in, plain data out. Pure.
 */
import { type FileSight, listChanges } from "./file-changes.ts";
import type { ArtifactSpec } from "./job-spec.ts";
import type { ArtifactRecord, StepReason } from "./step-record.ts";

/** What was read of a file or of all that lies below a directory. */
export type HashedArtifact = Omit<ArtifactRecord, "step">;

/** Why there is no hash. */
export type ArtifactTrouble =
  /** Nothing has this name; or a part of the path is no directory. */
  | "missing"
  /** It, or a part of the path, is a symbolic link: it may lead anywhere. */
  | "link"
  /** A pipe, a socket, a device; or one lies below it. Never opened. */
  | "special"
  /** The path is absolute, or leads upwards. */
  | "outside"
  /** It was written while it was read. */
  | "changing"
  /** EACCES, EIO, too many entries, too deep, no answer of the file system. */
  | "unreadable";

export interface UnhashedArtifact {
  readonly kind: ArtifactTrouble;
  readonly path: string;
  /** For people. */
  readonly reason: string;
}

export type Hashing =
  { readonly kind: "hashed"; readonly artifact: HashedArtifact } | UnhashedArtifact;

/** What a look before the start of a step saw at the places of its artifacts. */
export interface ArtifactSight {
  readonly path: string;
  readonly sight: FileSight;
}

/** Whether one recorded artifact is what it was. */
export interface ArtifactCheck {
  readonly step: string;
  readonly path: string;
  readonly kind: "same" | "changed" | ArtifactTrouble;
  /** For people: what was found; null: it is the same. */
  readonly detail: string | null;
}

export type ArtifactVerdict =
  | { readonly kind: "good"; readonly artifact: HashedArtifact }
  | {
      readonly kind: "bad";
      readonly path: string;
      readonly because: Extract<
        StepReason,
        "artifact-missing" | "artifact-empty" | "artifact-stale" | "artifact-unreadable"
      >;
      /** For people: the path, what was found and what was expected. */
      readonly detail: string;
    };

export interface ArtifactFacts {
  readonly spec: ArtifactSpec;
  readonly before: FileSight;
  readonly after: FileSight;
  readonly hashing: Hashing;
}

/** Whether a step that its command calls good has left this artifact. */
export function decideArtifact({ spec, before, after, hashing }: ArtifactFacts): ArtifactVerdict {
  const bad = (
    because: Extract<ArtifactVerdict, { kind: "bad" }>["because"],
    detail: string,
  ): ArtifactVerdict => ({ kind: "bad", path: spec.path, because, detail });
  if (hashing.kind === "missing") return bad("artifact-missing", `${spec.path}: is not there`);
  if (hashing.kind !== "hashed") {
    return bad("artifact-unreadable", `${spec.path}: ${hashing.reason}`);
  }
  const { artifact } = hashing;
  if (artifact.bytes < spec.minBytes) {
    return bad("artifact-empty", `${spec.path}: ${describeSize(artifact.bytes, spec.minBytes)}`);
  }
  if (spec.isAnyAge) return { kind: "good", artifact };
  if (before.kind === "unread") {
    return bad("artifact-unreadable", `${spec.path}: before the start: ${before.reason}`);
  }
  if (!listChanges(before, after).some(({ isChanged }) => isChanged)) {
    return bad("artifact-stale", `${spec.path}: is as it was before the start`);
  }
  return { kind: "good", artifact };
}

function describeSize(bytes: number, minBytes: number): string {
  const found = bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return bytes === 0 && minBytes === 1 ? "is empty" : `${found}, expected at least ${minBytes}`;
}

/** Whether a record still holds; what cannot be read does not. */
export function decideSame(record: ArtifactRecord, hashing: Hashing): ArtifactCheck {
  const { step, path } = record;
  if (hashing.kind !== "hashed") {
    return { step, path, kind: hashing.kind, detail: hashing.reason };
  }
  const found = hashing.artifact;
  if (found.kind !== record.kind) {
    return { step, path, kind: "changed", detail: `is a ${found.kind}, was a ${record.kind}` };
  }
  if (found.bytes !== record.bytes) {
    const detail = `has ${found.bytes} bytes, had ${record.bytes}`;
    return { step, path, kind: "changed", detail };
  }
  if (found.sha256 !== record.sha256) {
    const detail = "has as many bytes as before, and other ones";
    return { step, path, kind: "changed", detail };
  }
  return { step, path, kind: "same", detail: null };
}
