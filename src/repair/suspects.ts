/**
 * The approved end of processes that are not proven to be of the dead run: first the proven ones,
 * then those that the person has seen, and then the generation as ever.
 *
 * Always: the approval names each of them by pid and start time, as part of the plan's id; who came
 * later is of another plan. Clock and crash behaviour: as settle.ts.
 */
import { deadRunOf } from "../core/survivors.ts";
import { endSuspects } from "../tree/end-suspects.ts";
import { endSurvivors } from "../tree/survivors.ts";
import { type ActEnd, settleGeneration, type Settling } from "./settle.ts";

const GUARD_WAIT_MS = 2_000;

export async function endApprovedSuspects(settling: Settling): Promise<ActEnd> {
  const { looker, view } = settling;
  const { tree } = view.evidence;
  const run = deadRunOf(view.evidence);
  if (run === undefined || tree === "unread") throw new Error("suspects are of a run");
  const readKept = looker.keptOf(run.runId);
  const { scan } = looker;
  if (tree.members.length > 0) {
    await endSurvivors(run, readKept, { scan, guardWaitMs: GUARD_WAIT_MS, termGraceMs: 0 });
  }
  await endSuspects({ run, readKept, scan, identities: tree.suspects });
  return settleGeneration(settling);
}
