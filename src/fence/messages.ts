/** What `watchdog fence` says on standard error: one line each. Pure text. */
import { renderKey } from "../core/lease-key.ts";
import type { FencedKey } from "./hold.ts";

interface Named {
  readonly pid: number;
  readonly command: string;
}

const MOST_NAMED = 5;

function list(processes: readonly Named[]): string {
  const shown = processes.slice(0, MOST_NAMED).map((one) => `${one.pid} ${one.command}`);
  const more = processes.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function listKeys(keys: readonly FencedKey[]): string {
  return keys.map(({ key, generation }) => `${renderKey(key)} ${generation}`).join(", ");
}

export const messages = {
  refused: (text: string): string => `watchdog: fence refused: ${text}`,
  checked: (keys: readonly FencedKey[]): string =>
    `watchdog: fence: current at this moment: ${listKeys(keys)}; this is check-then-act, ` +
    "a grant may follow at once; hint: watchdog fence -- COMMAND",
  held: (keys: readonly FencedKey[]): string => `watchdog: fence held: ${listKeys(keys)}`,
  timedOut: (): string =>
    "watchdog: fence: ended by --timeout: sent TERM to the operation and all that it has started",
  unended: (left: readonly Named[]): string =>
    `watchdog: fence: these could not be ended and keep the fence: ${list(left)}`,
  left: (left: readonly Named[]): string =>
    `watchdog: fence: these go on and keep the fence until they end: ${list(left)}`,
  notStarted: (name: string, reason: string): string => `watchdog: error: ${name}: ${reason}`,
  bug: (error: unknown): string =>
    `watchdog: trouble of its own: ${error instanceof Error ? error.message : String(error)}`,
} as const;
