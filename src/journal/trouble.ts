/**
 * What can be wrong with the journal, as cases that somebody must choose between, and the one place
 * where errors of SQLite and of the system become such a case.
 *
 * Always: no error of the journal is worth a job; none of these leaves this room as an exception.
 */

export type Trouble =
  /** There is no database, and nobody has asked to make one. */
  | { readonly kind: "missing" }
  /** Somebody holds a lock: again in a moment. */
  | { readonly kind: "busy" }
  /** No database, or one that contradicts itself: it is set aside. */
  | { readonly kind: "corrupt"; readonly reason: string }
  /** Of a newer major or of nothing we know: read, never written. */
  | { readonly kind: "newer"; readonly reason: string }
  /** A link, no regular file, somebody else's: a person must act. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The system says no, for now: ENOSPC, EIO, EROFS, EMFILE … */
  | { readonly kind: "unusable"; readonly reason: string };

/** What became of one try to write. */
export type WriteResult = { readonly kind: "written" } | Trouble;

/** Result codes of SQLite (sqlite.org/rescode.html) by their beginning; first that fits. */
const KINDS: readonly (readonly [string, "busy" | "corrupt" | "refused"])[] = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  // A race of two that begin with the same wal at once, tried again by SQLite for some seconds.
  ["SQLITE_PROTOCOL", "busy"],
  ["SQLITE_READONLY_DBMOVED", "busy"],
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "corrupt"],
  ["SQLITE_CANTOPEN_SYMLINK", "refused"],
];

export function troubleOf(error: unknown): Trouble {
  const reason = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  const kind = KINDS.find(([beginning]) => code.startsWith(beginning))?.[1] ?? "unusable";
  return kind === "busy" ? { kind } : { kind, reason };
}

/** What went wrong, for people. */
export function describeTrouble(trouble: Trouble): string {
  if (trouble.kind === "missing") return "there is no journal.db";
  if (trouble.kind === "busy") return "somebody else holds journal.db";
  return trouble.kind === "newer" ? trouble.reason : `journal.db cannot be used: ${trouble.reason}`;
}

/** The code of an error of SQLite or of the system; empty where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Whether the fault is in what was to be written, so that trying again would not help. */
export function isOfTheEntry(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    codeOf(error).startsWith("SQLITE_CONSTRAINT") ||
    codeOf(error).startsWith("SQLITE_MISMATCH") ||
    codeOf(error).startsWith("SQLITE_TOOBIG")
  );
}

export function isTrouble<T extends { readonly kind: string }>(
  found: T | Trouble,
): found is Trouble {
  return TROUBLES.has(found.kind);
}

const TROUBLES = new Set(["missing", "busy", "corrupt", "newer", "refused", "unusable"]);
