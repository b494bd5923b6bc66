/** What is said of a job file where no job can be made of it. */

import { describe, expect, test } from "bun:test";
import { MOST_STEPS } from "../../../src/core/job-spec.ts";
import { MOST_VALUES } from "../../../src/cli/located.ts";
import { refusalOf, sentencesOf } from "../../support/job-texts.ts";

describe("what is wrong in a job file is told with its place and its path", () => {
  test.each<[title: string, text: string, said: readonly string[]]>([
    [
      "an unknown key, with the nearest one",
      "name: j\nstep: {}\nsteps:\n  a:\n    comand: x\n    command: y\n    side_effects: none\n",
      [
        "f.yaml:5:5: steps.a.comand: found an unknown key, expected a key of a step; " +
          "the nearest is command",
        "f.yaml:2:1: step: found an unknown key, expected one of name, max_parallel, env, steps; " +
          "the nearest is steps",
      ],
    ],
    [
      "an option that only a whole job has",
      "name: j\nsteps:\n  a: { command: x, side_effects: none, lane: gpu }\n",
      [
        "f.yaml:3:40: steps.a.lane: found an option that belongs to the whole job, expected it " +
          "behind watchdog job run, or in a table [jobs.NAME] of the configuration",
      ],
    ],
    [
      "a key that is twice there",
      "name: j\nsteps:\n  a: { command: x, side_effects: none }\n  a: { command: rm }\n",
      [
        "f.yaml:4:3: steps.a: found a key that stands there already, on line 3, expected " +
          "each key once",
      ],
    ],
    [
      "a name that nobody has",
      "name: j\nsteps:\n  dump: { command: x, artifacts: [d] }\n" +
        "  pack:\n    command: x\n    artifacts: [p]\n    needs:\n      - dmup\n",
      [
        "f.yaml:8:9: steps.pack.needs[0]: found a need of dmup, expected the name of a step; " +
          "the nearest is dump",
      ],
    ],
    [
      "a circle",
      "name: j\nsteps:\n  a: { command: x, side_effects: none, needs: [b] }\n" +
        "  b: { command: x, side_effects: none, needs: [a] }\n",
      [
        "f.yaml:3:48: steps.a.needs[0]: found a circle: a needs b needs a, expected steps that " +
          "can be put in an order",
      ],
    ],
    [
      "an artifact of two steps",
      "name: j\nsteps:\n  a: { command: x, artifacts: [o/p] }\n" +
        "  b: { command: x, artifacts: [./o//p/] }\n",
      [
        "f.yaml:4:32: steps.b.artifacts[0]: found o/p again, which step a names, expected it " +
          "once in the file",
      ],
    ],
    [
      "a step without artifacts that does not say what it may do",
      "name: j\nsteps:\n  a:\n    command: x\n",
      [
        "f.yaml:4:5: steps.a.side_effects: found no side_effects, and no artifacts that could be " +
          "looked at, expected side_effects: none where it may run twice, or else " +
          "side_effects: unsafe",
      ],
    ],
    [
      "settle without an unsafe step",
      "name: j\nsteps:\n  a: { command: x, artifacts: [o], settle: y }\n",
      [
        "f.yaml:3:44: steps.a.settle: found settle at a step whose side effects are none, " +
          "expected side_effects: unsafe beside it, or no settle: such a step just runs again",
      ],
    ],
    [
      "a missing key",
      "name: j\nsteps:\n  a: { artifacts: [o] }\n",
      [
        "f.yaml:3:6: steps.a.command: found no command, expected a text for sh -c, or a list " +
          "of a program and its arguments, each in quotes",
      ],
    ],
    ["an empty file", "# nothing\n", ["f.yaml:1:1: found an empty file, expected a job"]],
    [
      "a file that is something else",
      "- a\n",
      ["f.yaml: found a list, expected a table with name and steps"],
    ],
    [
      "no steps",
      "name: j\nsteps: {}\n",
      ["f.yaml:2:8: steps: found 0 steps, expected at least one"],
    ],
  ])("%s", (_, text, said) => {
    expect(sentencesOf(text)).toEqual([...said]);
  });

  test("in JSON too, and what is JSON for nobody is none", () => {
    expect(sentencesOf('{\n  "name": "j",\n  "name": "k",\n  "steps": {}\n}', "f.json")).toEqual([
      "f.json:3:3: name: found a key that stands there already, on line 2, expected each key once",
    ]);
    expect(sentencesOf('{\n  "name": "j",\n}', "f.json")).toEqual([
      'f.json:3:1: found "}", expected a key in double quotes',
    ]);
    expect(sentencesOf('{ "name": "j" // x\n}', "f.json")).toEqual([
      'f.json:1:15: found "/", expected a comma or }',
    ]);
    expect(sentencesOf('{ "name": "j"', "f.json")).toEqual([
      "f.json:1:14: found the end of the file, expected a comma or }",
    ]);
  });

  test("in TOML with the path alone, or with the line where it is no TOML", () => {
    expect(sentencesOf('name = "j"\n[steps.a]\ncommand = 5\n', "f.toml")).toEqual([
      "f.toml: steps.a.command: found 5, expected a text for sh -c, or a list of a program and " +
        "its arguments, each in quotes",
    ]);
    expect(sentencesOf('name = "j"\nname = "k"\n', "f.toml")[0]).toMatch(
      /^f\.toml: found on line 2: .*, expected TOML$/,
    );
  });

  test.each([
    ["two documents", "name: j\n---\nname: k\n", "multiple documents"],
    ["YAML of another version", "%YAML 1.1\n---\nname: j\n", "found YAML 1.1, expected YAML 1.2"],
    ["a tag of its own", "name: !secret j\n", "!secret"],
    ["a tag that makes bytes", "name: !!binary aGk=\n", "binary"],
    ["an alias of nothing", "name: *n\n", "found *n, expected an anchor &n before it"],
    ["an alias within itself", "name: &n [*n]\n", "found *n within &n, expected no circle"],
    ["a key that is a list", "? [a]\n: 1\n", "found a key that is no text"],
    ["a merge key", "name: j\n<<: { a: 1 }\n", '<<": found an unknown key'],
    ["what is no YAML", "name: 'a\n", "expected YAML"],
    ["a text with a colon", "name: a: b\n", "1:7: found a second colon with a blank behind it"],
    ["a quoted word and a colon", 'name: echo "a: b"\n', "a text with one stands in quotes"],
    ["a tab", "name: j\nsteps:\n\ta: {}\n", "3:1: found a tab in front of the first word"],
    ["a wrong indent", "a:\n    b: 1\n   c: 2\n", "3:1: found a line that begins in no column"],
    ["a key that changes prototypes", '{ "__proto__": { "name": "j" } }', "an unknown key"],
    ["a step that would change them", '{ "steps": { "__proto__": {} } }', "steps.__proto__: found"],
    ["a directive that nobody knows", "%FOO bar\n---\nname: j\n", "expected YAML"],
    ["half of a letter", '{ "name": "\\ud800" }', "half of a letter"],
  ])("%s is refused", (_, text, said) => {
    expect(sentencesOf(text).join("\n")).toContain(said);
  });

  test("what is nested without end, or grows without end by aliases, is refused in time", () => {
    expect(sentencesOf("[".repeat(100_000))).not.toEqual([]);
    expect(sentencesOf(`${"[".repeat(100)}${"]".repeat(100)}`)[0]).toContain("a deeper nesting");
    expect(sentencesOf(`${"[".repeat(100_000)}`, "f.json")[0]).toContain("deep");
    const bomb = ["a: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let at = 1; at < 9; at += 1) {
      bomb.push(`a${at}: &a${at} [${Array.from({ length: 10 }, () => `*a${at - 1}`).join()}]`);
    }
    expect(sentencesOf(bomb.join("\n"))).toEqual([
      `f.yaml: found more than ${MOST_VALUES} values, those of aliases counted each time, ` +
        "expected fewer",
    ]);
  });

  test(`more than ${MOST_STEPS} steps are refused`, () => {
    const steps = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [
          `s${at}`,
          { command: "x", side_effects: "none" },
        ]),
      );
    const text = (count: number) => JSON.stringify({ name: "j", steps: steps(count) });
    expect(sentencesOf(text(MOST_STEPS), "f.json")).toEqual([]);
    expect(sentencesOf(text(MOST_STEPS + 1), "f.json")).toEqual([
      `f.json:1:21: steps: found ${MOST_STEPS + 1} steps, expected ${MOST_STEPS} at most`,
    ]);
  });

  test.each([
    ["timeout: true", "steps.a.timeout: found true, expected a number or a text in quotes"],
    ["timeout: 5x", 'steps.a.timeout: found "5x", expected a span such as 500ms'],
    ["timeout: -1", "steps.a.timeout: found -1, expected a span"],
    ["kill_after: []", "steps.a.kill_after: found an empty list, expected a number or a text"],
    ["retries: 1.5", "steps.a.retries: found 1.5, expected a whole number from 0 to 1000"],
    ["retries: -1", "steps.a.retries: found -1, expected a whole number from 0 to 1000"],
    ["backoff: 5s", "steps.a.backoff: found waits between attempts, and no retries, expected"],
    ["retries: 1, backoff: 5s..1s", "found a cap of 1s below a first delay of 5s"],
    ["retries: 1, backoff: 0", 'steps.a.backoff: found "0", expected a span such as 10s'],
    ["retries: 1, backoff: { cap: 10ms }", "found a cap of 10 ms below a first delay of 1000 ms"],
    ["retries: 1, backoff: { factor: 0.5 }", "found a factor of 0.5, expected at least 1"],
    ["retries: 1, backoff: { first: 1s }", "steps.a.backoff.first: found an unknown key"],
    ["retries: 1, backoff: { initial: [] }", "steps.a.backoff.initial: found an empty list"],
    ["needs: b", 'steps.a.needs: found "b", expected a list of texts'],
    ["needs: [1]", "steps.a.needs[0]: found 1, expected a text in quotes"],
    ["needs:", "steps.a.needs: found nothing, expected a list of texts"],
    ["side_effects: some", 'steps.a.side_effects: found "some", expected none or unsafe'],
    ["artifacts: [../x]", 'steps.a.artifacts[0]: found "../x", expected a path below the'],
    ["artifacts: [/x]", 'steps.a.artifacts[0]: found "/x", expected a path below the'],
    ["artifacts: [a/../../x]", "expected a path below the directory of the job file, without .."],
    ["artifacts: [.]", 'steps.a.artifacts[0]: found ".", expected a path below'],
    ["artifacts: [x:min=5x]", "then any of :min=SIZE and :any-age"],
    ["artifacts: [x:min-ratio=0.5]", "then any of :min=SIZE and :any-age"],
    ["artifacts: [x:any-age:any-age]", "then any of :min=SIZE and :any-age"],
    ["inputs: [../x]", 'steps.a.inputs[0]: found "../x", expected a path below'],
    ['command: ""', "expected a command of a shell"],
    ["settle: []", "steps.a.settle: found an empty list, expected a text for sh -c"],
    ['settle: ["", x]', "expected the name or path of a program"],
    ['cwd: ""', 'steps.a.cwd: found "", expected a path'],
    ["idle_timeout: x", 'steps.a.idle_timeout: found "x", expected a span'],
    ["expect_match: '('", "steps.a.expect_match: found"],
    ["quiet: 1", "steps.a.quiet: found 1, expected true or false"],
    ["success_exit_codes: [256]", "steps.a.success_exit_codes: found"],
    ["probe_timeout: 2s", "steps.a: its options of watchdog run are refused: --probe-timeout is"],
    ["probe: http://u:hunter2@h:x/", "steps.a.probe: found"],
    ["no_lease: true", "found an option that belongs to the whole job"],
    ["webhook: 'https://h/x'", "found an option that belongs to the whole job"],
    ["max_parallel: 2", "steps.a.max_parallel: found an unknown key"],
  ])("of a step: %s", (keys, said) => {
    const head = keys.startsWith("command") ? "side_effects: none, " : undefined;
    const heads = keys.startsWith("side_effects") ? "command: x, " : head;
    const sentences = refusalOf(keys, heads);
    expect(sentences).toHaveLength(1);
    expect(sentences[0]).toContain(said);
    expect(sentences[0]).not.toContain("hunter2");
  });

  test.each([
    ["{ PIN: 1234 }", "steps.a.env.PIN: found a number, expected a text in quotes, or null"],
    ["{ A: [] }", "steps.a.env.A: found an empty list, expected a text in quotes, or null"],
    ["[1234]", "steps.a.env[0]: found a number, expected a text in quotes"],
    ["{ 1A: x1234 }", "steps.a.env.1A: found a variable that cannot be set, expected the name"],
    ["[1A=x1234]", "steps.a.env[0]: found an entry that cannot be used, expected the name of"],
    ["{ WATCHDOG_RUN_PATH: x1234 }", "expected a name that does not begin with WATCHDOG_"],
    ['{ A: "x1234\\0" }', "steps.a.env.A: found a variable that cannot be set, expected a text"],
    ["x1234", "steps.a.env: found a string, expected a table of NAME: VALUE"],
  ])("of variables, without what they hold: env: %s", (env, said) => {
    const sentences = refusalOf(`env: ${env}`);
    expect(sentences).toHaveLength(1);
    expect(sentences[0]).toContain(said);
    expect(sentences[0]).not.toContain("1234");
  });

  test("all of it at once, up to a hundred", () => {
    const steps = Array.from({ length: 150 }, (_, at) => `  s${at}: { command: 5 }`).join("\n");
    expect(sentencesOf(`name: j\nsteps:\n${steps}\n`)).toHaveLength(100);
  });
});
