/**
 * What the files of a lease tell about its last generation: the record, else the newest slot. Asks
 * neither the kernel nor the journal.
 *
 * Guarantees: read only. A slot stands in for a record only where no newer number can have been
 * granted: an empty newer slot is a number that nobody got, an unreadable one is a generation of
 * which nothing is known. Non-guarantees: that record and slot are of one instant. Clock: none.
 * Crash behaviour: none.
 */
import { WatchdogError } from "../core/errors.ts";
import type { Fact, RecordSource } from "../core/evidence.ts";
import { renderKey } from "../core/lease-key.ts";
import type { LeaseRecord, Slot } from "../core/lease-record.ts";
import { isOutOfRoom } from "./files/own-file.ts";
import { encodeLeaseName, type LeasePlace, listSlots, slotPath } from "./files/places.ts";
import { readRecord } from "./files/record-file.ts";
import { readSlot } from "./files/slot-file.ts";

export interface LastGeneration {
  readonly source: RecordSource;
  readonly record: LeaseRecord | undefined;
  /** Of the generation of the source. */
  readonly slot: Slot | undefined;
  /** Whether a record or a beat was ever written, as far as the directory tells. */
  readonly hasHistory: Fact;
  /**
   * The smallest generation that another source must know to stand in; undefined: none may (a newer
   * version has written the record).
   */
  readonly leastElsewhere: number | undefined;
}

/** More slots than this are not looked at: older ones are removed with every grant. */
const MOST_SLOTS = 64;

export function readLastGeneration(place: LeasePlace): LastGeneration {
  const reading = readRecord(place.record);
  switch (reading.kind) {
    case "none":
      return readFromSlots(place, undefined);
    case "unreadable":
      return readFromSlots(place, reading.reason);
    case "newer": {
      const reason = `its format ${reading.format} is newer than this version knows`;
      return { ...unreadable(reason), leastElsewhere: undefined };
    }
    case "read": {
      const { record } = reading;
      return isOf(place, record)
        ? fromRecord(place, record)
        : readFromSlots(place, `it is the record of ${renderKey(record)}`);
    }
  }
}

/** Names that differ but share a directory are one name in two spellings (lone surrogates). */
function isOf({ key }: LeasePlace, record: LeaseRecord): boolean {
  return record.kind === key.kind && encodeLeaseName(record.name) === encodeLeaseName(key.name);
}

function fromRecord(place: LeasePlace, record: LeaseRecord): LastGeneration {
  const { generation, run_id: runId } = record;
  const slot = readSlot(slotPath(place, generation));
  const isOurs =
    typeof slot !== "string" &&
    slot.head.generation === generation &&
    (slot.body === undefined || slot.body.runId === runId);
  const isReleased = record.state === "released";
  return {
    source: { kind: "read", from: "record", generation, isReleased, runId },
    record,
    slot: isOurs ? slot : undefined,
    hasHistory: "yes",
    leastElsewhere: generation,
  };
}

/** @param reason  why the record cannot be read; undefined: there is none */
function readFromSlots(place: LeasePlace, reason: string | undefined): LastGeneration {
  let generations: number[];
  try {
    generations = listSlots(place);
  } catch (cause) {
    if (!(cause instanceof WatchdogError) || isOutOfRoom(cause.cause)) throw cause;
    return { ...unreadable(reason ?? cause.message), hasHistory: "unread" };
  }
  for (const generation of generations.slice(0, MOST_SLOTS)) {
    const slot = readSlot(slotPath(place, generation));
    if (slot === "missing" || slot === "empty") continue;
    if (slot !== "unread" && slot.body !== undefined && slot.head.generation === generation) {
      return fromSlot(generation, slot, slot.body.runId);
    }
    const broken = `neither the record nor beat.${generation} can be read`;
    return { ...unreadable(broken), leastElsewhere: generation };
  }
  return reason === undefined
    ? { ...unreadable(""), source: { kind: "none" }, hasHistory: "no" }
    : unreadable(reason);
}

function fromSlot(generation: number, slot: Slot, runId: string): LastGeneration {
  return {
    source: { kind: "read", from: "slot", generation, isReleased: false, runId },
    record: undefined,
    slot,
    hasHistory: "yes",
    leastElsewhere: generation,
  };
}

function unreadable(reason: string): LastGeneration {
  return {
    source: { kind: "unreadable", reason },
    record: undefined,
    slot: undefined,
    hasHistory: "yes",
    leastElsewhere: 0,
  };
}
