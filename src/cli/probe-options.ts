/**
 * The options of `watchdog run` about what the job depends on: which probes there are, and what is
 * done when one is not good. How they are asked is a table of its own, probe-setting-rows.ts.
 *
 * A part of the one table in options-table.ts. Each row reads its own value; what the options must
 * be to each other, and to the probes, is checked in finish-probes.ts.
 */

import type { RunOptions } from "../core/run-options.ts";
import { hideTargetSecrets } from "../core/probe-target.ts";
import { option, toggle } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import { PROBE_SETTING_ROWS } from "./probe-setting-rows.ts";
import type { Said } from "./probe-setting.ts";
import { parseProbeWord } from "./probe-values.ts";
import type { ProbeWord } from "./probe-values.ts";
import { mapped } from "./values.ts";

/** What one option says about probes. */
export interface Probing {
  readonly probes?: readonly ProbeWord[];
  readonly readyProbes?: readonly ProbeWord[];
  readonly said?: Said;
}

/** What one option of a run decides. */
export type RunPart = Partial<RunOptions> & { readonly probing?: Probing };

export const probeRow: OptionRow<RunPart> = {
  ...option(
    "--probe",
    "texts",
    {
      valueName: "[NAME=]URL",
      example: "http://localhost:8080/health",
      defaultText: "none",
      help:
        "Ask this before the command is started, and all the time while it runs: http://, " +
        "https://, tcp://HOST:PORT, unix:/SOCKET[:/PATH] or cmd:COMMAND. NAME alone: that of a " +
        "table [probes.NAME] of the configuration. May be given more than once.",
    },
    (text) => mapped(parseProbeWord(text), (word) => ({ probing: { probes: [word] } })),
  ),
  hide: hideTargetSecrets,
};

export const readyProbeRow: OptionRow<RunPart> = {
  ...option(
    "--ready-probe",
    "texts",
    {
      valueName: "[NAME=]URL",
      example: "http://localhost:8080/ready",
      defaultText: "none",
      help:
        "Ask this while the command runs: whether work may be sent just now. Opens no circuit. " +
        "May be given more than once.",
    },
    (text) => mapped(parseProbeWord(text), (word) => ({ probing: { readyProbes: [word] } })),
  ),
  hide: hideTargetSecrets,
};

export const countPausedRow: OptionRow<RunPart> = toggle(
  "--count-paused",
  { help: "Time in which the tree is paused counts for --timeout and --idle-timeout too." },
  (countsPaused) => ({ countsPaused }),
);

export const PROBE_ROWS: readonly OptionRow<RunPart>[] = [
  probeRow,
  readyProbeRow,
  ...PROBE_SETTING_ROWS,
  countPausedRow,
];
