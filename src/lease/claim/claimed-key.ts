/**
 * What is kept of a decision to take a key: who had it before, and how that came to its end. Pure.
 */
import { endedOwnerMarkOf, type LeaseEvidence, repairMarkOf } from "../../core/evidence.ts";
import type { PreviousGeneration } from "../../core/lease-record.ts";
import type { Assessment } from "./assess.ts";
import type { AbandonedOwner, ClaimedKey } from "./request.ts";
import type { Ended } from "./settle.ts";
import type { LockedKey } from "./key-locks.ts";

/** @param ended  what was ended for this key, and on which verdict, before it was had */
export function claimedKeyOf(
  lock: LockedKey,
  assessment: Assessment,
  ended: Ended | undefined,
): ClaimedKey {
  const { place, evidence, verdict } = assessment;
  const abandoned = abandonedBy(assessment, ended);
  return {
    key: place.key,
    place,
    lockFd: lock.fd,
    lockInode: lock.inode,
    evidence,
    verdict,
    previous: previousOf(assessment, abandoned),
    abandoned,
  };
}

function abandonedBy(
  { evidence, verdict, decision }: Assessment,
  ended: Ended | undefined,
): AbandonedOwner | undefined {
  const { source } = evidence;
  if (source.kind !== "read" || verdict.name === "free") return undefined;
  const acted = ended?.verdict ?? verdict;
  const isByNote = decision.kind === "acquire" && decision.because === "note-old";
  return {
    runId: source.runId,
    generation: source.generation,
    verdict: acted.name,
    because: `${acted.rule} ${acted.because}${isByNote ? ", note-old" : ""}`,
    ended: ended?.members ?? [],
  };
}

function previousOf(
  { evidence, verdict }: Assessment,
  abandoned: AbandonedOwner | undefined,
): PreviousGeneration | null {
  const { source } = evidence;
  if (source.kind !== "read") return null;
  const ground = abandoned?.because ?? `${verdict.rule} ${verdict.because}`;
  const isRepaired = repairMarkOf(evidence) !== undefined;
  const ended = endedOwnerMarkOf(evidence);
  return {
    generation: source.generation,
    run_id: source.runId,
    how_it_ended: abandoned?.verdict ?? (isRepaired ? "repaired" : "released"),
    evidence: ground + nameRepair(evidence),
    // Who takes it without heeding the cooldown does not end it for those who do.
    ...(ended === undefined ? {} : { repair: ended }),
  };
}

/** Whoever asks later why a generation was over without its owner's word finds the plan's id. */
function nameRepair(evidence: LeaseEvidence): string {
  const mark = repairMarkOf(evidence);
  return mark === undefined ? "" : `, repair ${mark.plan_id} ${mark.action} by ${mark.by}`;
}
