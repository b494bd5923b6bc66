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
  readonly suspendedAtStartMs: number;
}

export function makeIdentity(name: string | undefined, argv: readonly Uint8Array[]): RunIdentity {
  const cwd = readWorkingDirectory();
  return {
    runId: Bun.randomUUIDv7(),
    jobName: name ?? deriveName(argv, cwd),
    cwd,
    startedAt: monotonicNow(),
    startedWallAt: wallNow(),
    suspendedAtStartMs: suspendedMs(),
  };
}

function deriveName(argv: readonly Uint8Array[], cwd: string | undefined): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const word of argv) hash.update(word).update("\0");
  hash.update(cwd ?? "");
  return deriveJobName(Buffer.from(argv[0] ?? "").toString("utf8"), hash.digest("hex"));
}

function readWorkingDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined; // ENOENT: the directory was removed under us
  }
}
