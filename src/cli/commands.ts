/**
 * The tree of commands for everything but a run: what they are for, and the answers of `help`
 * and `--version`.
 *
 * Starts no process and prints nothing. Loaded only for an answer, never on the path of
 * `watchdog run`, because citty costs a third of an empty start. Always: each command has a help.
 */

import { defineCommand, runCommand } from "citty";
import type { CommandDef } from "citty";
import * as answers from "./answers-table.ts";
import { DOCTOR_COMMAND, REPAIR_COMMAND } from "./care-table.ts";
import type { Cut, HelpTopic } from "./cut.ts";
import { FENCE_COMMAND } from "./fence-table.ts";
import type { CommandSummary } from "./help.ts";
import { isLaterCommand } from "./later-names.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";
import { PATROL_COMMAND } from "./patrol-table.ts";
import { PROBE_COMMAND } from "./probe-table.ts";
import { RETRY_COMMAND } from "./retry-table.ts";
import { TICK_COMMAND } from "./tick-table.ts";

export interface BuildNames {
  readonly version: string;
  readonly commit: string;
}

export type Question = Extract<Cut, { kind: "help" | "version" }>;

/** In the order in which `watchdog help` lists them. */
export const COMMAND_SUMMARIES: readonly CommandSummary[] = [
  RUN_COMMAND,
  KEEP_COMMAND,
  FENCE_COMMAND,
  RETRY_COMMAND,
  TICK_COMMAND,
  { name: "job", summary: "run a job of many steps, and go on with it after a crash" },
  answers.STATUS_COMMAND,
  answers.HISTORY_COMMAND,
  answers.REPORT_COMMAND,
  answers.WHY_COMMAND,
  answers.LOGS_COMMAND,
  { name: "lease", summary: "show who holds which lease, and what follows from it" },
  { name: "circuit", summary: "show or close the circuits of what jobs depend on" },
  PROBE_COMMAND,
  REPAIR_COMMAND,
  PATROL_COMMAND,
  answers.STOP_COMMAND,
  { name: "notify", summary: "show, test, deliver or drop notices" },
  DOCTOR_COMMAND,
  { name: "config", summary: "show or check the configuration" },
  { name: "help", summary: "tell how watchdog or one of its commands is used" },
].filter((row) => !isLaterCommand(row.name));

const HELP_COMMANDS: Readonly<Record<HelpTopic, CommandDef>> = {
  watchdog: helpOf("watchdog"),
  run: helpOf("run"),
  keep: helpOf("keep"),
  fence: helpOf("fence"),
  retry: helpOf("retry"),
  tick: helpOf("tick"),
  job: helpOf("job"),
  status: helpOf("status"),
  history: helpOf("history"),
  report: helpOf("report"),
  why: helpOf("why"),
  logs: helpOf("logs"),
  lease: helpOf("lease"),
  circuit: helpOf("circuit"),
  probe: helpOf("probe"),
  repair: helpOf("repair"),
  patrol: helpOf("patrol"),
  stop: helpOf("stop"),
  notify: helpOf("notify"),
  doctor: helpOf("doctor"),
  config: helpOf("config"),
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
