/**
 * A start that was refused because a lease is not to be had: what is said, written down, and with
 * which status watchdog leaves. No process is ended, and nothing of a key is changed here.
 */
import { readFileSync } from "node:fs";
import { renderKey } from "../core/lease-key.ts";
import type { JournalEvent } from "../core/journal-entry.ts";
import { isQuietRefusal } from "../core/newcomer.ts";
import { WatchdogError } from "../core/errors.ts";
import type { HolderSummary } from "../core/run-record.ts";
import {
  type Leaving,
  type Outcome,
  outcomeOfConflict,
  outcomeOfUnknowable,
  outcomeOfUnusable,
} from "../core/outcome.ts";
import type { Refusal } from "../lease/claim/request.ts";
import { wallNow } from "../os/clock.ts";
import { say } from "../os/say.ts";
import { sys } from "../os/sys.ts";
import { type Course, JOURNAL_LIMIT_MS } from "./course.ts";
import { recordOfEnded, unstarted, writeRecord } from "./record.ts";
import { declareSchedule } from "./schedule.ts";
import { hintOfRefusal } from "./takeover.ts";

const STDERR = 2;
export function leaveRefused(course: Course, refusal: Refusal): Leaving {
  tell(course, refusal);
  noteHolder(course, refusal);
  const isLocked = refusal.status === "locked";
  const outcome = isLocked
    ? outcomeOfConflict(course.options.conflictExitCode)
    : outcomeOfUnknowable();
  const data = { verdict: refusal.verdict.name, rule: refusal.verdict.rule };
  const event = {
    key: refusal.key,
    because: refusal.because,
    data: { ...data, held_by: course.ledger.heldBy },
  };
  writeUnstarted(course, outcome, event, isNews(refusal) ? refusal.verdict.name : null);
  return outcome.leaving;
}

/** The claim or the grant has failed: written down here, told and turned into a status by main. */
export function noteFailedClaim(course: Course, error: unknown): void {
  if (!(error instanceof WatchdogError) || !error.code.startsWith("lease.")) return;
  const outcome = error.code === "lease.refused" ? outcomeOfUnknowable() : outcomeOfUnusable();
  const data = { message: error.message };
  writeUnstarted(course, outcome, { key: null, because: outcome.because, data });
}

/**
 * The end of a start that never became a run: in the result file, unless that tells of a run that
 * goes on, and in the journal, which is closed.
 *
 * @param refusal  what the event about it says; undefined: there is none
 * @param verdict  of the key, where its holder is not well: a person should know
 */
export function writeUnstarted(
  course: Course,
  outcome: Outcome,
  refusal?: Pick<JournalEvent, "key" | "because" | "data">,
  verdict: string | null = null,
): void {
  const { journal, identity, runPath, options } = course;
  const record = recordOfEnded(course, undefined, unstarted(outcome));
  if (!isHeldResult(options.resultFile)) writeRecord(course, record);
  const at = wallNow();
  const told = course.telling.fieldOfEnd(record, verdict);
  const ended = { run: record, runPath, leases: [], isReleased: true };
  const schedule = declareSchedule(options);
  journal?.put({ kind: "run-ended", at, ...ended, schedule, ...told });
  if (refusal !== undefined) {
    const about = { runId: identity.runId, job: identity.jobName };
    journal?.put({ kind: "event", at, name: "refused", ...about, ...refusal });
  }
  journal?.close(JOURNAL_LIMIT_MS);
}

/** The holder is no healthy run of another. */
const LOUD: ReadonlySet<string> = new Set(["held-by-run-around", "repair-at-work"]);

function isNews({ verdict, because }: Refusal): boolean {
  return !isQuietRefusal(verdict) || LOUD.has(because);
}

/** A healthy holder is no news: cron would mail it at every overlap. */
function tell(course: Course, refusal: Refusal): void {
  if (!isNews(refusal) && !course.options.isVerbose && !sys.isTerminal(STDERR)) return;
  say(`watchdog: not started: ${refusal.text}`);
  if (course.options.isVerbose) {
    const { verdict } = refusal;
    say(`watchdog: verdict ${verdict.name} (${verdict.rule} ${verdict.because})`);
  }
  const hint = hintOfRefusal(refusal);
  if (hint !== undefined) say(`watchdog: hint: ${hint}`);
}

function noteHolder(course: Course, refusal: Refusal): void {
  const { key, because } = refusal;
  course.ledger.noteHolder({ ...NOBODY, ...holderOf(refusal), key: renderKey(key), because });
}

const NOBODY = { run_id: null, runner: null, pid: null, since: null };

/**
 * Who works in the checkout or has the fence of a key that has no owner; else its owner. The record
 * of a key that is just being acquired, or that a repair keeps from others, is of the grant before:
 * it names nobody then.
 */
function holderOf({
  evidence,
  verdict,
  because,
  users: [user],
  fencedBy: [fenced],
}: Refusal): Partial<HolderSummary> {
  if (user !== undefined) return { run_id: user.runId, pid: user.pid };
  if (fenced !== undefined) return { pid: fenced.pid };
  const { record, source, repairer, ownerEnding } = evidence;
  const isOfBefore = verdict.rule === "R3" || because.startsWith("repair-");
  if (isOfBefore) return { pid: repairer?.pid ?? ownerEnding?.repairer ?? null };
  if (record === undefined) return source.kind === "read" ? { run_id: source.runId } : {};
  const { run_id, runner, pid, acquired_at: since } = record;
  return { run_id, runner, pid, since };
}

/** The file tells of a run that goes on: that of the holder, which two of one job share. */
function isHeldResult(path: string | undefined): boolean {
  if (path === undefined) return true;
  try {
    const found: unknown = JSON.parse(readFileSync(path, "utf8"));
    return typeof found === "object" && found !== null && "state" in found
      ? found.state === "running"
      : false;
  } catch {
    return false; // ENOENT: nobody's yet. SyntaxError: none of ours. EACCES: the write will tell.
  }
}
