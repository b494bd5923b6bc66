/**
 * The tree of commands for everything but a run: what they are for, and the answers of `help`
 * and `--version`.
 *
 * Starts no process and prints nothing. Loaded only for an answer, never on the path of
 * `watchdog run`, because citty costs a third of an empty start. Always: each command has a help.
 */

import { defineCommand, runCommand } from "citty";
import type { CommandDef } from "citty";
import type { Cut, HelpTopic } from "./command-line.ts";
import type { CommandSummary } from "./help.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";

export interface BuildNames {
  readonly version: string;
  readonly commit: string;
}

export type Question = Extract<Cut, { kind: "help" | "version" }>;

/** In the order in which `watchdog help` lists them. */
export const COMMAND_SUMMARIES: readonly CommandSummary[] = [
  RUN_COMMAND,
  KEEP_COMMAND,
  { name: "help", summary: "tell how watchdog or one of its commands is used" },
];

const HELP_COMMANDS: Readonly<Record<HelpTopic, CommandDef>> = {
  watchdog: helpOf("watchdog"),
  run: helpOf("run"),
  keep: helpOf("keep"),
};

/** The text that answers a question; main writes it to stdout. */
export async function answerQuestion(question: Question, build: BuildNames): Promise<string> {
  const isHelp = question.kind === "help";
  const command = isHelp ? HELP_COMMANDS[question.topic] : versionOf(build);
  const { result } = await runCommand(command, { rawArgs: [] });
  return String(result);
}

function helpOf(topic: HelpTopic): CommandDef {
  return defineCommand({
    meta: { name: topic },
    run: async () => {
      const { renderHelp } = await import("./help.ts");
      return renderHelp(topic, COMMAND_SUMMARIES);
    },
  });
}

function versionOf(build: BuildNames): CommandDef {
  return defineCommand({
    meta: { name: "version" },
    run: () => `watchdog ${build.version} (${build.commit})\n`,
  });
}
