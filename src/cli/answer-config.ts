/**
 * The answers about the configuration: `config show`, `config check`.
 *
 * Loaded only for an answer. Always: what is shown is what a run here and now would be told; what
 * is checked is each file as a whole, and then what they say together.
 */

import { EXIT, WatchdogError } from "../core/errors.ts";
import type { ConfigFinding } from "../core/config-values.ts";
import { mergeSettings } from "../core/settings.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { Settings } from "../core/settings.ts";
import {
  viewJobs,
  viewPolicies,
  viewProbes,
  viewSettings,
  viewSinks,
} from "../inspect/config-view.ts";
import type { ShownOption, ShownProbeKey, ShownSetting } from "../inspect/config-view.ts";
import { RIGHTS } from "../core/policy.ts";
import { listDefaultConfigs } from "../os/config-file.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { findOwnGroup } from "../os/state-group.ts";
import { findGroup, isUser } from "../os/users.ts";
import type { Answer } from "./answer.ts";
import { cutCommandLine } from "./command-line.ts";
import { configNameOf, JOB_ROWS, RUN_ROWS } from "./config-schema.ts";
import type { ConfigCheckCut, ConfigShowCut } from "./cut.ts";
import { renderRefusal } from "./cut-options.ts";
import type { Variables } from "./cut-options.ts";
import { stateGroupRow } from "./lease-options.ts";
import { probeRow, readyProbeRow } from "./probe-options.ts";
import { PROBE_STARTUP_ROWS, PROBE_TABLE_ROWS, URL_KEY } from "./probe-table-keys.ts";
import { renderColumns, renderCount, renderJson, renderLines } from "./render-words.ts";
import { checkConfigFiles, renderFinding } from "./settings.ts";
import type { CheckedFile, ReadSettings } from "./settings.ts";
import { stateDirRow } from "./shared-rows.ts";
import { SINK_KEYS } from "./sink-table.ts";
import { showWord } from "./shown-words.ts";
import { parseSwitch } from "./values.ts";

const FOUND_SOMETHING = 1;

/** What the front door hands in. */
export interface ConfigAround {
  readonly variables: Variables;
  readonly readSettings: ReadSettings;
}

/** @throws WatchdogError "config.refused" (78) */
export function answerConfigShow(cut: ConfigShowCut, around: ConfigAround): Answer {
  const settings = around.readSettings(cut.configFile);
  const checked = checkConfigFiles(cut.configFile, listDefaultConfigs());
  const shown = [
    showStateDir(cut, around.variables, settings),
    ...viewSettings(listOptions(), around.variables, settings),
    ...viewJobs(listJobOptions(), around.variables, settings),
    ...viewProbes(listProbeKeys(), around.variables, settings),
    ...viewSinks([...SINK_KEYS.keys()], settings),
  ].map(hideSecrets);
  const policies = viewPolicies(settings.policies);
  const wrong = findWrongVariables(around.variables);
  const lines = wrong.length > 0 ? wrong : judgeTogether(shown, around.variables, settings);
  if (cut.isJson) {
    const policy = policies.map(({ right, entries, file }) => ({ right, entries, from: file }));
    const json = { format: 1, files: checked.map(showFile), settings: shown.map(showSetting) };
    return { text: renderJson({ ...json, policy, troubles: lines }), lines, code: EXIT.ok };
  }
  const files = checked.map((file) => ["file", file.path, describeFile(file)]);
  const rows = shown.map((each) => [each.key, valueText(each), each.from ?? each.source]);
  const rights = policies.map(({ right, entries, file }) => [
    `policy.${right}`,
    entries.length === 0 ? "nobody" : entries.join(" "),
    file,
  ]);
  const text = renderLines(renderColumns([...files, ...rows, ...rights]));
  return { text, lines, code: EXIT.ok };
}

/** It is for every command, so that the flag may stand here. */
function showStateDir(cut: ConfigShowCut, variables: Variables, settings: Settings): ShownSetting {
  const { flag, variable = "" } = stateDirRow;
  const shown = { key: "state_dir", flag, defaultText: resolveStateDirectory(undefined) };
  const [fromFile] = viewSettings([{ ...shown, variable }], {}, settings);
  if (cut.stateDir === undefined && fromFile !== undefined) return fromFile;
  const values = cut.stateDir === undefined ? [] : [cut.stateDir];
  const isVariable = variables[variable] === cut.stateDir;
  const from = isVariable ? variable : flag;
  return { ...shown, values, source: isVariable ? "variable" : "flag", from };
}

function listOptions(): readonly ShownOption[] {
  return [
    { ...stateGroupRow, key: "state_group" },
    ...RUN_ROWS.map((row) => ({ ...row, key: `run.${configNameOf(row.flag)}` })),
  ];
}

function listJobOptions(): readonly ShownOption[] {
  return JOB_ROWS.map((row) => ({ ...row, key: configNameOf(row.flag) }));
}

function listProbeKeys(): readonly ShownProbeKey[] {
  const url = { flag: probeRow.flag, variable: undefined, defaultText: "" };
  return [
    { name: URL_KEY, isOfStart: false, option: url },
    ...[...PROBE_TABLE_ROWS].map(([name, option]) => ({ name, isOfStart: false, option })),
    ...[...PROBE_STARTUP_ROWS].map(([name, option]) => ({ name, isOfStart: true, option })),
  ];
}

function hideSecrets(shown: ShownSetting): ShownSetting {
  const hide = hiderOf(shown);
  return hide === undefined ? shown : { ...shown, values: shown.values.map(hide) };
}

function hiderOf({ key, flag }: ShownSetting): ((text: string) => string) | undefined {
  if (key.startsWith("sinks.")) return SINK_KEYS.get(key.split(".").at(-1) ?? "")?.hide;
  return RUN_ROWS.find((row) => row.flag === flag)?.hide;
}

function valueText({ values, defaultText }: ShownSetting): string {
  return values.length === 0 ? defaultText : values.join(" ");
}

function showSetting(shown: ShownSetting): object {
  const { key, flag, values, defaultText, source, from } = shown;
  return { key, option: flag, values, default: defaultText, source, from };
}

function showFile(file: CheckedFile): object {
  const { path, isThere, isHeard, ownerUid = null } = file;
  return { path, is_there: isThere, is_heard: isHeard, owner_uid: ownerUid };
}

function describeFile({ isThere, isHeard }: CheckedFile): string {
  if (!isThere) return "not there";
  return isHeard ? "read" : "only its [policy], because of --config";
}

/** A run would refuse the line because of them. */
function findWrongVariables(variables: Variables): readonly string[] {
  return [...RUN_ROWS, stateGroupRow].flatMap((row) => {
    const text = row.variable === undefined ? undefined : variables[row.variable];
    if (row.variable === undefined || text === undefined || text === "") return [];
    const parsed = row.read(text);
    if (parsed.kind === "value") return [];
    return [`${row.variable}: ${renderRefusal(row, text, parsed)}`];
  });
}

/** What does not count although it is set, or makes every run be refused. */
function judgeTogether(
  shown: readonly ShownSetting[],
  variables: Variables,
  settings: Settings,
): readonly string[] {
  const options = tryRun(variables, settings);
  if (typeof options === "string") return [options];
  return [
    ...judgeLease(
      shown.filter(({ key }) => !key.startsWith("jobs.")),
      options,
    ),
    ...findWrongJobs(variables, settings),
    ...findWrongProbes(variables, settings),
  ];
}

function judgeLease(shown: readonly ShownSetting[], options: RunOptions): readonly string[] {
  const [noLease] = shown.filter(({ flag }) => flag === "--no-lease");
  if (noLease === undefined || noLease.source === "default") return [];
  const refused = parseSwitch(noLease.values[0] ?? "");
  if (refused.kind === "refused" || !refused.value) return [];
  const asking = shown.filter(
    ({ flag, source }) => LEASE_FLAGS.includes(flag) && source !== "default",
  );
  if (!options.hasLease) return asking.map((each) => overruled(each, noLease));
  return [overruled(noLease, asking.at(-1) ?? noLease)];
}

const LEASE_FLAGS: readonly string[] = ["--lock", "--lane", "--task", "--worktree", "--wait"];

function overruled(weak: ShownSetting, strong: ShownSetting): string {
  return `${weak.key} of ${weak.from} does not count, because of ${strong.key} of ${strong.from}`;
}

/** What runs of the jobs that have a table would be refused for. */
function findWrongJobs(variables: Variables, settings: Settings): readonly string[] {
  return [...settings.jobs.keys()].flatMap((name) => {
    const options = tryRun(variables, settings, ["--name", name]);
    return typeof options === "string" ? [options] : [];
  });
}

/** A target that can use every setting. */
const ANY_URL = "https://localhost/";

/** What runs would be refused for that name one of the probes, or any other. */
function findWrongProbes(variables: Variables, settings: Settings): readonly string[] {
  const words = [...settings.probes].map(([name, { keys }]) =>
    keys.has(URL_KEY) ? name : `${name}=${ANY_URL}`,
  );
  const lines = [...words, ANY_URL].flatMap((word) =>
    [probeRow.flag, readyProbeRow.flag].flatMap((flag) => {
      const options = tryRun(variables, settings, [flag, word]);
      return typeof options === "string" ? [options] : [];
    }),
  );
  return [...new Set(lines)];
}

/** The options of a run with these flags, or why there would be none. */
function tryRun(
  variables: Variables,
  settings: Settings,
  flags: readonly string[] = [],
): RunOptions | string {
  try {
    const cut = cutCommandLine(["run", ...flags, "--", "true"], variables, () => settings);
    return cut.kind === "run" ? cut.options : "";
  } catch (error) {
    if (error instanceof WatchdogError) return error.message;
    throw error;
  }
}

/** Where every file is right by itself, what they say together is tried as a run would have it. */
export function answerConfigCheck(cut: ConfigCheckCut): Answer {
  const checked = checkConfigFiles(cut.configFile, listDefaultConfigs());
  const findings = checked.flatMap((file) =>
    [...file.findings, ...findUnknownNames(file)].map((finding) => ({ file: file.path, finding })),
  );
  const settings = mergeSettings(checked.flatMap(({ file }) => file ?? []));
  const contradictions = findings.length === 0 ? findContradictions(settings) : [];
  const lines = findings.map(({ file, finding }) => renderFinding(file, finding));
  lines.push(...contradictions);
  const code = lines.length === 0 ? EXIT.ok : FOUND_SOMETHING;
  if (cut.isJson) {
    const shown = findings.map(({ file, finding }) => showFinding(file, finding));
    shown.push(...contradictions.map(showContradiction));
    const json = { format: 1, files: checked.map(showFile), findings: shown };
    return { text: renderJson(json), lines: [], code };
  }
  const there = checked.filter(({ isThere }) => isThere);
  const paths = checked.map(({ path }) => path).join(" and ");
  const nothing =
    there.length === 0
      ? `there is no configuration: ${paths} would be read`
      : `${renderCount(there.length, "file", "files")} checked, nothing found`;
  return { text: renderLines(lines.length === 0 ? [nothing] : lines), lines: [], code };
}

/** Right as they are written, and of no use on this machine or to this user. */
function findUnknownNames({ file }: CheckedFile): readonly ConfigFinding[] {
  const { top, policy = {} } = file?.content ?? {};
  const [group] = (file?.isHeard === true ? top?.get("state_group") : undefined) ?? [];
  const isRefused = group !== undefined && findOwnGroup(group).kind === "refused";
  return [
    ...(isRefused ? [unknownName("state_group", group, "a group that this user is in")] : []),
    ...RIGHTS.flatMap((right) =>
      (policy[right] ?? []).flatMap((entry) => {
        const path = `policy.${right}`;
        if (entry.kind === "user" && !isUser(entry.name)) {
          return [unknownName(path, entry.name, "a user of /etc/passwd, or 'uid:N'")];
        }
        if (entry.kind === "group" && findGroup(entry.name) === undefined) {
          return [
            unknownName(path, `@${entry.name}`, "a group of /etc/group, or '@' and its number"),
          ];
        }
        return [];
      }),
    ),
  ];
}

function unknownName(path: string, name: string, expected: string): ConfigFinding {
  return { because: "unknown-name", path, found: showWord(name), expected };
}

function findContradictions(settings: Settings): readonly string[] {
  const options = tryRun({}, settings);
  if (typeof options === "string") return [options];
  return [...findWrongJobs({}, settings), ...findWrongProbes({}, settings)];
}

function showFinding(file: string, finding: ConfigFinding): object {
  const { because, path, found, expected } = finding;
  return { file, key: path === "" ? null : path, because, found, expected };
}

function showContradiction(found: string): object {
  return { file: null, key: null, because: "contradiction", found, expected: null };
}
