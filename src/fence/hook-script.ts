/**
 * The text of an installed hook. Pure; puts nothing anywhere.
 *
 * Always: a script of sh(1) alone; it knows watchdog by an absolute path and else by PATH, and
 * refuses where there is none; the hook that was there before gets the same words and the same
 * input, and its refusal counts.
 */

/** Of githooks(5), those that can refuse what is written. */
export const HOOKS = ["pre-commit", "pre-push", "reference-transaction"] as const;
export type HookName = (typeof HOOKS)[number];

/** The hook that was there before lies beside ours under this name. */
export const KEPT_SUFFIX = ".before-watchdog";

const MARK = "# watchdog-git-hook 1";

export interface HookScript {
  readonly hook: HookName;
  /** The program, absolute. */
  readonly program: string;
  /** Options of `__git-hook`. */
  readonly options: readonly string[];
  /** The first line of the hook that was there before; undefined: none was. */
  readonly keptFirstLine: string | undefined;
}

/** Whether a hook is one that was written here, by whatever version. */
export function isOurHook(text: string): boolean {
  return text.split("\n", 2)[1]?.startsWith("# watchdog-git-hook ") === true;
}

export function renderHook(script: HookScript): string {
  const { hook, program } = script;
  return [
    "#!/bin/sh",
    `${MARK}: watchdog fence install-git-hooks --uninstall takes it away`,
    "# Refuses while another run of watchdog holds this checkout.",
    `watchdog=${quote(program)}`,
    `command -v "$watchdog" >/dev/null 2>&1 || watchdog=watchdog`,
    `command -v "$watchdog" >/dev/null 2>&1 || {`,
    `  echo "$0: there is no watchdog any more, so nobody can tell who holds this checkout;" \\`,
    `    "hint: git -c core.hooksPath=/dev/null COMMAND, or remove this hook" >&2`,
    "  exit 1",
    "}",
    ...(hook === "pre-commit" ? renderPlain(script) : renderWithInput(script)),
    "",
  ].join("\n");
}

function renderPlain(script: HookScript): string[] {
  return [`${renderCall(script)} </dev/null || exit 1`, ...renderKept(script, "exec ")];
}

/** What git says on standard input is for two. */
function renderWithInput(script: HookScript): string[] {
  const isTransaction = script.hook === "reference-transaction";
  const feeds = `[ -z "$input" ] || printf '%s\\n' "$input"`;
  return [
    // Most transactions and most of their states are of no interest: they cost no start of ours.
    ...(isTransaction && script.keptFirstLine === undefined
      ? [`[ "$1" = prepared ] || exit 0`]
      : []),
    "input=$(cat)",
    "feed() {",
    `  ${feeds}`,
    "} 2>/dev/null",
    ...(isTransaction
      ? [
          `case "$1 $input" in`,
          `prepared*" HEAD"* | prepared*" refs/heads/"*) feed | ${renderCall(script)} || exit 1 ;;`,
          "esac",
        ]
      : [`feed | ${renderCall(script)} || exit 1`]),
    ...renderKept(script, "feed | "),
  ];
}

function renderCall({ hook, options }: HookScript): string {
  const words = ["__git-hook", ...options, hook].map(quoteWhereNeeded);
  return `"$watchdog" ${words.join(" ")} "$@"`;
}

/**
 * A script of a shell is read by that shell under our name: managers of hooks find their own files
 * by `$0`. Anything else is started as it lies there.
 */
function renderKept({ keptFirstLine }: HookScript, before: "exec " | "feed | "): string[] {
  if (keptFirstLine === undefined) return [];
  const kept = `"$0${KEPT_SUFFIX}"`;
  const shell = shellOf(keptFirstLine);
  const start = shell === undefined ? `${kept} "$@"` : `${shell} -c '. ${kept}' "$0" "$@"`;
  return [`[ -x ${kept} ] || exit 0`, `${before}${start}`];
}

/** `#!/usr/bin/env bash` → the words that start it; undefined: not one that reads files alike. */
function shellOf(firstLine: string): string | undefined {
  const found = /^#!\s*((?:\/\S+\/env\s+)?(?:\/\S+\/)?(?:sh|bash|dash|ksh))((?:\s+-[a-z]+)*)\s*$/;
  const [, words, flags = ""] = found.exec(firstLine) ?? [];
  return words === undefined ? undefined : `${words}${flags.replace(/\s+/g, " ")}`;
}

function quoteWhereNeeded(word: string): string {
  return /^[A-Za-z0-9_./:=-]+$/.test(word) ? word : quote(word);
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
