/** Which case an error of SQLite or of the system becomes. */
import { describe, expect, test } from "bun:test";
import { isTrouble, troubleOf } from "../../../src/journal/trouble.ts";

describe("an error", () => {
  test.each([
    ["SQLITE_BUSY", "busy"],
    ["SQLITE_BUSY_SNAPSHOT", "busy"],
    ["SQLITE_LOCKED_SHAREDCACHE", "busy"],
    ["SQLITE_CORRUPT", "corrupt"],
    ["SQLITE_CORRUPT_INDEX", "corrupt"],
    ["SQLITE_NOTADB", "corrupt"],
    ["SQLITE_CANTOPEN_SYMLINK", "refused"],
    ["SQLITE_CANTOPEN", "unusable"],
    ["SQLITE_FULL", "unusable"],
    ["SQLITE_IOERR_FSYNC", "unusable"],
    ["ENOSPC", "unusable"],
    ["", "unusable"],
  ])("%s is %s", (code, kind) => {
    const trouble = troubleOf(Object.assign(new Error("text"), { code }));
    expect(trouble.kind).toBe(kind as typeof trouble.kind);
    expect(isTrouble(trouble)).toBe(true);
  });

  test("of any kind is a trouble", () => {
    expect(troubleOf("odd")).toEqual({ kind: "unusable", reason: "odd" });
    expect(isTrouble({ kind: "open" })).toBe(false);
  });
});
