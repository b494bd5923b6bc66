/**
 * What each option is set to and where that comes from: the view behind `watchdog config show`.
 *
 * Reads no file and no environment, both are handed in, as is the table of options. Always: a
 * variable that is not empty beats the files, as it does for a run; a setting that nobody has made
 * is shown with what holds then.
 */
import { quoteKey } from "../core/config-values.ts";
import { RIGHTS } from "../core/policy.ts";
import type { PolicyEntry, PolicyFile } from "../core/policy.ts";
import type { Setting, Settings } from "../core/settings.ts";

/** An option as the table has it. */
export interface ShownOption {
  /** As TOML has it: `run.idle_timeout`, `state_dir`, `probes."db.main".url`. */
  readonly key: string;
  readonly flag: string;
  readonly variable: string | undefined;
  readonly defaultText: string;
}

export interface ShownSetting {
  readonly key: string;
  readonly flag: string;
  /** As on the command line; more than one where the option adds; empty: the default holds. */
  readonly values: readonly string[];
  readonly defaultText: string;
  readonly source: "flag" | "variable" | "file" | "default";
  /** The flag, the variable or the file; null: none of them. */
  readonly from: string | null;
}

export interface ShownPolicy {
  readonly right: (typeof RIGHTS)[number];
  /** Users, `uid:N` and `@group`. */
  readonly entries: readonly string[];
  readonly file: string;
}

export function viewSettings(
  options: readonly ShownOption[],
  variables: Variables,
  settings: Settings,
): readonly ShownSetting[] {
  return options.map((option) => view(option, variables, settingOf(settings, option.key)));
}

type Variables = Readonly<Record<string, string | undefined>>;

function view(
  { key, flag, variable, defaultText }: ShownOption,
  variables: Variables,
  setting: Setting | undefined,
): ShownSetting {
  const shown = { key, flag, defaultText };
  const value = variable === undefined ? undefined : variables[variable];
  if (variable !== undefined && value !== undefined && value !== "") {
    return { ...shown, values: [value], source: "variable", from: variable };
  }
  if (setting === undefined) return { ...shown, values: [], source: "default", from: null };
  return { ...shown, values: setting.texts, source: "file", from: setting.file };
}

function settingOf(settings: Settings, key: string): Setting | undefined {
  if (key === "state_dir") return settings.stateDir;
  if (key === "state_group") return settings.stateGroup;
  return settings.run.get(key.slice("run.".length));
}

/** What the tables of jobs say: only what is set. */
export function viewJobs(
  options: readonly ShownOption[],
  variables: Variables,
  settings: Settings,
): readonly ShownSetting[] {
  return [...settings.jobs].flatMap(([job, table]) =>
    options.flatMap((option) => {
      const setting = table.get(option.key);
      if (setting === undefined) return [];
      const key = `jobs.${quoteKey(job)}.${option.key}`;
      return [view({ ...option, key }, variables, setting)];
    }),
  );
}

/** A key of a table `[probes.NAME]`, or of the one below it. */
export interface ShownProbeKey {
  /** `url`, `period`. */
  readonly name: string;
  readonly isOfStart: boolean;
  readonly option: Omit<ShownOption, "key">;
}

/** What the tables of probes say: only what is set, because a probe that nobody names has none. */
export function viewProbes(
  keys: readonly ShownProbeKey[],
  variables: Variables,
  settings: Settings,
): readonly ShownSetting[] {
  return [...settings.probes].flatMap(([probe, table]) =>
    keys.flatMap(({ name, isOfStart, option }) => {
      const setting = (isOfStart ? table.startup : table.keys).get(name);
      if (setting === undefined) return [];
      const key = `probes.${quoteKey(probe)}.${isOfStart ? "startup." : ""}${name}`;
      return [view({ ...option, key }, variables, setting)];
    }),
  );
}

/** What the tables of sinks say: only what is set. */
export function viewSinks(keys: readonly string[], settings: Settings): readonly ShownSetting[] {
  return [...settings.sinks].flatMap(([sink, table]) =>
    keys.flatMap((name) => {
      const setting = table.get(name);
      if (setting === undefined) return [];
      const option = { key: `sinks.${sink}.${name}`, flag: "", variable: undefined };
      return [view({ ...option, defaultText: "" }, {}, setting)];
    }),
  );
}

/** One for each list of each file. */
export function viewPolicies(files: readonly PolicyFile[]): readonly ShownPolicy[] {
  return files.flatMap(({ path, lists }) =>
    RIGHTS.flatMap((right) => {
      const list = lists[right];
      return list === undefined ? [] : [{ right, entries: list.map(renderEntry), file: path }];
    }),
  );
}

function renderEntry(entry: PolicyEntry): string {
  switch (entry.kind) {
    case "user":
      return entry.name;
    case "uid":
      return `uid:${entry.uid}`;
    case "group":
      return `@${entry.name}`;
  }
}
