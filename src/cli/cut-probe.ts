/**
 * Cuts the lines of `watchdog probe`.
 *
 * Prints nothing; the configuration is asked for once the line is read.
 */

import { addSettings } from "./add-settings.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import { problem, renderRefusal, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { finishSingleProbes } from "./finish-probes.ts";
import { takesValue } from "./option-row.ts";
import { PROBE_ROWS, probeRow } from "./probe-options.ts";
import type { Probing } from "./probe-options.ts";
import { PROBE_SETTING_ROWS } from "./probe-setting-rows.ts";
import { PROBE_COMMAND } from "./probe-table.ts";
import type { ProbeCommandPart } from "./probe-table.ts";
import { parseProbeWord } from "./probe-values.ts";
import type { ProbeWord } from "./probe-values.ts";
import type { ReadSettings } from "./settings.ts";

export function cutProbe(
  words: readonly string[],
  variables: Variables,
  readSettings: ReadSettings,
): Cut | Problem {
  const reading = cutWordsAndOptions(words, 1, PROBE_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "probe" };
  if (reading.kind === "problem") return refuseOfRun(words) ?? reading;
  const asked = readWords(reading.operands.map(({ text }) => text));
  if ("message" in asked) return asked;
  const {
    isCheck = false,
    isJson = false,
    stateDir,
    configFile,
  }: ProbeCommandPart = Object.assign({}, ...reading.parts);
  const settings = readSettings(configFile);
  const { parts, given } = addSettings(reading, settings, PROBE_SETTING_ROWS);
  const probes = finishSingleProbes({ words, given }, asked, {
    ofLine: listProbing(reading.parts),
    ofFiles: listProbing(parts),
    tables: settings.probes,
  });
  return "message" in probes
    ? { ...probes, configFile }
    : { kind: "probe", probes, isCheck, isJson, stateDir, configFile };
}

/** A slip, most likely, of somebody who has the line of a run before him. */
function refuseOfRun(words: readonly string[]): Problem | undefined {
  const own: readonly string[] = PROBE_COMMAND.rows.map(({ flag }) => flag);
  for (const [at, word] of words.entries()) {
    const [name = ""] = word.split("=", 1);
    const row = PROBE_ROWS.find(({ flag }) => flag === name);
    if (row === undefined || own.includes(name)) continue;
    const count = takesValue(row) && name === word ? 2 : 1;
    const message = `${name} is about a run, found it with probe, which asks once`;
    return problem(message, [replacedAt(words, at, count)]);
  }
  return undefined;
}

/** What options say about probes. */
export function listProbing(parts: readonly { readonly probing?: Probing }[]): readonly Probing[] {
  return parts.flatMap(({ probing }) => probing ?? []);
}

function readWords(texts: readonly string[]): readonly ProbeWord[] | Problem {
  const asked: ProbeWord[] = [];
  for (const text of texts) {
    const parsed = parseProbeWord(text);
    if (parsed.kind === "refused") {
      return problem(`probe: ${renderRefusal(probeRow, text, parsed)}`);
    }
    asked.push(parsed.value);
  }
  if (asked.length > 0) return asked;
  return problem(`probe was told nothing to ask, expected ${PROBE_COMMAND.usage}`);
}
