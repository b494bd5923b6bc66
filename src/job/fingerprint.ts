/**
 * Fingerprints of steps: what a step does, and what it reads. Equal where nothing of it has
 * changed; the SHA-256 of a canonical JSON text in lower-case hex.
 *
 * What a step does is its command, its directory and the environment that its job file gives it.
 * Its limits, retries and checks are not: they decide what is made of the end, not what is done.
 * A script that the command runs is none of it either: whoever changes it lists it as an input.
 * Values of the environment go into a hash only. Reads nothing, knows no clock.
 *
 * Non-guarantee: whoever may read the journal and knows all else of a step can try values of a
 * variable, one after the other, until the hash is the same: a short secret is found so.
 */
import type { HashedArtifact, Hashing } from "../core/artifact.ts";
import type { StepSpec } from "../core/job-spec.ts";
import type { ArtifactRecord } from "../core/step-record.ts";

/** Of both texts; a change of it makes every step changed once. */
const FORMAT = 1;

export function fingerprintCommand(step: Pick<StepSpec, "command" | "cwd" | "env">): string {
  const { command } = step;
  const words = command.kind === "shell" ? command.text : command.words;
  const environment = sortPairs(step.env);
  return hash({ format: FORMAT, kind: command.kind, words, cwd: step.cwd ?? null, environment });
}

export interface InputFacts {
  /** One for each declared input, as it was found. */
  readonly inputs: readonly Hashing[];
  /** Of the caller: what `namedEnvironment` found. */
  readonly environment: ReadonlyMap<string, string | null>;
  /** Artifacts of the steps that it needs. */
  readonly needs: readonly ArtifactRecord[];
}

export type InputPrint =
  | { readonly kind: "known"; readonly print: string }
  /** Something is not there, and may come: the step runs, and its print is none of a known one. */
  | { readonly kind: "missing"; readonly print: string; readonly path: string }
  /** Nobody can tell whether the step has changed: it runs. */
  | { readonly kind: "unknown"; readonly path: string; readonly reason: string };

/** The first input that is missing is told. The order of what is declared plays no part. */
export function fingerprintInputs({ inputs, environment, needs }: InputFacts): InputPrint {
  const found: (HashedArtifact | { path: string; kind: "missing" })[] = [];
  for (const input of inputs) {
    if (input.kind === "hashed") found.push(input.artifact);
    else if (input.kind === "missing") found.push({ path: input.path, kind: "missing" });
    else return { kind: "unknown", path: input.path, reason: input.reason };
  }
  const print = hash({
    format: FORMAT,
    inputs: sortRows(found.map((one) => [one.path, one.kind, "sha256" in one ? one.sha256 : ""])),
    environment: sortPairs(environment),
    needs: sortRows(needs.map(({ step, path, kind, sha256 }) => [step, path, kind, sha256])),
  });
  const missing = inputs.find(({ kind }) => kind === "missing");
  if (missing?.kind === "missing") return { kind: "missing", print, path: missing.path };
  return { kind: "known", print };
}

/** The variables that a step takes from the caller, with the caller's values; null: it has none. */
export function namedEnvironment(
  env: StepSpec["env"],
  caller: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string | null> {
  const names = [...env].filter(([, value]) => value === null).map(([name]) => name);
  // A name like `constructor` is none of the caller's.
  const valueOf = (name: string) => (Object.hasOwn(caller, name) ? caller[name] : undefined);
  return new Map(names.map((name) => [name, valueOf(name) ?? null]));
}

function sortPairs(pairs: ReadonlyMap<string, string | null>): readonly unknown[] {
  return [...pairs].toSorted(([one], [other]) => compareTexts(one, other));
}

function sortRows(rows: readonly (readonly string[])[]): readonly unknown[] {
  const texts = rows.map((row) => [JSON.stringify(row), row] as const);
  return texts.toSorted(([one], [other]) => compareTexts(one, other)).map(([, row]) => row);
}

/** By code units: the order of a locale differs between machines. */
function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function hash(value: Readonly<Record<string, unknown>>): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(value)).digest("hex");
}
