/**
 * The tree of one run, held by the process that is its subreaper: who is in it, asking it to end,
 * killing it, and the proof that it is empty. What cgroups would do better (exact containment) has
 * its seam here: `Containment`.
 *
 * Guarantee: "empty" means that no process of the job exists (design: as subreaper every orphan
 * becomes our child, so a list of children without members is a proof). Non-guarantee: nothing is
 * known once this process is dead. Clock: none. State after a crash: none; the guard finds the
 * members.
 */
import {
  decideAsked,
  decideKilled,
  decideMembers,
  identify,
  isDead,
  type ProcessRow,
  type TreeView,
} from "../core/tree-members.ts";
import { SIGKILL } from "../core/signals.ts";
import { readChildren, readCommand } from "../os/proc.ts";
import {
  findAncestors,
  findChildren,
  findDescendants,
  findKillable,
  markWatchdogs,
  readCookie,
} from "./find.ts";
import { protect, type Protected, signalChild, signalMember } from "./signal.ts";

/** What keeps a tree together and answers for it. */
export interface Containment {
  members(): ProcessRow[];
  ask(signals: readonly number[]): SignalTally;
  killRound(): SignalTally;
  isEmpty(): boolean;
}

export interface SignalTally {
  readonly sent: readonly ProcessRow[];
  /** EPERM: members with other rights. */
  readonly refused: readonly ProcessRow[];
  /** With whom something went wrong here: a fault of watchdog's own, not the kernel's word. */
  readonly faults: readonly SignalFault[];
}

export interface SignalFault {
  readonly row: ProcessRow;
  readonly error: unknown;
}

export interface TreeRequest {
  readonly main: number;
  readonly inborn: readonly number[];
  readonly runId: string;
  /** Processes of watchdog's own that are children, too: the guard. As of now, each time. */
  readonly findHelpers: () => ReadonlySet<number>;
  /** Processes that are meant to outlive the run, out of what is there now. */
  readonly findKept: (rows: readonly ProcessRow[]) => ReadonlySet<number>;
}

const RUN_PATH = "WATCHDOG_RUN_PATH";

export class Tree implements Containment {
  readonly #request: TreeRequest;
  readonly #inborn: Set<number>;
  #foundAncestors: ReadonlySet<number> | undefined;
  #main: number;
  #proven: ReadonlySet<string> = new Set();

  constructor(request: TreeRequest) {
    this.#request = request;
    this.#main = request.main;
    this.#inborn = new Set(request.inborn);
  }

  /** Looked up at the first need: a run without trouble never signals anybody. */
  get #ancestors(): ReadonlySet<number> {
    this.#foundAncestors ??= findAncestors();
    return this.#foundAncestors;
  }

  /** A child was collected: its pid may be somebody else's from now on. */
  forget(pid: number): void {
    this.#inborn.delete(pid);
    if (pid === this.#main) this.#main = NOBODY;
  }

  members(): ProcessRow[] {
    const view = this.#look();
    const decided = decideMembers(view);
    return view.rows.filter((row) => decided.get(row.pid)?.kind === "member" && !isDead(row));
  }

  /** Whether there is any child but helpers: if not, nobody of the job is left or was kept. */
  hasChildren(): boolean {
    const helpers = this.#request.findHelpers();
    return readChildren("self").some((pid) => !helpers.has(pid));
  }

  /**
   * Processes that are ours to collect but not of the job: named in the record, never signalled.
   */
  leftAlone(): ProcessRow[] {
    const view = this.#look();
    const decided = decideMembers(view);
    return view.rows.filter((row) => isUnprovenRoot(decided.get(row.pid)) && !isDead(row));
  }

  kept(): ProcessRow[] {
    const view = this.#look();
    return view.rows.filter((row) => view.kept.has(row.pid) && !isDead(row));
  }

  /**
   * Each member that is alive now gets each of the signals, once; nested watchdogs pass theirs on.
   * Trouble of our own with one of them costs nobody else the signal.
   */
  ask(signals: readonly number[]): SignalTally {
    const view = this.#look(markWatchdogs(findDescendants(process.pid)));
    return this.#signal(decideAsked(view), view, (row, guarded) => {
      const results = signals.map((signal) => signalMember(row, signal, guarded));
      return results[0] ?? "gone";
    });
  }

  /**
   * To the main command alone. Its pid is ours until it was collected; after that there is nobody
   * to tell.
   */
  signalMain(signal: number): void {
    if (this.#main === NOBODY) return;
    const pids = this.#ancestors;
    signalChild(this.#main, signal, { self: process.pid, pids, verified: new Set() });
  }

  /**
   * KILL to members that are direct children; where one may not be signalled, or we failed at it,
   * to everybody below it too, who would never become our child. Collect, and come again, until
   * `isEmpty()`.
   */
  killRound(): SignalTally {
    const view = this.#look(findKillable(this.#request.findHelpers()));
    const tally = this.#signal(decideKilled(view), view, (row, guarded) =>
      signalChild(row.pid, SIGKILL, guarded),
    );
    if (tally.refused.length + tally.faults.length === 0) return tally;
    const whole = this.#look();
    const deeper = decideAsked(whole).filter((row) => row.ppid !== whole.self);
    const below = this.#signal(deeper, whole, (row, guarded) =>
      signalMember(row, SIGKILL, guarded),
    );
    return {
      sent: [...tally.sent, ...below.sent],
      refused: [...tally.refused, ...below.refused],
      faults: [...tally.faults, ...below.faults],
    };
  }

  /** Proof that no process of the job exists. Right only after everything was collected. */
  isEmpty(): boolean {
    if (!this.hasChildren()) return true;
    const view = this.#look(findChildren());
    const decided = decideMembers(view);
    return !view.rows.some(
      (row) => row.ppid === view.self && decided.get(row.pid)?.kind === "member",
    );
  }

  #signal(
    rows: readonly ProcessRow[],
    view: TreeView,
    send: (row: ProcessRow, guarded: Protected) => "sent" | "gone" | "refused",
  ): SignalTally {
    const guarded = protect(view);
    const sent: ProcessRow[] = [];
    const refused: ProcessRow[] = [];
    const faults: SignalFault[] = [];
    for (const row of rows) {
      try {
        const result = send(row, guarded);
        if (result === "sent") sent.push(row);
        if (result === "refused") refused.push(row);
      } catch (error) {
        faults.push({ row, error });
      }
    }
    return { sent, refused, faults };
  }

  #look(rows: readonly ProcessRow[] = findDescendants(process.pid)): TreeView {
    const view = this.view(rows);
    if (view.hadInborn) this.#remember(view);
    return view;
  }

  /** What is known about these, whoever else there may be: for a walk (freeze-walk.ts). */
  view(rows: readonly ProcessRow[]): TreeView {
    return {
      self: process.pid,
      main: this.#main,
      rows,
      ancestors: this.#ancestors,
      inborn: this.#inborn,
      hadInborn: this.#request.inborn.length > 0,
      helpers: this.#request.findHelpers(),
      kept: this.#request.findKept(rows),
      proven: this.#proven,
      cookieOf: (pid) => readCookie(pid, RUN_PATH, this.#request.runId),
    };
  }

  /** Remembers who was seen as a member in a look that somebody else has taken. */
  noteLook(rows: readonly ProcessRow[]): void {
    if (this.#request.inborn.length > 0) this.#look(rows);
  }

  /** Who was seen below the main command once stays a member when its parent dies. */
  #remember(view: TreeView): void {
    const decided = decideMembers(view);
    const members = view.rows.filter((row) => decided.get(row.pid)?.kind === "member");
    this.#proven = new Set([...this.#proven, ...members.map(identify)].slice(-MOST_PROVEN));
  }
}

/** No process has this pid. */
const NOBODY = -1;
const MOST_PROVEN = 20_000;

function isUnprovenRoot(membership: { kind: string; because: string } | undefined): boolean {
  return membership?.because === "adopted-unproven";
}

/** A process as the record and the messages name it. */
export interface NamedProcess {
  readonly pid: number;
  readonly command: string;
}

export function nameProcesses(rows: readonly ProcessRow[]): NamedProcess[] {
  return rows.map((row) => ({ pid: row.pid, command: readCommand(row.pid) }));
}
