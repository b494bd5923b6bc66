/**
 * What a configuration file may hold: from the table that its TOML gave to the settings in it, or
 * to what is wrong in it.
 *
 * Knows no file, no option and no language: the names of the options and the readers of their
 * values are handed in, as is the table. Always: nothing of a file is passed over. What is not
 * known here, or not as it must be, is a finding, and a file with a finding is not used at all.
 */
import { readJobsTable } from "./config-jobs.ts";
import type { JobKeys, JobTables } from "./config-jobs.ts";
import { readProbesTable } from "./config-probes.ts";
import type { ProbeKeys, ProbeTables } from "./config-probes.ts";
import { readSinksTable } from "./config-sinks.ts";
import type { SinkTables } from "./config-sinks.ts";
import {
  describeValue,
  isListOf,
  isTable,
  keyOfOneJob,
  laterKey,
  misplacedKey,
  quoteKey,
  readKeys,
  unknownKey,
  wrongKind,
} from "./config-values.ts";
import type { ConfigFinding, ConfigKeys, ConfigTexts, Table } from "./config-values.ts";
import { parsePolicyEntry, POLICY_ENTRY_FORMS, RIGHTS } from "./policy.ts";
import type { PolicyEntry, PolicyFile, Right } from "./policy.ts";

export interface ConfigSchema {
  /** `state_dir`, `state_group`. */
  readonly top: ConfigKeys;
  /** The options of `[run]`, by their names in snake case. */
  readonly run: ConfigKeys;
  /** Of a table `[jobs.NAME]`. */
  readonly jobs: JobKeys;
  /** Of a table `[probes.NAME]`. */
  readonly probes: ProbeKeys;
  /** Of a table `[sinks.NAME]`. */
  readonly sinks: ConfigKeys;
  /** Options of one job, by the same names: they have no place in what every run hears. */
  readonly ofOneJob: readonly string[];
  /** Why a key that this version does not have is refused, where a later one has it. */
  readonly laterReasonOf: (path: string) => string | undefined;
}

export type PolicyLists = PolicyFile["lists"];

export interface ConfigContent {
  readonly top: ConfigTexts;
  readonly run: ConfigTexts;
  readonly jobs: JobTables;
  readonly probes: ProbeTables;
  readonly sinks: SinkTables;
  /** Undefined: there is no `[policy]`. */
  readonly policy: PolicyLists | undefined;
}

export interface ConfigReading {
  readonly content: ConfigContent;
  readonly findings: readonly ConfigFinding[];
}

/** Of a file that says nothing. */
export const NO_CONTENT: ConfigContent = {
  top: new Map(),
  run: new Map(),
  jobs: new Map(),
  probes: new Map(),
  sinks: new Map(),
  policy: undefined,
};

const TABLES = ["run", "jobs", "probes", "sinks", "policy"] as const;

/**
 * @param table  what the TOML of a file gave
 * @returns the findings in the order of the file
 */
export function readConfigTable(table: Table, schema: ConfigSchema): ConfigReading {
  const findings: ConfigFinding[] = [];
  const refuse = (name: string): ConfigFinding => refuseTopKey(name, schema);
  const ofTop = { prefix: "", keys: schema.top, refuse };
  const top = new Map<string, readonly string[]>();
  let { run, jobs, probes, sinks, policy } = NO_CONTENT;
  for (const [name, value] of Object.entries(table)) {
    const known = TABLES.find((each) => each === name);
    if (known === undefined) {
      const read = readKeys({ [name]: value }, ofTop, findings);
      for (const [key, texts] of read) top.set(key, texts);
    } else if (!isTable(value)) findings.push(wrongKind(name, value, `a table [${name}]`));
    else if (known === "run") run = readRunTable(value, schema, findings);
    else if (known === "jobs") jobs = readJobsTable(value, schema.jobs, findings);
    else if (known === "probes") probes = readProbesTable(value, schema.probes, findings);
    else if (known === "sinks") sinks = readSinksTable(value, schema.sinks, findings);
    else policy = readPolicyTable(value, findings);
  }
  return { content: { top, run, jobs, probes, sinks, policy }, findings };
}

function readRunTable(table: Table, schema: ConfigSchema, findings: ConfigFinding[]): ConfigTexts {
  const refuse = (name: string, path: string): ConfigFinding => refuseRunKey(name, path, schema);
  return readKeys(table, { prefix: "run.", keys: schema.run, refuse }, findings);
}

function refuseTopKey(name: string, schema: ConfigSchema): ConfigFinding {
  const path = quoteKey(name);
  const later = schema.laterReasonOf(name);
  if (later !== undefined) return laterKey(path, later);
  if (schema.ofOneJob.includes(name)) return keyOfOneJob(path);
  if (schema.run.has(name)) {
    return misplacedKey(path, `it in the table [run], as ${name} = ...`);
  }
  const known = [...schema.top.keys(), ...TABLES];
  return unknownKey(path, `one of ${known.join(", ")}`, known);
}

function refuseRunKey(name: string, path: string, schema: ConfigSchema): ConfigFinding {
  const later = schema.laterReasonOf(`run.${name}`);
  if (later !== undefined) return laterKey(path, later);
  if (schema.ofOneJob.includes(name)) return keyOfOneJob(path);
  if (schema.top.has(name))
    return misplacedKey(path, "it at the top of the file, above all tables");
  const known = [...schema.run.keys()];
  return unknownKey(path, "the name of an option of watchdog run", known);
}

function readPolicyTable(table: Table, findings: ConfigFinding[]): PolicyLists {
  const lists: Partial<Record<Right, readonly PolicyEntry[]>> = {};
  for (const [name, value] of Object.entries(table)) {
    const path = `policy.${quoteKey(name)}`;
    const right = RIGHTS.find((each) => each === name);
    if (right === undefined) {
      findings.push(unknownKey(path, `one of ${RIGHTS.join(", ")}`, RIGHTS));
    } else if (isListOf(value, "string")) {
      lists[right] = readEntries(path, value, findings);
    } else {
      findings.push(wrongKind(path, value, `a list of ${POLICY_ENTRY_FORMS}, each in quotes`));
    }
  }
  return lists;
}

function readEntries(
  path: string,
  words: readonly string[],
  findings: ConfigFinding[],
): readonly PolicyEntry[] {
  return words.flatMap((word) => {
    const entry = parsePolicyEntry(word);
    if (entry !== undefined) return [entry];
    const found = describeValue(word);
    findings.push({ because: "wrong-value", path, found, expected: POLICY_ENTRY_FORMS });
    return [];
  });
}
