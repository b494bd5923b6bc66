/**
 * Renders the README's tables from the tables that the program itself uses.
 *
 * Reads and writes no file. Always: one table per name of README_TABLES, each in markdown with a
 * header row, so that a test can compare it with what stands between the README's markers.
 */

import { OUTCOME_TABLE } from "../core/outcome-table.ts";
import { ANSWER_FIELDS } from "./answer-fields.ts";
import { ANSWER_COMMANDS } from "./answers-table.ts";
import { CARE_COMMANDS } from "./care-table.ts";
import { CHECK_ROWS } from "./check-options.ts";
import { FENCE_COMMANDS } from "./fence-table.ts";
import { flagText } from "./help.ts";
import {
  isLaterCommand,
  listLaterCommands,
  listLaterFlags,
  reasonOfLaterFlag,
} from "./later-names.ts";
import { OWN_JOB_ROWS } from "./job-table.ts";
import { NOTIFY_ROWS } from "./notify-options.ts";
import { NOTIFY_COMMANDS } from "./notify-table.ts";
import { plainRowsOf } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";
import { PATROL_COMMAND } from "./patrol-table.ts";
import { PROBE_ROWS } from "./probe-options.ts";
import { EXCHANGE_ROWS } from "./probe-setting-rows.ts";
import { PROBE_COMMAND } from "./probe-table.ts";
import { type FieldRow, listFields, type ReasonRow, RESULT_REASONS } from "./result-schema.ts";
import { listRetryFields, RETRY_REASONS } from "./retry-schema.ts";
import { RETRY_COMMAND } from "./retry-table.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import { TICK_COMMAND } from "./tick-table.ts";
import { SINK_ROWS } from "./sink-options.ts";
import { CHILD_VARIABLES } from "./variables-table.ts";

/** Name of the marker → the table that belongs behind it. */
export const README_TABLES: Readonly<Record<string, () => string>> = {
  "run-options": () => renderOptions(RUN_COMMAND),
  "probe-options": () => renderRows(PROBE_ROWS),
  "check-options": () => renderRows(CHECK_ROWS),
  "sink-options": () => renderRows([...SINK_ROWS, ...NOTIFY_ROWS]),
  "job-options": () => renderRows(OWN_JOB_ROWS),
  "keep-options": () => renderOptions(KEEP_COMMAND),
  "answer-options": renderAnswerOptions,
  "answer-fields": renderAnswerFields,
  "child-variables": renderChildVariables,
  "exit-statuses": renderStatuses,
  "result-fields": () => renderFields(listFields()),
  "result-reasons": () => renderReasons(RESULT_REASONS),
  "retry-fields": () => renderFields(listRetryFields()),
  "retry-reasons": () => renderReasons(RETRY_REASONS),
  "later-names": renderLaterNames,
};

export interface MarkedTable {
  readonly name: string;
  readonly table: string;
}

/** What stands between `<!-- table:NAME -->` and `<!-- /table -->`, in order. */
export function findTables(readme: string): readonly MarkedTable[] {
  const marked = /<!-- table:([a-z-]+) -->\n([\s\S]*?)<!-- \/table -->/g;
  return [...readme.matchAll(marked)].map((match) => ({
    name: match[1] ?? "",
    table: match[2] ?? "",
  }));
}

/** The README with every marked table renewed; the rest of it is untouched. */
export function renewTables(readme: string): string {
  const marked = /(<!-- table:([a-z-]+) -->\n)[\s\S]*?(<!-- \/table -->)/g;
  return readme.replace(marked, (whole: string, open: string, name: string, close: string) => {
    const render = Object.hasOwn(README_TABLES, name) ? README_TABLES[name] : undefined;
    return render === undefined ? whole : open + render() + close;
  });
}

/** Those of a section are a table of their own. */
function renderOptions<Part>(command: CommandRow<Part>): string {
  return renderRows(plainRowsOf(command));
}

function renderRows(options: readonly OptionRow<unknown>[]): string {
  const rows = options.map((row) => [
    code(flagText(row)),
    row.help,
    row.defaultText,
    row.variable === undefined ? "" : code(row.variable),
  ]);
  return renderTable(["option", "meaning", "default", "variable"], rows);
}

function renderAnswerOptions(): string {
  const commands: readonly CommandRow<unknown>[] = [
    RETRY_COMMAND,
    TICK_COMMAND,
    PROBE_COMMAND,
    ...NOTIFY_COMMANDS,
    ...ANSWER_COMMANDS,
    ...FENCE_COMMANDS,
    ...CARE_COMMANDS,
    PATROL_COMMAND,
  ].filter(({ name }) => !isLaterCommand(name) && !isLaterCommand(name.split(" ")[0] ?? ""));
  const rows = commands.flatMap((command) =>
    command.rows
      .filter(isSpecial)
      .map((row) => [
        code(command.name),
        code(flagText(row)),
        row.help,
        row.defaultText,
        row.variable === undefined ? "" : code(row.variable),
      ]),
  );
  return renderTable(["command", "option", "meaning", "default", "variable"], rows);
}

/** The README says once what nearly all of them take, and what is asked as by a run. */
function isSpecial({ flag }: { readonly flag: string }): boolean {
  const shared = [jsonRow, helpRow, ...placeRows, ...EXCHANGE_ROWS, ...SINK_ROWS, ...NOTIFY_ROWS];
  return !shared.some((row) => row.flag === flag);
}

function renderAnswerFields(): string {
  const rows = ANSWER_FIELDS.map((row) => [
    row.commands.map(code).join(" "),
    code(row.field),
    row.meaning,
  ]);
  return renderTable(["command", "field", "meaning"], rows);
}

function renderChildVariables(): string {
  const rows = CHILD_VARIABLES.map((row) => [
    code(row.name),
    row.isSet ? row.help : `${row.help} Not set by this version.`,
  ]);
  return renderTable(["variable", "meaning"], rows);
}

function renderStatuses(): string {
  const rows = OUTCOME_TABLE.map((row) => [
    row.status === "command" ? "the command's own" : String(row.status),
    code(row.outcome),
    row.meaning,
  ]);
  return renderTable(["status", "outcome", "meaning"], rows);
}

function renderFields(fields: readonly FieldRow[]): string {
  const rows = fields.map((row) => [code(row.path), row.meaning]);
  return renderTable(["field", "meaning"], rows);
}

function renderReasons(reasons: readonly ReasonRow[]): string {
  const rows = reasons.map((row) => [code(row.because), row.meaning]);
  return renderTable(["because", "meaning"], rows);
}

function renderLaterNames(): string {
  const reasons = new Map<string, string[]>();
  for (const flag of listLaterFlags()) {
    const reason = reasonOfLaterFlag(flag) ?? "";
    reasons.set(reason, [...(reasons.get(reason) ?? []), code(flag)]);
  }
  const rows = [...reasons].map(([reason, flags]) => [flags.join(" "), reason]);
  const commands = listLaterCommands().map(code).join(" ");
  const ofCommands = commands === "" ? [] : [[commands, "these come with a later version"]];
  return renderTable(["known name, refused in this version", "because"], [...rows, ...ofCommands]);
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map(
    (cells) => `| ${cells.map(escapeCell).join(" | ")} |\n`,
  );
  return lines.join("");
}

/** A bar ends a cell even inside of code. */
function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function code(text: string): string {
  return `\`${text}\``;
}
