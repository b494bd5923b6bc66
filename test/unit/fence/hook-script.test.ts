/** The text of an installed hook. What it does is shown by test/e2e/git-hooks.test.ts. */
import { expect, test } from "bun:test";
import { HOOKS, isOurHook, renderHook } from "../../../src/fence/hook-script.ts";

const PLAIN = { program: "/usr/bin/watchdog", options: [], keptFirstLine: undefined };

test("a hook is known as one of ours, and no other is", () => {
  for (const hook of HOOKS) expect(isOurHook(renderHook({ hook, ...PLAIN }))).toBe(true);
  for (const text of ["", "#!/bin/sh\n", "#!/bin/sh\n# watchdog\n", "# watchdog-git-hook 1\n"]) {
    expect(isOurHook(text)).toBe(false);
  }
});

test("whatever is put into it stays one word of the shell", () => {
  const text = renderHook({
    ...PLAIN,
    hook: "pre-commit",
    program: "/o'p t/watchdog",
    options: ["--key", "job:$(touch x)", "--state-dir", "/it's"],
  });
  expect(text).toContain(`\nwatchdog='/o'\\''p t/watchdog'\n`);
  expect(text).toContain(
    `__git-hook --key 'job:$(touch x)' --state-dir '/it'\\''s' pre-commit "$@"`,
  );
});

test.each([
  ["#!/bin/sh", `/bin/sh -c '. "$0.before-watchdog"' "$0" "$@"`],
  ["#!/bin/bash -e", `/bin/bash -e -c '. "$0.before-watchdog"' "$0" "$@"`],
  ["#! /usr/bin/env bash", `/usr/bin/env bash -c '. "$0.before-watchdog"' "$0" "$@"`],
  ["#!/usr/bin/env python3", `"$0.before-watchdog" "$@"`],
  ["#!/usr/bin/env -S bash -e", `"$0.before-watchdog" "$@"`],
  ["#!/bin/zsh", `"$0.before-watchdog" "$@"`],
  ["\x7fELF", `"$0.before-watchdog" "$@"`],
  ["", `"$0.before-watchdog" "$@"`],
])("a hook from before that begins with %j is started by %s", (keptFirstLine, start) => {
  const text = renderHook({ ...PLAIN, hook: "pre-push", keptFirstLine });
  expect(text).toEndWith(`\n[ -x "$0.before-watchdog" ] || exit 0\nfeed | ${start}\n`);
});
