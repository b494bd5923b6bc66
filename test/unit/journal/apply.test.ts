/** Which entry changes which rows: fencing, repetition, and who may say how a run ended. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { JournalEntry } from "../../../src/core/journal-entry.ts";
import { applyEntry } from "../../../src/journal/apply.ts";
import { readLease } from "../../../src/journal/lease-rows.ts";
import { migrate } from "../../../src/journal/schema.ts";
import { followEntry } from "../../../src/journal/spooled-lease.ts";
import {
  abandoned,
  ended,
  endedRecord,
  lease,
  refusal,
  runId,
  runningRecord,
  started,
} from "../../support/journal-scene.ts";

const KEY = { kind: "job", name: "nightly" };

function newDatabase(): Database {
  const db = new Database(":memory:");
  migrate(db, 0);
  return db;
}

function apply(db: Database, entry: JournalEntry, id: string = crypto.randomUUID()): string {
  return db.transaction(() => applyEntry(db, { id, entry }).kind)();
}

function runsOf(db: Database): unknown[] {
  return db.query("SELECT run_id, state, outcome FROM runs ORDER BY seq").values();
}

describe("an entry", () => {
  test("is applied inside a transaction, or not at all", () => {
    const db = newDatabase();
    expect(() => applyEntry(db, { id: "x", entry: ended(1) })).toThrow("inside a transaction");
  });

  test("changes nothing the second time", () => {
    const db = newDatabase();
    const key = [lease("nightly", 3)];
    const dump = (): unknown[][] =>
      ["runs", "attempts", "leases", "events"].map((table) =>
        db.query(`SELECT * FROM ${table}`).values(),
      );
    for (const [id, entry] of [started(1, key), refusal(1), ended(1, key)].entries()) {
      apply(db, entry, String(id));
    }
    const before = dump();
    expect(apply(db, started(1, key), "0")).toBe("known");
    expect(apply(db, refusal(1), "1")).toBe("known");
    expect(apply(db, ended(1, key), "2")).toBe("known");
    expect(apply(db, abandoned(1, key), "3")).toBe("known");
    expect(dump()).toEqual(before);
  });

  test("of a run that ended does not make it run again", () => {
    const db = newDatabase();
    apply(db, ended(1));
    expect(apply(db, started(1))).toBe("known");
    expect(runsOf(db)).toEqual([[runId(1), "ended", "failed"]]);
  });
});

describe("the fence", () => {
  test("refuses rows of a run where a larger generation of one of its keys is known", () => {
    const db = newDatabase();
    apply(db, started(2, [lease("a", 1), lease("b", 5)]));
    expect(apply(db, started(3, [lease("a", 2), lease("b", 4)]))).toBe("fenced");
    expect(apply(db, ended(4, [lease("b", 4)]))).toBe("fenced");
    expect(runsOf(db)).toEqual([[runId(2), "running", null]]);
    expect(readLease(db, { kind: "job", name: "a" })?.generation).toBe(1);
  });

  test("lets the same and a larger generation pass, and writes a missing one first", () => {
    const db = newDatabase();
    expect(apply(db, ended(1, [lease("nightly", 7)]))).toBe("written");
    expect(readLease(db, KEY)).toEqual({ generation: 7, runId: runId(1), isReleased: true });
    expect(apply(db, started(2, [lease("nightly", 8)]))).toBe("written");
    expect(apply(db, ended(2, [lease("nightly", 8)]))).toBe("written");
    expect(readLease(db, KEY)).toEqual({ generation: 8, runId: runId(2), isReleased: true });
  });

  test("does not stand before events, runs without a lease, and the dead", () => {
    const db = newDatabase();
    apply(db, started(1, [lease("nightly", 1)]));
    apply(db, started(2, [lease("nightly", 2)]));
    expect(apply(db, refusal(3))).toBe("written");
    expect(apply(db, ended(4))).toBe("written");
    expect(runsOf(db)[0]).toEqual([runId(1), "ended", "abandoned"]);
    expect(apply(db, abandoned(1, [lease("nightly", 1)]))).toBe("known");
    expect(readLease(db, KEY)?.generation).toBe(2);
  });
});

describe("the end that a guard tells for its watchdog", () => {
  const told = (number: number, generation: number): JournalEntry =>
    ({ ...ended(number, [lease("nightly", generation)]), by: "guard" }) as JournalEntry;

  test("is written down, and gives back what was held", () => {
    const db = newDatabase();
    apply(db, started(1, [lease("nightly", 1)]));
    expect(apply(db, told(1, 1))).toBe("written");
    expect(runsOf(db)).toEqual([[runId(1), "ended", "failed"]]);
    expect(readLease(db, KEY)).toEqual({ generation: 1, runId: runId(1), isReleased: true });
    expect(apply(db, abandoned(1, [lease("nightly", 1)]))).toBe("known");
  });

  test("is known better than by a next run that was faster, and costs that one nothing", () => {
    const db = newDatabase();
    apply(db, started(1, [lease("nightly", 1)]));
    apply(db, started(2, [lease("nightly", 2)]));
    expect(runsOf(db)[0]).toEqual([runId(1), "ended", "abandoned"]);
    // The twin: watchdog itself has lost the right to speak.
    expect(apply(db, ended(1, [lease("nightly", 1)]))).toBe("fenced");
    expect(apply(db, told(1, 1))).toBe("written");
    expect(runsOf(db)).toEqual([
      [runId(1), "ended", "failed"],
      [runId(2), "running", null],
    ]);
    expect(readLease(db, KEY)).toEqual({ generation: 2, runId: runId(2), isReleased: false });
  });
});

describe("the end of a run", () => {
  test("releases its leases only where it says so", () => {
    const db = newDatabase();
    const left = { ...ended(1, [lease("nightly", 1)]), isReleased: false } as JournalEntry;
    apply(db, left);
    expect(readLease(db, KEY)?.isReleased).toBe(false);
  });

  test("does not release what another run holds under the same number", () => {
    const db = newDatabase();
    apply(db, started(1, [lease("nightly", 1)]));
    apply(db, ended(2, [lease("nightly", 1)]));
    expect(readLease(db, KEY)).toEqual({ generation: 1, runId: runId(1), isReleased: false });
  });

  test("is known better by its own supervisor than by who took that for dead", () => {
    const db = newDatabase();
    apply(db, started(1));
    apply(db, abandoned(1));
    expect(apply(db, ended(1))).toBe("written");
    expect(runsOf(db)).toEqual([[runId(1), "ended", "failed"]]);
  });

  test("ends its attempt with how the command ended", () => {
    const db = newDatabase();
    apply(db, started(1));
    apply(db, ended(1, [], { exit_code: null, signal: "KILL" }));
    expect(
      db.query("SELECT attempt, state, signal, child_pid, child_start_time FROM attempts").values(),
    ).toEqual([[1, "ended", "KILL", 4712, 101]]);
  });
});

describe("an abandoned run", () => {
  test("whose row is missing gets one, where its record is known", () => {
    const db = newDatabase();
    expect(apply(db, abandoned(1, [lease("nightly", 2)], runningRecord(1)))).toBe("written");
    expect(apply(db, abandoned(2))).toBe("known");
    expect(
      db.query("SELECT run_id, outcome, because, record ->> 'outcome', leases FROM runs").values(),
    ).toEqual([
      [
        runId(1),
        "abandoned",
        "watchdog-killed",
        "abandoned",
        '[{"kind":"job","name":"nightly","generation":2}]',
      ],
    ]);
  });

  test("keeps what its guard has found out", () => {
    const db = newDatabase();
    apply(db, started(1));
    apply(db, abandoned(1, [], endedRecord(1, { outcome: "abandoned", signal: "KILL" })));
    expect(db.query("SELECT outcome, record ->> 'signal' FROM runs").values()).toEqual([
      ["abandoned", "KILL"],
    ]);
  });

  test("does not release its lease: whether survivors are left is for the verdict", () => {
    const db = newDatabase();
    apply(db, started(1, [lease("nightly", 1)]));
    apply(db, abandoned(1, [lease("nightly", 1)]));
    expect(readLease(db, KEY)).toMatchObject({ generation: 1, isReleased: false });
  });

  test("whose record nobody can read is abandoned all the same", () => {
    const db = newDatabase();
    apply(db, started(1));
    db.run("UPDATE runs SET record = '{'");
    apply(db, abandoned(1));
    expect(db.query("SELECT state, outcome, because FROM runs").values()).toEqual([
      ["ended", "abandoned", "watchdog-killed"],
    ]);
  });
});

describe("what the spool knows of a key", () => {
  /** Every pair of these, one after the other. */
  const ENTRIES: readonly JournalEntry[] = [1, 2].flatMap((generation) =>
    [1, 2].flatMap((number) => {
      const key = [lease("nightly", generation)];
      return [started(number, key), ended(number, key), abandoned(number, key)];
    }),
  );

  /** Pairs with a fenced entry are left out: the lock excludes, so the spool never holds one. */
  test("is what the tables know after it was read in", () => {
    let compared = 0;
    for (const first of ENTRIES) {
      for (const second of ENTRIES) {
        const db = newDatabase();
        const kinds = [first, second].map((entry) => apply(db, entry));
        if (kinds.every((kind) => kind === "written")) {
          const followed = followEntry(followEntry(undefined, KEY, first), KEY, second);
          expect([first, second, followed]).toEqual([first, second, readLease(db, KEY)]);
          compared += 1;
        }
        db.close();
      }
    }
    expect(compared).toBeGreaterThan(40);
  });
});

describe("the cost of an entry", () => {
  test("does not depend on the size of the journal: nothing is scanned but from an end", () => {
    const db = newDatabase();
    const seen = new Set<string>();
    const query = db.query.bind(db);
    db.query = ((sql: string) => {
      seen.add(sql);
      return query(sql);
    }) as typeof db.query;
    const key = [lease("nightly", 1)];
    for (const entry of [started(1, key), ended(1, key), abandoned(2, key), refusal(1)]) {
      apply(db, entry);
    }
    apply(db, abandoned(3, key, runningRecord(3)));
    const scans = [...seen].filter((sql) =>
      query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .some(
          ({ detail }) =>
            detail.startsWith("SCAN") && !/ORDER BY (seq|id)( DESC)? LIMIT \?$/.test(sql),
        ),
    );
    expect(seen.size).toBeGreaterThan(10);
    expect(scans).toEqual([]);
  });
});

describe("the order of the history", () => {
  const AT = Date.UTC(2026, 0, 1);
  const minute = (number: number): number => AT + number * 60_000;

  /** Entries of runs 1, 2, 3 …, each started and written at these minutes, null: by the spool. */
  function order(rows: readonly (readonly [started: number, written: number | null])[]): unknown[] {
    const db = newDatabase();
    db.transaction(() => {
      for (const [index, [at, written]] of rows.entries()) {
        const started_at = new Date(minute(at)).toISOString();
        const entry = ended(index + 1, [], { started_at });
        applyEntry(db, { id: `${index}`, entry }, written === null ? undefined : minute(written));
      }
    })();
    const ids = db.query("SELECT run_id FROM runs ORDER BY sort_at, seq").values().flat();
    return rows.map((_, index) => ids.indexOf(runId(index + 1)));
  }

  test("is that of the starts, also of what was written late", () => {
    expect(
      order([
        [0, 0],
        [5, 5],
        [3, null],
        [9, 9],
        [1, null],
      ]),
    ).toEqual([0, 3, 2, 4, 1]);
    expect(
      order([
        [5, 5],
        [0, 9],
      ]),
    ).toEqual([1, 0]); // it had waited, and was refused
  });

  test("stays that of the writing where the clock was set back", () => {
    expect(
      order([
        [60, 60],
        [1, 1],
        [2, 2],
        [61, 61],
        [3, null],
      ]),
    ).toEqual([1, 2, 3, 4, 0]);
  });

  test("does not change with the end of a run", () => {
    const db = newDatabase();
    const place = () => db.query("SELECT sort_at FROM runs").values();
    apply(db, started(1));
    const first = place();
    apply(db, ended(1, [], { started_at: new Date(AT).toISOString() }));
    expect(place()).toEqual(first);
  });
});

test("who says that a run was abandoned is kept, until its own end is known", () => {
  const db = newDatabase();
  const by = () => db.query("SELECT abandoned_by FROM runs").values();
  apply(db, started(1));
  expect(by()).toEqual([[null]]);
  apply(db, { ...abandoned(1), by: "next-run" } as JournalEntry);
  expect(by()).toEqual([["next-run"]]);
  apply(db, ended(1));
  expect(by()).toEqual([[null]]);
});
