/**
 * Renders the help of watchdog and of each command, from the tables.
 *
 * Prints nothing and is loaded only when help is asked for. Always: plain text, no line longer than
 * 80 columns, a line end at the end.
 */

import { OUTCOME_TABLE } from "../core/outcome-table.ts";
import type { OutcomeRow } from "../core/outcome-table.ts";
import * as answers from "./answers-table.ts";
import * as care from "./care-table.ts";
import type { HelpTopic } from "./cut.ts";
import { FENCE_COMMANDS } from "./fence-table.ts";
import { TOPICS } from "./first-word.ts";
import { HELP_TEXT } from "./help-text.ts";
import type { StatusRow } from "./help-words.ts";
import { JOB_COMMANDS } from "./job-table.ts";
import { isLaterCommand } from "./later-names.ts";
import { NOTIFY_COMMANDS } from "./notify-table.ts";
import { plainRowsOf } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND, TOP_ROWS } from "./options-table.ts";
import { PATROL_COMMAND } from "./patrol-table.ts";
import { PROBE_COMMAND } from "./probe-table.ts";
import { RETRY_COMMAND } from "./retry-table.ts";
import { TICK_COMMAND } from "./tick-table.ts";
import { wrapBeside, wrapText } from "./wrap-text.ts";

export const HELP_WIDTH = 80;

/** A command as the list of commands names it. */
export interface CommandSummary {
  readonly name: string;
  readonly summary: string;
}

/** Topic → the commands that its help tells of. */
const COMMANDS_OF: Readonly<
  Record<Exclude<HelpTopic, "watchdog">, readonly CommandRow<unknown>[]>
> = {
  run: [RUN_COMMAND],
  keep: [KEEP_COMMAND],
  fence: FENCE_COMMANDS,
  retry: [RETRY_COMMAND],
  tick: [TICK_COMMAND],
  job: JOB_COMMANDS,
  status: [answers.STATUS_COMMAND],
  history: [answers.HISTORY_COMMAND],
  report: [answers.REPORT_COMMAND],
  why: [answers.WHY_COMMAND],
  logs: [answers.LOGS_COMMAND],
  lease: [
    answers.LEASE_LIST_COMMAND,
    answers.LEASE_SHOW_COMMAND,
    answers.LEASE_EXPLAIN_COMMAND,
  ].filter((row) => !isLaterCommand(row.name)),
  circuit: [
    answers.CIRCUIT_LIST_COMMAND,
    answers.CIRCUIT_SHOW_COMMAND,
    answers.CIRCUIT_RESET_COMMAND,
  ],
  probe: [PROBE_COMMAND],
  repair: [care.REPAIR_COMMAND],
  patrol: [PATROL_COMMAND],
  stop: [answers.STOP_COMMAND],
  notify: NOTIFY_COMMANDS,
  doctor: [care.DOCTOR_COMMAND],
  config: [care.CONFIG_SHOW_COMMAND, care.CONFIG_CHECK_COMMAND],
};

/** The text of `watchdog help TOPIC`; `commands` is the list that `watchdog help` shows. */
export function renderHelp(topic: HelpTopic, commands: readonly CommandSummary[]): string {
  const sections = topic === "watchdog" ? topSections(commands) : commandSections(topic);
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

type Section = readonly string[];

function topSections(commands: readonly CommandSummary[]): readonly Section[] {
  const text = HELP_TEXT.watchdog;
  const usages = TOPICS.flatMap((topic) => COMMANDS_OF[topic]).map((row) => `  ${row.usage}`);
  return [
    wrapText(text.sentence, { indent: 0, width: HELP_WIDTH }),
    ["Usage:", ...usages, "  watchdog help [COMMAND]"],
    ["Commands:", ...commands.flatMap((row) => renderBeside(row.name, row.summary, 11))],
    ["Options:", ...TOP_ROWS.flatMap((row) => renderBeside(flagText(row), row.help, 16))],
    statusSection(RUN_ROWS),
    exampleSection(text.examples),
  ];
}

function commandSections(topic: Exclude<HelpTopic, "watchdog">): readonly Section[] {
  const text = HELP_TEXT[topic];
  const commands = COMMANDS_OF[topic];
  return [
    wrapText(text.sentence, { indent: 0, width: HELP_WIDTH }),
    ["Usage:", ...commands.map((command) => `  ${command.usage}`)],
    ...text.notes.map((note) => wrapText(note, { indent: 0, width: HELP_WIDTH })),
    ...optionSections(commands),
    statusSection(text.statuses ?? RUN_ROWS),
    exampleSection(text.examples),
  ];
}

/**
 * Commands of one topic share options; each is told once, and those that not all of them take under
 * the names of the commands that do.
 */
function optionSections(commands: readonly CommandRow<unknown>[]): readonly Section[] {
  const rows = [...new Set(commands.flatMap(plainRowsOf))];
  const byTitle = Map.groupBy(rows, (row) => titleOf(commands, row));
  const shared = byTitle.get(SHARED) ?? [];
  byTitle.delete(SHARED);
  const others = new Set(commands.flatMap(({ sections = [] }) => sections));
  return [
    ...[...byTitle].map(([title, some]) => ({ title, rows: some })),
    { title: SHARED, rows: shared },
    ...others,
  ].map((section) => [`${section.title}:`, ...section.rows.flatMap((row) => renderOption(row))]);
}

const SHARED = "Options";

function titleOf(commands: readonly CommandRow<unknown>[], row: OptionRow<unknown>): string {
  const takers = commands.filter((command) => plainRowsOf(command).includes(row));
  if (takers.length === commands.length) return SHARED;
  return `Options of ${takers.map(({ name }) => name).join(" and ")}`;
}

function renderOption<Part>(row: OptionRow<Part>): readonly string[] {
  const facts: string[] = [];
  if (row.defaultText !== "") facts.push(`Default: ${row.defaultText}.`);
  if (row.variable !== undefined) facts.push(`Variable: ${row.variable}.`);
  const text = { indent: 6, width: HELP_WIDTH };
  const aboutIt = facts.length === 0 ? [] : wrapText(facts.join(" "), text);
  return [`  ${flagText(row)}`, ...wrapText(row.help, text), ...aboutIt];
}

/** `-v, --verbose`, `--timeout SPAN`. */
export function flagText<Part>(row: OptionRow<Part>): string {
  const names = row.short === undefined ? row.flag : `${row.short}, ${row.flag}`;
  return row.valueName === "" ? names : `${names} ${row.valueName}`;
}

const RUN_ROWS = runStatusRows(OUTCOME_TABLE);

function runStatusRows(table: readonly OutcomeRow[]): readonly StatusRow[] {
  return table.map((row) => ({
    status: row.status === "command" ? "its own" : String(row.status),
    meaning: `${row.outcome}: ${row.meaning}`,
  }));
}

function statusSection(rows: readonly StatusRow[]): Section {
  return ["Exit status:", ...rows.flatMap((row) => renderBeside(row.status, row.meaning, 12))];
}

function exampleSection(examples: readonly string[]): Section {
  return ["Examples:", ...examples.map((example) => `  ${example}`)];
}

function renderBeside(left: string, text: string, indent: number): readonly string[] {
  return wrapBeside(left, text, { indent, width: HELP_WIDTH });
}
