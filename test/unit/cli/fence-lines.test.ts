/**
 * The lines of fence: what is fenced, for how long, and where the operation begins.
 */

import { describe, expect, test } from "bun:test";
import { cutFence, cutGitHook } from "../../../src/cli/cut-fence.ts";
import type { Problem } from "../../../src/cli/cut-options.ts";
import type { Cut } from "../../../src/cli/cut.ts";
import { FENCE_COMMANDS, FENCE_DEFAULTS, GIT_HOOK_COMMAND } from "../../../src/cli/fence-table.ts";
import { takesValue } from "../../../src/cli/option-row.ts";
import {
  DEFAULT_FENCE_TIMEOUT_MS,
  DEFAULT_FENCE_WAIT_MS,
} from "../../../src/core/fence-options.ts";

const NOWHERE = { stateDir: undefined, configFile: undefined };
const PLAIN = {
  ...NOWHERE,
  keys: [],
  timeoutMs: DEFAULT_FENCE_TIMEOUT_MS,
  waitMs: DEFAULT_FENCE_WAIT_MS,
  isVerbose: false,
};
const GPU = { kind: "lane", name: "gpu" };
const ORDERS = { kind: "db", name: "orders" };

function cutOf(line: string): Cut | Problem {
  return cutFence(line.split(" "), {
    WATCHDOG_TIMEOUT: "1",
    WATCHDOG_WAIT: "x",
    WATCHDOG_KEY: "x",
  });
}

function problemOf(line: string): readonly [string, string | undefined] {
  const cut = cutOf(line);
  if (cut.kind !== "problem") throw new Error(`not refused: ${line}`);
  return [cut.message, cut.repairs[0]?.words.join(" ")];
}

describe("fence", () => {
  test("runs what stands behind --, and without it only checks", () => {
    expect(cutOf("fence -- git push")).toEqual({ kind: "fence", options: PLAIN, commandAt: 2 });
    expect(cutOf("fence")).toEqual({ kind: "fence", options: PLAIN, commandAt: undefined });
    expect(cutOf("fence -- -- x")).toEqual({ kind: "fence", options: PLAIN, commandAt: 2 });
    expect(cutOf("fence -- git-push")).toEqual({ kind: "fence", options: PLAIN, commandAt: 2 });
    expect(cutOf("fence -v --state-dir /s --config c -- x --key y")).toEqual({
      kind: "fence",
      options: { ...PLAIN, isVerbose: true, stateDir: "/s", configFile: "c" },
      commandAt: 7,
    });
  });

  test("takes keys that add up, and spans of which 0 is no limit and no wait", () => {
    expect(cutOf("fence --key lane:gpu --key=db:orders --key lane:gpu --timeout 5 -- x")).toEqual({
      kind: "fence",
      options: { ...PLAIN, keys: [ORDERS, GPU], timeoutMs: 5_000 },
      commandAt: 9,
    });
    expect(cutOf("fence --timeout 0 --wait 0")).toEqual({
      kind: "fence",
      options: { ...PLAIN, timeoutMs: undefined, waitMs: 0 },
      commandAt: undefined,
    });
  });

  test("is refused without -- before the operation, and says so", () => {
    expect(problemOf("fence git push")).toEqual([
      'fence: found "git", expected -- before the operation',
      "fence -- git push",
    ]);
    expect(problemOf("fence --key lane:gpu ./x --force")).toEqual([
      'fence: found "./x", expected -- before the operation',
      "fence --key lane:gpu -- ./x --force",
    ]);
    expect(problemOf("fence --")).toEqual([
      "no operation stands behind --, expected watchdog fence [options] [-- COMMAND [ARG...]]",
      "fence",
    ]);
    expect(cutFence(["fence", "--", ""], {})).toMatchObject({ kind: "problem" });
  });
});

describe("fence git-push", () => {
  test("takes a remote and branches, and options anywhere before --", () => {
    const push = { ...NOWHERE, keys: [], timeoutMs: DEFAULT_FENCE_TIMEOUT_MS };
    const plain = { kind: "fence-git-push", ...push, waitMs: DEFAULT_FENCE_WAIT_MS };
    expect(cutOf("fence git-push")).toEqual({ ...plain, remote: undefined, refspecs: [] } as Cut);
    expect(cutOf("fence git-push origin main dev --key lane:gpu")).toEqual({
      ...plain,
      keys: [GPU],
      remote: "origin",
      refspecs: ["main", "dev"],
    } as Cut);
    expect(problemOf("fence git-push --force origin")[0]).toStartWith('unknown option "--force"');
    expect(problemOf("fence --key lane:gpu git-push origin")).toEqual([
      'found "git-push" behind the options, expected it right after fence',
      "fence git-push --key lane:gpu origin",
    ]);
    expect(problemOf("fence git-pus origin")[1]).toBe("fence git-push origin");
  });
});

describe("fence install-git-hooks", () => {
  test("takes one directory at most", () => {
    const plain = { kind: "fence-install-git-hooks", ...NOWHERE, keys: [], isUninstalling: false };
    expect(cutOf("fence install-git-hooks")).toEqual({ ...plain, directory: undefined } as Cut);
    expect(cutOf("fence install-git-hooks repo --uninstall --key lane:gpu")).toEqual({
      ...plain,
      keys: [GPU],
      isUninstalling: true,
      directory: "repo",
    } as Cut);
    expect(problemOf("fence install-git-hooks a b")[1]).toBe("fence install-git-hooks a");
  });
});

test("a hook's line ends its options at the name of the hook", () => {
  const line = "__git-hook --key lane:gpu pre-push --key origin";
  expect(cutGitHook(line.split(" "), {})).toEqual({
    kind: "git-hook",
    ...NOWHERE,
    keys: [GPU],
    hook: "pre-push",
    words: ["--key", "origin"],
  });
  expect(cutGitHook(["__git-hook"], {})).toMatchObject({ kind: "problem" });
});

test("each row has an example that its reader accepts, and states the default in force", () => {
  const rows = [...FENCE_COMMANDS, GIT_HOOK_COMMAND].flatMap((command) => command.rows);
  const isRead = new Set<string>();
  for (const row of rows.filter(takesValue)) {
    expect([row.flag, row.read(row.example).kind]).toEqual([row.flag, "value"]);
    const parsed = row.read(row.defaultText);
    if (parsed.kind === "refused" || row.kind === "path") continue;
    isRead.add(row.flag);
    expect(FENCE_DEFAULTS).toMatchObject(parsed.value);
  }
  expect([...isRead]).toEqual(["--timeout", "--wait"]);
});
