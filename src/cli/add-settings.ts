/**
 * Adds what the configuration says to what the line and the environment say.
 *
 * Reads no file. Always: a flag beats its variable and a variable beats a file; an option that
 * either of them has decided is not looked up.
 */

import type { Setting, Settings } from "../core/settings.ts";
import { quoteKey } from "../core/config-values.ts";
import { CONFIGURABLE_ROWS, configNameOf, JOB_ROWS } from "./config-schema.ts";
import type { Given, GivenOptions, Variables } from "./cut-options.ts";
import type { Cut, StopCut } from "./cut.ts";
import { stateGroupRow } from "./lease-options.ts";
import type { OptionRow } from "./option-row.ts";
import type { RunPart } from "./probe-options.ts";
import type { ReadSettings } from "./settings.ts";
import { stateDirRow } from "./shared-rows.ts";

type Row = OptionRow<RunPart>;

export interface OfFiles {
  /** What the files say where nobody else does. */
  readonly parts: readonly RunPart[];
  /** All that is given, by whomever. */
  readonly given: GivenOptions;
}

export interface JobOfSettings {
  readonly name: string;
  /** The options that its table can say; undefined: all that a table of a job may hold. */
  readonly rows?: readonly Row[];
}

/**
 * What the files add to a reading: what they say of the job, or else of all.
 *
 * @param rows  the options that [run] can say
 * @param job  undefined: it is no run of a job
 */
export function addSettings(
  reading: { readonly given: GivenOptions },
  settings: Settings,
  rows: readonly Row[] = CONFIGURABLE_ROWS,
  job?: JobOfSettings,
): OfFiles {
  if (settings.files.length === 0) return { parts: [], given: reading.given };
  const given = new Map(reading.given);
  const parts: RunPart[] = [];
  const add = (row: Row, setting: Setting | undefined, name: string): void => {
    if (setting === undefined || reading.given.has(row.flag)) return;
    parts.push(...setting.texts.flatMap((text) => partOf(row, text)));
    given.set(row.flag, givenBy(setting, name));
  };
  const ofJob = job === undefined ? undefined : settings.jobs.get(job.name);
  for (const row of ofJob === undefined ? rows : (job?.rows ?? JOB_ROWS)) {
    const name = configNameOf(row.flag);
    const setting = ofJob?.get(name);
    if (setting === undefined) add(row, settings.run.get(name), name);
    else add(row, setting, `jobs.${quoteKey(job?.name ?? "")}.${name}`);
  }
  add(stateDirRow, settings.stateDir, "state_dir");
  add(stateGroupRow, settings.stateGroup, "state_group");
  return { parts, given };
}

/** None is refused here: the file was checked as a whole when it was read. */
function partOf(row: Row, text: string): readonly RunPart[] {
  const parsed = row.read(text);
  return parsed.kind === "value" ? [parsed.value] : [];
}

function givenBy(setting: Setting, name: string): Given {
  const { file, rank } = setting;
  return { name: `${name} of ${file}`, at: undefined, count: 0, file, rank };
}

/**
 * The cut with the state directory of the configuration, where neither the line nor the environment
 * has one. Of a command that tells about the configuration itself, nothing is read here; nor of one
 * that a run needs and whose place the run has said: a file that breaks meanwhile must not take
 * `fence`, `retry` and `keep` away from it.
 *
 * @throws WatchdogError "config.refused"
 */
export function placeCut(cut: Cut, readSettings: ReadSettings, variables: Variables): Cut {
  if (isNeededByRun(cut) && isPlacedByRun(cut, variables)) return cut;
  if (!needsPlace(cut)) return cut;
  switch (cut.kind) {
    case "keep":
      return { ...cut, options: placed(cut.options, readSettings) };
    case "retry":
      return { ...cut, options: placed(cut.options, readSettings) };
    case "fence":
      return { ...cut, options: placed(cut.options, readSettings) };
    case "stop":
      return { ...placed(cut, readSettings), killAfterMs: killAfterOf(cut, readSettings) };
    default:
      return placed(cut, readSettings);
  }
}

const WITHOUT_PLACE = [
  "run", // has it already
  "help",
  "version",
  "bury",
  "lock-probe",
  "probe-command",
  "tick",
  "job-run", // has it when its file was read
  "job-schema",
  "hook",
  "runner",
  "doctor",
  "config-show",
  "config-check",
] as const;

function needsPlace(
  cut: Cut,
): cut is Exclude<Cut, { readonly kind: (typeof WITHOUT_PLACE)[number] }> {
  return !WITHOUT_PLACE.some((kind) => kind === cut.kind);
}

/**
 * As for a limit of the run itself: what the configuration says of the job, or else of all, holds
 * where the line says nothing.
 */
function killAfterOf(cut: StopCut, readSettings: ReadSettings): number | undefined {
  if (cut.killAfterMs !== undefined) return cut.killAfterMs;
  const row = CONFIGURABLE_ROWS.find(({ flag }) => flag === "--kill-after");
  const { jobs, run } = readSettings(cut.configFile);
  const setting = jobs.get(cut.target)?.get("kill_after") ?? run.get("kill_after");
  const [text] = setting?.texts ?? [];
  if (row === undefined || text === undefined) return undefined;
  return partOf(row, text)[0]?.killAfterMs;
}

type NeededByRun = Extract<
  Cut,
  { kind: "keep" | "fence" | "retry" | "fence-git-push" | "git-hook" }
>;

function isNeededByRun(cut: Cut): cut is NeededByRun {
  return ["keep", "fence", "retry", "fence-git-push", "git-hook"].includes(cut.kind);
}

/** Nothing that the configuration could say is missing, and nobody has asked for a file. */
function isPlacedByRun(cut: NeededByRun, variables: Variables): boolean {
  const { stateDir, configFile } = "options" in cut ? cut.options : cut;
  const isInRun = (variables["WATCHDOG_RUN_ID"] ?? "") !== "";
  return isInRun && stateDir !== undefined && configFile === undefined;
}

interface Placed {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
}

function placed<T extends Placed>(looking: T, readSettings: ReadSettings): T {
  const settings = readSettings(looking.configFile);
  return { ...looking, stateDir: looking.stateDir ?? settings.stateDir?.texts[0] };
}
