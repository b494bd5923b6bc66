/**
 * The acts of a repair that change files alone: a note of the time, a lock of the wrong kind that
 * is moved aside, a generation that a person has given. Signals nobody, deletes nothing.
 *
 * Clock: MONOTONIC in the note. Crash behaviour: each is one rename, or a number that is taken
 * before a record names it; the next repair finds the rest to be done.
 */
import { WatchdogError } from "../core/errors.ts";
import { renderKey } from "../core/lease-key.ts";
import { isOfWrongKind, type RepairView } from "../core/repair-plan.ts";
import { withDirectoryLock } from "../lease/files/directory-lock.ts";
import { readFloor } from "../lease/files/floors.ts";
import { keepAside } from "../lease/files/kept-record.ts";
import { type LeasePlace, listSlots } from "../lease/files/places.ts";
import { writeRecord } from "../lease/files/record-file.ts";
import { writeNote } from "../lease/files/seen-note.ts";
import { createSlot } from "../lease/files/slot-file.ts";
import { kindAt } from "../lease/repair-facts.ts";
import { closeSync } from "node:fs";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import type { RepairLooker } from "./gather.ts";
import { composeRecord, makeMark } from "./mark.ts";
import { type ActEnd, describeNoRoom } from "./settle.ts";

export function noteTime(looker: RepairLooker, { evidence }: RepairView): ActEnd {
  const { key, source, staleAfterMs } = evidence;
  if (source.kind !== "read") throw new Error("a note is about a known generation");
  const { bootId, timeNamespace } = looker.machine;
  const { generation } = source;
  const monotonicMs = monotonicNow();
  writeNote(looker.placeOf(key), { generation, bootId, timeNamespace, monotonicMs });
  const after = `${Math.ceil(staleAfterMs / 1000)} s`;
  const text = `noted that ${renderKey(key)} is out of sight; after ${after} it can be marked`;
  return { end: "done", because: "noted", text };
}

/** Whoever still has the old file locked by another way finds that it was replaced. */
export function setAsideLock(looker: RepairLooker, { evidence }: RepairView): ActEnd {
  const place = looker.placeOf(evidence.key);
  const key = renderKey(evidence.key);
  faultPoint("repair.act", { key, action: "set-aside-lock" });
  return withDirectoryLock(place.directory, () => {
    const wrong = [place.lock, place.fence].find((path) => isOfWrongKind(kindAt(path)));
    if (wrong === undefined) {
      const text = `${key} has a regular lock file by now`;
      return { end: "failed", because: "evidence-changed", text };
    }
    const kept = keepAside(wrong);
    if (kept.kind === "kept") {
      return { end: "done", because: "set-aside", text: `${wrong} is kept as ${kept.path}` };
    }
    const text = `too many old files are kept beside ${wrong}: move them away first`;
    return { end: "failed", because: "too-many-kept", text };
  });
}

export interface NewGeneration {
  readonly looker: RepairLooker;
  readonly view: RepairView;
  readonly planId: string;
  readonly generation: number;
}

/** The number is taken first: a crash before the record loses none. */
export function setGeneration({ looker, view, planId, generation }: NewGeneration): ActEnd {
  const { key } = view.evidence;
  const place = looker.placeOf(key);
  const known = largestKnown(looker, place);
  if (generation < known) {
    const text = `generation ${known} of ${renderKey(key)} is known, found ${generation}`;
    return { end: "failed", because: "generation-too-small", text };
  }
  if (!listSlots(place).includes(generation)) closeSync(createSlot(place, generation));
  if (keepAside(place.record).kind === "too-many") {
    return { end: "failed", because: "too-many-kept", text: describeNoRoom(key) };
  }
  faultPoint("repair.mark", { key: renderKey(key), generation, isLocked: true });
  const record = composeRecord(looker.machine, key, { generation });
  writeRecord(place.record, { ...record, repair: makeMark(looker.machine, planId, "marked") });
  const text = `${renderKey(key)} is free; its next generation is ${generation + 1}`;
  return { end: "done", because: "generation-set", text };
}

/** The largest number that anything tells; a person may know of a larger one. */
export function largestKnown(looker: RepairLooker, place: LeasePlace): number {
  const known = looker.journal.highestLease(place.key);
  const fromJournal = known === undefined || known === "unread" ? 0 : known.generation;
  return Math.max(0, ...listSlots(place), floorOf(place), fromJournal);
}

function floorOf(place: LeasePlace): number {
  try {
    return readFloor(place);
  } catch (error) {
    if (error instanceof WatchdogError && error.code === "lease.refused") return 0; // unreadable
    throw error;
  }
}
