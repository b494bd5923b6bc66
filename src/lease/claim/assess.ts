/**
 * Step A4: the evidence about every key whose lock we hold, the verdicts, and what a newcomer does
 * about them; and the look at a key that somebody else holds. Decides nothing itself: that is
 * core/lease-verdict.ts and core/newcomer.ts.
 *
 * Guarantees: read-only; nobody is signalled. Non-guarantees: anything beyond the moment of the
 * look; who acts on it holds the locks. Clock: CLOCK_MONOTONIC, by the gathering. Crash behaviour:
 * nothing remains.
 */
import type { LeaseEvidence, LockAnswer } from "../../core/evidence.ts";
import { renderKey } from "../../core/lease-key.ts";
import { decideVerdict, type Verdict } from "../../core/lease-verdict.ts";
import { decideNewcomer, type NewcomerDecision } from "../../core/newcomer.ts";
import { deadRunOf } from "../../core/survivors.ts";
import type { DeadRun } from "../../core/survivors-view.ts";
import { faultPoint } from "../../os/faults.ts";
import type { ClaimRequest } from "./request.ts";
import { gatherEvidence } from "../gather.ts";
import type { LeasePlace } from "../files/places.ts";

export interface Assessment {
  readonly place: LeasePlace;
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
  readonly decision: NewcomerDecision;
}

/**
 * All keys, with their locks held by us. The processes of dead owners are looked for only where no
 * key refuses already, and once for each run.
 */
export async function assessKeys(
  places: readonly LeasePlace[],
  request: ClaimRequest,
): Promise<Assessment[]> {
  const first = places.map((place) => assess(place, gatherHeldByUs(place, request), request));
  if (first.some(({ verdict, decision }) => decision.kind === "refuse" && !wantsLook(verdict))) {
    return first;
  }
  const looks = new Map<string, LeaseEvidence["tree"]>();
  const assessments: Assessment[] = [];
  for (const one of first) {
    const run = wantsLook(one.verdict) ? deadRunOf(one.evidence) : undefined;
    if (run === undefined) {
      assessments.push(one);
    } else {
      const tree = looks.get(run.runId) ?? (await look(run, request));
      looks.set(run.runId, tree);
      assessments.push(assess(one.place, { ...one.evidence, tree }, request));
    }
  }
  return assessments;
}

function gatherHeldByUs(place: LeasePlace, request: ClaimRequest): LeaseEvidence {
  faultPoint("acquire.A4", { key: renderKey(place.key), isLocked: true });
  return gatherEvidence(request.looker, place.key, { kind: "free" });
}

/** R6, R7 and an unread boot need the tree, and it was not looked at yet. */
function wantsLook(verdict: Verdict): boolean {
  return verdict.name === "orphaned" && verdict.because === "tree-unread";
}

async function look(run: DeadRun, request: ClaimRequest): Promise<LeaseEvidence["tree"]> {
  return request.survivors.look(run);
}

/** A key whose lock we could not have: somebody holds it, or it cannot be asked. */
export function assessTaken(
  place: LeasePlace,
  lock: LockAnswer,
  request: ClaimRequest,
): Assessment {
  return assess(place, gatherEvidence(request.looker, place.key, lock), request);
}

function assess(place: LeasePlace, evidence: LeaseEvidence, request: ClaimRequest): Assessment {
  const verdict = decideVerdict(evidence);
  const { source } = evidence;
  const isHeldByRunAround =
    source.kind === "read" && !source.isReleased && request.runsAround.includes(source.runId);
  const onSurvivors = request.onSurvivors ?? "kill";
  const facts = { isHeldByRunAround, note: evidence.note, evidence, onSurvivors };
  return { place, evidence, verdict, decision: decideNewcomer(verdict, facts) };
}

/** The one refusal to tell, where several keys refuse: what no waiting helps against goes first. */
export function pickRefusal(assessments: readonly Assessment[]): Assessment | undefined {
  const refusing = assessments.filter(({ decision }) => decision.kind === "refuse");
  return (
    refusing.find(({ decision }) => decision.kind === "refuse" && !decision.canWait) ?? refusing[0]
  );
}
