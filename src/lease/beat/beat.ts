/**
 * One lease's beat: look whether the lock's path and the record are still ours, put right what can
 * be put right, write the slot, and count what fails. Refuses to know when the next beat is due and
 * in which thread it runs.
 *
 * Guarantees: only a record of another generation or run ends the beats of a lease (`lost`, told
 * once); a failing disk is told and tried again for ever. Nothing is written once main has asked
 * for the end (R0), apart from the call that was in progress then. Non-guarantees: that a reader
 * sees a beat within the interval; age decides nothing (design 4). Clock: none of its own, the
 * moment is handed in. Crash behaviour: a slot with a wrong checksum, or the record as it was.
 */
import { renderKey } from "../../core/lease-key.ts";
import { faultPoint } from "../../os/faults.ts";
import type { BeatEvent, BeatLease, FoundOwner } from "./events.ts";
import type { BeatFiles } from "./files.ts";
import { tryRestore } from "./restore.ts";
import { type BeatFacts, type BeatMoment, composeSlot } from "./slot.ts";
import { decideStanding } from "./standing.ts";
import type { LeaseWords } from "./state.ts";
import { textOf } from "../files/own-file.ts";
import { slotPath } from "../files/places.ts";

/** So long a busy lock file is tried again, RESTORE_STEP_MS apart, before the beat has failed. */
export const RESTORE_LIMIT_MS = 2000;
export const RESTORE_STEP_MS = 100;
/** The failure in a row that is told as an event. */
export const FAILURES_TOLD = 3;

export interface LeaseBeatParts {
  readonly lease: BeatLease;
  readonly words: LeaseWords;
  readonly files: BeatFiles;
  /** False from R0 on. */
  mayWrite(): boolean;
  onEvent(event: BeatEvent): void;
}

/** What a part of a beat has come to: a reason is a failure. */
type Done = "good" | "pending" | { readonly reason: string };

export class LeaseBeat {
  readonly #parts: LeaseBeatParts;
  #lockInode: string | undefined;
  #restoresUntil: number | undefined;
  #retryAt: number | undefined;
  /** Of the last beat that this object has written. */
  #moment: BeatMoment | undefined;

  constructor(parts: LeaseBeatParts) {
    this.#parts = parts;
  }

  /** When to beat again before the interval is over, on CLOCK_MONOTONIC: the lock is to be got. */
  get retryAt(): number | undefined {
    return this.#retryAt;
  }

  /** A whole beat. Never throws. */
  beat(moment: BeatMoment, facts: BeatFacts): void {
    const { words, mayWrite } = this.#parts;
    this.#retryAt = undefined;
    if (words.isLost || !mayWrite()) return;
    const checked = attempt(() => this.#check(moment));
    if (words.isLost) return;
    const kept = checked === "good" ? attempt(() => this.#keepSlot()) : checked;
    const written = attempt(() => this.#write(moment, facts));
    if (!mayWrite()) return;
    this.#count(isFailure(kept) ? kept : written === "good" ? kept : written);
  }

  /** The slot alone, nothing is looked at: the first beat, before there is a thread. */
  writeSlot(moment: BeatMoment, facts: BeatFacts): void {
    if (this.#parts.words.isLost) return;
    this.#count(attempt(() => this.#write(moment, facts)));
  }

  /**
   * The slot of the last beat once more, with what is known now: progress is no sign of life, so
   * neither number nor time of the beat change. What cannot be written the next beat tells.
   */
  showAgain(facts: BeatFacts): void {
    const { lease, words, files, mayWrite } = this.#parts;
    const moment = this.#moment;
    if (moment === undefined || words.isLost || !mayWrite()) return;
    attempt(() => {
      const { sequence } = words;
      faultPoint("beat.show", { ...this.#state(), sequence });
      const slot = composeSlot({ lease, lockInode: this.#inode, sequence, moment, facts });
      files.writeSlot(words.slotFd, slot);
      return "good";
    });
  }

  /** @throws EBADF: the grant's descriptor was closed too early */
  get #inode(): string {
    this.#lockInode ??= this.#parts.files.inodeOf(this.#parts.words.lockFd);
    return this.#lockInode;
  }

  #check(moment: BeatMoment): Done {
    const { lease, files } = this.#parts;
    faultPoint("beat.check", this.#state());
    const found = files.inodeAt(lease.place.lock);
    if (found === "unread") return { reason: `${lease.place.lock} cannot be looked at` };
    if (found !== this.#inode) return this.#restore(moment);
    this.#restoresUntil = undefined;
    return this.#checkRecord();
  }

  #checkRecord(): Done {
    const { lease, files, mayWrite } = this.#parts;
    const own = { ...lease.record, lock_inode: this.#inode };
    const standing = decideStanding(files.readRecord(lease.place.record), own);
    switch (standing.kind) {
      case "ours":
        return "good";
      case "lost":
        this.#lose(standing.found);
        return "good";
      case "unknown":
        return { reason: `${lease.place.record} was written by a newer version` };
      case "rewrite":
        if (!mayWrite()) return "good";
        files.writeRecord(lease.place.record, own);
        this.#parts.onEvent({ kind: "rewritten", key: lease.key, what: "record" });
        return "good";
    }
  }

  #restore(moment: BeatMoment): Done {
    const { lease, words, files, mayWrite } = this.#parts;
    faultPoint("beat.restore", this.#state());
    if (!mayWrite()) return "good";
    const restoring = tryRestore(lease, files);
    switch (restoring.kind) {
      case "lost":
        this.#lose(restoring.found);
        return "good";
      case "failed":
        return { reason: restoring.reason };
      case "busy":
        return this.#tryAgain(moment);
      case "restored":
        words.lockFd = restoring.fd;
        this.#lockInode = restoring.inode;
        this.#restoresUntil = undefined;
        this.#parts.onEvent({ kind: "lock-restored", key: lease.key, fd: restoring.fd });
        return this.#checkRecord();
    }
  }

  #tryAgain(moment: BeatMoment): Done {
    this.#restoresUntil ??= moment.monotonicMs + RESTORE_LIMIT_MS;
    if (moment.monotonicMs < this.#restoresUntil) {
      this.#retryAt = moment.monotonicMs + RESTORE_STEP_MS;
      return "pending";
    }
    this.#restoresUntil = undefined;
    return { reason: "the lock file was replaced, and somebody holds the new one" };
  }

  #lose(found: FoundOwner): void {
    this.#parts.words.lose();
    this.#parts.onEvent({ kind: "lost", key: this.#parts.lease.key, found });
  }

  /** The name of the slot reserves the number, so it is made again where it is gone. */
  #keepSlot(): Done {
    const { lease, words, files, mayWrite } = this.#parts;
    const path = slotPath(lease.place, lease.generation);
    const found = files.inodeAt(path);
    if (found === "unread") return { reason: `${path} cannot be looked at` };
    if (found === files.inodeOf(words.slotFd) || !mayWrite()) return "good";
    if (found !== undefined) files.remove(path);
    const old = words.slotFd;
    words.slotFd = files.createSlot(lease.place, lease.generation);
    // The grant's own is closed by the grant (R5), and its number must not be used again before.
    if (old !== lease.slotFd) files.close(old);
    this.#parts.onEvent({ kind: "rewritten", key: lease.key, what: "slot" });
    return "good";
  }

  #write(moment: BeatMoment, facts: BeatFacts): Done {
    const { lease, words, files, mayWrite } = this.#parts;
    const sequence = words.sequence + 1;
    faultPoint("beat.write", { ...this.#state(), sequence });
    if (!mayWrite()) return "good";
    const slot = composeSlot({ lease, lockInode: this.#inode, sequence, moment, facts });
    files.writeSlot(words.slotFd, slot);
    words.sequence = sequence;
    this.#moment = moment;
    return "good";
  }

  #count(done: Done): void {
    const { lease, words, onEvent } = this.#parts;
    const { key } = lease;
    if (done === "pending") return;
    if (done === "good") {
      if (words.failures >= FAILURES_TOLD) onEvent({ kind: "recovered", key });
      words.failures = 0;
      return;
    }
    words.failures += 1;
    if (!words.isMissTold) onEvent({ kind: "beat-missed", key, reason: done.reason });
    words.tellMiss();
    if (words.failures === FAILURES_TOLD) {
      onEvent({ kind: "beat-failing", key, reason: done.reason });
    }
  }

  #state() {
    const { lease, words } = this.#parts;
    const { generation, record } = lease;
    return {
      key: renderKey(lease.key),
      generation,
      run_id: record.run_id,
      sequence: words.sequence,
    };
  }
}

function isFailure(done: Done): done is { readonly reason: string } {
  return typeof done === "object";
}

/** An error of the system or an injected one is a failed beat, and the next one tries again. */
function attempt(part: () => Done): Done {
  try {
    return part();
  } catch (error) {
    return { reason: textOf(error) };
  }
}
