/**
 * Joins what waits for one sink into one notice, in one transaction: the rows say of themselves
 * that they are in it. Only those that nobody has ever tried to send, so that nothing is told under
 * a second key.
 *
 * Clock: the wall clock, handed in. After a crash: all of it, or none.
 */
import type { Database } from "bun:sqlite";
import { JOIN_FROM, joinNotices } from "../core/join-notices.ts";
import type { Notice } from "../core/notice.ts";
import type { SinkSpec } from "../core/sink.ts";
import { insertNotice, selectUntried } from "./outbox-table.ts";

/** What does not fit goes into the next one. */
const MOST_JOINED = 500;
/** No job: it stands in no order with those of any. */
const OF_ALL = "";

/** Inside a transaction. @returns how many became one. @throws an error of SQLite */
export function joinWaiting(db: Database, sink: SinkSpec, at: number): number {
  const rows = selectUntried(db, sink.id, MOST_JOINED).filter(({ job }) => job !== OF_ALL);
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined || rows.length < JOIN_FROM) return 0;
  const entryId = `joined:${first.id}-${last.id}`;
  const notices = rows.map(({ notice }) => notice) as [Notice, ...Notice[]];
  const notice = joinNotices(notices, { entryId, sinkId: sink.id, at });
  insertNotice(db, { entryId, sink: first.sink, job: OF_ALL, runId: null, notice, at });
  const supersede = db.query(
    "UPDATE outbox SET state = 'superseded', last_because = 'it is part of one with others' " +
      "WHERE id = ?",
  );
  for (const { id } of rows) supersede.run(id);
  return rows.length;
}
