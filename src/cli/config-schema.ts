/**
 * What the configuration may hold, made from the table of options: one word for one thing on the
 * line, in the environment and in a file.
 *
 * Reads no file. Loaded with every start and built only where there is a file.
 */

import type { ConfigSchema } from "../core/config.ts";
import type { ConfigKey, ConfigValueKind, ValueRefusal } from "../core/config-values.ts";
import { hideTargetSecrets, parseProbeTarget } from "../core/probe-target.ts";
import { reasonOfLaterFlag } from "./later-names.ts";
import { stateGroupRow } from "./lease-options.ts";
import { configNameOf } from "./option-row.ts";
import type { OptionRow, ValueKind } from "./option-row.ts";
import { RUN_COMMAND } from "./options-table.ts";
import type { RunPart } from "./probe-options.ts";
import { PROBE_STARTUP_ROWS, PROBE_TABLE_ROWS, URL_KEY } from "./probe-table-keys.ts";
import { SINK_KEYS } from "./sink-table.ts";
import { configRow, stateDirRow } from "./shared-rows.ts";

export { configNameOf } from "./option-row.ts";

/** Of a run, but not of [run]: where everything is, for every command. */
const NOT_IN_RUN: readonly string[] = [stateDirRow.flag, stateGroupRow.flag, configRow.flag];
/** Every run hears of [run], also one inside of another: what is of one job has no place there. */
const OF_ONE_JOB: readonly string[] = [
  "--name",
  "--result-file",
  "--lock",
  "--lane",
  "--task",
  "--worktree",
  "--probe",
  "--ready-probe",
  "--expect-file",
  "--expect-match",
  "--every",
  "--schedule",
  "--time-zone",
  "--ping",
];
const LATER_TABLES = "job step store".split(" ");
/** The table of a job is called by it. */
const NAME_FLAG = "--name";

const KINDS: Readonly<Partial<Record<ValueKind, ConfigValueKind>>> = {
  span: "amount",
  size: "amount",
  percent: "amount",
  signal: "amount",
  "exit code": "amount",
  count: "amount",
  factor: "amount",
  "exit codes": "codes",
  statuses: "codes",
  texts: "texts",
  key: "texts",
  switch: "switch",
};

/** What a run can be told, but where everything is. */
export const RUN_ROWS = RUN_COMMAND.rows.filter(
  ({ kind, flag }) => kind !== "request" && !NOT_IN_RUN.includes(flag),
);

/** The part of it that a file can say. */
export const CONFIGURABLE_ROWS = RUN_ROWS.filter(({ flag }) => !OF_ONE_JOB.includes(flag));

/** And what it can say of one job. */
export const JOB_ROWS = RUN_ROWS.filter(({ flag }) => flag !== NAME_FLAG);

let schema: ConfigSchema | undefined;

export function configSchema(): ConfigSchema {
  schema ??= {
    top: new Map([
      ["state_dir", { kind: "text", refusalOf: refusalOfStateDir }],
      ["state_group", keyOf(stateGroupRow)],
    ]),
    run: new Map(CONFIGURABLE_ROWS.map((row) => [configNameOf(row.flag), keyOf(row)])),
    jobs: {
      keys: new Map(JOB_ROWS.map((row) => [configNameOf(row.flag), keyOf(row)])),
      refusalOfName: refusalOfJobName,
      laterReasonOf: (name) => laterReasonOf(`run.${name}`),
    },
    probes: {
      own: new Map([[URL_KEY, URL_OF_PROBE], ...keysOf(PROBE_TABLE_ROWS)]),
      startup: new Map(keysOf(PROBE_STARTUP_ROWS)),
    },
    sinks: SINK_KEYS,
    ofOneJob: OF_ONE_JOB.map(configNameOf),
    laterReasonOf,
  };
  return schema;
}

function keysOf(rows: ReadonlyMap<string, OptionRow<RunPart>>): [string, ConfigKey][] {
  return [...rows].map(([name, row]) => [name, keyOf(row)]);
}

const URL_OF_PROBE: ConfigKey = {
  kind: "text",
  hide: hideTargetSecrets,
  refusalOf: (text) => {
    const parsing = parseProbeTarget(text);
    return parsing.kind === "refused" ? { expected: parsing.expected } : undefined;
  },
};

function keyOf(row: OptionRow<RunPart>): ConfigKey {
  const { kind, hide } = row;
  return { kind: KINDS[kind] ?? "text", hide, refusalOf: (text) => refusalInFile(row, text) };
}

function refusalInFile(row: OptionRow<RunPart>, text: string): ValueRefusal | undefined {
  const refusal = refusalOf(row, text);
  if (refusal !== undefined) return refusal;
  return listPaths(row, text).every(isAbsolute) ? undefined : ABSOLUTE;
}

/** Of the files that a run or a probe is told by. */
function listPaths(row: OptionRow<RunPart>, text: string): readonly string[] {
  const parsed = row.read(text);
  if (parsed.kind !== "value") return [];
  const { resultFile, worktree, probing, locks = [] } = parsed.value;
  const { caFile, credentialsFile, bodyFile, headers = [] } = probing?.said?.fields ?? {};
  const ofHeaders = headers.map(({ file }) => file);
  const ofLocks = locks.filter(({ kind }) => kind === "worktree").map(({ name }) => name);
  const paths = [resultFile, worktree, ...ofLocks, caFile, credentialsFile, bodyFile, ...ofHeaders];
  return paths.filter((path) => path !== undefined);
}

/** Relative to what? One file is read from many directories. */
function isAbsolute(path: string): boolean {
  return path.startsWith("/");
}

const ABSOLUTE: ValueRefusal = { expected: "an absolute path" };

function refusalOf<Part>(row: OptionRow<Part>, text: string): ValueRefusal | undefined {
  if (row.kind === "switch") return undefined; // true and false are all that there is
  const parsed = row.read(text);
  return parsed.kind === "refused" ? parsed : undefined;
}

function refusalOfJobName(name: string): ValueRefusal | undefined {
  const row = RUN_ROWS.find(({ flag }) => flag === NAME_FLAG);
  return row === undefined ? undefined : refusalOf(row, name);
}

function refusalOfStateDir(text: string): ValueRefusal | undefined {
  return isAbsolute(text) && refusalOf(stateDirRow, text) === undefined ? undefined : ABSOLUTE;
}

function laterReasonOf(path: string): string | undefined {
  if (path.startsWith("run.")) {
    return reasonOfLaterFlag(`--${path.slice("run.".length).replaceAll("_", "-")}`);
  }
  return LATER_TABLES.includes(path) ? "it comes with a later version" : undefined;
}
