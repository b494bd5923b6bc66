/**
 * Which run was only a start that was refused: nothing of what it was to do has begun, and what was
 * true of its job before is true after it. Pure.
 */

export interface EndedStart {
  readonly outcome: string | null;
  readonly because: string | null;
}

/** The job of many steps cannot be gone on with as it was asked for (78). */
export const JOB_REFUSED = "job-refused";

export function isRefusedByJob({ because }: Pick<EndedStart, "because">): boolean {
  return because === JOB_REFUSED;
}

/** By its job, or because another run had its lease (75). */
export function isRefusedStart(run: EndedStart): boolean {
  return run.outcome === "locked" || isRefusedByJob(run);
}
