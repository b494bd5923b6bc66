/**
 * All sinks of a line: those of its options and variables, of `[run]`, and of tables
 * `[sinks.NAME]`, each target once.
 *
 * Reads no value that was not read before, no environment and no file.
 */

import type { RunOptions } from "../core/run-options.ts";
import type { Settings } from "../core/settings.ts";
import { makeSink, mergeSinks, type SinkSpec } from "../core/sink.ts";
import { parseSinkTable } from "./sink-table.ts";
import type { Given } from "./cut-options.ts";
import type { ReadLine } from "./read-line.ts";
import { TARGET_ROWS } from "./sink-options.ts";

type Part = Partial<RunOptions>;

export interface FinishedSinks {
  readonly sinks: readonly SinkSpec[];
  readonly masks: readonly string[];
}

/**
 * @param line  what is given, by whomever
 * @param parts  of files, and of variables and the line
 * @param tables  `[sinks.NAME]`: for every run, beside what its line says
 */
export function finishSinks(
  line: ReadLine,
  parts: readonly Part[],
  tables: Settings["sinks"],
): FinishedSinks {
  const ofLine = parts.flatMap((part) =>
    (part.sinks ?? []).map((spec) => nameVariable(spec, line)),
  );
  const ofTables = [...tables.values()].flatMap((table) => parseSinkTable(table) ?? []);
  return {
    sinks: mergeSinks([...ofLine, ...ofTables]),
    masks: [...new Set(parts.flatMap(({ masks = [] }) => masks))],
  };
}

/** What a variable holds may be a secret; what it is called is none. */
function nameVariable(spec: SinkSpec, line: ReadLine): SinkSpec {
  const row = TARGET_ROWS.find(({ flag }) => flag === `--${spec.kind}`);
  const given = row === undefined ? undefined : line.given.get(row.flag);
  if (row?.variable === undefined || given === undefined || !isVariable(given)) return spec;
  const { source, kind, shape, events } = spec;
  if (source.kind !== "literal") return spec;
  const words = { kind, shape, events, value: source.text };
  return makeSink({ ...words, source: { kind: "variable", name: row.variable } });
}

function isVariable({ at, file }: Given): boolean {
  return at === undefined && file === undefined;
}
