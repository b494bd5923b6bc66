/**
 * One step of a job file: from its shape to the StepSpec, or to what is wrong with it.
 *
 * Reads no file. Always: what is refused here is not looked at by any check of the job as a whole.
 */

import { describeValue, readKeys } from "../core/config-values.ts";
import type { ConfigFinding } from "../core/config-values.ts";
import type { ArtifactSpec, SideEffects, StepCommand, StepSpec } from "../core/job-spec.ts";
import { DEFAULT_KILL_AFTER_MS } from "../core/run-options.ts";
import type { ProbeTableSettings } from "../core/settings.ts";
import type { Finding, FindingPath } from "./job-findings.ts";
import type { JobShape, StepShape } from "./job-schema.ts";
import * as read from "./job-values.ts";
import { refusalOfStep, STEP_OPTION_KEYS, STEP_ROWS } from "./step-options.ts";
import { parsePath } from "./values.ts";
import type { Parsed } from "./values.ts";

export interface StepAround {
  /** `env` of the job. */
  readonly env: ReadonlyMap<string, string | null>;
  /** The tables `[probes.NAME]` of the configuration. */
  readonly probes: ReadonlyMap<string, ProbeTableSettings>;
}

/** @param findings  what is wrong is added here; then the spec is not to be used */
export function readStep(
  name: string,
  shape: StepShape,
  around: StepAround,
  findings: Finding[],
): StepSpec {
  const path = ["steps", name];
  const reader = new StepReader(path, findings);
  const retries = shape.retries ?? 0;
  if (shape.backoff !== undefined && retries === 0) {
    reader.contradict("backoff", "waits between attempts, and no retries", "retries beside it");
  }
  const artifacts = reader.list(shape.artifacts, "artifacts", read.readArtifact, NO_ARTIFACT);
  const runOptions = reader.options(shape, around);
  return {
    name,
    command: reader.command(shape.command, "command"),
    needs: shape.needs ?? [],
    timeoutMs: limitOf(reader.span(shape.timeout, "timeout", 0)),
    killAfterMs: reader.span(shape.kill_after, "kill_after", DEFAULT_KILL_AFTER_MS),
    backoff: reader.value(read.readBackoff(shape.backoff, retries), "backoff", shape.backoff),
    inputs:
      shape.inputs === undefined
        ? undefined
        : reader.list(shape.inputs, "inputs", read.readPathBelow, ""),
    artifacts,
    sideEffects: reader.sideEffects(shape),
    settle: shape.settle === undefined ? undefined : reader.command(shape.settle, "settle"),
    env: new Map([...around.env, ...readEnv(shape.env, [...path, "env"], findings)]),
    cwd:
      shape.cwd === undefined
        ? undefined
        : (reader.value(parsePath(shape.cwd), "cwd", shape.cwd) ?? ""),
    runOptions,
  };
}

const NO_ARTIFACT: ArtifactSpec = { path: "", minBytes: 0, isAnyAge: false };

/** 0 is "no limit", as of `watchdog run --timeout`. */
function limitOf(ms: number): number | undefined {
  return ms === 0 ? undefined : ms;
}

class StepReader {
  readonly #path: FindingPath;
  readonly #findings: Finding[];

  constructor(path: FindingPath, findings: Finding[]) {
    this.#path = path;
    this.#findings = findings;
  }

  contradict(key: string, found: string, expected: string): void {
    this.#findings.push({ because: "contradiction", path: [...this.#path, key], found, expected });
  }

  value<T>(parsed: Parsed<T>, key: string | FindingPath, shown: unknown): T {
    if (parsed.kind === "value") return parsed.value;
    const path = [...this.#path, ...(typeof key === "string" ? [key] : key)];
    const { expected, found = describeValue(shown) } = parsed;
    this.#findings.push({ because: "wrong-value", path, found, expected });
    return undefined as T; // there is a finding: nobody uses it
  }

  span(value: string | number | undefined, key: string, otherwise: number): number {
    return value === undefined ? otherwise : this.value(read.readSpan(value), key, value);
  }

  command(value: string | readonly string[], key: string): StepCommand {
    return this.value(read.readCommand(value), key, value);
  }

  list<T>(
    words: readonly string[] | undefined,
    key: string,
    parse: (word: string) => Parsed<T>,
    otherwise: T,
  ): readonly T[] {
    return (words ?? []).map((word, at) => this.value(parse(word), [key, at], word) ?? otherwise);
  }

  sideEffects({ side_effects: stated, artifacts = [] }: StepShape): SideEffects {
    if (stated !== undefined) return stated;
    if (artifacts.length > 0) return "none";
    this.#findings.push({
      because: "missing-key",
      path: [...this.#path, "side_effects"],
      found: "no side_effects, and no artifacts that could be looked at",
      expected: "side_effects: none where it may run twice, or else side_effects: unsafe",
    });
    return "unsafe";
  }

  /** Those of `watchdog run`. */
  options(shape: StepShape, { probes }: StepAround): ReadonlyMap<string, readonly string[]> {
    const table = Object.fromEntries(Object.entries(shape).filter(([key]) => STEP_ROWS.has(key)));
    const refused: ConfigFinding[] = [];
    const options = readKeys(
      table,
      { prefix: "", keys: STEP_OPTION_KEYS, refuse: unknown },
      refused,
    );
    for (const { path: key, found, expected } of refused) {
      this.#findings.push({ because: "wrong-value", path: [...this.#path, key], found, expected });
    }
    const refusal = refused.length > 0 ? undefined : refusalOfStep(options, probes);
    if (refusal !== undefined) {
      const found = `its options of watchdog run are refused: ${refusal}`;
      this.#findings.push({
        because: "contradiction",
        path: this.#path,
        found,
        expected: undefined,
      });
    }
    return options;
  }
}

function unknown(name: string, path: string): ConfigFinding {
  return { because: "unknown-key", path, found: name, expected: "an option" };
}

/** Of two entries of a list with one name the last counts, as in a shell. */
export function readEnv(
  shape: JobShape["env"],
  path: FindingPath,
  findings: Finding[],
): ReadonlyMap<string, string | null> {
  const isList = Array.isArray(shape);
  const pairs = isList ? shape.map(read.cutVariable) : Object.entries(shape ?? {});
  for (const [at, [name, value]] of pairs.entries()) {
    const expected = read.refusalOfVariable(name, value);
    if (expected === undefined) continue;
    const found = isList ? "an entry that cannot be used" : "a variable that cannot be set";
    findings.push({ because: "wrong-value", path: [...path, isList ? at : name], found, expected });
  }
  return new Map(pairs);
}
