/**
 * `watchdog __bury RUN_ID STATE_DIR`: what the guard of a run becomes when its watchdog was killed.
 * Ends the tree by policy, tells the journal, corrects the result file; then nothing of the run is
 * left that says it runs. Where watchdog had concluded already, it tells what that had decided.
 *
 * Works by run id only: it reads the slots of the run's leases and never takes, writes or removes a
 * file of a key. Refuses to act while the owner lives, and to signal anybody without the notes of
 * its own run. Always: each part is tried, whatever became of the one before; nothing is printed;
 * nothing is thrown. A newcomer may do the same work at the same time, and both are harmless to
 * each other.
 *
 * Clock: MONOTONIC for spans, the wall clock for the record. State after a crash of this process:
 * the next run under the same key does what is left.
 */
import { abandonRecord, ABANDONED_BECAUSE, decideBurial } from "../core/burial.ts";
import { listRecorded } from "../core/dead-run.ts";
import type { TreeFinding } from "../core/evidence.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import type { NoticePart } from "../core/notice-part.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { recordItems } from "../core/recorded-items.ts";
import type { RunRecord } from "../core/run-record.ts";
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "../core/signals.ts";
import type { DeadRun, KeptProcesses } from "../core/survivors-view.ts";
import { identify } from "../core/tree-members.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { ownMask, setMask } from "../os/mask.ts";
import { readStat } from "../os/proc.ts";
import { handleSignals } from "../os/signal-handlers.ts";
import { sharingOf } from "../os/state-sharing.ts";
import { wakeAfter } from "../os/timers.ts";
import { placeOf, slotPath } from "../lease/files/places.ts";
import { readSlot } from "../lease/files/slot-file.ts";
import { scanProcesses } from "../tree/scan.ts";
import { continueFrozen, endSurvivors, lookForSurvivors } from "../tree/survivors.ts";
import type { GuardDelivery } from "./guard-delivery.ts";
import { type GuardNotes, NOTES_DESCRIPTOR, readNotes } from "./guard-notes.ts";
import { readKept } from "./kept-registry.ts";
import { logPathOf, readMaskedTail } from "./log-tail.ts";
import { correctResultFile } from "./result-file.ts";
import { Ends, nameOf, type TreeEnd } from "./tree-end.ts";

export interface BuryRequest {
  readonly runId: string;
  readonly stateDirectory: string;
}

/** How long a dying owner may take to hand its children over. */
const ORPHANED_MS = 5_000;
const LOOK_EVERY_MS = 2;
/** How long the journal may be waited for; what it cannot take goes to the spool. */
const JOURNAL_MS = 5_000;
/** A shutdown asks everybody to go; half a burial helps nobody, and KILL comes soon enough. */
const WITHSTOOD = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/** Returns when all is done; the process leaves with 0 then. */
export async function buryCommand(request: BuryRequest): Promise<void> {
  process.umask(sharingOf(request.stateDirectory).umask);
  handleSignals(WITHSTOOD, 0n, () => undefined);
  const burial = new Burial(request);
  await burial.perform();
}

function readable(found: TreeFinding | "unread"): TreeFinding {
  if (found === "unread") throw new Error("the processes of the run cannot be seen");
  return found;
}

const NOBODY: TreeEnd = { members: [], unsignalable: [], suspects: [] };

class Burial {
  readonly #request: BuryRequest;
  /** What the journal did not take. */
  #unwritten: GuardDelivery["unwritten"];
  readonly #troubles: string[] = [];

  constructor(request: BuryRequest) {
    this.#request = request;
  }

  async perform(): Promise<void> {
    const { runId } = this.#request;
    const notes = await this.#attempt("guard-no-notes", () => this.#readNotes());
    const hasNotes = notes !== undefined;
    await this.#attempt("guard-bug", () => faultPoint("bury.begin", { runId, hasNotes }));
    if (notes === undefined) return this.#record(undefined, undefined);
    if (!(await isOrphaned(notes.owner))) return;
    const isOver = isConcluded(notes) && notes.isReleased;
    const tree = isOver
      ? NOBODY
      : await this.#attempt("guard-tree-not-ended", () => this.#endTree(notes));
    const items = await this.#attempt("guard-no-progress", () => this.#countItems(notes));
    await this.#record({ ...this.#makeRecord(notes, tree ?? NOBODY), ...items }, notes);
    await this.#attempt("guard-bug", () => this.#removeProgress());
  }

  /** What the job had reported; what watchdog itself had concluded stays as it is. */
  async #countItems(notes: GuardNotes): Promise<Pick<RunRecord, "items"> | undefined> {
    if (isConcluded(notes)) return undefined;
    const { runId, stateDirectory } = this.#request;
    faultPoint("bury.progress", { runId });
    const { countDead } = await import("../progress/dead-progress.ts");
    const counts = countDead(stateDirectory, runId);
    if (counts === undefined) return undefined;
    const elapsedMs = monotonicNow() - notes.startedMonotonicMs;
    const mask = (text: string): string => ownMask().text(text);
    return { items: recordItems(counts, { elapsedMs, mask }) };
  }

  async #removeProgress(): Promise<void> {
    const { progressPath, removeDead } = await import("../progress/place.ts");
    removeDead(progressPath(this.#request.stateDirectory, this.#request.runId));
  }

  async #record(record: RunRecord | undefined, notes: GuardNotes | undefined): Promise<void> {
    const { runId } = this.#request;
    const leftovers = record?.leftovers ?? [];
    await this.#attempt("guard-bug", () => faultPoint("bury.record", { runId, leftovers }));
    await this.#attempt("guard-no-journal", () => this.#tellJournal(record, notes));
    if (record === undefined || notes === undefined) return;
    await this.#attempt("guard-no-result-file", () => correct(notes, record));
    await this.#attempt("guard-no-notices", () => this.#deliver(record, notes));
  }

  /** One part of the burial must not cost the others. */
  async #attempt<T>(trouble: string, act: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch {
      this.#troubles.push(trouble); // any error: there is nobody to tell but the record
      return undefined;
    }
  }

  #readNotes(): GuardNotes | undefined {
    const notes = readNotes(NOTES_DESCRIPTOR);
    if (notes?.record.run_id !== this.#request.runId) return undefined;
    setMask(notes.mask);
    return notes;
  }

  async #endTree(notes: GuardNotes): Promise<TreeEnd> {
    const decision = decideBurial(notes);
    const run = describeRun(notes, this.#request.stateDirectory);
    const kept = (): KeptProcesses => this.#readKept(notes);
    faultPoint("bury.kill", { runId: run.runId, ...decision });
    if (decision.kind === "leave") {
      await this.#continueFrozen(notes, run);
      const found = readable(await lookForSurvivors(run, kept, scanProcesses));
      const members = found.members.map((one) => ({ ...nameOf(one), ended_by: null }));
      return { members, unsignalable: [], suspects: found.suspects.map(nameOf) };
    }
    const ends = new Ends(run);
    const left = await endSurvivors(run, kept, {
      scan: () => ends.meet(scanProcesses()),
      guardWaitMs: 0,
      termGraceMs: decision.graceMs ?? 0,
      frozen: notes.frozen,
      onSent: ({ pid }, signal) => ends.note(pid, signal),
      onFault: () => this.#troubles.push("guard-bug"),
    });
    return ends.sum(readable(left));
  }

  /** Whoever is let live goes on: nobody else would ever continue whom watchdog has stopped. */
  async #continueFrozen(notes: GuardNotes, run: DeadRun): Promise<void> {
    const frozen = new Set(notes.frozen.map((one) => `${one.pid}@${one.start_time}`));
    if (frozen.size === 0) return;
    const kept = (): KeptProcesses => this.#readKept(notes);
    const tally = await continueFrozen(run, kept, {
      scan: scanProcesses,
      isFrozen: (one) => frozen.has(identify(one)),
    });
    if (typeof tally === "string") throw new Error("the processes of the run cannot be seen");
    if (tally.faults.length > 0) this.#troubles.push("guard-bug");
  }

  #readKept(notes: GuardNotes): KeptProcesses {
    const entries = readKept(this.#request.stateDirectory, this.#request.runId);
    const inborn = notes.inborn.map((one) => `${one.pid}@${one.start_time}`);
    return {
      identities: new Set([...entries.map((entry) => entry.identity), ...inborn]),
      tokens: new Set(entries.map((entry) => entry.token)),
    };
  }

  #makeRecord(notes: GuardNotes, tree: TreeEnd): RunRecord {
    if (isConcluded(notes)) {
      const { record } = notes;
      return { ...record, degraded: [...record.degraded, ...this.#troubles] };
    }
    return abandonRecord(notes.record, {
      mainEnd: notes.mainEnd,
      endedAt: new Date(wallNow()).toISOString(),
      durationMs: monotonicNow() - notes.startedMonotonicMs,
      ...tree,
      troubles: this.#troubles,
    });
  }

  /** Loaded only now: the tree did not wait for SQLite. */
  async #tellJournal(record: RunRecord | undefined, notes: GuardNotes | undefined): Promise<void> {
    const { Journal } = await import("../journal/journal.ts");
    const journal = new Journal(this.#request.stateDirectory, () => undefined);
    const { runId } = this.#request;
    const isEnd = record !== undefined && notes !== undefined && isConcluded(notes);
    const told = tellingOf(record, notes, this.#request.stateDirectory);
    const entry = isEnd ? describeEnd(record, notes) : describeAbandoned(runId, record, notes);
    journal.put({ ...entry, ...told });
    journal.close(JOURNAL_MS);
    const { hasSpooled: isInSpool, hasLost } = journal;
    const part = told.telling;
    this.#unwritten = part && (isInSpool || hasLost) ? { part, isInSpool } : undefined;
  }

  /** The secrets of the sinks stand in our notes alone. What is left waits for the next run. */
  async #deliver(run: RunRecord, { telling }: GuardNotes): Promise<void> {
    if (telling === undefined || telling === null) return;
    const { deliverForGuard } = await import("./guard-delivery.ts");
    const { stateDirectory } = this.#request;
    await deliverForGuard(telling, { run, stateDirectory, unwritten: this.#unwritten });
  }
}

/** Watchdog had decided how the run ended, and was about to write it down. */
function isConcluded({ record }: GuardNotes): boolean {
  return record.state === "ended";
}

/** Whom the entry tells, with the end of the output as far as it was kept. */
function tellingOf(
  record: RunRecord | undefined,
  notes: GuardNotes | undefined,
  stateDirectory: string,
): { readonly telling?: NoticePart } {
  const telling = notes?.telling;
  if (record === undefined || telling === undefined || telling === null) return {};
  const path = record.log?.path ?? logPathOf(stateDirectory, record);
  return { telling: { ...telling.part, logTail: readMaskedTail(path) } };
}

type EndEntry = Extract<JournalEntry, { kind: "run-ended" | "run-abandoned" }>;

/** What watchdog itself would have put; the next run may have its keys by now. */
function describeEnd(run: RunRecord, { isReleased, schedule }: GuardNotes): EndEntry {
  const { run_path: runPath, leases } = run;
  const ended = { run, runPath, leases, isReleased, schedule };
  return { kind: "run-ended", at: wallNow(), ...ended, by: "guard" };
}

function describeAbandoned(
  runId: string,
  run: RunRecord | undefined,
  notes: GuardNotes | undefined,
): EndEntry {
  return {
    kind: "run-abandoned",
    at: wallNow(),
    runId,
    by: "guard",
    run: run ?? null,
    leases: run?.leases ?? [],
    because: ABANDONED_BECAUSE,
    schedule: notes?.schedule,
  };
}

/**
 * Waits until the owner has handed its children over, this process among them: the pipe ends a
 * moment before (exit_files comes before exit_notify in the kernel's do_exit).
 *
 * @returns false where the owner lives on: then nobody has to be buried
 */
async function isOrphaned(owner: ProcessIdentity): Promise<boolean> {
  const until = monotonicNow() + ORPHANED_MS;
  while (readParent() === owner.pid) {
    if (monotonicNow() > until) return false;
    await new Promise<void>((resolve) => wakeAfter(LOOK_EVERY_MS, resolve));
  }
  return true;
}

function readParent(): number {
  return readStat(process.pid)?.ppid ?? 0;
}

function identityOf(pid: number): ProcessIdentity[] {
  const stat = readStat(pid);
  return stat === undefined ? [] : [{ pid, start_time: stat.startTicks }];
}

/** Who adopted this process has adopted the orphans of the run, too. */
function describeRun(notes: GuardNotes, stateDirectory: string): DeadRun {
  return {
    runId: notes.record.run_id,
    owner: notes.owner,
    recorded: listRecorded(notes.mainChild, [
      ...readRecorded(notes.record, stateDirectory),
      ...notes.frozen,
    ]),
    guard: identityOf(process.pid)[0] ?? null,
    adopters: [...notes.adopters, ...identityOf(readParent())],
    cgroup: notes.cgroup,
    ...describeGroup(notes),
    countedIn: null,
    isBlind: false,
  };
}

/** Where the command was never noted, whoever may be it is told and not touched. */
function describeGroup(notes: GuardNotes): Pick<DeadRun, "mainGroup" | "unrecordedIn"> {
  const { mainChild, hasOwnGroup, sessionId, phase } = notes;
  if (!hasOwnGroup) return { mainGroup: null, unrecordedIn: [] };
  if (mainChild !== null) return { mainGroup: { ...mainChild, sessionId }, unrecordedIn: [] };
  return { mainGroup: null, unrecordedIn: phase === "starting" ? [sessionId] : [] };
}

/** Members as of the last beat, out of the slots of the run's leases. */
function readRecorded(record: RunRecord, stateDirectory: string): ProcessIdentity[] {
  return record.leases.flatMap((lease) => {
    const slot = readSlot(slotPath(placeOf(stateDirectory, lease), lease.generation));
    if (typeof slot === "string" || slot.body?.runId !== record.run_id) return [];
    return slot.body.members;
  });
}

function correct(notes: GuardNotes, record: RunRecord): void {
  if (notes.resultFile === null) return;
  correctResultFile(notes.resultFile, ownMask().value(record), notes.resultFileMode);
}
