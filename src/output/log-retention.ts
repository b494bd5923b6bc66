/**
 * Which logs of a state directory have to go. Pure: names and sizes in, names out; no files, no
 * clock.
 *
 * Always: the oldest go first (a run id is a UUIDv7, whose order is the order of starts), a held
 * log never goes but counts, and no more goes than is needed.
 */

/** However small they are: a directory scan has to stay short. */
export const MAX_LOG_FILES = 1_000;

export interface StoredLog {
  readonly runId: string;
  /** The log with its segments. */
  readonly bytes: number;
  /** Its run lives: its flock is taken. */
  readonly isHeld: boolean;
}

export interface RetentionLimits {
  readonly keepBytes: number;
  readonly maxFiles: number;
}

export interface Removal<T extends StoredLog> {
  readonly log: T;
  readonly because: "too-many-files" | "too-many-bytes";
}

export function decidePruning<T extends StoredLog>(
  logs: readonly T[],
  limits: RetentionLimits,
): Removal<T>[] {
  const oldestFirst = [...logs].sort((one, other) => (one.runId < other.runId ? -1 : 1));
  const removals: Removal<T>[] = [];
  let files = logs.length;
  let bytes = logs.reduce((sum, log) => sum + log.bytes, 0);
  for (const log of oldestFirst) {
    const hasTooManyFiles = files > limits.maxFiles;
    if (!hasTooManyFiles && bytes <= limits.keepBytes) break;
    // Without a byte it would free nothing of what is too much.
    if (log.isHeld || (!hasTooManyFiles && log.bytes === 0)) continue;
    removals.push({ log, because: hasTooManyFiles ? "too-many-files" : "too-many-bytes" });
    files -= 1;
    bytes -= log.bytes;
  }
  return removals;
}
