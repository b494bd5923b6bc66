/** When a time limit ends a command, as that command is told. Pure. */
import { valueOf } from "./environment-entries.ts";
import type { WallAt } from "./time.ts";

export const DEADLINE = "WATCHDOG_DEADLINE";

/**
 * Whole seconds since 1970: our own, or that of a run around where it comes first.
 *
 * @param inherited  the environment of whoever starts the command
 */
export function renderDeadline(inherited: readonly Uint8Array[], deadlineAt: WallAt): string {
  const outer = Number(valueOf(inherited, DEADLINE) ?? Number.NaN);
  const ours = Math.ceil(deadlineAt / 1_000);
  return String(outer > 0 && outer < ours ? outer : ours);
}
