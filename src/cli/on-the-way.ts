/**
 * What a command of watchdog says beside its own answer: jobs that are overdue, and a patrol that
 * has stopped. Decides nothing.
 *
 * Always: nothing is thrown and nothing is made; a state directory that may not be trusted is not
 * looked into, because the command itself has said so.
 */
import { checkPlace } from "../inspect/state.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { findToTell } from "../patrol/telling.ts";
import { describeTold } from "./render-patrol.ts";
import type { ReadSettings } from "./settings.ts";

interface Looking {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
}

export function findOnTheWay(
  { stateDir, configFile }: Looking,
  readSettings: ReadSettings,
): readonly string[] {
  try {
    const directory = resolveStateDirectory(
      stateDir ?? readSettings(configFile).stateDir?.texts[0],
    );
    checkPlace(directory);
    const told = findToTell(directory);
    return told === undefined ? [] : describeTold(told);
  } catch {
    return []; // state.refused, config.refused …: the command itself has said so, or will
  }
}
