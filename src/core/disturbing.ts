/**
 * Which variables of the environment reach watchdog itself, beside those that are meant for it, and
 * what each of them does. Pure; only names are looked at, because a value may be a secret.
 *
 * Always: a name that begins with `WATCHDOG_` and that no version knows is one: an option that was
 * asked for and misspelt is a protection that is not there.
 */

export type Disturbance =
  | "loaded-into-every-program"
  | "changes-the-engine"
  | "changes-the-allocator"
  | "changes-sqlite"
  | "meant-for-node"
  /** A command that is Bun's own feels it; watchdog does not. */
  | "disarmed"
  | "of-a-later-version"
  | "unknown-name";

export interface DisturbingVariable {
  readonly name: string;
  readonly because: Disturbance;
  /** False: it is told, and nothing has to be done. */
  readonly isFinding: boolean;
}

/** What the front door knows of a name that begins with `WATCHDOG_`. */
export type KnownAs = "known" | "later" | "unknown";

/** First that fits; of two that begin alike the longer one stands first. */
const KINDS: readonly (readonly [beginning: string, because: Disturbance])[] = [
  ["LD_PRELOAD", "loaded-into-every-program"],
  ["LD_AUDIT", "loaded-into-every-program"],
  ["BUN_OPTIONS", "disarmed"],
  ["BUN_BE_BUN", "disarmed"],
  ["BUN_INSPECT", "disarmed"],
  ["BUN_FEATURE_FLAG_NO_ORPHANS", "disarmed"],
  ["BUN_INSTALL", "disarmed"],
  ["BUN_", "changes-the-engine"],
  ["NODE_OPTIONS", "meant-for-node"],
  ["MALLOC_", "changes-the-allocator"],
  ["GLIBC_TUNABLES", "changes-the-allocator"],
  ["SQLITE_", "changes-sqlite"],
];

const FINDINGS: ReadonlySet<Disturbance> = new Set<Disturbance>([
  "loaded-into-every-program",
  "changes-the-engine",
  "of-a-later-version",
  "unknown-name",
]);

/** systemd's own (sd_watchdog_enabled(3)): neither ours nor in our way. */
const OF_SYSTEMD: readonly string[] = ["WATCHDOG_USEC", "WATCHDOG_PID"];

/** In the order of the environment. */
export function findDisturbing(
  names: readonly string[],
  knownAs: (name: string) => KnownAs,
): DisturbingVariable[] {
  return names.flatMap((name) => {
    const because = disturbanceOf(name, knownAs);
    return because === undefined ? [] : [{ name, because, isFinding: FINDINGS.has(because) }];
  });
}

function disturbanceOf(name: string, knownAs: (name: string) => KnownAs): Disturbance | undefined {
  if (!name.startsWith("WATCHDOG_")) {
    return KINDS.find(([beginning]) => name.startsWith(beginning))?.[1];
  }
  if (OF_SYSTEMD.includes(name)) return undefined;
  const known = knownAs(name);
  if (known === "known") return undefined;
  return known === "later" ? "of-a-later-version" : "unknown-name";
}
