/**
 * The leases of one run from their grant to their release, and the heartbeat that shows that they
 * are held. With `--no-lease` the same steps, and nothing is done.
 *
 * Always: what the heartbeat says reaches the ledger and the journal; a lease that is not ours any
 * more ends the run. State after a crash: design.md 3, by the step that was reached.
 */
import type { GrantedLease, JournalEntry } from "../core/journal-entry.ts";
import { renderKey } from "../core/lease-key.ts";
import type { LeaseRecord, ProcessIdentity, SlotRunState } from "../core/lease-record.ts";
import type { FoundProcess } from "../core/evidence.ts";
import { type BeatHandle, type ShownProcess, startBeat } from "../lease/beat/handle.ts";
import type { BeatEvent, FoundOwner } from "../lease/beat/events.ts";
import type { ClaimedKey } from "../lease/claim/request.ts";
import { grantLeases } from "../lease/claim/grant.ts";
import type { HeldLeases } from "../lease/held.ts";
import { sweepOldPlaces } from "../lease/sweep.ts";
import type { Progress } from "../core/progress.ts";
import { recordOfLost } from "../core/burial.ts";
import type { RunRecord } from "../core/run-record.ts";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { say } from "../os/say.ts";
import type { ClaimedRun } from "./claim-for-run.ts";
import type { Course } from "./course.ts";
import { messages } from "./messages.ts";
import { describeTakeover } from "./takeover.ts";

/** What the heartbeat shows of the run from its first beat on. */
export interface BeatStart {
  readonly mainChild: ShownProcess;
  readonly guard: ProcessIdentity | undefined;
  readonly onLost: () => void;
}

export class RunLeases {
  readonly #course: Course;
  readonly #held: HeldLeases | undefined;
  readonly #claimed: readonly ClaimedKey[];
  readonly #newKinds: readonly string[];
  #beat: BeatHandle | undefined;
  /** "abandoned": the thread hangs in a write, so its descriptors must not be used again. */
  #beatEnd: "stopped" | "abandoned" = "stopped";
  /** Keys whose loss was told. */
  readonly #lost = new Set<string>();

  /** A7 to A9. @throws WatchdogError "lease.unusable"; everything is released then */
  constructor(course: Course, claimed: ClaimedRun | undefined) {
    this.#course = course;
    this.#claimed = claimed?.claim.keys ?? [];
    this.#newKinds = claimed?.claim.newKinds ?? [];
    this.#held = claimed === undefined ? undefined : grantLeases(claimed.claim, claimed.owner);
    course.ledger.noteLeases(this.grants);
    try {
      this.#tellGrant();
    } catch (error) {
      // Nothing was started: whoever comes next finds no dead owner.
      this.markReleased();
      this.close();
      throw error;
    }
  }

  #tellGrant(): void {
    for (const { key, setAside } of this.#held?.leases ?? []) {
      if (setAside !== undefined) say(messages.recordSetAside(renderKey(key), setAside));
    }
    for (const key of this.#claimed) this.#tellTakeover(key);
    if (this.#held !== undefined) {
      faultPoint("acquire.A10", { leases: this.grants, child: null });
    }
  }

  get grants(): GrantedLease[] {
    return (this.#held?.leases ?? []).map(({ key, generation }) => ({ ...key, generation }));
  }

  /** The rest of A10: the child stands in the slot before the beat thread is there. */
  begin(start: BeatStart): void {
    if (this.#held === undefined) return;
    const { options, request } = this.#course;
    faultPoint("acquire.A10", { leases: this.grants, child: start.mainChild });
    this.#beat = startBeat({
      leases: this.#held.leases,
      workerUrl: request.workerUrls.beat,
      intervalMs: options.heartbeatIntervalMs,
      firstSequence: this.#held.firstBeat,
      mainChild: start.mainChild,
      ...(start.guard === undefined ? {} : { guard: start.guard }),
      runState: "running",
      inborn: request.inherited.inbornChildren,
      onEvent: (event) => this.#hear(event, start.onLost),
    });
  }

  /** Only where a lease directory was new, so that their number has a bound. */
  sweep(): void {
    for (const kind of this.#newKinds) sweepOldPlaces(this.#course.stateDirectory, kind);
  }

  setRunState(state: SlotRunState): void {
    this.#beat?.setRunState(state);
  }

  setMainEnded(): void {
    this.#beat?.setMainChild(undefined);
  }

  setGuard(guard: ProcessIdentity | undefined): void {
    this.#beat?.setGuard(guard);
  }

  showProgress(progress: Progress, isAtOnce: boolean): void {
    this.#beat?.showProgress(progress, isAtOnce);
  }

  /** R0. */
  async stopBeat(): Promise<void> {
    if (this.#beat !== undefined) this.#beatEnd = await this.#beat.stop();
  }

  /** Whether a lease of ours belongs to another run by now, as its record says. */
  isLost(): boolean {
    const found = this.#held?.check();
    if (found?.kind === "lost") this.#tellLost(renderKey(found.key), found.found);
    return this.#lost.size > 0;
  }

  /**
   * R2. What cannot be written is released by the journal's word; what was lost and told as such is
   * not ours to release.
   */
  markReleased(): void {
    for (const { key, isLost, reason } of this.#held?.markReleased() ?? []) {
      if (isLost && this.#lost.has(renderKey(key))) continue;
      this.#course.ledger.noteDegraded("release-unwritten");
      this.#course.ledger.tellOnce(messages.unreleased(renderKey(key), reason));
    }
  }

  /** R5. */
  close(): void {
    this.#held?.close(this.#beatEnd);
  }

  #hear(event: BeatEvent, onLost: () => void): void {
    switch (event.kind) {
      case "lost":
        this.#tellLost(renderKey(event.key), event.found);
        return onLost();
      case "lock-restored":
        this.#held?.keepDescriptor(event.fd);
        say(messages.lockRestored(renderKey(event.key)));
        return this.#note("lock_restored", event);
      case "beat-failing":
        say(messages.beatFailing(renderKey(event.key), event.reason));
        return this.#note("beat_failing", event);
      case "thread-gone":
        say(messages.beatFailing("all leases", event.reason));
        return this.#note("beat_failing", event);
      default:
        return this.#course.ledger.noteDegraded(event.kind);
    }
  }

  #tellLost(key: string, found: FoundOwner): void {
    const isFirst = this.#lost.size === 0;
    this.#lost.add(key);
    if (!isFirst) return;
    const owner = `its record names run ${found.run_id ?? "unknown"}`;
    say(messages.leaseLost(key, `${owner}, generation ${found.generation ?? "unknown"}`));
    this.#put({ name: "lease_lost", because: "record-names-another", data: { key, ...found } });
  }

  #note(name: "lock_restored" | "beat_failing", event: BeatEvent): void {
    this.#course.ledger.noteDegraded(event.kind);
    this.#put({ name, because: event.kind, data: { ...event } });
  }

  /** The run before was killed: that is told once, with the evidence. */
  #tellTakeover({ evidence, abandoned }: ClaimedKey): void {
    if (abandoned === undefined) return;
    say(describeTakeover(evidence, abandoned));
    this.#course.ledger.tellSurvivors(abandoned.ended);
  }

  /** The same for the journal, which is never on the way to the spawn. */
  writeTakeovers(): void {
    for (const { key, evidence, abandoned } of this.#claimed) {
      if (abandoned === undefined) continue;
      const { ended, runId, generation, because } = abandoned;
      this.#course.journal?.put({
        kind: "run-abandoned",
        at: wallNow(),
        runId,
        by: "next-run",
        run: lostRunOf(evidence.record, runId, this.#course.request.build),
        leases: [{ ...key, generation }],
        because,
        // Where nobody knows whom it would have told, those are told who have found it.
        ...this.#course.telling.field({ logPath: null, verdict: null }),
      });
      const data = { key: renderKey(key), from: runId, ended: ended.map(nameEnded) };
      this.#put({ name: "reclaimed", because, data });
    }
  }

  #put(event: Pick<Extract<JournalEntry, { kind: "event" }>, "name" | "because" | "data">): void {
    const { journal, identity } = this.#course;
    const about = { runId: identity.runId, job: identity.jobName, key: null };
    journal?.put({ kind: "event", at: wallNow(), ...about, ...event });
  }
}

/** What the lease tells of a run whose own row may never have been written. */
function lostRunOf(
  record: LeaseRecord | undefined,
  runId: string,
  build: RunRecord["watchdog"],
): RunRecord | null {
  return record?.run_id === runId ? recordOfLost(record, build) : null;
}

function nameEnded({ pid, command }: FoundProcess): { pid: number; command: string } {
  return { pid, command };
}
