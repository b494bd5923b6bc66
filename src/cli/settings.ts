/**
 * Reads the configuration: the files that are heard, checked as a whole.
 *
 * Decides nothing about what a setting means. On the path of every `watchdog run`: where no file is
 * there it costs the two opens that find none. Always: a file with anything wrong in it is refused
 * with the first finding, and no part of it is used.
 */

import { NO_CONTENT, readConfigTable } from "../core/config.ts";
import type { ConfigReading } from "../core/config.ts";
import type { ConfigFinding } from "../core/config-values.ts";
import { WatchdogError } from "../core/errors.ts";
import { mergeSettings } from "../core/settings.ts";
import type { ConfigFile, Settings } from "../core/settings.ts";
import { listDefaultConfigs, parseToml, readConfigFile } from "../os/config-file.ts";
import type { ConfigFileReading } from "../os/config-file.ts";
import { isOfAnotherUsersRun } from "../os/state-dir.ts";
import { configSchema } from "./config-schema.ts";
import type { Variables } from "./cut-options.ts";
import { nearestOf } from "./nearest.ts";
import { quoteForShell } from "./shown-words.ts";

/** @throws WatchdogError "config.refused" */
export type ReadSettings = (configFile: string | undefined) => Settings;

/** A file as it was found; no reading: it is not there. */
export interface CheckedFile {
  readonly path: string;
  readonly isThere: boolean;
  readonly isHeard: boolean;
  readonly ownerUid: number | undefined;
  readonly findings: readonly ConfigFinding[];
  /** Undefined: it is not there, or there are findings. */
  readonly file: ConfigFile | undefined;
}

/** Reads each file once, however often it is asked. */
export function makeReadSettings(defaults = listDefaultConfigs): ReadSettings {
  const known = new Map<string | undefined, Settings>();
  return (configFile) => {
    const before = known.get(configFile);
    if (before !== undefined) return before;
    const files = checkConfigFiles(configFile, defaults()).map((checked) => {
      const [finding] = checked.findings;
      if (finding !== undefined) throw refuse(checked.path, finding, configFile);
      return checked.file ?? [];
    });
    const settings = mergeSettings(files.flat());
    known.set(configFile, settings);
    return settings;
  };
}

/**
 * Weakest first. `--config` takes the place of the defaults; of the machine's file the `[policy]`
 * holds all the same.
 *
 * @param defaults  the paths of the machine's file and of the user's
 */
export function checkConfigFiles(
  configFile: string | undefined,
  defaults: readonly string[],
): readonly CheckedFile[] {
  if (configFile === undefined) return defaults.map((path) => checkFile(path, PLAIN));
  const ofMachine = defaults.slice(0, 1);
  const asked = readConfigFile(configFile);
  const own =
    asked.kind === "missing"
      ? refusedFile(configFile, "no file", "a configuration file")
      : checkReading(asked, { isHeard: true, isChosen: true });
  const behind = { isHeard: false, isChosen: false };
  return [...ofMachine.map((path) => checkFile(path, behind)), own];
}

type Place = Pick<ConfigFile, "isHeard" | "isChosen">;

const PLAIN: Place = { isHeard: true, isChosen: false };

function checkFile(path: string, place: Place): CheckedFile {
  return checkReading(readConfigFile(path), place);
}

function checkReading(reading: ConfigFileReading, place: Place): CheckedFile {
  const { path } = reading;
  const { isHeard } = place;
  const nothing = { path, isHeard, ownerUid: undefined, findings: [], file: undefined };
  if (reading.kind === "missing") return { ...nothing, isThere: false };
  if (reading.kind === "refused") {
    return { ...refusedFile(path, reading.found, reading.expected), isHeard };
  }
  const { ownerUid } = reading;
  const { content, findings } = readContent(reading.text);
  const file = { path, ownerUid, content, ...place };
  return {
    path,
    isThere: true,
    isHeard,
    ownerUid,
    findings,
    file: findings.length === 0 ? file : undefined,
  };
}

function refusedFile(path: string, found: string, expected: string): CheckedFile {
  const findings: ConfigFinding[] = [{ because: "unreadable", path: "", found, expected }];
  return { path, isThere: true, isHeard: true, ownerUid: undefined, findings, file: undefined };
}

function readContent(text: string): ConfigReading {
  const toml = parseToml(text);
  if (toml.kind === "table") return readConfigTable(toml.table, configSchema());
  return {
    content: NO_CONTENT,
    findings: [{ because: "not-toml", path: "", found: toml.found, expected: "TOML" }],
  };
}

/** `/etc/watchdog/config.toml: run.tiemout: found an unknown key, expected ...`. */
export function renderFinding(file: string, finding: ConfigFinding): string {
  const { path, found, expected, candidates = [] } = finding;
  const where = path === "" ? file : `${file}: ${path}`;
  const name = path.split(".").at(-1) ?? "";
  const near = nearestOf(name, candidates);
  const sentence = `${where}: found ${found}, expected ${expected}`;
  return near === undefined ? sentence : `${sentence}; the nearest is ${near}`;
}

function refuse(
  file: string,
  finding: ConfigFinding,
  configFile: string | undefined,
): WatchdogError {
  return new WatchdogError("config.refused", renderFinding(file, finding), {
    hint: hintToCheck(configFile),
  });
}

/**
 * The environment as an answer to what was asked for here: the state directory of another user's
 * run around this one was not (os/state-dir.ts), so that the configuration is heard about it.
 */
export function ownVariables(variables: Variables): Variables {
  const { WATCHDOG_STATE_DIR: stateDir } = variables;
  if (stateDir === undefined || !isOfAnotherUsersRun(stateDir)) return variables;
  return { ...variables, WATCHDOG_STATE_DIR: undefined };
}

/** A line that lists all that is wrong. */
function hintToCheck(configFile: string | undefined): string {
  return hintTo("check", configFile);
}

/** A line that shows what is set, and where: in the same files. */
export function hintToShow(configFile: string | undefined): string {
  return hintTo("show", configFile);
}

function hintTo(verb: "check" | "show", configFile: string | undefined): string {
  const words = configFile === undefined ? [] : ["--config", configFile];
  return quoteForShell(["watchdog", "config", verb, ...words]) ?? "watchdog help config";
}
