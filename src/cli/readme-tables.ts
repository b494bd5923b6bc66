/**
 * Renders the README's tables from the tables that the program itself uses.
 *
 * Reads and writes no file. Always: one table per name of README_TABLES, each in markdown with a
 * header row, so that a test can compare it with what stands between the README's markers.
 */

import { OUTCOME_TABLE } from "../core/outcome-table.ts";
import { flagText } from "./help.ts";
import { listLaterCommands, listLaterFlags, reasonOfLaterFlag } from "./later-names.ts";
import type { CommandRow } from "./option-row.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";
import { listFields } from "./result-schema.ts";
import { CHILD_VARIABLES } from "./variables-table.ts";

/** Name of the marker → the table that belongs behind it. */
export const README_TABLES: Readonly<Record<string, () => string>> = {
  "run-options": () => renderOptions(RUN_COMMAND),
  "keep-options": () => renderOptions(KEEP_COMMAND),
  "child-variables": renderChildVariables,
  "exit-statuses": renderStatuses,
  "result-fields": renderFields,
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

function renderOptions<Part>(command: CommandRow<Part>): string {
  const rows = command.rows.map((row) => [
    code(flagText(row)),
    row.help,
    row.defaultText,
    row.variable === undefined ? "" : code(row.variable),
  ]);
  return renderTable(["option", "meaning", "default", "variable"], rows);
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
    row.isInThisVersion ? row.meaning : `${row.meaning} (a later version)`,
  ]);
  return renderTable(["status", "outcome", "meaning"], rows);
}

function renderFields(): string {
  const rows = listFields().map((row) => [code(row.path), row.meaning]);
  return renderTable(["field", "meaning"], rows);
}

function renderLaterNames(): string {
  const reasons = new Map<string, string[]>();
  for (const flag of listLaterFlags()) {
    const reason = reasonOfLaterFlag(flag) ?? "";
    reasons.set(reason, [...(reasons.get(reason) ?? []), code(flag)]);
  }
  const rows = [...reasons].map(([reason, flags]) => [flags.join(" "), reason]);
  return renderTable(
    ["known name, refused in this version", "because"],
    [
      ...rows,
      [listLaterCommands().map(code).join(" "), "these commands come with a later version"],
    ],
  );
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
