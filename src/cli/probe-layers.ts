/**
 * The settings of one probe, from all that was said about it: the line and the environment beat its
 * table `[probes.NAME]`, that beats the table of the job and `[run]`, and the default holds where
 * nobody says anything.
 *
 * Judges nothing. Always: what stands on the line, in the environment, in [run] or in the table of
 * the job is for all probes, and each takes of it what it can use; what stands in its own table is
 * for it alone, and is taken as it is.
 */

import { quoteKey } from "../core/config-values.ts";
import { defaultProbeSettings, isHttp } from "../core/probe-settings.ts";
import type { ProbeSettings, ProbeStartup } from "../core/probe-settings.ts";
import type { ProbeTarget } from "../core/probe-target.ts";
import type { ProbeTableSettings, Setting, Settings } from "../core/settings.ts";
import type { Given, GivenOptions } from "./cut-options.ts";
import type { Probing } from "./probe-options.ts";
import type { ProbeSaid, ProbeSettingRow, ProbeUse, Said } from "./probe-setting.ts";
import { PROBE_SETTING_ROWS } from "./probe-setting-rows.ts";
import { PROBE_STARTUP_ROWS, PROBE_TABLE_ROWS, URL_KEY } from "./probe-table-keys.ts";
import type { ProbeWord } from "./probe-values.ts";

/** What is said of probes, and where. */
export interface ProbeSources {
  /** By options of the line and variables, those first. */
  readonly ofLine: readonly Probing[];
  /** By `[run]` and the table of the job. */
  readonly ofFiles: readonly Probing[];
  readonly tables: Settings["probes"];
}

/** A probe that was asked for, with its target. */
export interface AskedProbe {
  readonly role: "liveness" | "readiness";
  /** Of the option that asked for it; undefined: a word beside the options. */
  readonly flag: string | undefined;
  readonly word: ProbeWord;
  readonly target: ProbeTarget;
}

export interface LayeredProbe {
  readonly asked: AskedProbe;
  readonly settings: ProbeSettings;
  /** Of what is given what this probe hears, with what its table says. */
  readonly given: GivenOptions;
  /** The same of a start: what its table says of that alone comes first. */
  readonly givenForStart: GivenOptions;
}

/** Whether a setting for all probes means something to this one. */
export function canUse(
  { role, target }: Pick<AskedProbe, "role" | "target">,
  use: ProbeUse,
): boolean {
  switch (use) {
    case "http":
      return isHttp(target);
    case "tls":
      return target.kind === "https";
    case "proxy":
      return target.kind === "http" || target.kind === "https";
    default:
      return isForRole(role, use);
  }
}

/** The other part of `canUse`: a table may stand for a probe of either role. */
function isForRole(role: AskedProbe["role"], use: ProbeUse): boolean {
  return use === role || (use !== "liveness" && use !== "readiness");
}

export function layerProbe(
  asked: AskedProbe,
  { ofLine, ofFiles, tables }: ProbeSources,
  given: GivenOptions,
): LayeredProbe {
  const { role, target, word } = asked;
  const table = word.name === undefined ? undefined : tables.get(word.name);
  const ofAll = (parts: readonly Probing[]): Partial<ProbeSaid> =>
    merge(parts.flatMap(({ said }) => said ?? []).filter(({ use }) => canUse(asked, use)));
  const ofTable = (
    keys: ReadonlyMap<string, Setting>,
    rows: ReadonlyMap<string, ProbeSettingRow>,
  ): Partial<ProbeSaid> => merge(readTable(keys, rows).filter(({ use }) => isForRole(role, use)));
  const line = ofAll(ofLine);
  // Readiness is no question of a start.
  const hasStart = table !== undefined && role === "liveness";
  const start = hasStart ? ofTable(table.startup, PROBE_STARTUP_ROWS) : {};
  const own = table === undefined ? {} : ofTable(table.keys, PROBE_TABLE_ROWS);
  const { startupWaitMs } = start;
  const wait = startupWaitMs === undefined ? {} : { startupWaitMs };
  const base = { ...defaultProbeSettings(role, target), name: word.name };
  const told = overlay(overlay(ofAll(ofFiles), { ...own, ...wait }), line);
  const settings = apply(base, told);
  const startup = differingStartup(settings, { ...start, ...fieldsOf(line, start) });
  return {
    asked,
    settings: startup === undefined ? settings : { ...settings, startup },
    ...listGiven(given, asked, table),
  };
}

/** None is refused here: the file was checked as a whole when it was read. */
function readTable(
  keys: ReadonlyMap<string, Setting>,
  rows: ReadonlyMap<string, ProbeSettingRow>,
): readonly Said[] {
  return [...keys].flatMap(([name, { texts }]) =>
    texts.flatMap((text) => {
      const parsed = rows.get(name)?.read(text);
      return parsed?.kind === "value" ? [parsed.value.probing.said] : [];
    }),
  );
}

/** Headers and expectations add up within one source; of anything else the last one counts. */
function merge(parts: readonly Said[]): Partial<ProbeSaid> {
  const all = parts.map(({ fields }) => fields);
  const headers = all.flatMap((fields) => fields.headers ?? []);
  const expectJson = all.flatMap((fields) => fields.expectJson ?? []);
  return Object.assign(
    {},
    ...all,
    headers.length === 0 ? {} : { headers },
    expectJson.length === 0 ? {} : { expectJson },
  );
}

/**
 * The stronger one wins, also where it says the opposite in other words: authorities to trust, or a
 * certificate that nobody looks at.
 */
function overlay(weak: Partial<ProbeSaid>, strong: Partial<ProbeSaid>): Partial<ProbeSaid> {
  const { caFile, isInsecure, ...others } = weak;
  const keepsAuthorities = caFile !== undefined && strong.isInsecure !== true;
  const keepsBlindness = isInsecure !== undefined && strong.caFile === undefined;
  return {
    ...others,
    ...(keepsAuthorities ? { caFile } : {}),
    ...(keepsBlindness ? { isInsecure } : {}),
    ...strong,
  };
}

/** Those of the fields that `like` has too. */
function fieldsOf<T extends object>(said: Partial<ProbeSaid>, like: T): Partial<T> {
  const own = Object.entries(said).filter(([name]) => Object.hasOwn(like, name));
  return Object.fromEntries(own) as Partial<T>;
}

function apply(base: ProbeSettings, said: Partial<ProbeSaid>): ProbeSettings {
  return {
    ...base,
    ...fieldsOf(said, base),
    backoff: { ...base.backoff, ...fieldsOf(said, base.backoff) },
    http: { ...base.http, ...fieldsOf(said, base.http) },
  };
}

/** Undefined: nothing is said that differs from how the run asks. */
function differingStartup(
  { timeoutMs, backoff }: ProbeSettings,
  said: Partial<ProbeSaid>,
): ProbeStartup | undefined {
  const startup = {
    timeoutMs: said.timeoutMs ?? timeoutMs,
    backoff: { ...backoff, ...fieldsOf(said, backoff) },
  };
  const isSame = JSON.stringify(startup) === JSON.stringify({ timeoutMs, backoff });
  return isSame ? undefined : startup;
}

/** Who has said what this probe hears: the same order as in layerProbe. */
function listGiven(
  given: GivenOptions,
  asked: AskedProbe,
  table: ProbeTableSettings | undefined,
): Pick<LayeredProbe, "given" | "givenForStart"> {
  const heard = [...given].filter(([flag]) => canHear(asked, flag));
  const ofRun = new Map(heard);
  const ofStart = new Map(heard);
  if (table === undefined) return { given: ofRun, givenForStart: ofStart };
  const { flag, word, role } = asked;
  const givenBy = (key: string, { file, rank }: Setting): Given => {
    const name = `probes.${quoteKey(word.name ?? "")}.${key} of ${file}`;
    return { name, at: undefined, count: 0, file, rank };
  };
  const add = (all: Map<string, Given>, row: ProbeSettingRow | undefined, by: Given): void => {
    if (row === undefined || !isForRole(role, row.use)) return;
    const before = all.get(row.flag);
    if (before === undefined || before.file !== undefined) all.set(row.flag, by);
  };
  for (const [key, setting] of table.keys) {
    const row = PROBE_TABLE_ROWS.get(key);
    for (const all of [ofRun, ofStart]) add(all, row, givenBy(key, setting));
  }
  for (const [key, setting] of role === "liveness" ? table.startup : []) {
    add(ofStart, PROBE_STARTUP_ROWS.get(key), givenBy(`startup.${key}`, setting));
  }
  const url = table.keys.get(URL_KEY);
  if (url !== undefined && word.target === undefined && flag !== undefined) {
    for (const all of [ofRun, ofStart]) all.set(flag, givenBy(URL_KEY, url));
  }
  return { given: ofRun, givenForStart: ofStart };
}

/** Of an option about probes whether it means something to this one; any other one is passed on. */
function canHear(asked: AskedProbe, flag: string): boolean {
  const row = PROBE_SETTING_ROWS.find((each) => each.flag === flag);
  return row === undefined || canUse(asked, row.use);
}
