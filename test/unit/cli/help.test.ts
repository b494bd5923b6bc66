/**
 * The help: its exact text, its width, and that every example in it is a line that works.
 */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { HelpTopic } from "../../../src/cli/command-line.ts";
import { answerQuestion, COMMAND_SUMMARIES } from "../../../src/cli/commands.ts";
import { HELP_TEXT } from "../../../src/cli/help-text.ts";
import { HELP_WIDTH, renderHelp } from "../../../src/cli/help.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "../../../src/cli/options-table.ts";
import { OUTCOME_TABLE } from "../../../src/core/outcome-table.ts";

const TOPICS: readonly HelpTopic[] = ["watchdog", "run", "keep"];

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
        expect(cutCommandLine(words, {}).kind).toBe(words[0] as "run");
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
      expect([row.outcome, run.includes(` ${row.outcome}: `)]).toEqual([
        row.outcome,
        row.isInThisVersion,
      ]);
    }
  });
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
