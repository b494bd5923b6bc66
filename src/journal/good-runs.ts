/**
 * What the journal knows of a job's good runs, for the comparison with the next one.
 *
 * Good: the outcome was `ok`, and not that of one step alone, or it failed for nothing but being
 * unusual (else a job that has changed for good would be unusual for ever). Looks back over a
 * bounded number of rows.
 */
import type { Database } from "bun:sqlite";
import type { RunRecord } from "../core/run-record.ts";
import { IS_OF_ONE_STEP, parseRecord } from "./rows.ts";

/** Rows of the job that are looked through for good ones. */
const MOST_LOOKED_AT = 1_000;

export interface GoodRun {
  /** False: it failed for being unusual. */
  readonly isOk: boolean;
  readonly record: RunRecord;
}

/** Newest first. @throws an error of SQLite */
export function selectGoodRuns(db: Database, job: string, limit: number): readonly GoodRun[] {
  const rows = db
    .query<{ outcome: string; record: string }, [string, number, number]>(
      "SELECT outcome, record FROM (SELECT outcome, because, record FROM runs WHERE job = ? " +
        "ORDER BY sort_at DESC, seq DESC LIMIT ?) " +
        `WHERE (outcome = 'ok' AND NOT ${IS_OF_ONE_STEP}) OR ` +
        "(outcome = 'bad_output' AND because = 'suspicious') LIMIT ?",
    )
    .all(job, MOST_LOOKED_AT, limit);
  return rows.flatMap(({ outcome, record }) => {
    const parsed = parseRecord(record);
    return parsed === undefined ? [] : [{ isOk: outcome === "ok", record: parsed }];
  });
}
