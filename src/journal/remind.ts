/**
 * Reminders of what lasts although nothing happens: a job that is bad and does not run any more.
 * For whoever looks after them (`patrol`, `notify flush`); a run that ends badly reminds by itself.
 *
 * Always: one reminder a span, however many look. Clock: the wall clock, handed in.
 */
import type { Database } from "bun:sqlite";
import { noticeOfEvent } from "../core/make-notice.ts";
import { decideReminder } from "../core/told-state.ts";
import { insertNotice } from "./outbox-table.ts";
import { readUnreminded, writeTold } from "./told-rows.ts";

/** Inside a transaction. @returns how many were made. @throws an error of SQLite */
export function remindAll(db: Database, at: number): number {
  let made = 0;
  for (const { job, row } of readUnreminded(db, at)) {
    const { sink, told, remindEveryMs, origin } = row;
    if (told === undefined) continue;
    const { state, notices } = decideReminder(told, { sink, remindEveryMs, at });
    for (const decided of notices) {
      const entryId = `reminder:${job}:${told.toldAt ?? 0}`;
      const because = told.kinds.at(-1) ?? null;
      const event = { job, runId: null, because, data: { failures: told.failures } };
      const key = { entryId, sinkId: sink.id, at };
      const notice = noticeOfEvent(key, event, decided, origin);
      insertNotice(db, { entryId, sink, job, runId: null, notice, at });
      made += 1;
    }
    writeTold(db, { job, row: { ...row, told: state }, at });
  }
  return made;
}
