/**
 * The names that watchdog knows but this version does not have: options, commands.
 *
 * Holds no meaning of theirs. Always: such a name is refused and never ignored, because a
 * protection that was asked for and is not there is worse than none. The lists stay text until one
 * of them is asked for: every start loads this file, and next to none needs them.
 */

import { variableOf } from "./option-row.ts";

const STORES = "leases of more than one machine come with a later version";

const FLAGS_BY_REASON: readonly (readonly [reason: string, flags: string])[] = [
  [STORES, "--store"],
];

/** Why a flag is refused; undefined: this version knows no such name. */
export function reasonOfLaterFlag(flag: string): string | undefined {
  return FLAGS_BY_REASON.find(([, flags]) => flags.split(" ").includes(flag))?.[0];
}

/** The flag that a variable of the environment stands for; undefined: none of a later version. */
export function laterFlagOf(variable: string): string | undefined {
  const flag = `--${variable.slice("WATCHDOG_".length).toLowerCase().replaceAll("_", "-")}`;
  const isLater = variableOf(flag) === variable && reasonOfLaterFlag(flag) !== undefined;
  return isLater ? flag : undefined;
}

/** In the order of the reasons. */
export function listLaterFlags(): readonly string[] {
  return FLAGS_BY_REASON.flatMap(([, flags]) => flags.split(" "));
}

const COMMANDS = "";

export function listLaterCommands(): readonly string[] {
  return COMMANDS.split(" ").filter((name) => name !== "");
}

export function isLaterCommand(name: string): boolean {
  return listLaterCommands().includes(name);
}
