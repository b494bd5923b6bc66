/**
 * `watchdog fence` and what it does for git: the options.
 *
 * Knows nothing of how a command line is cut. Always: only --state-dir and --config have a
 * variable, because the rest is for use inside a command, from which the variables of options were
 * taken away.
 */

import { DEFAULT_FENCE_TIMEOUT_MS, DEFAULT_FENCE_WAIT_MS } from "../core/fence-options.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import * as leaseValues from "./lease-values.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { helpRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";

/** All that one of these commands can be told by options. */
export interface FenceParts {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
  readonly keys: readonly LeaseKey[];
  /** Undefined: no limit. */
  readonly timeoutMs: number | undefined;
  readonly waitMs: number;
  readonly isVerbose: boolean;
  readonly isUninstalling: boolean;
}

export const FENCE_DEFAULTS: FenceParts = {
  stateDir: undefined,
  configFile: undefined,
  keys: [],
  timeoutMs: DEFAULT_FENCE_TIMEOUT_MS,
  waitMs: DEFAULT_FENCE_WAIT_MS,
  isVerbose: false,
  isUninstalling: false,
};

type Row = OptionRow<Partial<FenceParts>>;

function keyRow(defaultText: string, help: string): Row {
  return {
    ...option(
      "--key",
      "key",
      { valueName: "KIND:NAME", example: "lane:gpu", defaultText, help },
      (text) => values.mapped(leaseValues.parseLeaseKey(text), (key) => ({ keys: [key] })),
    ),
    variable: undefined,
  };
}

const OWN_LEASES = "all leases of the run around";

const heldKeyRow = keyRow(
  OWN_LEASES,
  "Ask for the lease of this key, which this run or one around it holds. May be given more than " +
    "once.",
);

const guardedKeyRow = keyRow(
  "the worktree",
  "Let the hooks look at the lease of this key too. May be given more than once.",
);

const timeoutRow: Row = {
  ...option(
    "--timeout",
    "span",
    {
      valueName: "SPAN",
      example: "5m",
      defaultText: leaseValues.renderLongSpan(DEFAULT_FENCE_TIMEOUT_MS),
      help:
        "End the operation with all that it started, unless its command has ended before: until " +
        "then nobody is granted the lease. What the command has left in the background keeps the " +
        "fence until it ends itself, or the run ends it. 0: no limit.",
    },
    (text) =>
      values.mapped(values.parseSpan(text), (ms) => ({ timeoutMs: ms === 0 ? undefined : ms })),
  ),
  variable: undefined,
};

const waitRow: Row = {
  ...option(
    "--wait",
    "span",
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: leaseValues.renderLongSpan(DEFAULT_FENCE_WAIT_MS),
      help: "Wait this long for the fence while the lease is being granted. 0: do not wait.",
    },
    (text) => values.mapped(values.parseSpan(text), (waitMs) => ({ waitMs })),
  ),
  variable: undefined,
};

const verboseRow: Row = {
  ...toggle(
    "--verbose",
    { short: "-v", help: "Tell on stderr what each decision was based on." },
    (isVerbose) => ({ isVerbose }),
  ),
  variable: undefined,
};

const uninstallRow: Row = {
  ...toggle(
    "--uninstall",
    { help: "Take the hooks away again, and put back those that were there before." },
    (isUninstalling) => ({ isUninstalling }),
  ),
  variable: undefined,
};

export const FENCE_COMMAND: CommandRow<Partial<FenceParts>> = {
  name: "fence",
  summary: "run a command only while the run around it still holds its leases",
  usage: "watchdog fence [options] [-- COMMAND [ARG...]]",
  rows: [heldKeyRow, timeoutRow, waitRow, verboseRow, ...placeRows, helpRow],
};

export const FENCE_GIT_PUSH_COMMAND: CommandRow<Partial<FenceParts>> = {
  name: "fence git-push",
  summary: "push with git unless a later run has pushed",
  usage: "watchdog fence git-push [options] [REMOTE [BRANCH...]]",
  rows: [heldKeyRow, timeoutRow, waitRow, ...placeRows, helpRow],
};

export const FENCE_INSTALL_COMMAND: CommandRow<Partial<FenceParts>> = {
  name: "fence install-git-hooks",
  summary: "let git refuse a commit while another run holds the checkout",
  usage: "watchdog fence install-git-hooks [options] [DIR]",
  rows: [guardedKeyRow, uninstallRow, ...placeRows, helpRow],
};

/** What an installed hook starts: `__git-hook [--key KEY]... HOOK ARG...`. */
export const GIT_HOOK_COMMAND: CommandRow<Partial<FenceParts>> = {
  name: "__git-hook",
  summary: "answer git for one of its hooks",
  usage: "watchdog __git-hook [options] HOOK [ARG...]",
  rows: [guardedKeyRow, ...placeRows],
};

export const FENCE_COMMANDS: readonly CommandRow<Partial<FenceParts>>[] = [
  FENCE_COMMAND,
  FENCE_GIT_PUSH_COMMAND,
  FENCE_INSTALL_COMMAND,
];
