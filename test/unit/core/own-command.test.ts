/** Commands that are printed to be pasted look into the place that the line before has named. */
import { describe, expect, test } from "bun:test";
import { addPlace, placeWordsOf } from "../../../src/core/own-command.ts";

const PLACE = ["--state-dir", "/srv/a b"];

describe("the place of a line", () => {
  test("is what its own words say, in either spelling", () => {
    expect(placeWordsOf(["repair", "--state-dir", "st", "job:a"])).toEqual(["--state-dir", "st"]);
    expect(placeWordsOf(["lease", "list", "--state-dir=s=t", "--config", "c.toml"])).toEqual([
      "--state-dir",
      "s=t",
      "--config",
      "c.toml",
    ]);
  });

  test("is nothing that another program is told", () => {
    const words = ["run", "--name", "a", "--", "deploy", "--config", "x"];
    expect(placeWordsOf(words, 4)).toEqual([]);
    expect(placeWordsOf(["repair", "--json", "--state-dir"])).toEqual([]);
  });
});

describe("a printed command", () => {
  test.each([
    ["watchdog repair", "watchdog repair --state-dir '/srv/a b'"],
    ["watchdog repair job:a --apply", "watchdog repair --state-dir '/srv/a b' job:a --apply"],
    ["watchdog lease show job:a", "watchdog lease show --state-dir '/srv/a b' job:a"],
    ["watchdog fence -- COMMAND", "watchdog fence --state-dir '/srv/a b' -- COMMAND"],
    ["watchdog fence git-push x", "watchdog fence git-push --state-dir '/srv/a b' x"],
    ["watchdog run --no-lease -- C", "watchdog run --state-dir '/srv/a b' --no-lease -- C"],
    ["watchdog: hint: watchdog stop 1", "watchdog: hint: watchdog stop --state-dir '/srv/a b' 1"],
    ["watchdog why job:a", "watchdog why --state-dir '/srv/a b' job:a"],
    ["watchdog notify flush", "watchdog notify flush --state-dir '/srv/a b'"],
    ["watchdog job resume f.yaml", "watchdog job resume --state-dir '/srv/a b' f.yaml"],
    ["watchdog repair (it shows)", "watchdog repair --state-dir '/srv/a b' (it shows)"],
  ])("%s is told with it", (line, told) => {
    expect(addPlace(line, PLACE)).toBe(told);
    expect(addPlace(line, [])).toBe(line);
  });

  test.each([
    "watchdog --help",
    "watchdog help repair",
    "ps -fp 7",
    "watchdog repair --state-dir /x job:a",
    "watchdog config check --config c.toml",
  ])("%s stays as it is", (line) => {
    expect(addPlace(line, PLACE)).toBe(line);
  });

  test("stays as it is where the place cannot be shown", () => {
    expect(addPlace("watchdog repair", ["--state-dir", "a\u001bb"])).toBe("watchdog repair");
  });
});
