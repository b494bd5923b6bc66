/**
 * The fence at a git remote: one ref for each key, whose blob says which generation has pushed
 * last. Pure; what it is read by and pushed with is a matter of `fence/`.
 *
 * Always: it fails closed. A fence of a later generation, of a machine whose numbers cannot be
 * compared with ours, and one that nobody can read refuse alike; none at all is a fresh remote.
 */
import type { ExitName } from "./errors.ts";
import { type LeaseKey, renderKey } from "./lease-key.ts";

const FENCE_REFS = "refs/watchdog/fence/";
export const REMOTE_FENCE_FORMAT = 1;
/** A ref is a file at most remotes, and a name of a file has 255 bytes at most. */
const LONGEST_REF_NAME = 180;
const HASH_DIGITS = 32;

/**
 * The ref of a key: `refs/watchdog/fence/<kind>/<name>`, where all but letters, digits, `_` and `-`
 * is percent-encoded, dots too, so that git-check-ref-format(1) accepts any name. A long one is cut
 * and ends in a hash behind `%-`, which no encoding gives.
 */
export function fenceRefOf(key: LeaseKey): string {
  let encoded = "";
  for (const byte of new TextEncoder().encode(key.name)) {
    const character = String.fromCharCode(byte);
    const isPlain = /[A-Za-z0-9_-]/.test(character);
    encoded += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  if (encoded.length > LONGEST_REF_NAME) {
    const hash = new Bun.CryptoHasher("sha256").update(key.name).digest("hex");
    encoded = `${encoded.slice(0, LONGEST_REF_NAME)}%-${hash.slice(0, HASH_DIGITS)}`;
  }
  return `${FENCE_REFS}${key.kind}/${encoded}`;
}

/** What the blob of such a ref says. */
export interface RemoteFence {
  /** `kind:name` */
  readonly key: string;
  readonly generation: number;
  readonly runId: string;
  /** Null: the machine has none. */
  readonly machineId: string | null;
  /** Whose numbers these are; undefined: the writer's version did not say. */
  readonly stateDirectory: string | undefined;
  /** Another one for each push: git skips a ref that does not change, whatever is expected. */
  readonly pushId: string;
}

export type RemoteReading =
  | { readonly kind: "none" }
  | { readonly kind: "unreadable"; readonly reason: string }
  | { readonly kind: "read"; readonly fence: RemoteFence };

/** One line of JSON. A contract between machines; ignore unknown fields. */
export function renderRemoteFence(fence: RemoteFence): string {
  const content = {
    format: REMOTE_FENCE_FORMAT,
    key: fence.key,
    generation: fence.generation,
    run_id: fence.runId,
    machine_id: fence.machineId,
    state_directory: fence.stateDirectory ?? null,
    push_id: fence.pushId,
  };
  return `${JSON.stringify(content)}\n`;
}

export function readRemoteFence(text: string): Exclude<RemoteReading, { kind: "none" }> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "unreadable", reason: "it is no JSON" }; // SyntaxError
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { kind: "unreadable", reason: "it is no JSON object" };
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const { format } = fields;
  if (typeof format === "number" && format > REMOTE_FENCE_FORMAT) {
    return { kind: "unreadable", reason: `it has format ${format} of a newer version` };
  }
  const fence = fenceOf(fields);
  if (format !== REMOTE_FENCE_FORMAT || fence === undefined) {
    return { kind: "unreadable", reason: "a field is missing or of the wrong shape" };
  }
  return { kind: "read", fence };
}

function fenceOf(fields: Readonly<Record<string, unknown>>): RemoteFence | undefined {
  const { key, generation, run_id: runId, machine_id: machineId, push_id: pushId } = fields;
  const stateDirectory = fields["state_directory"] ?? undefined;
  const isNumber = typeof generation === "number" && Number.isSafeInteger(generation);
  if (!isNumber || generation < 1) return undefined;
  if (typeof key !== "string" || typeof runId !== "string") return undefined;
  if (typeof pushId !== "string") return undefined;
  if (machineId !== null && typeof machineId !== "string") return undefined;
  if (stateDirectory !== undefined && typeof stateDirectory !== "string") return undefined;
  return { key, generation, runId, machineId, stateDirectory, pushId };
}

export type RemoteReason =
  | "later-generation"
  /** Numbers are given once: the counting must have begun anew. */
  | "same-generation-of-another-run"
  | "another-machine"
  | "another-state"
  | "another-key"
  | "unreadable";

export type RemoteDecision =
  { readonly kind: "push" } | { readonly kind: "refuse"; readonly because: RemoteReason };

/** Who wants to push. */
export interface Pusher {
  readonly key: LeaseKey;
  readonly generation: number;
  readonly runId: string;
  readonly machineId: string | null;
  readonly stateDirectory: string;
}

/** Whether the remote's fence lets this generation push. */
export function decideRemoteFence(pusher: Pusher, reading: RemoteReading): RemoteDecision {
  if (reading.kind === "none") return { kind: "push" };
  if (reading.kind === "unreadable") return refuse("unreadable");
  const { fence } = reading;
  if (fence.key !== renderKey(pusher.key)) return refuse("another-key");
  if (fence.machineId !== pusher.machineId) return refuse("another-machine");
  const { stateDirectory } = fence;
  if (stateDirectory !== undefined && stateDirectory !== pusher.stateDirectory) {
    return refuse("another-state");
  }
  if (fence.generation > pusher.generation) return refuse("later-generation");
  if (fence.generation === pusher.generation && fence.runId !== pusher.runId) {
    return refuse("same-generation-of-another-run");
  }
  return { kind: "push" };
}

function refuse(because: RemoteReason): RemoteDecision {
  return { kind: "refuse", because };
}

/** 76: the lease is not ours any more. 78: the numbers cannot be compared, a person must decide. */
export function exitOfRemote(because: RemoteReason): ExitName {
  const isLater = because === "later-generation" || because === "same-generation-of-another-run";
  return isLater ? "lease_lost" : "config_error";
}

export type AfterPush =
  /** Git's status is the answer. */
  | "git-decides"
  /** Somebody has pushed under one of these keys since we read: decide anew. */
  | "look-again";

/** What a push that failed means: of the fences that were expected, has one changed meanwhile? */
export function decideAfterPush(
  expected: readonly (string | undefined)[],
  now: readonly (string | undefined)[],
): AfterPush {
  return expected.every((oid, index) => oid === now[index]) ? "git-decides" : "look-again";
}
