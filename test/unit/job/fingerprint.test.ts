/** Fingerprints of steps: what counts as a change of a step, and what does not. */
import { describe, expect, test } from "bun:test";
import type { Hashing } from "../../../src/core/artifact.ts";
import type { StepCommand, StepSpec } from "../../../src/core/job-spec.ts";
import type { ArtifactRecord } from "../../../src/core/step-record.ts";
import {
  fingerprintCommand,
  fingerprintInputs,
  type InputFacts,
  namedEnvironment,
} from "../../../src/job/fingerprint.ts";

type Done = Pick<StepSpec, "command" | "cwd" | "env">;
const shell = (text: string): StepCommand => ({ kind: "shell", text });
const words = (...words: string[]): StepCommand => ({ kind: "arguments", words });
const STEP: Done = { command: shell("make"), cwd: undefined, env: new Map() };

function print(more: Partial<Done>): string {
  return fingerprintCommand({ ...STEP, ...more });
}

describe("what a step does", () => {
  test("is another thing with any other word, directory or variable", () => {
    const steps: Partial<Done>[] = [
      {},
      { command: shell("make ") },
      { command: words("make") },
      { command: words("ma", "ke") },
      { command: words("ma ke") },
      { command: words("", "make") },
      { command: words("make", "") },
      { command: shell('["make"]') },
      { cwd: "out" },
      { cwd: "null" },
      { env: new Map([["A", "1"]]) },
      { env: new Map([["A", ""]]) },
      { env: new Map([["A", null]]) },
      { env: new Map([["A", "null"]]) },
      { env: new Map([["A1", ""]]) },
      {
        env: new Map([
          ["A", "1"],
          ["B", "2"],
        ]),
      },
    ];
    const prints = steps.map(print);
    expect(new Set(prints).size).toBe(steps.length);
    expect(prints.filter((one) => !/^[0-9a-f]{64}$/.test(one))).toEqual([]);
  });

  test("is the same whatever the order of its variables and its limits", () => {
    const env = (...names: string[]) => new Map(names.map((name) => [name, name] as const));
    expect(print({ env: env("B", "A", "ä") })).toBe(print({ env: env("ä", "A", "B") }));
    const limited = { ...STEP, timeoutMs: 5, killAfterMs: 7, artifacts: [] };
    expect(fingerprintCommand(limited)).toBe(print({}));
  });

  /** A new text would run every step of every job again: it takes a new format. */
  test("has the hash of a text that stays as it is", () => {
    const text = `{"format":1,"kind":"shell","words":"make","cwd":null,"environment":[["A",null]]}`;
    const known = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    expect(print({ env: new Map([["A", null]]) })).toBe(known);
  });
});

describe("what a step reads", () => {
  const file = (path: string, sha256 = "a"): Hashing => ({
    kind: "hashed",
    artifact: { path, kind: "file", bytes: 1, sha256 },
  });
  const trouble = (path: string, kind: "missing" | "link" | "unreadable"): Hashing => {
    return { kind, path, reason: `is ${kind}` };
  };
  const need = (more: Partial<ArtifactRecord> = {}): ArtifactRecord => {
    return { step: "dump", path: "out", kind: "file", bytes: 1, sha256: "a", ...more };
  };
  const NONE: InputFacts = { inputs: [], environment: new Map(), needs: [] };

  function read(more: Partial<InputFacts>): string {
    const found = fingerprintInputs({ ...NONE, ...more });
    return "print" in found ? found.print : `${found.path}: ${found.reason}`;
  }

  test("is another thing with any other content, name, value or artifact", () => {
    const facts: Partial<InputFacts>[] = [
      {},
      { inputs: [file("in")] },
      { inputs: [file("in", "b")] },
      { inputs: [file("other")] },
      { inputs: [file("in"), file("other")] },
      { inputs: [trouble("in", "missing")] },
      {
        inputs: [
          { kind: "hashed", artifact: { path: "in", kind: "directory", bytes: 1, sha256: "a" } },
        ],
      },
      { environment: new Map([["A", "1"]]) },
      { environment: new Map([["A", ""]]) },
      { environment: new Map([["A", null]]) },
      {
        environment: new Map([
          ["A", null],
          ["B", null],
        ]),
      },
      { needs: [need()] },
      { needs: [need({ sha256: "b" })] },
      { needs: [need({ step: "other" })] },
      { needs: [need({ path: "other" })] },
      { needs: [need({ kind: "directory" })] },
    ];
    const prints = facts.map(read);
    expect(new Set(prints).size).toBe(facts.length);
    expect(prints.filter((one) => !/^[0-9a-f]{64}$/.test(one))).toEqual([]);
  });

  test("is none where something of it is missing, and the first is named", () => {
    const inputs = [file("in"), trouble("none", "missing"), trouble("neither", "missing")];
    const found = fingerprintInputs({ ...NONE, inputs });
    expect(found).toMatchObject({ kind: "missing", path: "none" });
    const known = fingerprintInputs({ ...NONE, inputs: [file("in")] });
    expect(known.kind).toBe("known");
  });

  test("is the same in any order", () => {
    const environment = (...names: string[]) => new Map(names.map((name) => [name, null]));
    const needs = [need(), need({ path: "other" })];
    const inputs = [file("in"), trouble("none", "missing"), file("other")];
    const one = read({ inputs, needs, environment: environment("A", "B") });
    const other = read({
      inputs: inputs.toReversed(),
      needs: needs.toReversed(),
      environment: environment("B", "A"),
    });
    expect(one).toBe(other);
  });

  test("is unknown where one of it could not be read, and says which", () => {
    expect(read({ inputs: [file("in"), trouble("way", "link")] })).toBe("way: is link");
    expect(read({ inputs: [trouble("in", "unreadable")] })).toBe("in: is unreadable");
  });
});

test("what a step takes from its caller is what its job file names without a value", () => {
  const env = new Map([
    ["A", null],
    ["B", "own"],
    ["C", null],
    ["D", null],
    ["constructor", null],
  ]);
  const found = namedEnvironment(env, { A: "1", B: "2", D: "", E: "3" });
  expect([...found]).toEqual([
    ["A", "1"],
    ["C", null],
    ["D", ""],
    ["constructor", null],
  ]);
});
