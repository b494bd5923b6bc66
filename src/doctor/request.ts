/**
 * What a check-up is asked for and what it answers. Types, and the few words that make a check;
 * nothing is looked at here.
 */
import type { KnownAs } from "../core/disturbing.ts";
import type { PolicyFile } from "../core/policy.ts";
import type { CheckName, CheckState, PromiseAnswer } from "../core/promises.ts";
import type { Inheritance } from "../os/inheritance.ts";

export interface CheckupRequest {
  /** As it was asked for; undefined: the default of this user. */
  readonly askedStateDir: string | undefined;
  /** Of the configuration or the environment; undefined: none is asked for. */
  readonly stateGroup: string | undefined;
  readonly configuration: ConfigurationFindings;
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  readonly inherited: Inheritance;
  /** Names of the variables in the environment. */
  readonly variables: readonly string[];
  readonly knownAs: (name: string) => KnownAs;
}

/** What the front door has found in the configuration. */
export interface ConfigurationFindings {
  /** Files that are there. */
  readonly files: readonly string[];
  /** All that is wrong, a line each; what is hidden behind it is not known. */
  readonly troubles: readonly string[];
  /** The `[policy]` tables; undefined: a file was refused, and nobody knows what it grants. */
  readonly policies: readonly PolicyFile[] | undefined;
}

export interface Check {
  readonly check: CheckName;
  readonly state: CheckState;
  /** What was seen, for people. */
  readonly seen: string;
  /** What a person can do about it; null: nothing has to be done. */
  readonly advice: string | null;
}

export interface CheckupReport {
  /** Null: not even its name can be told. */
  readonly stateDirectory: string | null;
  /** One for each name, in their order. */
  readonly checks: readonly Check[];
  readonly promises: readonly PromiseAnswer[];
}

/** What a check found; its name is added by whoever asked for it. */
export type Finding = Omit<Check, "check">;

export function ok(seen: string): Finding {
  return { state: "ok", seen, advice: null };
}

export function note(seen: string, advice: string | null = null): Finding {
  return { state: "note", seen, advice };
}

export function finding(seen: string, advice: string): Finding {
  return { state: "finding", seen, advice };
}

export function unknown(seen: string, advice: string | null = null): Finding {
  return { state: "unknown", seen, advice };
}

/** More than this is cut: the first ones tell what is wrong. */
const MOST_NAMED = 5;

/** `a; b; and 3 more`. */
export function joinSome(parts: readonly string[]): string {
  const rest = parts.length - MOST_NAMED;
  const shown = parts.slice(0, MOST_NAMED);
  return [...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
