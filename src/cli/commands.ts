/**
 * The tree of commands for everything but a run: their names, what they are for, and the answers of
 * `help` and `--version`.
 *
 * Starts no process and prints nothing. Loaded only for an answer, never on the path of `watchdog
 * run`, because citty costs more than the rest of a start. Always: what it does not answer is not
 * in its tree.
 */

import { defineCommand, runCommand } from "citty";
import type { CommandDef } from "citty";
import type { Cut } from "./command-line.ts";
import type { CommandSummary } from "./help.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";

export interface BuildNames {
  readonly version: string;
  readonly commit: string;
}

export type Question = Extract<Cut, { kind: "help" | "version" }>;

const HELP_SUMMARY = "tell how watchdog or one of its commands is used";

/** In the order in which `watchdog help` lists them. */
export const COMMAND_SUMMARIES: readonly CommandSummary[] = [
  RUN_COMMAND,
  KEEP_COMMAND,
  { name: "help", summary: HELP_SUMMARY },
];

/** The text that answers a question; main writes it to stdout. */
export async function answerQuestion(question: Question, build: BuildNames): Promise<string> {
  const { result } = await runCommand(commandFor(question, build), { rawArgs: [] });
  return String(result);
}

function commandFor(question: Question, build: BuildNames): CommandDef {
  return question.kind === "version" ? versionCommand(build) : helpCommand(question.topic);
}

function helpCommand(topic: Extract<Question, { kind: "help" }>["topic"]): CommandDef {
  return defineCommand({
    meta: { name: "help", description: HELP_SUMMARY },
    run: async () => {
      const { renderHelp } = await import("./help.ts");
      return renderHelp(topic, COMMAND_SUMMARIES);
    },
  });
}

function versionCommand(build: BuildNames): CommandDef {
  return defineCommand({
    meta: { name: "version", description: "print the version and the commit" },
    run: () => `watchdog ${build.version} (${build.commit})\n`,
  });
}
