/**
 * What the configuration files say together: for each key the file that is heard, and who may do
 * what by which file.
 *
 * Knows no file and no option. Always: of two files that have a key the stronger one is heard
 * alone, and each `[policy]` counts, because a file must not allow what another one forbids.
 */
import type { ProbeTables } from "./config-probes.ts";
import type { ConfigContent } from "./config.ts";
import type { ConfigTexts } from "./config-values.ts";
import type { PolicyFile } from "./policy.ts";

/** A configuration file that was read and is as it must be. */
export interface ConfigFile {
  readonly path: string;
  readonly ownerUid: number;
  readonly content: ConfigContent;
  /** False: the file of `--config` takes its place, and only its `[policy]` holds all the same. */
  readonly isHeard: boolean;
  /** It is that of `--config`: whoever asks for a right has chosen it. */
  readonly isChosen: boolean;
}

export interface Setting {
  readonly texts: readonly string[];
  /** The path of the file that says so. */
  readonly file: string;
  /** Of two settings the larger one beats the other. */
  readonly rank: number;
}

/** What a table `[probes.NAME]` and its `startup` say, by the names of the keys. */
export interface ProbeTableSettings {
  readonly keys: ReadonlyMap<string, Setting>;
  readonly startup: ReadonlyMap<string, Setting>;
}

export interface Settings {
  /** Weakest first. */
  readonly files: readonly ConfigFile[];
  readonly stateDir: Setting | undefined;
  readonly stateGroup: Setting | undefined;
  /** The options of `run`, by their names in snake case. */
  readonly run: ReadonlyMap<string, Setting>;
  /** The same of one job, by the names of the jobs: stronger than any `run`. */
  readonly jobs: ReadonlyMap<string, ReadonlyMap<string, Setting>>;
  /** By the names of the probes. */
  readonly probes: ReadonlyMap<string, ProbeTableSettings>;
  /** By the names of the sinks: the whole table of the strongest file that has one. */
  readonly sinks: ReadonlyMap<string, ReadonlyMap<string, Setting>>;
  readonly policies: readonly PolicyFile[];
}

export const NO_SETTINGS: Settings = {
  files: [],
  stateDir: undefined,
  stateGroup: undefined,
  run: new Map(),
  jobs: new Map(),
  probes: new Map(),
  sinks: new Map(),
  policies: [],
};

/** @param files  weakest first */
export function mergeSettings(files: readonly ConfigFile[]): Settings {
  if (files.length === 0) return NO_SETTINGS;
  const top = new Map<string, Setting>();
  const run = new Map<string, Setting>();
  const jobs = new Map<string, Map<string, Setting>>();
  const probes: ChangingProbes = new Map();
  const sinks = new Map<string, ReadonlyMap<string, Setting>>();
  for (const [rank, { path, content, isHeard }] of files.entries()) {
    if (!isHeard) continue;
    add(top, content.top, { file: path, rank });
    add(run, content.run, { file: path, rank });
    for (const [name, texts] of content.jobs) {
      const known = jobs.get(name) ?? new Map<string, Setting>();
      jobs.set(name, known);
      // What is said of one job beats what is said of all, whichever file says it.
      add(known, texts, { file: path, rank: rank + files.length });
    }
    addProbes(probes, content.probes, { file: path, rank });
    for (const [name, texts] of content.sinks) {
      // Of two tables together the target of the one would be told what the other asks for.
      const table = new Map<string, Setting>();
      add(table, texts, { file: path, rank });
      sinks.set(name, table);
    }
  }
  const policies = files.flatMap(({ path, ownerUid, isChosen, content }) => {
    const lists = content.policy;
    return lists === undefined ? [] : [{ path, ownerUid, isChosen, lists }];
  });
  const [stateDir, stateGroup] = [top.get("state_dir"), top.get("state_group")];
  return { files, stateDir, stateGroup, run, jobs, probes, sinks, policies };
}

function add(
  settings: Map<string, Setting>,
  texts: ConfigTexts,
  from: Pick<Setting, "file" | "rank">,
): void {
  for (const [name, each] of texts) settings.set(name, { texts: each, ...from });
}

type ChangingProbes = Map<
  string,
  { readonly keys: Map<string, Setting>; readonly startup: Map<string, Setting> }
>;

function addProbes(
  probes: ChangingProbes,
  tables: ProbeTables,
  from: Pick<Setting, "file" | "rank">,
): void {
  for (const [name, { keys, startup }] of tables) {
    const known = probes.get(name) ?? { keys: new Map(), startup: new Map() };
    probes.set(name, known);
    add(known.keys, keys, from);
    add(known.startup, startup, from);
  }
}
