/**
 * The outbox of one state directory for whoever delivers from it: what is due is listed, claimed
 * and settled, one short transaction each, on a connection of its own. Decides nothing about a
 * notice.
 *
 * Guarantees: of two who claim the same notice one gets it; nothing is thrown; no call waits longer
 * than BUSY_MS for a lock; asking makes nothing, and reads no spool in (the journal does).
 * Non-guarantees: the time of an fsync on a slow disk.
 *
 * Clock: none; instants are handed in. After a crash: a claim whose holder is dead is seen to be
 * (core/outbox.ts); what was settled is settled.
 */
import type { Database } from "bun:sqlite";
import type {
  ClaimResult,
  DueQuestion,
  OutboxRow,
  OutboxState,
  OutboxStore,
  Settlement,
  StoreTrouble,
} from "../core/outbox.ts";
import type { SinkSpec } from "../core/sink.ts";
import { faultPoint } from "../os/faults.ts";
import { ownMask } from "../os/mask.ts";
import { JournalConnection, transact } from "./connection.ts";
import { inspectDatabase } from "./places.ts";
import {
  countGiven,
  countStates,
  giveUpOld,
  selectDue,
  selectLeft,
  selectNotices,
  supersedeEnded,
} from "./outbox-table.ts";
import { joinWaiting } from "./join.ts";
import { remindAll } from "./remind.ts";
import { codeOf, describeTrouble, troubleOf, type Trouble } from "./trouble.ts";
import { Writer } from "./writer.ts";

/** So many are looked at in one go; the rest comes with the next. */
const MOST_LISTED = 200;

/** @param tell  one line for people about what went wrong, without who says it */
export function openOutbox(stateDirectory: string, tell: (line: string) => void): Outbox {
  return new Outbox(new JournalConnection({ stateDirectory, tell }));
}

export class Outbox implements OutboxStore {
  readonly #connection: JournalConnection;

  constructor(connection: JournalConnection) {
    this.#connection = connection;
  }

  listDue(question: DueQuestion): readonly OutboxRow[] | StoreTrouble {
    return this.#ask((db) => selectDue(db, question, MOST_LISTED), []);
  }

  /** Newest first. @param states  undefined: all */
  list(
    states: readonly OutboxState[] | undefined,
    limit: number,
  ): readonly OutboxRow[] | StoreTrouble {
    return this.#ask((db) => selectNotices(db, states, limit), []);
  }

  /** What is not delivered of the notices about one run. */
  listLeft(runId: string): readonly OutboxRow[] | StoreTrouble {
    return this.#ask((db) => selectLeft(db, runId, MOST_LISTED), []);
  }

  claim(row: OutboxRow, { by, until }: { readonly by: string; readonly until: number }) {
    faultPoint("outbox.claim", { id: row.id, notice: row.notice.id, attempts: row.attempts });
    return this.#change((db) =>
      db
        .query(
          "UPDATE outbox SET claimed_by = ?, claimed_until = ?, attempts = attempts + 1 " +
            "WHERE id = ? AND state = 'waiting' AND claimed_by IS ? AND attempts = ?",
        )
        .run(by, Math.round(until), row.id, row.claimedBy, row.attempts),
    );
  }

  /** "lost": another one has taken it for that of a dead sender, and tells what became of it. */
  settle(row: OutboxRow, by: string, settlement: Settlement): ClaimResult {
    const { kind } = settlement;
    const point = kind === "delivered" ? "outbox.delivered" : "outbox.retry";
    faultPoint(point, { id: row.id, notice: row.notice.id, kind });
    // A receiver may give back what it was sent.
    const because = kind === "delivered" ? null : ownMask().text(settlement.because);
    const nextAt = kind === "waiting" ? Math.round(settlement.nextAt) : row.nextAt;
    const at = kind === "delivered" ? Math.round(settlement.at) : null;
    return this.#change((db) => {
      const changed = db
        .query(
          "UPDATE outbox SET state = ?, last_because = ?, next_at = ?, delivered_at = ?, " +
            "claimed_by = NULL, claimed_until = NULL " +
            "WHERE id = ? AND state = 'waiting' AND claimed_by IS ?",
        )
        .run(kind, because, nextAt, at, row.id, by);
      if (kind === "waiting" && row.runId !== null) supersedeEnded(db, row.runId, row.sink.id);
      return changed;
    });
  }

  nextAt(sinkIds: readonly string[]): number | undefined {
    const found = this.#ask((db) => {
      const places = sinkIds.map(() => "?").join(", ");
      const sql =
        "SELECT min(next_at) AS at FROM outbox WHERE id IN (SELECT min(id) FROM outbox " +
        `WHERE state = 'waiting' AND sink_id IN (${places}) GROUP BY sink_id, job)`;
      return [db.query<{ at: number | null }, string[]>(sql).get(...sinkIds)?.at ?? undefined];
    }, []);
    return "kind" in found ? undefined : found[0];
  }

  /** Makes one notice of many that wait for a sink. @returns how many became one */
  join(sink: SinkSpec, now: number): number | StoreTrouble {
    let joined = 0;
    const result = this.#write((db) => {
      joined = joinWaiting(db, sink, now);
    });
    return result === "done" ? joined : result;
  }

  /** How many wait, and how many were given up. */
  count(): { readonly waiting: number; readonly dead: number } | StoreTrouble {
    const found = this.#ask((db) => [countStates(db)], [{ waiting: 0, dead: 0 }]);
    return "kind" in found ? found : (found[0] ?? { waiting: 0, dead: 0 });
  }

  /** Given to this sink since then, and being given; 0 where it cannot be told. */
  countGiven(sinkId: string, since: number): number {
    const found = this.#ask((db) => [countGiven(db, sinkId, since)], [0]);
    return "kind" in found ? 0 : (found[0] ?? 0);
  }

  /**
   * Makes it wait for nothing any more: what is dead is not asked for again, what waits is not
   * sent. @param ids  undefined: all that are dead
   * @returns how many, of those that are not delivered
   */
  drop(ids: readonly number[] | undefined): number | StoreTrouble {
    let dropped = 0;
    const result = this.#write((db) => {
      dropped = 0;
      if (ids === undefined) {
        dropped = db.query("DELETE FROM outbox WHERE state = 'dead'").run().changes;
        return;
      }
      for (const id of ids) {
        dropped += db
          .query("DELETE FROM outbox WHERE id = ? AND state IN ('waiting', 'dead')")
          .run(id).changes;
      }
    });
    return result === "done" ? dropped : result;
  }

  /** What was given up is tried again, with all its attempts before it. */
  revive(now: number): number | StoreTrouble {
    let revived = 0;
    const result = this.#write((db) => {
      revived = db
        .query(
          "UPDATE outbox SET state = 'waiting', attempts = 0, next_at = ?, created_at = ? " +
            "WHERE state = 'dead' AND last_because IS NOT 'unreadable'",
        )
        .run(now, now).changes;
    });
    return result === "done" ? revived : result;
  }

  /**
   * What lasts and was told long ago is told again; what nobody could deliver for long is given up.
   * For whoever looks after jobs that do not run. @returns how many notices were made
   */
  tend(now: number): number | StoreTrouble {
    let made = 0;
    const inspected = this.#ask((db) => [db], []);
    if ("kind" in inspected) return inspected;
    if (inspected.length === 0) return 0; // there is no journal, and none is made for this
    const result = this.#write((db) => {
      made = remindAll(db, now);
      giveUpOld(db, now);
    });
    return result === "done" ? made : result;
  }

  close(): void {
    this.#connection.close();
  }

  #change(act: (db: Database) => { readonly changes: number }): ClaimResult {
    let changes = 0;
    const result = this.#write((db) => {
      changes = act(db).changes;
    });
    if (result !== "done") return result;
    return changes === 1 ? "done" : "lost";
  }

  #write(act: (db: Database) => void): "done" | StoreTrouble {
    try {
      const result = this.#connection.attempt((db) => transact(db, () => act(db)));
      return result.kind === "written" ? "done" : troubleFor(result);
    } catch (error) {
      return troubleFor(troubleOf(error));
    }
  }

  /** Makes nothing: an older database without our tables holds no notice. */
  #ask<T>(
    question: (db: Database) => readonly T[],
    none: readonly T[],
  ): readonly T[] | StoreTrouble {
    try {
      if (inspectDatabase(this.#connection.place).kind === "missing") return none;
      const db = this.#connection.openToAsk();
      if ("kind" in db) return db.kind === "missing" ? none : troubleFor(db);
      return hasOutbox(db) ? question(db) : none;
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble.kind !== "busy") this.#connection.close();
      // The state directory itself: nothing was ever recorded here.
      return codeOf(error) === "ENOENT" ? none : troubleFor(trouble);
    }
  }
}

function hasOutbox(db: Database): boolean {
  const sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'outbox'";
  return db.query(sql).get() !== null;
}

function troubleFor(trouble: Trouble): StoreTrouble {
  const kind = trouble.kind === "busy" ? "busy" : "unusable";
  return { kind, reason: describeTrouble(trouble) };
}

/**
 * Reads in what could only be spooled, as the next writer would: the notices in it are made then.
 * Never throws. "busy": again in a moment.
 */
export function readSpoolIn(
  stateDirectory: string,
  tell: (line: string) => void,
): "written" | "busy" | "unusable" {
  const writer = new Writer(stateDirectory, tell);
  const { kind } = writer.drain();
  writer.close();
  return kind === "written" || kind === "busy" ? kind : "unusable";
}
