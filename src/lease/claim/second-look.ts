/**
 * The second look, with the locks of all keys in hand and no key refusing: who works in a checkout
 * that is claimed, and whether a key is still cooling down after a repair. What follows is decided
 * in core/second-look.ts.
 *
 * Guarantees: nobody is signalled and nothing is written; without a worktree among the keys and
 * without a repair's mark nothing is read. Non-guarantees: that nobody enters a checkout a moment
 * later. Clock: CLOCK_MONOTONIC, held against a mark of this boot and time namespace only. Crash
 * behaviour: nothing remains.
 */
import { endedOwnerMarkOf } from "../../core/evidence.ts";
import {
  decideSecondLook,
  type SecondLookFacts,
  type SecondLookRefusal,
} from "../../core/second-look.ts";
import { deadRunOf } from "../../core/survivors.ts";
import type { Spared } from "../../core/worktree-users.ts";
import { monotonicNow } from "../../os/clock.ts";
import type { Assessment } from "./assess.ts";
import type { ClaimRequest } from "./request.ts";

const WORKTREE = "worktree";

export interface SecondLookFinding {
  readonly assessment: Assessment;
  readonly refusal: SecondLookRefusal;
}

/** @returns the first key that is not to be had now; undefined: all are clear */
export async function lookAgain(
  assessments: readonly Assessment[],
  request: ClaimRequest,
): Promise<SecondLookFinding | undefined> {
  const decide = (
    assessment: Assessment,
    users: SecondLookFacts["users"],
  ): SecondLookFinding | undefined => {
    const refusal = decideSecondLook(factsOf(assessment, request, users));
    return refusal.kind === "refuse" ? { assessment, refusal } : undefined;
  };
  // What costs nothing goes first, for every key.
  for (const assessment of assessments) {
    const cooling = decide(assessment, undefined);
    if (cooling !== undefined) return cooling;
  }
  const spared = listSpared(assessments);
  for (const assessment of assessments) {
    const { key } = assessment.place;
    if (key.kind !== WORKTREE) continue;
    const found = decide(assessment, await request.secondLook.usersOf(key, spared));
    if (found !== undefined) return found;
  }
  return undefined;
}

function factsOf(
  { evidence }: Assessment,
  { looker, secondLook }: ClaimRequest,
  users: SecondLookFacts["users"],
): SecondLookFacts {
  const { bootId, timeNamespace } = looker.machine;
  return {
    repair: endedOwnerMarkOf(evidence),
    ownerEnding: evidence.ownerEnding,
    cooldownMs: secondLook.repairCooldownMs,
    now: { bootId, timeNamespace, monotonicMs: monotonicNow() },
    users,
  };
}

/** Survivors that are to be ended are no users: before the key is had it is looked again. */
function listSpared(assessments: readonly Assessment[]): Spared {
  const ending = assessments.flatMap(({ evidence, decision }) =>
    decision.kind === "end-survivors" ? [{ evidence, members: decision.members }] : [],
  );
  return {
    runIds: ending.flatMap(({ evidence }) => deadRunOf(evidence)?.runId ?? []),
    members: ending.flatMap(({ members }) => members),
  };
}
