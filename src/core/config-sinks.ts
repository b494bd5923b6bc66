/**
 * The tables `[sinks.NAME]` of a configuration file: who is told of every run that reads it.
 *
 * Knows no option: keys and readers are handed in. Always: as in config.ts, nothing is passed over;
 * a table names exactly one target, because a sink that tells nobody protects nobody.
 */

import { isTable, quoteKey, readKeys, unknownKey, wrongKind } from "./config-values.ts";
import type { ConfigFinding, ConfigKeys, ConfigTexts, Table } from "./config-values.ts";
import { isProbeName, PROBE_NAME_FORM } from "./probe-target.ts";
import { SINK_KINDS } from "./sink.ts";

/** By their names. */
export type SinkTables = ReadonlyMap<string, ConfigTexts>;

export function readSinksTable(
  table: Table,
  keys: ConfigKeys,
  findings: ConfigFinding[],
): SinkTables {
  const sinks = new Map<string, ConfigTexts>();
  for (const [name, value] of Object.entries(table)) {
    const path = `sinks.${quoteKey(name)}`;
    if (!isProbeName(name)) {
      const found = "a name that no sink has";
      findings.push({ because: "wrong-value", path, found, expected: PROBE_NAME_FORM });
    } else if (isTable(value)) sinks.set(name, readSink(path, value, { keys, findings }));
    else findings.push(wrongKind(path, value, "a table [sinks.NAME]"));
  }
  return sinks;
}

interface Reading {
  readonly keys: ConfigKeys;
  readonly findings: ConfigFinding[];
}

function readSink(path: string, table: Table, { keys, findings }: Reading): ConfigTexts {
  const known = [...keys.keys()];
  const refuse = (_: string, at: string): ConfigFinding =>
    unknownKey(at, `one of ${known.join(", ")}`, known);
  const texts = readKeys(table, { prefix: `${path}.`, keys, refuse }, findings);
  const named = SINK_KINDS.filter((kind) => Object.hasOwn(table, kind));
  if (named.length !== 1) {
    const found = named.length === 0 ? "no target" : `${named.length} targets`;
    const expected = `one of ${SINK_KINDS.join(", ")}`;
    findings.push({ because: "contradiction", path, found, expected });
  } else if (Object.hasOwn(table, "shape") && named[0] !== "webhook") {
    const found = `a shape with ${named[0]}`;
    findings.push({ because: "contradiction", path, found, expected: "one with webhook alone" });
  }
  return texts;
}
