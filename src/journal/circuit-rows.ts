/**
 * The circuits of one state directory as rows of the journal, one row a circuit: read, listed, and
 * changed in one transaction each. Decides nothing about a circuit.
 *
 * Guarantees: what two processes change at the same time happens one after the other, and nothing
 * of it is lost; a row of a newer format is never written over; a row that is none begins anew with
 * the next change and is told; nothing is thrown; no call waits longer than BUSY_MS for a lock;
 * asking makes nothing. A broken database is set aside by the next change, so that circuits do not
 * depend on somebody else who writes.
 *
 * Non-guarantees: with `synchronous=NORMAL` the last changes may be lost in a power cut, never the
 * database (sqlite.org/pragma.html#pragma_synchronous): after a boot a dependency is asked again
 * anyway, and an fsync for each probe would be a wait of the main loop. A row may go at any time
 * (retention.ts, a database that was set aside); whoever used it begins anew.
 *
 * Clock: MONOTONIC and the wall clock of this process, written with each row (circuit-record.ts).
 * After a crash: what was committed is there, SIGKILL included; what was not never happened.
 */
import type { Database } from "bun:sqlite";
import {
  type CircuitClock,
  type CircuitReading,
  LONGEST_CIRCUIT_TEXT,
  parseCircuit,
  renderCircuit,
} from "../core/circuit-record.ts";
import type {
  CircuitChange,
  CircuitLook,
  CircuitStore,
  SharedCircuit,
} from "../core/shared-circuit.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { findFfiTrouble } from "../os/libc.ts";
import { type Machine, readMachine } from "../os/machine.ts";
import { hasCircuits, selectCircuit, selectCircuits, writeCircuit } from "./circuit-table.ts";
import { JournalConnection, transact } from "./connection.ts";
import { closeQuietly, openExisting } from "./open.ts";
import { pruneCircuits } from "./retention.ts";
import { findLackOfRoom } from "./room.ts";
import { codeOf, describeTrouble, isTrouble, type Trouble, troubleOf } from "./trouble.ts";
import { isStill, stampSettledWal, type WalStamp } from "./wal-watch.ts";

/** Each reads the whole database: one that is broken again and again is the disk's fault. */
const MOST_SECOND_LOOKS = 4;

type NoCircuit = Exclude<CircuitLook, { kind: "found" }>;
type Decide = (found: SharedCircuit | undefined) => SharedCircuit | undefined;

const MISSING: NoCircuit = { kind: "missing" };

/**
 * Opens nothing yet. A connection of its own, so that the spool is not read in on its account.
 * @param tell  one line for people about what went wrong, without who says it
 * @param readClock  this process's own, unless a test has another one
 */
export function openCircuitStore(
  stateDirectory: string,
  tell: (line: string) => void,
  readClock: () => CircuitClock = makeClock(),
): CircuitStore {
  return new CircuitRows(stateDirectory, (line) => tellQuietly(tell, line), readClock);
}

function tellQuietly(tell: (line: string) => void, line: string): void {
  try {
    tell(line);
  } catch {
    // Whoever listens has a trouble of its own, and no place but here to tell it.
  }
}

class CircuitRows implements CircuitStore {
  readonly #connection: JournalConnection;
  readonly #tell: (line: string) => void;
  readonly #readClock: () => CircuitClock;
  #walPath: string | undefined;
  /** As it was when `#seen` was asked for. */
  #stillWal: WalStamp | undefined;
  #seen: { readonly db: Database; readonly version: number } | undefined;

  constructor(stateDirectory: string, tell: (line: string) => void, readClock: () => CircuitClock) {
    const pragmas = "PRAGMA synchronous = NORMAL";
    this.#connection = new JournalConnection({ stateDirectory, tell, pragmas });
    this.#tell = tell;
    this.#readClock = readClock;
  }

  read(name: string): CircuitLook {
    return this.#ask((db, clock) => {
      const row = selectCircuit(db, name);
      const reading = row === undefined ? undefined : parseCircuit(row.record, name, clock);
      faultPoint("circuit.read", { name, state: stateOf(reading) });
      return reading === undefined ? MISSING : lookOf(name, reading);
    });
  }

  list(): readonly SharedCircuit[] | NoCircuit {
    return this.#ask((db, clock) =>
      selectCircuits(db).flatMap(({ name, record }) => {
        const reading = parseCircuit(record, name, clock);
        return reading.kind === "read" ? [reading.circuit] : [];
      }),
    );
  }

  change(name: string, decide: Decide): CircuitChange {
    let outcome: Replacement = { kind: "kept" };
    const act = (db: Database) =>
      transact(db, () => void (outcome = replaceRow(db, name, decide, this.#readClock())));
    const mayLook = this.#connection.secondLooks < MOST_SECOND_LOOKS;
    const result = mayLook ? this.#connection.withRecovery(act) : this.#connection.attempt(act);
    if (result.kind === "busy") return result;
    if (result.kind !== "written") return unwritten(describeTrouble(result));
    return this.#conclude(name, outcome);
  }

  hasChanged(): boolean {
    const wal = this.#stampWal(); // before the question: what comes in between is seen next time
    if (this.#seen !== undefined && isStill(this.#stillWal, wal)) return false;
    const before = this.#seen;
    this.#seen = this.#askVersion();
    this.#stillWal = wal;
    const now = this.#seen;
    return now === undefined || now.db !== before?.db || now.version !== before.version;
  }

  close(): void {
    this.#connection.close();
    this.#seen = undefined;
    this.#stillWal = undefined;
  }

  #stampWal(): WalStamp | undefined {
    try {
      this.#walPath ??= `${this.#connection.place.database}-wal`;
      return stampSettledWal(this.#walPath);
    } catch {
      return undefined; // EACCES, or no state directory: the question to SQLite says what it is
    }
  }

  #conclude(name: string, outcome: Replacement): CircuitChange {
    if (outcome.kind === "refused") return unwritten(outcome.reason);
    if (outcome.kind === "mended") {
      this.#tell(`circuit ${name} could not be read (${outcome.reason}) and begins anew`);
    }
    return { kind: "done" };
  }

  /** Also where the disk is nearly full, as far as that is safe (openExisting). */
  #ask<T>(question: (db: Database, clock: CircuitClock) => T): T | NoCircuit {
    try {
      const clock = this.#readClock();
      const { place } = this.#connection;
      if (findLackOfRoom(place.directory) !== undefined) return this.#askOnce(question, clock);
      const db = this.#connection.openToAsk();
      if ("kind" in db) return noCircuitOf(db);
      return hasCircuits(db) ? question(db, clock) : MISSING;
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble.kind !== "busy") this.#connection.close();
      return codeOf(error) === "ENOENT" ? MISSING : noCircuitOf(trouble);
    }
  }

  #askOnce<T>(question: (db: Database, clock: CircuitClock) => T, clock: CircuitClock) {
    this.#connection.close();
    const opened = openExisting(this.#connection.place, "read");
    if (isTrouble(opened)) return noCircuitOf(opened);
    try {
      return hasCircuits(opened.db) ? question(opened.db, clock) : MISSING;
    } finally {
      closeQuietly(opened.db);
    }
  }

  /** It tells of others' commits only, and is another one for each connection. */
  #askVersion(): { readonly db: Database; readonly version: number } | undefined {
    try {
      const db = this.#connection.current;
      if (db === undefined || findLackOfRoom(this.#connection.place.directory) !== undefined) {
        return undefined;
      }
      const row = db.query<{ data_version: number }, []>("PRAGMA data_version").get();
      return row === null ? undefined : { db, version: row.data_version };
    } catch {
      return undefined; // SQLITE_BUSY and the rest: the next read or change says what it is
    }
  }
}

/** Boot and namespace are read once. @throws WatchdogError where its time is nobody else's */
function makeClock(): () => CircuitClock {
  let machine: Machine | undefined;
  return () => {
    const trouble = findFfiTrouble();
    if (trouble !== undefined) throw trouble; // then MONOTONIC is that of this process alone
    machine ??= readMachine();
    const { bootId, timeNamespace } = machine;
    return { bootId, timeNamespace, nowMs: monotonicNow(), wallMs: wallNow() };
  };
}

type Replacement =
  | { readonly kind: "written" | "kept" }
  /** What was there was no circuit. */
  | { readonly kind: "mended"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string };

/** Inside a transaction. @throws an error of SQLite; what `decide` throws */
function replaceRow(db: Database, name: string, decide: Decide, clock: CircuitClock): Replacement {
  const row = selectCircuit(db, name);
  const reading = row === undefined ? undefined : parseCircuit(row.record, name, clock);
  if (reading?.kind === "newer") return { kind: "refused", reason: describeNewer(name, reading) };
  const next = decide(reading?.kind === "read" ? reading.circuit : undefined);
  if (next === undefined) return { kind: "kept" };
  const record = renderCircuit(next, clock);
  if (record.length > LONGEST_CIRCUIT_TEXT) {
    return { kind: "refused", reason: `circuit ${name} is too long to be kept` };
  }
  writeCircuit(db, { name, record, circuit: next, at: clock.wallMs });
  if (row === undefined) pruneCircuits(db, clock.wallMs, name);
  faultPoint("circuit.commit", { name, state: next.state.kind });
  return reading === undefined || reading.kind === "read"
    ? { kind: "written" }
    : { kind: "mended", reason: reading.reason };
}

function lookOf(name: string, reading: CircuitReading): CircuitLook {
  switch (reading.kind) {
    case "read":
      return { kind: "found", circuit: reading.circuit };
    case "newer":
      return { kind: "unread", reason: describeNewer(name, reading) };
    case "unreadable":
      return { kind: "unread", reason: `circuit ${name} cannot be read: ${reading.reason}` };
  }
}

function describeNewer(name: string, { format }: { readonly format: number }): string {
  return `circuit ${name} is of a newer watchdog (format ${format})`;
}

function stateOf(reading: CircuitReading | undefined): string {
  if (reading === undefined) return "missing";
  return reading.kind === "read" ? reading.circuit.state.kind : reading.kind;
}

function noCircuitOf(trouble: Trouble): NoCircuit {
  if (trouble.kind === "missing" || trouble.kind === "busy") return trouble;
  return { kind: "unread", reason: describeTrouble(trouble) };
}

function unwritten(reason: string): CircuitChange {
  return { kind: "unwritten", reason };
}
