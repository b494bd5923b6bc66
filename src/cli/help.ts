/**
 * Renders the help of watchdog and of each command, from the tables.
 *
 * Prints nothing and is loaded only when help is asked for. Always: plain text, no line longer than
 * 80 columns, a line end at the end.
 */

import { OUTCOME_TABLE } from "../core/outcome-table.ts";
import type { OutcomeRow } from "../core/outcome-table.ts";
import type { HelpTopic } from "./command-line.ts";
import { HELP_TEXT } from "./help-text.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND, TOP_ROWS } from "./options-table.ts";
import { wrapBeside, wrapText } from "./wrap-text.ts";

export const HELP_WIDTH = 80;

/** A command as the list of commands names it. */
export interface CommandSummary {
  readonly name: string;
  readonly summary: string;
}

/** The text of `watchdog help TOPIC`; `commands` is the list that `watchdog help` shows. */
export function renderHelp(topic: HelpTopic, commands: readonly CommandSummary[]): string {
  const sections = topic === "watchdog" ? topSections(commands) : commandSections(topic);
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

type Section = readonly string[];

function topSections(commands: readonly CommandSummary[]): readonly Section[] {
  const text = HELP_TEXT.watchdog;
  return [
    wrapText(text.sentence, { indent: 0, width: HELP_WIDTH }),
    ["Usage:", `  ${RUN_COMMAND.usage}`, `  ${KEEP_COMMAND.usage}`, "  watchdog help [COMMAND]"],
    ["Commands:", ...commands.flatMap((row) => renderBeside(row.name, row.summary, 9))],
    ["Options:", ...TOP_ROWS.flatMap((row) => renderBeside(flagText(row), row.help, 16))],
    statusSection(RUN_ROWS),
    exampleSection(text.examples),
  ];
}

function commandSections(topic: "run" | "keep"): readonly Section[] {
  const text = HELP_TEXT[topic];
  const command = topic === "run" ? RUN_COMMAND : KEEP_COMMAND;
  return [
    wrapText(text.sentence, { indent: 0, width: HELP_WIDTH }),
    ["Usage:", `  ${command.usage}`],
    ...text.notes.map((note) => wrapText(note, { indent: 0, width: HELP_WIDTH })),
    optionSection(command),
    statusSection(topic === "run" ? RUN_ROWS : KEEP_ROWS),
    exampleSection(text.examples),
  ];
}

function optionSection<Part>(command: CommandRow<Part>): Section {
  return ["Options:", ...command.rows.flatMap((row) => renderOption(row))];
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

interface StatusRow {
  readonly status: string;
  readonly meaning: string;
}

const RUN_ROWS = runStatusRows(OUTCOME_TABLE);

const KEEP_ROWS: readonly StatusRow[] = [
  { status: "0", meaning: "the command was started and registered" },
  { status: "64", meaning: "the command line is wrong; nothing was started" },
  {
    status: "78",
    meaning: "a person must change something, such as the owner of the state directory",
  },
  { status: "125", meaning: "the command could not be started or registered" },
  { status: "126, 127", meaning: "as of watchdog run" },
];

function runStatusRows(table: readonly OutcomeRow[]): readonly StatusRow[] {
  return table
    .filter((row) => row.isInThisVersion)
    .map((row) => ({
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
