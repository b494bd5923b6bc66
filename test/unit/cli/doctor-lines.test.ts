/** The hidden line of `doctor`, and its answer as people and programs read it. */
import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import { renderDoctor } from "../../../src/cli/render-doctor.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { rememberOwnLine } from "../../../src/os/own-line.ts";
import type { CheckupReport } from "../../../src/doctor/request.ts";

function refusalOf(words: readonly string[]): string {
  try {
    cutCommandLine(words, {});
  } catch (error) {
    if (error instanceof WatchdogError) return error.message;
    throw error;
  }
  return "none";
}

describe("__lock-probe", () => {
  test("takes the absolute path of a file, whatever the environment says", () => {
    const cut = cutCommandLine(["__lock-probe", "/s/x"], { WATCHDOG_STATE_DIR: "relative" });
    expect(cut).toEqual({ kind: "lock-probe", path: "/s/x" });
  });

  test("is refused to a person", () => {
    const lines = [["--help"], [], ["x"], ["/s/x", "/s/y"]];
    for (const rest of lines) {
      expect(refusalOf(["__lock-probe", ...rest])).toBe(
        "__lock-probe is for watchdog doctor, expected the path of a file",
      );
    }
  });
});

const REPORT: CheckupReport = {
  stateDirectory: "/s",
  checks: [
    { check: "ffi", state: "ok", seen: "the C library can be called", advice: null },
    { check: "locks", state: "finding", seen: "bad\u001b[2J\nlock", advice: "move \u0007 it" },
  ],
  promises: [
    { promise: "exclusion", state: "does-not-hold", because: ["locks"] },
    { promise: "no-harm", state: "holds", because: [] },
  ],
};

describe("the answer of doctor", () => {
  test("names the configuration and the state directory of its own line in every advice", () => {
    const advice = "watchdog config check, or look";
    const check = { check: "configuration", state: "finding", seen: "bad", advice } as const;
    rememberOwnLine(["doctor", "--config", "/c.toml", "--state-dir=/s"]);
    const texts = [false, true].map((isJson) =>
      renderDoctor({ ...REPORT, checks: [check] }, { isJson }),
    );
    rememberOwnLine([]);
    for (const text of texts) {
      expect(text).toContain("watchdog config check --config /c.toml --state-dir /s, or look");
    }
  });

  test("says what to do below each finding, which promises hold, and the sum", () => {
    const lines = renderDoctor(REPORT, { isJson: false }).split("\n");
    expect(lines[0]).toBe("ok       ffi    the C library can be called");
    expect(lines[1]).toStartWith("finding  locks  bad");
    expect(lines[2]).toStartWith("         -> move");
    expect(lines.slice(3)).toEqual([
      "",
      "exclusion  DOES NOT HOLD  because of locks",
      "no-harm    holds          " +
        "nobody else is signalled, and no job fails for a trouble of watchdog's own",
      "",
      "1 finding",
      "",
    ]);
  });

  test("lets no foreign word move the cursor", () => {
    const text = renderDoctor(REPORT, { isJson: false });
    expect(/[^\x20-\x7e\n]/.test(text)).toBe(false);
  });

  test("is the same for programs, word by word", () => {
    const answer = JSON.parse(renderDoctor(REPORT, { isJson: true }));
    expect(answer).toEqual({
      format: 1,
      state_directory: "/s",
      checks: REPORT.checks,
      promises: REPORT.promises,
    });
  });
});
