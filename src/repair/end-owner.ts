/**
 * Acts on the watchdog that holds a lease, which a person has approved: it is continued, or ended
 * and proven dead. The watchdog is asked first, so that it ends its own tree and writes its own
 * end; KILL comes last, and then its guard buries it.
 *
 * Guarantees: the evidence is gathered again with the owner's pidfd open, so that the process which
 * was approved is the one that is hit, and once more right before the first signal; the key is
 * marked only under its lock, which the kernel gives nobody while the owner lives. Clock:
 * MONOTONIC. Crash behaviour: the owner may have been asked to end; what lies beside its keys says
 * so, and what is left follows from the evidence.
 */
import { renderKey } from "../core/lease-key.ts";
import type { ProcessIdentity, RepairMark } from "../core/lease-record.ts";
import { planIdOf } from "../core/plan-id.ts";
import type { RepairView } from "../core/repair-plan.ts";
import { SIGCONT, SIGKILL, SIGTERM } from "../core/signals.ts";
import { readRecord } from "../lease/files/record-file.ts";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { isAlive } from "../os/machine.ts";
import { pauseThread } from "../os/timers.ts";
import { type OpenSupervisor, openSupervisor } from "../tree/signal-supervisor.ts";
import { announceEnding } from "./announce.ts";
import { type KeyHold, withKey } from "./key-lock.ts";
import { makeMark } from "./mark.ts";
import { type ActEnd, settleGeneration, type Settling } from "./settle.ts";

/** Between the first TERM and KILL; half of it passes before the second TERM. */
export const OWNER_GRACE_MS = 30_000;
/** A killed process that has not gone by then is stuck in the kernel. */
const AFTER_KILL_MS = 10_000;
/** The guard and readers may have the lock for a moment. */
const LOCK_WAIT_MS = 10_000;
const CONTINUE_MS = 2_000;
const LOOK_MS = 20;

/** Who is recorded as the owner; undefined: nobody whose pid could be looked up. */
export function ownerOf({ evidence }: RepairView): ProcessIdentity | undefined {
  const { record, slot } = evidence;
  if (record !== undefined) return { pid: record.pid, start_time: record.pid_start_time };
  const owner = slot?.body?.owner;
  return owner === undefined ? undefined : { pid: owner.pid, start_time: owner.start_time };
}

/** Only for an owner that the plan has found to be signalable. */
export function openOwner(owner: ProcessIdentity): OpenSupervisor | "gone" | "unopened" {
  const isStillProven = (): boolean => isAlive(owner) === "yes";
  return openSupervisor({ pid: owner.pid, startTicks: owner.start_time, isStillProven });
}

/** What an act on an owner rests on. */
type Planned = Pick<OwnerEnding, "looker" | "view" | "planId" | "hold">;

export async function continueOwner(planned: Planned, owner: OpenSupervisor): Promise<ActEnd> {
  const key = renderKey(planned.view.evidence.key);
  faultPoint("repair.act", { key, action: "continue-owner" });
  if (!(await isStillPlanned(planned, "continue-owner"))) return changed(key);
  const sent = owner.send(SIGCONT);
  if (sent !== "sent") return unsent(key, sent);
  const until = monotonicNow() + CONTINUE_MS;
  while (owner.isStopped() && monotonicNow() < until) pauseThread(LOOK_MS);
  return owner.isStopped()
    ? { end: "failed", because: "owner-still-stopped", text: `the owner of ${key} stays stopped` }
    : { end: "done", because: "continued", text: `the owner of ${key} goes on` };
}

function unsent(key: string, sent: "gone" | "refused"): ActEnd {
  return sent === "gone"
    ? { end: "failed", because: "owner-gone", text: `the owner of ${key} has just ended` }
    : {
        end: "failed",
        because: "owner-unsignalable",
        text: `the owner of ${key} may not be signalled (EPERM)`,
      };
}

export interface OwnerEnding extends Omit<Settling, "hold" | "mark"> {
  readonly owner: OpenSupervisor;
  readonly planId: string;
  readonly graceMs: number;
  /** The lock of the path, where the owner has another one; undefined: the owner has it. */
  readonly hold: KeyHold | undefined;
  readonly onStep: (line: string) => void;
}

export async function endOwner(ending: OwnerEnding): Promise<ActEnd> {
  const { looker, view, planId, hold } = ending;
  const mark = makeMark(looker.machine, planId, "ended-owner");
  const asked = await askOwner(ending, mark);
  if (asked !== undefined) return asked;
  if (hold !== undefined) return settleGeneration({ ...ending, hold, mark });
  const { key } = view.evidence;
  const settled = await withKey(
    looker.placeOf(key),
    (held) => settleGeneration({ ...ending, hold: held, mark }),
    LOCK_WAIT_MS,
  );
  return "kind" in settled ? describeUnsettled(ending, settled.kind) : settled;
}

/**
 * The first TERM follows a look of now: until then the owner may have gone on, whatever was written
 * down meanwhile.
 *
 * @returns undefined: it was asked
 */
async function askFirst(ending: OwnerEnding, mark: RepairMark): Promise<ActEnd | undefined> {
  const { owner, view, looker, onStep } = ending;
  const { source } = view.evidence;
  const key = renderKey(view.evidence.key);
  const runId = source.kind === "read" ? source.runId : "";
  const announcement = announceEnding(looker, runId, { mark, onStep });
  let isAsked = false;
  try {
    faultPoint("repair.act", { key, action: "end-owner" });
    if (!(await isStillPlanned(ending, "end-owner"))) return changed(key);
    const sent = owner.send(SIGTERM);
    if (sent !== "sent") return unsent(key, sent);
    isAsked = true;
  } finally {
    if (!isAsked) announcement.takeBack();
  }
  owner.send(SIGCONT); // a stopped process hears of TERM only when it goes on
  announcement.confirm();
  return undefined;
}

/** The same evidence has the same plan (core/plan-id.ts). */
async function isStillPlanned(
  { looker, view, planId, hold }: Planned,
  action: "continue-owner" | "end-owner",
): Promise<boolean> {
  const now = await looker.gather(view.evidence.key, hold && { kind: "free" });
  return planIdOf(now, action) === planId && (hold?.isThere() ?? true);
}

function changed(key: string): ActEnd {
  const text = `the evidence about ${key} has changed: nobody was signalled`;
  return { end: "failed", because: "evidence-changed", text };
}

/** @returns undefined: it is dead */
async function askOwner(ending: OwnerEnding, mark: RepairMark): Promise<ActEnd | undefined> {
  const { owner, view, graceMs, onStep } = ending;
  const key = renderKey(view.evidence.key);
  const unasked = await askFirst(ending, mark);
  if (unasked !== undefined) return unasked;
  if (owner.awaitEnd(graceMs / 2)) return undefined;
  onStep(`the owner of ${key} was asked to end and still runs: asked once more`);
  owner.send(SIGTERM);
  owner.send(SIGCONT);
  if (owner.awaitEnd(graceMs / 2)) return undefined;
  onStep(`the owner of ${key} does not answer: killed; its guard ends its processes`);
  owner.send(SIGKILL);
  if (owner.awaitEnd(AFTER_KILL_MS)) return undefined;
  const text = `the owner of ${key} was killed and has not gone`;
  return { end: "failed", because: "owner-still-there", text };
}

/** Whoever waited in the kernel's queue may have the lock. */
function describeUnsettled(
  { looker, view }: OwnerEnding,
  because: "lock-busy" | "lock-unaskable" | "fenced-operation",
): ActEnd {
  const { key, source } = view.evidence;
  const name = renderKey(key);
  const now = readRecord(looker.placeOf(key).record);
  const isAnother =
    now.kind === "read" && source.kind === "read" && now.record.generation !== source.generation;
  if (isAnother) {
    const text = `${name} was taken by run ${now.record.run_id} meanwhile`;
    return { end: "done", because: "taken-by-another", text };
  }
  const text = `the owner of ${name} has ended; the key is not settled yet (${because})`;
  return { end: "failed", because, text };
}
