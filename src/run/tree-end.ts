/**
 * What became of the tree of a dead run: who was signalled, by its name while it lived, and what
 * ended it. Signals nobody, decides nothing.
 */
import type { FoundProcess, TreeFinding } from "../core/evidence.ts";
import type { Leftover, NamedProcess } from "../core/run-record.ts";
import { SIGKILL, SIGTERM } from "../core/signals.ts";
import type { DeadRun } from "../core/survivors-view.ts";
import { readCommand } from "../os/proc.ts";
import type { ScanResult } from "../tree/scan.ts";

/** What became of the tree. */
export interface TreeEnd {
  readonly members: readonly Leftover[];
  readonly unsignalable: readonly NamedProcess[];
  readonly suspects: readonly NamedProcess[];
}

export class Ends {
  readonly #runId: string;
  readonly #recorded: ReadonlySet<number>;
  readonly #mainGroup: number | undefined;
  readonly #names = new Map<number, string>();
  readonly #endedBy = new Map<number, "TERM" | "KILL" | null>();

  constructor(run: DeadRun) {
    this.#runId = run.runId;
    this.#recorded = new Set(run.recorded.map((one) => one.pid));
    this.#mainGroup = run.mainGroup?.pid;
  }

  /** A dead process has no command line any more, so names are taken before the first signal. */
  meet(scan: ScanResult): ScanResult {
    if (scan === "unread") return scan;
    for (const { pid, runPath, groupId } of scan) {
      const isOfRun = runPath !== "unread" && runPath.includes(this.#runId);
      if (!isOfRun && !this.#recorded.has(pid) && groupId !== this.#mainGroup) continue;
      if (this.#names.has(pid) || this.#names.size >= MOST_NAMED) continue;
      this.#names.set(pid, readCommand(pid));
    }
    return scan;
  }

  note(pid: number, signal: number): void {
    if (!this.#names.has(pid)) this.#names.set(pid, readCommand(pid));
    if (signal === SIGKILL) this.#endedBy.set(pid, "KILL");
    if (signal === SIGTERM) this.#endedBy.set(pid, "TERM");
  }

  sum(left: TreeFinding): TreeEnd {
    for (const { pid, command } of left.members) {
      this.#names.set(pid, command);
      this.#endedBy.set(pid, null);
    }
    const members = [...this.#endedBy].slice(0, MOST_NAMED).map(([pid, ended_by]) => ({
      pid,
      command: this.#names.get(pid) ?? "",
      ended_by,
    }));
    const { suspects } = left;
    return { members, unsignalable: left.members.map(nameOf), suspects: suspects.map(nameOf) };
  }
}

/** The record names this many of a kind. */
const MOST_NAMED = 200;

export function nameOf(one: FoundProcess): NamedProcess {
  return { pid: one.pid, command: one.command };
}
