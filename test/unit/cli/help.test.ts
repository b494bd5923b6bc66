/**
 * The help: its exact text, its width, and that every example in it is a line that works.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { HelpTopic } from "../../../src/cli/command-line.ts";
import { answerQuestion, COMMAND_SUMMARIES } from "../../../src/cli/commands.ts";
import { HELP_TEXT } from "../../../src/cli/help-text.ts";
import { HELP_WIDTH, renderHelp } from "../../../src/cli/help.ts";
import { ANSWER_COMMANDS } from "../../../src/cli/answers-table.ts";
import { TOPICS as COMMAND_TOPICS } from "../../../src/cli/first-word.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "../../../src/cli/options-table.ts";
import { OUTCOME_TABLE } from "../../../src/core/outcome-table.ts";

const TOPICS: readonly HelpTopic[] = ["watchdog", ...COMMAND_TOPICS];

describe("the help", () => {
  for (const topic of TOPICS) {
    test(`of ${topic} is the text that was looked over`, () => {
      expect(renderHelp(topic, COMMAND_SUMMARIES)).toMatchSnapshot();
    });

    test(`of ${topic} is plain text within ${HELP_WIDTH} columns`, () => {
      const text = renderHelp(topic, COMMAND_SUMMARIES);
      expect(text.endsWith("\n") && !text.endsWith("\n\n")).toBe(true);
      expect(text.split("\n").filter((line) => line.length > HELP_WIDTH)).toEqual([]);
      expect(text.split("\n").filter((line) => /[^\x20-\x7e]|\s$/.test(line))).toEqual([]);
    });

    test(`of ${topic} has three examples that are cut without a complaint`, () => {
      const { examples } = HELP_TEXT[topic];
      expect(examples.length).toBe(3);
      for (const example of examples) {
        expect(renderHelp(topic, COMMAND_SUMMARIES)).toContain(`\n  ${example}\n`);
        const [program, ...words] = example.split(" ");
        expect(program).toBe("watchdog");
        const [kind] = cutCommandLine(words, {}).kind.split("-");
        expect(kind).toBe(words[0] ?? "");
      }
    });
  }

  test("names every option with its default and variable, and every status of this version", () => {
    const run = renderHelp("run", COMMAND_SUMMARIES);
    for (const row of RUN_COMMAND.rows) {
      expect(run).toContain(row.flag);
      if (row.variable !== undefined) expect(run).toContain(`Variable: ${row.variable}.`);
    }
    for (const row of KEEP_COMMAND.rows) expect(renderHelp("keep", [])).toContain(row.flag);
    for (const row of OUTCOME_TABLE) {
      expect([row.outcome, run.includes(` ${row.outcome}: `)]).toEqual([row.outcome, true]);
    }
  });
});

test("the help tells which of the commands of one topic takes an option", () => {
  const fence = renderHelp("fence", COMMAND_SUMMARIES);
  const titles = fence.split("\n").filter((line) => line.startsWith("Options"));
  expect(titles).toEqual([
    "Options of fence and fence git-push:",
    "Options of fence:",
    "Options of fence install-git-hooks:",
    "Options:",
  ]);
  const ofHooks = fence.slice(fence.indexOf("Options of fence install-git-hooks:"));
  expect(ofHooks).toContain("Let the hooks look at the lease of this key too.");
  // What all of a topic take needs no name.
  expect(renderHelp("lease", COMMAND_SUMMARIES)).not.toContain("Options of");
  expect(renderHelp("circuit", COMMAND_SUMMARIES)).toContain(
    "Options of circuit list and circuit show:\n  --json\n",
  );
});

test("the help lists every command, and not the one that only the guard starts", () => {
  const top = renderHelp("watchdog", COMMAND_SUMMARIES);
  expect(COMMAND_SUMMARIES.map((row) => row.name)).toEqual([...COMMAND_TOPICS, "help"]);
  expect(top).not.toContain("bury");
  for (const command of ANSWER_COMMANDS) {
    const text = renderHelp(command.name.split(" ")[0] as HelpTopic, []);
    for (const shown of [top, text]) expect(shown).toContain(`\n  ${command.usage}\n`);
    for (const row of command.rows) expect(text.split(`${row.flag}`).length).toBeGreaterThan(1);
  }
  expect(renderHelp("lease", []).match(/^ {2}--json$/gm)?.length).toBe(1);
});

test("an answer is the help of the topic, or the version and its commit on one line", async () => {
  const build = { version: "1.2.3", commit: "0123456789ab" };
  for (const topic of TOPICS) {
    const answer = await answerQuestion({ kind: "help", topic }, build);
    expect(answer).toBe(renderHelp(topic, COMMAND_SUMMARIES));
  }
  const version = await answerQuestion({ kind: "version" }, build);
  expect(version).toBe("watchdog 1.2.3 (0123456789ab)\n");
});
