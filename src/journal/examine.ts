/**
 * Looks a journal over without changing it: whether it opens, whether it is whole, of which version
 * it is, and what waits in `spool/`. Decides nothing about what is found.
 *
 * Always: nothing is thrown, nothing is set aside or read in. Blocks: reads the whole database
 * (`quick_check`). Clock: none. State after a crash: none.
 */
import { lstatSync, readdirSync } from "node:fs";
import { refusalOfOwner } from "../os/state-sharing.ts";
import { closeQuietly, openExisting } from "./open.ts";
import { type JournalPlace, placeOfJournal } from "./places.ts";
import { decideVersion, readVersion, renderVersion, type VersionDecision } from "./schema.ts";
import { codeOf, isTrouble, type Trouble, troubleOf } from "./trouble.ts";

export interface ExaminedJournal {
  readonly kind: "examined";
  /** `1.2`. */
  readonly version: string;
  readonly decision: VersionDecision;
  /** What `quick_check` says is wrong; none: it is whole. */
  readonly faults: readonly string[];
}

export interface ExaminedSpool {
  /** Entries of so many writes wait for the next writer. */
  readonly waiting: number;
  /** Could not be read and are kept for a person. */
  readonly bad: number;
  /** Why it cannot be used; undefined: it can, or is not there yet. */
  readonly refusal: string | undefined;
}

export function examineJournal(stateDirectory: string): ExaminedJournal | Trouble {
  try {
    return examine(placeOfJournal(stateDirectory));
  } catch (error) {
    return troubleOf(error);
  }
}

/** Of a broken database that says more, a few lines tell as much. */
const MOST_FAULTS = 3;

function examine(place: JournalPlace): ExaminedJournal | Trouble {
  const opened = openExisting(place, "read");
  if (isTrouble(opened)) return opened;
  const { db } = opened;
  try {
    const version = readVersion(db);
    const lines = db.query<{ quick_check: string }, []>(`PRAGMA quick_check(${MOST_FAULTS})`).all();
    const faults = lines.map((line) => line.quick_check).filter((line) => line !== "ok");
    const decision = decideVersion(version);
    return { kind: "examined", version: renderVersion(version), decision, faults };
  } finally {
    closeQuietly(db);
  }
}

export function examineSpool(stateDirectory: string): ExaminedSpool {
  const path = `${stateDirectory}/spool`;
  try {
    const refusal = refusalAt(path);
    if (refusal !== undefined) return { waiting: 0, bad: 0, refusal };
    const names = readdirSync(path);
    const count = (ending: string): number => names.filter((name) => name.endsWith(ending)).length;
    return { waiting: count(".json"), bad: count(".bad"), refusal: undefined };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { waiting: 0, bad: 0, refusal: undefined };
    const reason = error instanceof Error ? error.message : String(error);
    return { waiting: 0, bad: 0, refusal: reason };
  }
}

function refusalAt(path: string): string | undefined {
  const found = lstatSync(path);
  if (found.isSymbolicLink()) return "spool/ is a symbolic link";
  if (!found.isDirectory()) return "spool/ is not a directory";
  return refusalOfOwner(path, found);
}
