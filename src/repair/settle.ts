/**
 * The end of a generation whose owner is dead, with the key's lock and fence in hand: members are
 * ended until nobody is left, and then it is marked. Decides nothing but when to give up.
 *
 * Guarantees: nobody is signalled but proven members (tree/survivors.ts); it is marked only after a
 * look of now said `dead` or `free`, of the generation that the repair is about. Clock: MONOTONIC.
 * Crash behaviour: members may have been ended; the next look finds what is left.
 */
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { RepairMark } from "../core/lease-record.ts";
import { isVisibleToOthers, type RepairView } from "../core/repair-plan.ts";
import type { RunRecord } from "../core/run-record.ts";
import { deadRunOf } from "../core/survivors.ts";
import { endSurvivors } from "../tree/survivors.ts";
import type { RepairLooker } from "./gather.ts";
import type { KeyHold } from "./key-lock.ts";
import { markReleased } from "./mark.ts";
import type { ActReason } from "./request.ts";

/** How long the guard of a dead owner may end its tree before a repair does. */
const GUARD_WAIT_MS = 2_000;
/** Members that outlive so many rounds of ending, each of up to 10 s, do not end now. */
const MOST_ENDINGS = 3;

export interface ActEnd {
  readonly end: "done" | "failed";
  readonly because: ActReason;
  /** One clause for people. */
  readonly text: string;
}

export interface Settling {
  readonly looker: RepairLooker;
  readonly hold: KeyHold;
  /** What the act was begun on. */
  readonly view: RepairView;
  readonly mark: RepairMark;
  readonly build: RunRecord["watchdog"];
  /** False: whoever is found alive is left alone, and nothing is marked. */
  readonly mayEnd?: boolean;
}

export async function settleGeneration(settling: Settling): Promise<ActEnd> {
  const { looker, hold, mark, build, mayEnd = true } = settling;
  const { key } = hold.place;
  for (let endings = 0; ; endings += 1) {
    const view = await looker.gather(key, { kind: "free" });
    const stranger = strangerIn(settling, view);
    if (stranger !== undefined) return stranger;
    const { because } = view.verdict;
    const isSure = mayEnd || view.verdict.name !== "elsewhere";
    if (isSure && isOver(view)) return finish(view, markReleased({ looker, view, mark, build }));
    const run = mayEnd && because === "members" ? deadRunOf(view.evidence) : undefined;
    if (run === undefined || endings >= MOST_ENDINGS) {
      const text = `processes of ${renderKey(key)} are left (${because})`;
      return { end: "failed", because: "survivors-remain", text };
    }
    const options = { scan: looker.scan, guardWaitMs: GUARD_WAIT_MS, termGraceMs: 0 };
    await endSurvivors(run, looker.keptOf(run.runId), options);
  }
}

/** Nobody of it can be alive, or nobody who could see it will ever be there. */
function isOver({ evidence, verdict }: RepairView): boolean {
  const { name, because } = verdict;
  if (name === "elsewhere") return evidence.note === "old" && !isVisibleToOthers(because);
  return name === "dead" || name === "free";
}

/** Somebody was faster, or has changed the files under our lock. */
function strangerIn({ hold, view }: Settling, now: RepairView): ActEnd | undefined {
  const [before, after] = [view.evidence.source, now.evidence.source];
  const isSame =
    before.kind === "read" && after.kind === "read" && before.generation === after.generation;
  if (isSame && hold.isThere()) return undefined;
  const text = `${renderKey(hold.place.key)} has another generation by now`;
  return { end: "done", because: "taken-by-another", text };
}

/** For people: a repair deletes nothing, so that a person has to. */
export function describeNoRoom(name: LeaseKey): string {
  const key = renderKey(name);
  return `too many old records are kept beside that of ${key}: move lease.json.kept-* away first`;
}

function finish({ evidence, verdict }: RepairView, marked: string): ActEnd {
  const key = renderKey(evidence.key);
  if (marked === "too-many-kept") {
    return { end: "failed", because: "too-many-kept", text: describeNoRoom(evidence.key) };
  }
  return verdict.name === "free"
    ? { end: "done", because: "released-by-owner", text: `${key} was given back by its owner` }
    : { end: "done", because: "marked", text: `${key} is free: its last generation was marked` };
}
