import { expect, test } from "bun:test";
import { findDisturbing, type KnownAs } from "../../../src/core/disturbing.ts";

function knownAs(name: string): KnownAs {
  if (name === "WATCHDOG_TIMEOUT") return "known";
  return name === "WATCHDOG_STORE" ? "later" : "unknown";
}

function find(...names: string[]): string[] {
  return findDisturbing(names, knownAs).map(
    ({ name, because, isFinding }) => `${name} ${because}${isFinding ? " !" : ""}`,
  );
}

test("variables that every program has disturb nobody", () => {
  expect(
    find("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH", "SQL", "BUNDLE", "NODE_ENV"),
  ).toEqual([]);
});

test("what is loaded into watchdog or changes its engine is a finding", () => {
  expect(find("LD_PRELOAD", "LD_AUDIT", "BUN_JSC_useJIT", "BUN_CONFIG_VERBOSE_FETCH")).toEqual([
    "LD_PRELOAD loaded-into-every-program !",
    "LD_AUDIT loaded-into-every-program !",
    "BUN_JSC_useJIT changes-the-engine !",
    "BUN_CONFIG_VERBOSE_FETCH changes-the-engine !",
  ]);
});

test("what does little or nothing to watchdog is told", () => {
  expect(find("BUN_OPTIONS", "BUN_INSPECT_CONNECT_TO", "NODE_OPTIONS", "MALLOC_ARENA_MAX")).toEqual(
    [
      "BUN_OPTIONS disarmed",
      "BUN_INSPECT_CONNECT_TO disarmed",
      "NODE_OPTIONS meant-for-node",
      "MALLOC_ARENA_MAX changes-the-allocator",
    ],
  );
  expect(find("GLIBC_TUNABLES", "SQLITE_TMPDIR", "BUN_BE_BUN", "BUN_INSTALL")).toEqual([
    "GLIBC_TUNABLES changes-the-allocator",
    "SQLITE_TMPDIR changes-sqlite",
    "BUN_BE_BUN disarmed",
    "BUN_INSTALL disarmed",
  ]);
});

test("of watchdog's own names only those that it does not know are findings", () => {
  expect(find("WATCHDOG_TIMEOUT", "WATCHDOG_USEC", "WATCHDOG_PID", "WATCHDOGS")).toEqual([]);
  expect(find("WATCHDOG_TIEMOUT", "WATCHDOG_STORE")).toEqual([
    "WATCHDOG_TIEMOUT unknown-name !",
    "WATCHDOG_STORE of-a-later-version !",
  ]);
});
