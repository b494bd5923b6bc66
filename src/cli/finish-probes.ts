/**
 * Makes the settings of all probes of a line, and checks what they must be to each other.
 *
 * Reads no value, no environment and no file. Always: what comes out can be probed and counted
 * with; no circuit is there twice; an option of the line that no probe could use is refused, as a
 * protection that does nothing. No message holds a secret.
 */

import { quoteKey } from "../core/config-values.ts";
import { checkProbeSettings } from "../core/probe-check.ts";
import { circuitNameOf } from "../core/probe-settings.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import { hideTargetSecrets, parseProbeTarget, renderTarget } from "../core/probe-target.ts";
import type { ProbeTarget } from "../core/probe-target.ts";
import { problem } from "./cut-options.ts";
import type { Problem, Repair } from "./cut-options.ts";
import { nearestOf } from "./nearest.ts";
import { flagsOf, repairsOf } from "./probe-repairs.ts";
import { countPausedRow, probeRow, readyProbeRow } from "./probe-options.ts";
import { canUse, layerProbe } from "./probe-layers.ts";
import type { AskedProbe, LayeredProbe, ProbeSources } from "./probe-layers.ts";
import { PROBE_SETTING_ROWS } from "./probe-setting-rows.ts";
import type { ProbeUse } from "./probe-setting.ts";
import { URL_KEY } from "./probe-table-keys.ts";
import { EXPECTED_PROBE } from "./probe-values.ts";
import type { ProbeWord } from "./probe-values.ts";
import { isOfFileAlone, nameOf, rankOf, setTo } from "./read-line.ts";
import type { ReadLine } from "./read-line.ts";
import { showWord } from "./shown-words.ts";

/** What a person wants probed, before the target of each is known. */
export type WantedProbe = Omit<AskedProbe, "target">;

export interface FinishedProbes {
  readonly kind: "finished";
  readonly probes: readonly ProbeSettings[];
  readonly readyProbes: readonly ProbeSettings[];
}

/** The probes of a run. */
export function finishRunProbes(line: ReadLine, sources: ProbeSources): FinishedProbes | Problem {
  const wanted: readonly WantedProbe[] = [...sources.ofLine, ...sources.ofFiles].flatMap((part) => [
    ...(part.probes ?? []).map((word) => want("liveness", probeRow.flag, word)),
    ...(part.readyProbes ?? []).map((word) => want("readiness", readyProbeRow.flag, word)),
  ]);
  const layered = layerAll(line, wanted, sources);
  if ("message" in layered) return layered;
  const refusal =
    refuseUnused(line, layered) ??
    refuseCountPaused(line, layered) ??
    refuseBroken(line, layered) ??
    refuseTwins(line, layered);
  if (refusal !== undefined) return refusal;
  const ofRole = (role: AskedProbe["role"]): ProbeSettings[] =>
    layered.filter(({ asked }) => asked.role === role).map(({ settings }) => settings);
  return { kind: "finished", probes: ofRole("liveness"), readyProbes: ofRole("readiness") };
}

/** Probes that are asked once, by `watchdog probe`: no period follows the answer. */
export function finishSingleProbes(
  line: ReadLine,
  words: readonly ProbeWord[],
  sources: ProbeSources,
): readonly ProbeSettings[] | Problem {
  const wanted = words.map((word) => want("liveness", undefined, word));
  const layered = layerAll(line, wanted, sources);
  if ("message" in layered) return layered;
  const single = layered.map((probe) => ({ ...probe, settings: asSingle(probe.settings) }));
  const refusal = refuseUnused(line, single) ?? refuseBroken(line, single);
  return refusal ?? single.map(({ settings }) => settings);
}

/** As a run asks while it goes on: neither the period nor a start bounds it. */
function asSingle(settings: ProbeSettings): ProbeSettings {
  const { startup: _, ...ofRun } = settings;
  const { periodMs, startupWaitMs, timeoutMs } = ofRun;
  return {
    ...ofRun,
    periodMs: Math.max(periodMs, timeoutMs),
    startupWaitMs: Math.max(startupWaitMs, timeoutMs),
  };
}

function want(role: AskedProbe["role"], flag: string | undefined, word: ProbeWord): WantedProbe {
  return { role, flag, word };
}

function layerAll(
  line: ReadLine,
  wanted: readonly WantedProbe[],
  sources: ProbeSources,
): readonly LayeredProbe[] | Problem {
  const layered: LayeredProbe[] = [];
  for (const each of wanted) {
    const target = targetOf(line, each, sources.tables);
    if ("message" in target) return target;
    layered.push(layerProbe({ ...each, target }, sources, line.given));
  }
  return layered;
}

/** That of the word, or else of the table with its name. */
function targetOf(
  line: ReadLine,
  { flag, word }: WantedProbe,
  tables: ProbeSources["tables"],
): ProbeTarget | Problem {
  const { name = "", target, text } = word;
  if (target !== undefined) return target;
  const start = flag === undefined ? "probe" : nameOf(line, flag);
  const found = `${start}: found ${showWord(hideTargetSecrets(text))}`;
  const table = tables.get(name);
  const [url] = table?.keys.get(URL_KEY)?.texts ?? [];
  if (url !== undefined) {
    const parsing = parseProbeTarget(url);
    if (parsing.kind === "target") return parsing.target; // as it was when the file was read
  }
  if (table !== undefined) {
    const told = `[probes.${quoteKey(name)}]`;
    return problem(`${found}, whose table ${told} has no url, expected ${name}=URL`);
  }
  const near = nearestOf(name, [...tables.keys()]);
  const guess = near === undefined ? "" : `; the nearest is ${near}`;
  const repairs = near === undefined ? [] : listReplaced(line.words, flag, { text, near });
  return problem(`${found}, expected ${EXPECTED_PROBE.word}${guess}`, repairs);
}

/** The line with the name put right, wherever it stands as the value of that option. */
function listReplaced(
  words: readonly string[],
  flag: string | undefined,
  { text, near }: { readonly text: string; readonly near: string },
): readonly Repair[] {
  return words.flatMap((word, at) => {
    const isValue = flag === undefined ? at > 0 : words[at - 1] === flag;
    if (isValue && word === text) return [{ words: words.with(at, near) }];
    return word === `${flag ?? ""}=${text}` ? [{ words: words.with(at, `${flag}=${near}`) }] : [];
  });
}

const WHAT: Readonly<Record<ProbeUse, readonly [about: string, expected: string]>> = {
  any: ["probes", "--probe or --ready-probe with it"],
  liveness: ["--probe", "--probe with it"],
  readiness: ["--ready-probe", "--ready-probe with it"],
  http: ["HTTP", "a probe of http://, https:// or unix:"],
  tls: ["TLS", "a probe of https://"],
  proxy: ["a proxy", "a probe of http:// or https://"],
};

/** Of the line alone: a variable and a file are for many lines, with probes and without. */
function refuseUnused(line: ReadLine, layered: readonly LayeredProbe[]): Problem | undefined {
  for (const { flag, use } of PROBE_SETTING_ROWS) {
    if (line.given.get(flag)?.at === undefined) continue;
    if (layered.some(({ asked }) => canUse(asked, use))) continue;
    return refuseUseless(line, flag, { layered, use });
  }
  return undefined;
}

interface Useless {
  readonly layered: readonly LayeredProbe[];
  readonly use: ProbeUse;
}

function refuseUseless(line: ReadLine, flag: string, { layered, use }: Useless): Problem {
  const [about, expected] = WHAT[use];
  const [first, second] = layered;
  if (first === undefined) {
    const row = use === "readiness" ? readyProbeRow : probeRow;
    const isOfRole = use === "readiness" || use === "liveness";
    const missing = WHAT[isOfRole ? use : "any"][1];
    const message = `${flag} is about ${about}, found none, expected ${missing}`;
    return problem(message, [setTo(line, row.flag, row.example)]);
  }
  const shown = renderTarget(first.asked.target);
  const found = `${first.asked.flag ?? ""} ${shown}`.trim();
  const all = second === undefined ? `${found} alone` : `${found} and others`;
  const message = `${flag} is about ${about}, found ${all}, expected ${expected}`;
  return problem(message, [setTo(line, flag, undefined)]);
}

/** Where nothing can pause the tree there is no paused time. */
function refuseCountPaused(line: ReadLine, layered: readonly LayeredProbe[]): Problem | undefined {
  const { flag } = countPausedRow;
  if (line.given.get(flag)?.at === undefined) return undefined;
  if (layered.length === 0) return refuseUseless(line, flag, { layered, use: "any" });
  const isPausing = layered.some(({ settings: { role, onOpen, onUnready } }) =>
    role === "liveness" ? onOpen === "pause" : onUnready === "pause",
  );
  if (isPausing) return undefined;
  const message =
    `${flag} is about a tree that is paused, found no probe that pauses one, ` +
    "expected --on-open pause or --on-unready pause";
  return problem(message, [setTo(line, flag, undefined)]);
}

/** The first relation that does not hold, of the first probe that has one. */
function refuseBroken(line: ReadLine, layered: readonly LayeredProbe[]): Problem | undefined {
  for (const { asked, settings, ...layer } of layered) {
    const [finding] = checkProbeSettings(settings);
    if (finding === undefined) continue;
    const given = finding.isOfStart === true ? layer.givenForStart : layer.given;
    const own: ReadLine = { words: line.words, given };
    const flags = strongestFirst(own, flagsOf(finding, asked.flag));
    const [first = asked.flag] = flags;
    const name = first === undefined ? "probe" : nameOf(own, first);
    const whose = layered.length === 1 ? "" : ` (${renderTarget(asked.target)})`;
    const message = `${name}: found ${finding.found}, expected ${finding.expected}${whose}`;
    const isOfFile = flags.length > 0 && isOfFileAlone(own, flags);
    return { ...problem(message, repairsOf(own, finding, settings)), isOfFile };
  }
  return undefined;
}

/** Those that are given: what stands on the line is told of before what stands in a file. */
function strongestFirst(line: ReadLine, flags: readonly string[]): readonly string[] {
  const given = flags.filter((flag) => line.given.has(flag));
  return given.toSorted((left, right) => rankOf(line, right) - rankOf(line, left));
}

/** Two of one circuit would count each other's answers. */
function refuseTwins(line: ReadLine, layered: readonly LayeredProbe[]): Problem | undefined {
  const seen = new Set<string>();
  for (const { asked, settings } of layered) {
    const name = circuitNameOf(settings);
    const { flag = "probe" } = asked;
    if (!seen.has(`${flag} ${name}`)) {
      seen.add(`${flag} ${name}`);
      continue;
    }
    const message =
      `${nameOf(line, flag)}: found two with the name ${showWord(name)}, ` +
      "expected each once, or with a name of its own as NAME=URL";
    return problem(message, [setTo(line, flag, undefined)]);
  }
  return undefined;
}
