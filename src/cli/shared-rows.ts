/**
 * The options that several commands have in common, each written once.
 *
 * Always: an option that commands share means the same to each of them.
 */

import { option, request, toggle } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import * as values from "./values.ts";

export const stateDirRow: OptionRow<{ readonly stateDir: string }> = option(
  "--state-dir",
  "path",
  {
    valueName: "DIR",
    example: "/var/lib/watchdog",
    defaultText: "root: /var/lib/watchdog, others: ~/.local/state/watchdog",
    help: "Where leases, logs and records are kept.",
  },
  (text) => values.mapped(values.parsePath(text), (stateDir) => ({ stateDir })),
);

export const configRow: OptionRow<{ readonly configFile: string }> = option(
  "--config",
  "path",
  {
    valueName: "FILE",
    example: "/etc/watchdog/nightly.toml",
    defaultText: "/etc/watchdog/config.toml, then ~/.config/watchdog/config.toml",
    help: "Read the configuration from FILE instead of the usual files.",
  },
  (text) => values.mapped(values.parsePath(text), (configFile) => ({ configFile })),
);

/** What every command takes. */
export const placeRows: readonly OptionRow<{
  readonly stateDir?: string;
  readonly configFile?: string;
}>[] = [stateDirRow, configRow];

export const jsonRow: OptionRow<{ readonly isJson: boolean }> = {
  ...toggle(
    "--json",
    { help: "Answer in JSON, for programs; they should ignore fields they do not know." },
    (isJson) => ({ isJson }),
  ),
  // What a program reads must not change with the environment it is called in.
  variable: undefined,
};

export const helpRow: OptionRow<object> = request("--help", "-h", "Print this text.");
