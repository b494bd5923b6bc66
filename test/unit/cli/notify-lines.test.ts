/** The lines of `watchdog notify`: what they ask for, and what is said to those that are none. */
import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { NotifyCut } from "../../../src/cli/cut.ts";
import { failureOf } from "../../support/failure-of.ts";

function cut(line: string, variables: Record<string, string> = {}): NotifyCut {
  const found = cutCommandLine(line.split(" "), variables);
  if (found.kind !== "notify") throw new Error(`cut as ${found.kind}`);
  return found;
}

describe("a line of notify", () => {
  test("asks for a list, of what is not delivered or of all", () => {
    expect(cut("notify list")).toMatchObject({ action: "list", isAll: false, isJson: false });
    expect(cut("notify list --all --json --limit 3 --state-dir /s")).toMatchObject({
      isAll: true,
      isJson: true,
      limit: 3,
      stateDir: "/s",
    });
  });

  test("names the sinks as run does, and those of the environment", () => {
    const variables = { WATCHDOG_PING: "https://hc.example/p" };
    const { sinks, timeoutMs } = cut(
      "notify test --webhook http://x/h --notify-timeout 3s",
      variables,
    );
    expect(sinks.map(({ kind, source }) => [kind, source.kind])).toEqual([
      ["ping", "variable"],
      ["webhook", "literal"],
    ]);
    expect(timeoutMs).toBe(3_000);
    expect(cut("notify flush --dead", variables)).toMatchObject({ isWithDead: true });
    expect(cut("notify list", variables).sinks).toEqual([]);
  });

  test("drops by number, or all that were given up", () => {
    expect(cut("notify drop 17 18")).toMatchObject({ ids: [17, 18], isAllDead: false });
    expect(cut("notify drop --all-dead")).toMatchObject({ ids: [], isAllDead: true });
  });
});

describe("a wrong line of notify", () => {
  test.each([
    ["notify", "notify alone asks nothing", "watchdog notify list"],
    ["notify lsit", 'found "lsit" behind notify', "watchdog notify list"],
    ["notify --json list", 'found "--json" behind notify', "watchdog notify list --json"],
    ["notify list 3", 'takes no word beside its options, found "3"', "watchdog notify list"],
    ["notify drop", "was told nothing to drop", "watchdog notify list"],
    ["notify drop x", "expected the number of a notice", "watchdog help notify"],
    ["notify drop 0", "expected the number of a notice", "watchdog help notify"],
    ["notify drop --all-dead 3", "takes no ID beside it", "watchdog notify drop --all-dead"],
    ["notify flush --all", "--all", "watchdog help notify"],
  ])("%s: is told so, with a line that works", async (line, message, hint) => {
    const failure = await failureOf(() => cutCommandLine(line.split(" "), {}));
    expect(failure.message).toContain(message);
    expect(failure.hint).toBe(hint);
  });
});
