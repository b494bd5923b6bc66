/**
 * The tables `[jobs.NAME]` of a configuration file: what one job is told, by the names of the
 * options of a run.
 *
 * Knows no option: keys and readers are handed in. Always: as in config.ts, nothing is passed over.
 */

import { isTable, laterKey, quoteKey, readKeys, unknownKey, wrongKind } from "./config-values.ts";
import type {
  ConfigFinding,
  ConfigKeys,
  ConfigTexts,
  Table,
  ValueRefusal,
} from "./config-values.ts";

export interface JobKeys {
  readonly keys: ConfigKeys;
  /** Undefined: a job can be called so. */
  readonly refusalOfName: (name: string) => ValueRefusal | undefined;
  /** Why a key that this version does not have is refused, where a later one has it. */
  readonly laterReasonOf: (name: string) => string | undefined;
}

/** By the names of the jobs. */
export type JobTables = ReadonlyMap<string, ConfigTexts>;

/** What the name of a job is, and not a setting of it. */
const NAME = "name";

export function readJobsTable(
  table: Table,
  { keys, refusalOfName, laterReasonOf }: JobKeys,
  findings: ConfigFinding[],
): JobTables {
  const jobs = new Map<string, ConfigTexts>();
  const refuse = (name: string, path: string): ConfigFinding => {
    const later = laterReasonOf(name);
    if (later !== undefined) return laterKey(path, later);
    if (name === NAME) return ownName(path);
    return unknownKey(path, "the name of an option of watchdog run", [...keys.keys()]);
  };
  for (const [name, value] of Object.entries(table)) {
    const path = `jobs.${quoteKey(name)}`;
    const refusal = refusalOfName(name);
    if (refusal !== undefined) {
      const { expected, found = "a name that no job has" } = refusal;
      findings.push({ because: "wrong-value", path, found, expected });
    } else if (!isTable(value)) findings.push(wrongKind(path, value, "a table [jobs.NAME]"));
    else jobs.set(name, readKeys(value, { prefix: `${path}.`, keys, refuse }, findings));
  }
  return jobs;
}

function ownName(path: string): ConfigFinding {
  const expected = "none: the table itself has the name of the job";
  return { because: "misplaced-key", path, found: "a key in the wrong place", expected };
}
