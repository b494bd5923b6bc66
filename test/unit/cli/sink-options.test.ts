/** The options, variables and tables about who is told: what a run is told to do by them. */
import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { configSchema } from "../../../src/cli/config-schema.ts";
import { readConfigTable } from "../../../src/core/config.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import { mergeSettings, type Settings } from "../../../src/core/settings.ts";
import { parseToml } from "../../../src/os/config-file.ts";
import { renderFinding } from "../../../src/cli/settings.ts";

const LINE = ["--", "true"];

function optionsOf(
  words: readonly string[],
  { variables = {}, files = [] as readonly string[] } = {},
): RunOptions {
  const settings = settingsOf(...files);
  const cut = cutCommandLine(["run", ...words, ...LINE], variables, () => settings);
  if (cut.kind !== "run") throw new Error("no run");
  return cut.options;
}

/** Weakest first. */
function settingsOf(...texts: readonly string[]): Settings {
  return mergeSettings(
    texts.map((text, index) => {
      const { content, findings } = read(text);
      expect(findings).toEqual([]);
      return { path: `f${index}`, ownerUid: 0, content, isHeard: true, isChosen: false };
    }),
  );
}

function read(text: string): ReturnType<typeof readConfigTable> {
  const toml = parseToml(text);
  if (toml.kind !== "table") throw new Error(toml.found);
  return readConfigTable(toml.table, configSchema());
}

function findingsOf(text: string): string[] {
  return read(text).findings.map((finding) => renderFinding("f", finding));
}

function listShown(options: RunOptions): string[] {
  return options.sinks.map(({ shown, events }) => `${shown} (${String(events)})`);
}

describe("a line", () => {
  test("names several sinks, each target once", () => {
    const words =
      "--webhook https://h/a --webhook slack:https://h/b --ping https://p/x --mail root " +
      "--webhook=https://h/a --on-failure ./tell.sh --on start,success=./tell.sh";
    expect(listShown(optionsOf(words.split(" "))).toSorted()).toEqual([
      "command ./tell.sh (failure,start,success)",
      "mail root (default)",
      "ping https://p/x (default)",
      "webhook https://h/*** (default)",
      "webhook https://h/a (default)",
    ]);
  });

  test("hides what it is told to hide", () => {
    expect(optionsOf(["--mask", "a+b", "--mask", "a+b", "--mask", "c"]).masks).toEqual([
      "a+b",
      "c",
    ]);
  });

  test.each([
    [["--webhook", "h/x"], '--webhook: found "***", expected http://'],
    [["--on", "nightly=true"], '--on: found "nightly=true", expected EVENT'],
    [["--on-failure", " "], "--on-failure: found"],
    [["--mail", "a b"], '--mail: found "a b", expected an address'],
    [["--mask", "(a+)+"], '--mask: found "(a+)+", expected a regular expression'],
  ])("%j is refused and says why", (words, message) => {
    try {
      optionsOf(words);
    } catch (error) {
      if (error instanceof WatchdogError) return expect(error.message).toContain(message);
      throw error;
    }
    throw new Error("not refused");
  });
});

describe("a variable", () => {
  test("is remembered by its name, and is the same sink as the same target on a line", () => {
    const url = "https://h/x?token=secret1";
    const [spec] = optionsOf([], { variables: { WATCHDOG_WEBHOOK: url } }).sinks;
    expect(spec?.source).toEqual({ kind: "variable", name: "WATCHDOG_WEBHOOK" });
    expect(spec?.id).toBe(optionsOf(["--webhook", url]).sinks[0]?.id as string);
    expect(JSON.stringify(spec)).not.toContain("secret1");
  });

  test("is not heard where its flag stands on the line", () => {
    const variables = { WATCHDOG_WEBHOOK: "https://h/variable" };
    expect(listShown(optionsOf(["--webhook", "https://h/line"], { variables }))).toEqual([
      "webhook https://h/line (default)",
    ]);
  });
});

describe("a table [sinks.NAME]", () => {
  const OPS = '[sinks.ops]\nwebhook = "https://h/hook"\nshape = "slack"\nevents = ["failure"]\n';

  test("is heard by every run, beside what its line says", () => {
    expect(listShown(optionsOf(["--webhook", "https://h/line"], { files: [OPS] }))).toEqual([
      "webhook https://h/line (default)",
      "webhook https://h/*** (failure)",
    ]);
    expect(optionsOf([], { files: [OPS] }).sinks[0]?.shape).toBe("slack");
  });

  test("of the stronger file takes the place of the weaker one as a whole", () => {
    const other = '[sinks.ops]\nmail = "root"\n[sinks.more]\ncommand = "./tell.sh"\n';
    expect(listShown(optionsOf([], { files: [OPS, other] }))).toEqual([
      "mail root (default)",
      "command ./tell.sh (default)",
    ]);
  });

  test.each([
    ["[sinks.x]\n", "sinks.x: found no target, expected one of command, webhook, ping, mail"],
    ['[sinks.x]\nmail = "root"\nping = "http://h/x"\n', "sinks.x: found 2 targets"],
    ['[sinks.x]\nmail = "root"\nshape = "slack"\n', "sinks.x: found a shape with mail"],
    ['[sinks.x]\nwebhok = "http://h/x"\n', "sinks.x.webhok: found an unknown key"],
    ['[sinks.x]\nmail = "root"\nevents = ["nightly"]\n', "sinks.x.events: found"],
    ['[sinks.x]\nwebhook = "http://h/x"\nshape = "teams"\n', "sinks.x.shape: found"],
    ['[sinks.x]\nwebhook = "ftp://u:pw_1234@h"\n', "sinks.x.webhook: found"],
    ['[sinks]\nx = "root"\n', "sinks.x: found"],
    ['[sinks."a b"]\nmail = "root"\n', "found a name that no sink has"],
    ['[run]\nping = "http://h/x"\n', "run.ping: found an option that belongs to one job"],
  ])("%j is refused", (text, message) => {
    const findings = findingsOf(text);
    expect(findings.join("\n")).toContain(message);
    expect(findings.join("\n")).not.toContain("pw_1234");
  });
});

test("[run] says the same as a line", () => {
  const file =
    '[run]\nwebhook = ["https://h/a", "https://h/b"]\non_failure = "./a.sh"\nmask = "x+y"\n';
  const options = optionsOf([], { files: [file] });
  expect(listShown(options)).toEqual([
    "command ./a.sh (failure)",
    "webhook https://h/a (default)",
    "webhook https://h/b (default)",
  ]);
  expect(options.masks).toEqual(["x+y"]);
});
