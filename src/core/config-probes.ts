/**
 * The tables `[probes.NAME]` of a configuration file, and what stands below them for the start of a
 * job alone.
 *
 * Knows no option: keys and readers are handed in. Always: as in config.ts, nothing is passed over.
 */

import {
  isTable,
  misplacedKey,
  quoteKey,
  readKeys,
  unknownKey,
  wrongKind,
} from "./config-values.ts";
import type { ConfigFinding, ConfigKeys, ConfigTexts, Table } from "./config-values.ts";
import { isProbeName, PROBE_NAME_FORM } from "./probe-target.ts";

/** Keys of both kinds of table. */
export interface ProbeKeys {
  readonly own: ConfigKeys;
  readonly startup: ConfigKeys;
}

export interface ProbeTable {
  readonly keys: ConfigTexts;
  readonly startup: ConfigTexts;
}

/** By the names of the probes. */
export type ProbeTables = ReadonlyMap<string, ProbeTable>;

const STARTUP = "startup";
/** With which the same options begin in [run]. */
const OPTION_PREFIX = "probe_";
const STARTUP_PREFIX = "startup_";

export function readProbesTable(
  table: Table,
  keys: ProbeKeys,
  findings: ConfigFinding[],
): ProbeTables {
  const probes = new Map<string, ProbeTable>();
  for (const [name, value] of Object.entries(table)) {
    const path = `probes.${quoteKey(name)}`;
    if (!isProbeName(name)) {
      const found = "a name that no probe has";
      findings.push({ because: "wrong-value", path, found, expected: PROBE_NAME_FORM });
    } else if (isTable(value)) probes.set(name, readProbe(path, value, keys, findings));
    else findings.push(wrongKind(path, value, "a table [probes.NAME]"));
  }
  return probes;
}

function readProbe(
  path: string,
  table: Table,
  { own, startup }: ProbeKeys,
  findings: ConfigFinding[],
): ProbeTable {
  const { [STARTUP]: below, ...values } = table;
  const refuse = (name: string, at: string): ConfigFinding => {
    const bare = name.startsWith(OPTION_PREFIX) ? name.slice(OPTION_PREFIX.length) : name;
    const ofStart = bare.startsWith(STARTUP_PREFIX) ? bare.slice(STARTUP_PREFIX.length) : bare;
    if (own.has(bare)) return misplacedKey(at, `it without ${OPTION_PREFIX}, as ${bare} = ...`);
    if (startup.has(ofStart)) {
      return misplacedKey(at, `it in the table [${path}.${STARTUP}], as ${ofStart} = ...`);
    }
    return unknownKey(at, "the name of a setting of a probe", [...own.keys(), STARTUP]);
  };
  const keys = readKeys(values, { prefix: `${path}.`, keys: own, refuse }, findings);
  const place = `${path}.${STARTUP}`;
  if (below === undefined) return { keys, startup: new Map() };
  if (!isTable(below)) {
    findings.push(wrongKind(place, below, `a table [${place}]`));
    return { keys, startup: new Map() };
  }
  const refuseBelow = (name: string, at: string): ConfigFinding => {
    const known = [...startup.keys()];
    return own.has(name)
      ? misplacedKey(at, `it in the table [${path}]`)
      : unknownKey(at, `one of ${known.join(", ")}`, known);
  };
  const given = { prefix: `${place}.`, keys: startup, refuse: refuseBelow };
  return { keys, startup: readKeys(below, given, findings) };
}
