/**
 * The second way to start a process, for machines without FFI only: `Bun.spawn`. Never beside
 * `spawn.ts`: there the one reaper would take its children's statuses away.
 */
import { nameSignal } from "../core/signals.ts";
import { readChildren } from "./proc.ts";

export interface DegradedChild {
  readonly kind: "started";
  readonly pid: number;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  signal(signal: number): void;
  /** The child and what can be found below it now. */
  signalAll(signal: number): void;
}

export interface DegradedRefusal {
  readonly kind: "refused";
  readonly because: "not-found" | "not-executable" | "system";
  readonly message: string;
}

const REASONS: Readonly<Record<string, DegradedRefusal["because"]>> = {
  ENOENT: "not-found",
  ENOTDIR: "not-found",
  EACCES: "not-executable",
  ENOEXEC: "not-executable",
};

export function spawnDegraded(
  argv: readonly Uint8Array[],
  environment: Readonly<Record<string, string>>,
): DegradedChild | DegradedRefusal {
  const words = argv.map((word) => Buffer.from(word).toString("utf8"));
  try {
    const child = Bun.spawn(words, {
      stdio: ["inherit", "inherit", "inherit"],
      env: environment,
    });
    return {
      kind: "started",
      pid: child.pid,
      ended: child.exited.then(() => ({
        code: child.exitCode,
        signal: readSignal(child.signalCode),
      })),
      signal: (signal) => signalOne(child.pid, signal),
      signalAll: (signal) => {
        for (const pid of [child.pid, ...findBelow(child.pid)]) signalOne(pid, signal);
      },
    };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const text = cause instanceof Error ? cause.message : String(cause);
    return { kind: "refused", because: REASONS[code] ?? "system", message: `${words[0]}: ${text}` };
  }
}

/** Real-time signals come as numbers. */
function readSignal(signal: string | number | null): string | null {
  return signal === null ? null : String(signal);
}

const MOST_PROCESSES = 10_000;

function findBelow(pid: number): number[] {
  const found: number[] = [];
  let level = readChildren(pid);
  while (level.length > 0 && found.length < MOST_PROCESSES) {
    found.push(...level);
    level = level.flatMap((one) => readChildren(one));
  }
  return found;
}

function signalOne(pid: number, signal: number): void {
  try {
    process.kill(pid, `SIG${nameSignal(signal)}` as NodeJS.Signals);
  } catch {
    // ESRCH: already gone. EPERM: other rights; the record says that nothing is contained here.
  }
}
