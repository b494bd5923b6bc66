/** Job files: what is made of them, and what is said where that cannot be. */

import { describe, expect, test } from "bun:test";
import { LONGEST_SPAN_MS } from "../../../src/core/backoff.ts";
import { DEFAULT_KILL_AFTER_MS } from "../../../src/core/run-options.ts";
import { NO_SETTINGS } from "../../../src/core/settings.ts";
import { readJobText } from "../../../src/cli/load-job.ts";
import { sentencesOf, specOf, stepOf } from "../../support/job-texts.ts";

const NIGHTLY = `# as product.md has it
name: nightly
steps:
  dump:   { command: "sqlite3 app.db '.backup out/app.db'", artifacts: [out/app.db] }
  pack:   { command: [zstd, -q, out/app.db], needs: [dump], artifacts: [out/app.db.zst] }
  upload:
    { command: ./upload.sh, needs: [pack], side_effects: unsafe, settle: ./already-uploaded.sh }
`;

const NIGHTLY_JSON = JSON.stringify({
  $schema: "./job.schema.json",
  name: "nightly",
  steps: {
    dump: { command: "sqlite3 app.db '.backup out/app.db'", artifacts: ["out/app.db"] },
    pack: {
      command: ["zstd", "-q", "out/app.db"],
      needs: ["dump"],
      artifacts: ["out/app.db.zst"],
    },
    upload: {
      command: "./upload.sh",
      needs: ["pack"],
      side_effects: "unsafe",
      settle: "./already-uploaded.sh",
    },
  },
});

const NIGHTLY_TOML = `name = "nightly"
[steps.dump]
command = "sqlite3 app.db '.backup out/app.db'"
artifacts = ["out/app.db"]
[steps.pack]
command = ["zstd", "-q", "out/app.db"]
needs = ["dump"]
artifacts = ["out/app.db.zst"]
[steps.upload]
command = "./upload.sh"
needs = ["pack"]
side_effects = "unsafe"
settle = "./already-uploaded.sh"
`;

describe("a job file", () => {
  test("gives the job that its steps describe, with the defaults that nobody has written", () => {
    const spec = specOf(NIGHTLY);
    const { name, file, directory, maxParallel, steps } = spec;
    expect({ name, file, directory, maxParallel }).toEqual({
      name: "nightly",
      file: "/srv/app/nightly.yaml",
      directory: "/srv/app",
      maxParallel: 1,
    });
    const plain = {
      needs: [],
      timeoutMs: undefined,
      killAfterMs: DEFAULT_KILL_AFTER_MS,
      backoff: {
        initialMs: 1_000,
        capMs: 30_000,
        factor: 2,
        maxAttempts: 1,
        maxElapsedMs: LONGEST_SPAN_MS,
      },
      inputs: undefined,
      artifacts: [],
      settle: undefined,
      env: new Map(),
      cwd: undefined,
      runOptions: new Map(),
    };
    const artifact = (path: string) => ({ path, minBytes: 1, isAnyAge: false });
    expect(steps).toEqual([
      {
        ...plain,
        name: "dump",
        command: { kind: "shell", text: "sqlite3 app.db '.backup out/app.db'" },
        artifacts: [artifact("out/app.db")],
        sideEffects: "none",
      },
      {
        ...plain,
        name: "pack",
        command: { kind: "arguments", words: ["zstd", "-q", "out/app.db"] },
        needs: ["dump"],
        artifacts: [artifact("out/app.db.zst")],
        sideEffects: "none",
      },
      {
        ...plain,
        name: "upload",
        command: { kind: "shell", text: "./upload.sh" },
        needs: ["pack"],
        sideEffects: "unsafe",
        settle: { kind: "shell", text: "./already-uploaded.sh" },
      },
    ]);
  });

  test("says the same in YAML, JSON and TOML", () => {
    const { steps } = specOf(NIGHTLY);
    expect(specOf(NIGHTLY_JSON, "/srv/app/nightly.json").steps).toEqual(steps);
    expect(specOf(NIGHTLY_TOML, "/srv/app/nightly.toml").steps).toEqual(steps);
    // What has no known ending is YAML, and so may be JSON.
    expect(specOf(NIGHTLY, "/srv/app/nightly").steps).toEqual(steps);
    expect(specOf(NIGHTLY_JSON, "/srv/app/nightly").steps).toEqual(steps);
  });

  test("keeps its steps in the order of the file, whatever they are called", () => {
    const names = ["zero", "10", "9", "constructor", "toString", "true", "ä.b"];
    const yaml = names.map((name) => `  ${name}: { command: x, side_effects: none }`).join("\n");
    expect(specOf(`name: j\nsteps:\n${yaml}\n`).steps.map(({ name }) => name)).toEqual(names);
    const json = names.map((name) => `"${name}":{"command":"x","side_effects":"none"}`).join();
    const inJson = specOf(`{"name":"j","steps":{${json}}}`, "/j.json");
    expect(inJson.steps.map(({ name }) => name)).toEqual(names);
  });

  test("may be written with anchors, and with a mark of its bytes in front", () => {
    const { steps } = specOf(
      "\uFEFFname: j\nsteps:\n  a: &a { command: x, side_effects: none }\n  b: *a\n",
    );
    expect(steps.map(({ name, command }) => [name, command])).toEqual([
      ["a", { kind: "shell", text: "x" }],
      ["b", { kind: "shell", text: "x" }],
    ]);
  });
});

describe("a step", () => {
  test("has spans as numbers of seconds or as texts, and 0 is no limit", () => {
    expect(stepOf("timeout: 90")?.timeoutMs).toBe(90_000);
    expect(stepOf("timeout: 1h30m, kill_after: 250ms")).toMatchObject({
      timeoutMs: 5_400_000,
      killAfterMs: 250,
    });
    expect(stepOf("timeout: 0")?.timeoutMs).toBeUndefined();
  });

  test("has waits between its attempts as a span, two spans, or a table", () => {
    const backoff = (text: string) => stepOf(`retries: 3, backoff: ${text}`)?.backoff;
    expect(backoff("10s")).toMatchObject({ initialMs: 10_000, capMs: 30_000, factor: 2 });
    expect(backoff("60")).toMatchObject({ initialMs: 60_000, capMs: 60_000, maxAttempts: 4 });
    expect(backoff("1s..5m")).toMatchObject({ initialMs: 1_000, capMs: 300_000 });
    expect(backoff("{ initial: 2s, cap: 4s, factor: 1.5 }")).toMatchObject({
      initialMs: 2_000,
      capMs: 4_000,
      factor: 1.5,
    });
    expect(backoff("{ initial: 1m }")).toMatchObject({ initialMs: 60_000, capMs: 60_000 });
  });

  test("has artifacts with suffixes, and paths without empty parts", () => {
    const { artifacts, inputs } = stepOf(
      'artifacts: [./out//app.db:min=1KiB, out/log/:any-age, "a:b:min=0"], inputs: [./in/, x]',
    ) ?? { artifacts: [], inputs: [] };
    expect(artifacts).toEqual([
      { path: "out/app.db", minBytes: 1024, isAnyAge: false },
      { path: "out/log", minBytes: 1, isAnyAge: true },
      { path: "a:b", minBytes: 0, isAnyAge: false },
    ]);
    expect(inputs).toEqual(["in", "x"]);
    expect(stepOf("inputs: []")?.inputs).toEqual([]);
  });

  test("has the variables of the job and its own, which win", () => {
    const text = (ofStep: string) =>
      `name: j\nenv: { A: "1", B: "2", C: null }\nsteps:\n` +
      `  a: { command: x, side_effects: none, env: ${ofStep} }\n`;
    expect(specOf(text('{ B: "3", D: null }')).steps[0]?.env).toEqual(
      new Map([
        ["A", "1"],
        ["B", "3"],
        ["C", null],
        ["D", null],
      ]),
    );
    expect(specOf(text("[B=x=y, C, E=]")).steps[0]?.env).toEqual(
      new Map([
        ["A", "1"],
        ["B", "x=y"],
        ["C", null],
        ["E", ""],
      ]),
    );
  });

  test("has options of watchdog run by their names in a file", () => {
    const step = stepOf(
      "probe: tcp://db:5432, probe_timeout: 2s, expect_match: [^ok, done$], fail_match: ^E, " +
        "success_exit_codes: [0, 24], max_consecutive_fails: 5, expect_output: true, strict: false",
    );
    expect(Object.fromEntries(step?.runOptions ?? [])).toEqual(
      Object.fromEntries([
        ["probe", ["tcp://db:5432"]],
        ["probe_timeout", ["2s"]],
        ["expect_match", ["^ok", "done$"]],
        ["fail_match", ["^E"]],
        ["success_exit_codes", ["0,24"]],
        ["max_consecutive_fails", ["5"]],
        ["expect_output", ["on"]],
        ["strict", ["off"]],
      ]),
    );
  });

  test("may name a probe that the configuration knows, and no other", () => {
    const text = "name: j\nsteps: { a: { command: x, side_effects: none, probe: db } }\n";
    expect(sentencesOf(text)).toEqual([
      expect.stringContaining(
        'f.yaml:2:13: steps.a: its options of watchdog run are refused: --probe: found "db"',
      ),
    ]);
    const url = { texts: ["tcp://db:5432"], file: "/c.toml", rank: 0 };
    const probes = new Map([["db", { keys: new Map([["url", url]]), startup: new Map() }]]);
    expect(readJobText(text, "/f.yaml", { ...NO_SETTINGS, probes }).kind).toBe("job");
  });
});
