/**
 * Says beside every key of a run that its living owner is about to be ended, and that it was asked:
 * whoever waits in the kernel's queue gets the lock at the owner's death, before anybody else could
 * write. Decides nothing.
 *
 * Always: each word names its grant (lease/files/owner-ending.ts) and touches no record, so that it
 * hits no later one, however late it is written. What is announced and not done is taken back.
 * Clock: MONOTONIC, in the mark. Crash behaviour: what was only intended counts no more.
 */
import { renderKey } from "../core/lease-key.ts";
import type { ProcessIdentity, RepairMark } from "../core/lease-record.ts";
import { askLock } from "../lease/files/lock-file.ts";
import { readEnding, removeEnding, writeEnding } from "../lease/files/owner-ending.ts";
import type { LeasePlace } from "../lease/files/places.ts";
import { readRecord } from "../lease/files/record-file.ts";
import { listKeys } from "../lease/list.ts";
import { textOf } from "../lease/files/own-file.ts";
import { readProcessIdentity } from "../os/machine.ts";
import type { RepairLooker } from "./gather.ts";

export interface Announcement {
  /** After the owner was asked. What cannot be written costs its cooldown, and is told. */
  confirm(): void;
  /** The owner was not asked. */
  takeBack(): void;
}

interface Grant {
  readonly place: LeasePlace;
  readonly generation: number;
}

/** @throws the error of the system call, with everything taken back. Blocks: two fsyncs a key. */
export function announceEnding(
  looker: RepairLooker,
  runId: string,
  { mark, onStep }: { readonly mark: RepairMark; readonly onStep: (line: string) => void },
): Announcement {
  const by = readProcessIdentity(process.pid) ?? NOBODY;
  const { pidNamespace } = looker.machine;
  const written: Grant[] = [];
  const say = (state: "intended" | "asked", { place, generation }: Grant): void =>
    writeEnding(place, generation, { runId, state, mark, by, pidNamespace });
  const takeBack = (): void => {
    for (const { place, generation } of written) removeEnding(place, generation);
  };
  try {
    for (const grant of findGrants(looker, runId)) {
      written.push(grant);
      say("intended", grant);
    }
  } catch (error) {
    takeBack();
    throw error;
  }
  const confirm = (): void => {
    for (const grant of written) {
      try {
        say("asked", grant);
      } catch (error) {
        onStep(`${renderKey(grant.place.key)} may be granted at once: ${textOf(error)}`);
      }
    }
  };
  return { confirm, takeBack };
}

/** Never alive, so that its word never counts. */
const NOBODY: ProcessIdentity = { pid: 2 ** 31 - 1, start_time: 0 };

function findGrants(looker: RepairLooker, runId: string): Grant[] {
  return listKeys(looker.stateDirectory).flatMap((key) => {
    const place = looker.placeOf(key);
    const reading = readRecord(place.record);
    const isOfRun = reading.kind === "read" && reading.record.run_id === runId;
    return isOfRun ? [{ place, generation: reading.record.generation }] : [];
  });
}

/** What a repair that was interrupted has announced by this plan and not done. */
export function forgetIntended(looker: RepairLooker, planId: string): void {
  for (const key of listKeys(looker.stateDirectory)) {
    const place = looker.placeOf(key);
    const reading = readRecord(place.record);
    if (reading.kind !== "read") continue;
    const { generation, run_id: runId } = reading.record;
    const found = readEnding(place, { generation, runId });
    const isForgotten = found?.state === "intended" && found.mark.plan_id === planId;
    if (isForgotten) removeEnding(place, generation);
  }
}

/** Whether the owner was asked by this plan and its grant is over: nothing is left to be done. */
export function isEndedByPlan(place: LeasePlace, planId: string): boolean {
  const reading = readRecord(place.record);
  if (reading.kind !== "read" || reading.record.state !== "released") return false;
  const { generation, run_id: runId, repair } = reading.record;
  if (repair?.plan_id === planId) return true;
  const found = readEnding(place, { generation, runId });
  return found?.state === "asked" && found.mark.plan_id === planId;
}

/** The run whose owner was asked by this plan and has not given its grant back. */
export function findAskedRun(place: LeasePlace, planId: string): string | undefined {
  const reading = readRecord(place.record);
  if (reading.kind !== "read" || reading.record.state === "released") return undefined;
  const { generation, run_id: runId } = reading.record;
  const found = readEnding(place, { generation, runId });
  const isAsked = found?.state === "asked" && found.mark.plan_id === planId;
  return isAsked && askLock(place.lock).kind === "held" ? runId : undefined;
}
