/**
 * `watchdog doctor`: reads the configuration as a run would, keeps what is wrong with it as a
 * finding, and hands the pieces to the check-up. Decides nothing about what is found.
 */
import type { KnownAs } from "../core/disturbing.ts";
import { EXIT, WatchdogError } from "../core/errors.ts";
import { NO_SETTINGS, type Settings } from "../core/settings.ts";
import { examine } from "../doctor/checkup.ts";
import type { ConfigurationFindings } from "../doctor/request.ts";
import { listDefaultConfigs } from "../os/config-file.ts";
import { isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { ANSWER_COMMANDS } from "./answers-table.ts";
import type { Answer } from "./answer.ts";
import { CARE_COMMANDS } from "./care-table.ts";
import { cutCommandLine } from "./command-line.ts";
import type { DoctorCut } from "./cut.ts";
import type { Variables } from "./cut-options.ts";
import { FENCE_COMMANDS } from "./fence-table.ts";
import { laterFlagOf } from "./later-names.ts";
import { NOTIFY_COMMANDS } from "./notify-table.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";
import { renderDoctor } from "./render-doctor.ts";
import { checkConfigFiles, type ReadSettings, renderFinding } from "./settings.ts";
import { CHILD_VARIABLES } from "./variables-table.ts";

const FOUND_SOMETHING = 1;

export interface DoctorAround {
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  readonly variables: Variables;
  readonly readSettings: ReadSettings;
  readonly inherited: Inheritance;
}

export async function answerDoctor(cut: DoctorCut, around: DoctorAround): Promise<Answer> {
  const { variables, scanUrl, inherited } = around;
  const { settings, configuration } = readConfiguration(cut, around);
  const report = await examine({
    askedStateDir: cut.stateDir ?? settings.stateDir?.texts[0],
    stateGroup:
      cut.stateGroup ?? given(variables["WATCHDOG_STATE_GROUP"]) ?? settings.stateGroup?.texts[0],
    configuration,
    scanUrl,
    inherited,
    variables: Object.keys(process.env),
    knownAs,
  });
  const hasFinding = report.checks.some(({ state }) => state === "finding");
  const code = hasFinding ? FOUND_SOMETHING : EXIT.ok;
  return { text: renderDoctor(report, cut), lines: [], code };
}

function given(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/** What a run would be told; where a file is refused, each of its findings in its place. */
function readConfiguration(
  { configFile }: DoctorCut,
  { readSettings, variables }: DoctorAround,
): { readonly settings: Settings; readonly configuration: ConfigurationFindings } {
  const checked = checkConfigFiles(configFile, listDefaultConfigs());
  const files = checked.filter(({ isThere }) => isThere).map(({ path }) => path);
  const troubles = checked.flatMap(({ path, findings }) =>
    findings.map((finding) => renderFinding(path, finding)),
  );
  const refused = {
    settings: NO_SETTINGS,
    configuration: { files, troubles, policies: undefined },
  };
  if (troubles.length > 0) return refused;
  const settings = readSettings(configFile);
  const contradiction = findContradiction(variables, settings);
  const all = contradiction === undefined ? [] : [contradiction];
  return { settings, configuration: { files, troubles: all, policies: settings.policies } };
}

/** What files and variables say together, tried as a run would have it. */
function findContradiction(variables: Variables, settings: Settings): string | undefined {
  try {
    cutCommandLine(["run", "--", "true"], variables, () => settings);
    return undefined;
  } catch (error) {
    if (error instanceof WatchdogError) return error.message;
    throw error;
  }
}

/** Of the registry of what is kept (run/kept-registry.ts). */
const OWN_VARIABLES: readonly string[] = ["WATCHDOG_KEPT"];

function knownAs(name: string): KnownAs {
  if (laterFlagOf(name) !== undefined) return "later";
  const commands = [
    RUN_COMMAND,
    KEEP_COMMAND,
    ...NOTIFY_COMMANDS,
    ...ANSWER_COMMANDS,
    ...FENCE_COMMANDS,
    ...CARE_COMMANDS,
  ];
  const isOption = commands.some(({ rows }) => rows.some(({ variable }) => variable === name));
  const isOfRun = CHILD_VARIABLES.some((variable) => variable.name === name);
  const isOwn = OWN_VARIABLES.includes(name) || isFaultVariable(name);
  return isOption || isOfRun || isOwn ? "known" : "unknown";
}
