/** Which entry puts which notices into the outbox, in one transaction with it, and for whom. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { JournalEntry } from "../../../src/core/journal-entry.ts";
import type { NoticePart } from "../../../src/core/notice-part.ts";
import { applyEntry } from "../../../src/journal/apply.ts";
import { migrate } from "../../../src/journal/schema.ts";
import {
  abandoned,
  ended,
  lease,
  refusal,
  runId,
  runningRecord,
  started,
} from "../../support/journal-scene.ts";
import { partFor, sinkTo, telling } from "../../support/notice-parts.ts";

const A = sinkTo("a");
const B = sinkTo("b");
const PING = sinkTo("p", "default", "ping");

function newDatabase(): Database {
  const db = new Database(":memory:");
  migrate(db, 0);
  return db;
}

function apply(db: Database, entry: JournalEntry, id: string = crypto.randomUUID()): string {
  return db.transaction(() => applyEntry(db, { id, entry }).kind)();
}

/** `event to` of each row that is not superseded, in order. */
function outboxOf(db: Database): string[] {
  return db
    .query<{ event: string; sink: string }, []>(
      "SELECT event, sink ->> '$.source.text' AS sink FROM outbox " +
        "WHERE state <> 'superseded' ORDER BY id",
    )
    .all()
    .map(({ event, sink }) => `${event} ${sink.split("/").at(-1)}`);
}

function endedWell(number: number): JournalEntry {
  return ended(number, [], { outcome: "ok", exit_status: 0, exit_code: 0 });
}

const withPart = (part: NoticePart) => (entry: JournalEntry) => telling(entry, part);
const toA = withPart(partFor([A]));

describe("the end of a run", () => {
  test("is told to each sink, with the tail of the output, and with its row or not at all", () => {
    const db = newDatabase();
    const entry = telling(ended(1), partFor([A, B], { logTail: "the last line\n" }));
    db.run("BEGIN");
    applyEntry(db, { id: "x", entry });
    expect(outboxOf(db)).toEqual(["failure a", "failure b"]);
    db.run("ROLLBACK");
    expect([outboxOf(db), db.query("SELECT * FROM runs").values()]).toEqual([[], []]);
    apply(db, entry);
    const [row] = db.query<{ notice: string }, []>("SELECT notice FROM outbox").all();
    expect(JSON.parse(row?.notice ?? "")).toMatchObject({
      event: "failure",
      job: "nightly",
      run_id: runId(1),
      host: "host",
      runner: "me@host",
      outcome: "failed",
      exit_status: 3,
      summary: "nightly on host failed with status 3 after 1s",
      log_tail: "the last line\n",
      failures_in_row: 1,
    });
  });

  test("without sinks is told to nobody", () => {
    const db = newDatabase();
    apply(db, ended(1));
    expect(outboxOf(db)).toEqual([]);
  });

  test("is told once, however often and by whomever it is written down", () => {
    const db = newDatabase();
    apply(db, toA(ended(1)), "one");
    apply(db, toA(ended(1)), "one");
    apply(db, toA({ ...ended(1), by: "guard" } as JournalEntry), "two");
    apply(db, toA(abandoned(1)), "three");
    expect(outboxOf(db)).toEqual(["failure a"]);
  });

  test("has the same key in a journal that began anew", () => {
    const keys = [newDatabase(), newDatabase()].map((db) => {
      apply(db, toA(ended(1)));
      return db.query("SELECT notice ->> '$.id' FROM outbox").values();
    });
    expect(keys[0]).toEqual(keys[1] ?? []);
  });

  test("of a run whose rows are refused is told all the same, once", () => {
    const db = newDatabase();
    apply(db, started(2, [lease("nightly", 5)]));
    expect(apply(db, toA(ended(1, [lease("nightly", 4)])))).toBe("fenced");
    expect(apply(db, toA(ended(1, [lease("nightly", 4)])))).toBe("fenced");
    expect(outboxOf(db)).toEqual(["failure a"]);
    // Nor is it counted twice.
    expect(db.query("SELECT failures FROM told").values()).toEqual([[1]]);
  });

  test("as the change of a state: each sink has its own", () => {
    const db = newDatabase();
    apply(db, toA(ended(1)));
    apply(db, telling(ended(2), partFor([A, B])));
    apply(db, telling(endedWell(3), partFor([A, B])));
    expect(outboxOf(db)).toEqual(["failure a", "failure b", "recovered a", "recovered b"]);
  });

  test("of a run that was taken for dead and was not is told beside its abandonment", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    apply(db, toA(abandoned(1)));
    apply(db, toA(endedWell(1)));
    expect(outboxOf(db)).toEqual(["abandoned a", "recovered a"]);
  });

  test("brings to light what it has left and slept through, for those who ask for it", () => {
    const db = newDatabase();
    const asks = sinkTo("asks", ["leftovers", "suspended"]);
    const found = { leftovers: [{ pid: 7, command: "x", ended_by: null }], suspended_ms: 9 };
    apply(db, telling(ended(1, [], found), partFor([A, asks])));
    expect(outboxOf(db)).toEqual(["failure a", "leftovers asks", "suspended asks"]);
  });
});

test("a job whose command was never started has declared who is to be told of it", () => {
  const db = newDatabase();
  const refused = ended(1, [], { outcome: "dependency_down", child_pid: null });
  apply(db, toA(refused));
  const declared = (): unknown[] =>
    db.query("SELECT sink ->> '$.source.text' FROM told WHERE is_declared = 1").values().flat();
  expect(declared()).toEqual([String(A.source.kind === "literal" && A.source.text)]);
  // The twin: what a start has declared stands.
  apply(db, toA(started(2)));
  apply(db, telling(ended(3, [], { outcome: "dependency_down", child_pid: null }), partFor([B])));
  expect(declared()).toHaveLength(1);
});

describe("a start that was refused", () => {
  const locked = ended(1, [], { outcome: "locked", exit_status: 75, status_of: "watchdog" });

  test("because another run is at work is told to nobody, pings too", () => {
    const db = newDatabase();
    apply(db, telling(locked, partFor([A, PING])));
    apply(db, toA(refusal(1)));
    expect(outboxOf(db)).toEqual([]);
  });

  test("because its holder is not well is told", () => {
    const db = newDatabase();
    apply(db, telling(locked, partFor([A], { verdict: "stalled" })));
    apply(db, telling(ended(2, [], { outcome: "locked" }), partFor([A], { verdict: "orphaned" })));
    expect(outboxOf(db)).toEqual(["stalled a", "failure a"]);
  });
});

describe("a run that was abandoned", () => {
  test("is told to its own sinks by its guard", () => {
    const db = newDatabase();
    apply(db, toA(abandoned(1, [], runningRecord(1))));
    expect(outboxOf(db)).toEqual(["abandoned a"]);
  });

  test("is told by its guard to its own sinks, whoever was declared since", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    apply(db, telling(started(2), partFor([B])));
    apply(db, toA(abandoned(1)));
    expect(outboxOf(db)).toEqual(["abandoned a"]);
  });

  test("is told by the next run to the sinks that it had declared, not to its own", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    apply(db, telling({ ...abandoned(1), by: "next-run" } as JournalEntry, partFor([B])));
    expect(outboxOf(db)).toEqual(["abandoned a"]);
  });

  test("is told to those of the next run where nobody knows its own", () => {
    const db = newDatabase();
    const lost = { ...abandoned(1, [], runningRecord(1)), by: "next-run" } as JournalEntry;
    apply(db, telling(lost, partFor([B])));
    expect(outboxOf(db)).toEqual(["abandoned b"]);
  });

  test("is told where only the next grant of its key shows it", () => {
    const db = newDatabase();
    apply(db, toA(started(1, [lease("nightly", 1)])));
    apply(db, started(2, [lease("nightly", 2)]));
    expect(outboxOf(db)).toEqual(["abandoned a"]);
  });
});

describe("an event", () => {
  const opened = { ...refusal(1), name: "circuit_open", data: { name: "db" } } as JournalEntry;

  test("is told to the sinks that the last run of its job has declared", () => {
    const db = newDatabase();
    apply(db, opened);
    apply(db, telling(started(1), partFor([A, sinkTo("other", ["success"])])));
    apply(db, opened);
    expect(outboxOf(db)).toEqual(["circuit_open a"]);
  });

  test("at the same moment as another one of its kind is told beside it", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    apply(db, opened, "one");
    apply(db, { ...opened, data: { name: "api" } } as JournalEntry, "two");
    expect(outboxOf(db)).toEqual(["circuit_open a", "circuit_open a"]);
  });

  test("of a job whose last run has declared none is told to nobody", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    apply(db, started(2));
    apply(db, opened);
    expect(outboxOf(db)).toEqual([]);
  });

  test("that repeats what the end of the run tells is not told", () => {
    const db = newDatabase();
    apply(db, toA(started(1)));
    for (const name of ["lease_lost", "dependency_down", "abandoned", "refused"]) {
      apply(db, { ...refusal(1), name } as JournalEntry);
    }
    expect(outboxOf(db)).toEqual([]);
  });
});

describe("a start", () => {
  const stateOf = (db: Database): unknown[] =>
    db.query("SELECT event, state FROM outbox ORDER BY id").values();

  test("is told to pings, and not any more once its end is there", () => {
    const db = newDatabase();
    apply(db, telling(started(1), partFor([PING])));
    expect(outboxOf(db)).toEqual(["start p"]);
    apply(db, telling(endedWell(1), partFor([PING])));
    expect(stateOf(db)).toEqual([
      ["start", "superseded"],
      ["success", "waiting"],
    ]);
  });

  test("is still told to whom its end is not told", () => {
    const db = newDatabase();
    const part = partFor([sinkTo("starts", ["start"])]);
    apply(db, telling(started(1), part));
    apply(db, telling(endedWell(1), part));
    expect(stateOf(db)).toEqual([["start", "waiting"]]);
  });

  test("that is being sent is left to whoever sends it", () => {
    const db = newDatabase();
    apply(db, telling(started(1), partFor([PING])));
    db.run("UPDATE outbox SET claimed_by = 'x'");
    apply(db, telling(endedWell(1), partFor([PING])));
    expect(outboxOf(db)).toEqual(["start p", "success p"]);
  });
});

describe("trouble", () => {
  test("with a notice costs the notice, not the entry", () => {
    const db = newDatabase();
    db.run("CREATE TRIGGER no_notice BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no'); END");
    expect(apply(db, toA(ended(1)))).toBe("written");
    expect(db.query("SELECT outcome FROM runs").values()).toEqual([["failed"]]);
    expect(outboxOf(db)).toEqual([]);
  });

  test("with the disk costs the whole entry, which waits in the spool then", () => {
    const db = newDatabase();
    apply(db, endedWell(1));
    const [pages] = db.query<{ page_count: number }, []>("PRAGMA page_count").all();
    db.run(`PRAGMA max_page_count = ${pages?.page_count}`);
    const entry = telling(ended(2), partFor([A], { logTail: "x".repeat(100_000) }));
    expect(() => apply(db, entry)).toThrow("full");
    expect(db.query("SELECT run_id FROM runs").values()).toEqual([[runId(1)]]);
  });

  test.each([
    ["no part", 7],
    ["no sinks", { host: "h", runner: "r", sinks: {} }],
    ["sinks of another version", { host: "h", runner: "r", sinks: [{ kind: "pigeon" }, null] }],
  ])("with a part out of the spool that is none (%s) costs it alone", (_what, part) => {
    const db = newDatabase();
    apply(db, { ...ended(1), telling: part } as unknown as JournalEntry);
    expect(db.query("SELECT run_id FROM runs").values()).toEqual([[runId(1)]]);
    expect(outboxOf(db)).toEqual([]);
  });
});
