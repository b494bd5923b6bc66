/**
 * What a word of a reading command means: the name of a job, a whole key `kind:name`, or the id of
 * a run. One answer for `status` and `stop`; `history` and `logs` ask the journal, by the same
 * rules (journal/queries.ts). Pure.
 *
 * Always: the beginning of a run id names nobody here: whoever is stopped was named whole.
 */
import { parseKey, renderKey } from "../core/lease-key.ts";
import type { JournalRun } from "../journal/queries.ts";
import { jobOf, runIdOf } from "./lease-facts.ts";
import type { LeaseView } from "./leases.ts";

/** The lease of that key, or one of a run of that job or id. */
export function isLeaseNamed(view: LeaseView, target: string): boolean {
  return renderKey(view.key) === target || jobOf(view) === target || runIdOf(view) === target;
}

/** A run of that job or id, or one that was granted that key; `job:NAME` means the job. */
export function isRunNamed({ runId, job, leases }: JournalRun, target: string): boolean {
  if (runId === target || job === target) return true;
  const key = parseKey(target);
  if (key === undefined) return false;
  const isJob = key.kind === "job" && key.name === job;
  return isJob || leases.some((lease) => renderKey(lease) === target);
}
