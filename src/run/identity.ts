/**
 * Who a run is: its id, its name, when and where it began.
 */
import { deriveJobName } from "../core/job-name.ts";
import type { MonotonicAt, WallAt } from "../core/time.ts";
import { monotonicNow, suspendedMs, wallNow } from "../os/clock.ts";

export interface RunIdentity {
  readonly runId: string;
  readonly jobName: string;
  /** Undefined where the working directory is gone. */
  readonly cwd: string | undefined;
  readonly startedAt: MonotonicAt;
  readonly startedWallAt: WallAt;
  /** When watchdog was started: before any wait for a lease. */
  readonly askedWallAt: WallAt;
  readonly suspendedAtStartMs: number;
}

export function makeIdentity(name: string | undefined, argv: readonly Uint8Array[]): RunIdentity {
  const cwd = readWorkingDirectory();
  return {
    runId: Bun.randomUUIDv7(),
    jobName: name ?? deriveName(argv),
    cwd,
    startedAt: monotonicNow(),
    startedWallAt: wallNow(),
    askedWallAt: wallNow(),
    suspendedAtStartMs: suspendedMs(),
  };
}

/** The same run, beginning now: what it had to wait for is not of its duration. */
export function beginNow(identity: RunIdentity): RunIdentity {
  return {
    ...identity,
    startedAt: monotonicNow(),
    startedWallAt: wallNow(),
    suspendedAtStartMs: suspendedMs(),
  };
}

/** What a run of this command in the working directory is called where it is given no name. */
export function deriveName(argv: readonly Uint8Array[]): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const word of argv) hash.update(word).update("\0");
  hash.update(readWorkingDirectory() ?? "");
  return deriveJobName(Buffer.from(argv[0] ?? "").toString("utf8"), hash.digest("hex"));
}

function readWorkingDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined; // ENOENT: the directory was removed under us
  }
}
