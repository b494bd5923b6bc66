/**
 * `watchdog fence install-git-hooks`: puts the hooks that ask watchdog where git looks for them,
 * and takes them away again.
 *
 * Guarantees: a hook that was there before stays beside ours, and is put back; at no moment is its
 * place without a hook; doing the same again changes nothing. Non-guarantees: hooks that another
 * program writes over ours later. Clock: none. State after a crash: each hook is the old one or
 * ours; a second link to the old one may remain, and doing it again goes on from there.
 */
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
} from "node:fs";
import { resolve } from "node:path";
import { valueOf } from "../core/environment-entries.ts";
import { EXIT, WatchdogError } from "../core/errors.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { Leaving } from "../core/outcome.ts";
import { replaceFile } from "../os/files.ts";
import { writeAnswer } from "../os/say.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { type FenceSurroundings, makeOperationEnvironment } from "./fence-command.ts";
import { Git } from "./git.ts";
import { type HookName, HOOKS, isOurHook, KEPT_SUFFIX, renderHook } from "./hook-script.ts";

const HOOK_MODE = 0o755;

export interface InstallRequest extends FenceSurroundings {
  /** The program that the hooks are to start, absolute. */
  readonly program: string;
  readonly options: {
    /** Of the checkout; undefined: the working directory. */
    readonly directory: string | undefined;
    readonly keys: readonly LeaseKey[];
    readonly isUninstalling: boolean;
    /** Written into the hooks where it was asked for. */
    readonly stateDir: string | undefined;
  };
}

/**
 * Tells on standard output what became of each hook.
 * @returns 0, or as git has left where it is not there
 * @throws WatchdogError "git.refused" (78): no checkout, a hook that cannot be kept; "git.unusable"
 *   (125): the system says no
 */
export async function installGitHooksCommand(request: InstallRequest): Promise<Leaving> {
  const place = await findHooks(request);
  if (place.kind === "leave") return place.leaving;
  const { hooks } = place;
  const { isUninstalling } = request.options;
  const options = hookOptions(request);
  try {
    if (!isUninstalling) mkdirSync(hooks, { recursive: true });
    const { program } = request;
    const lines = HOOKS.map((hook) => {
      const path = `${hooks}/${hook}`;
      const done = isUninstalling ? uninstall(path) : install(path, { hook, program, options });
      return `${path}: ${done}\n`;
    });
    const shared = isUninstalling || place.isOfRepository ? [] : [`${hooks}: ${FOR_ALL}\n`];
    const isWritten = writeAnswer([...lines, ...shared].join(""));
    return { kind: "status", code: isWritten ? EXIT.ok : EXIT.wrapper_error };
  } catch (cause) {
    throw asUnusable(hooks, cause);
  }
}

const FOR_ALL = "core.hooksPath leads here: these hooks serve every repository that it is set for";

type HooksPlace =
  | { readonly kind: "leave"; readonly leaving: Leaving }
  | { readonly kind: "found"; readonly hooks: string; readonly isOfRepository: boolean };

/** Where git itself looks for hooks, by core.hooksPath and for a linked worktree too. */
async function findHooks(request: InstallRequest): Promise<HooksPlace> {
  const directory = resolve(request.options.directory ?? ".");
  const git = new Git({
    inherited: request.inherited,
    environment: environmentOf(request),
    findKept: () => new Set(),
    timeoutMs: undefined,
  });
  const top = await git.ask(["-C", directory, "rev-parse", "--show-toplevel"]);
  if (top.kind === "failed") {
    const { leaving } = top;
    const isMissing = leaving.kind === "status" && leaving.code === EXIT.not_found;
    if (isMissing || leaving.kind === "signal") return { kind: "leave", leaving };
    throw new WatchdogError("git.refused", `${directory} is no checkout of git (or a bare one)`, {
      hint: "watchdog fence install-git-hooks DIRECTORY",
    });
  }
  const topLevel = top.text.replace(/\n$/, "");
  const words = ["-C", topLevel, "rev-parse", "--git-path", "hooks", "--git-common-dir"];
  const paths = await git.ask(words);
  if (paths.kind === "failed") return { kind: "leave", leaving: paths.leaving };
  const [hooks = "", common = ""] = paths.text.split("\n").map((line) => resolve(topLevel, line));
  return { kind: "found", hooks, isOfRepository: hooks === `${common}/hooks` };
}

/** Variables that git sets for its own children name one repository, and DIR another. */
const OF_ANOTHER_REPOSITORY = /^GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|PREFIX)=/;

function environmentOf(request: InstallRequest): Uint8Array[] {
  const environment = makeOperationEnvironment(request);
  if (request.options.directory === undefined) return environment;
  return environment.filter(
    (entry) => !OF_ANOTHER_REPOSITORY.test(Buffer.from(entry).toString("latin1")),
  );
}

/**
 * Who commits by hand has no WATCHDOG_STATE_DIR: where the leases lie is written in, unless it is
 * the place that everybody has.
 */
function hookOptions({ options, inherited }: InstallRequest): string[] {
  const asked = options.stateDir ?? valueOf(inherited.environment, "WATCHDOG_STATE_DIR");
  const place = asked === undefined ? [] : ["--state-dir", resolveStateDirectory(asked)];
  return [...place, ...options.keys.flatMap((key) => ["--key", renderKey(key)])];
}

type Done = string;

function install(
  path: string,
  wanted: { readonly hook: HookName; readonly program: string; readonly options: string[] },
): Done {
  const kept = `${path}${KEPT_SUFFIX}`;
  const found = inspect(path);
  const isForeign = found !== undefined && !isOurs(path, found);
  if (isForeign) keep(path, kept, found);
  const keptFirstLine = inspect(kept) === undefined ? undefined : readFirstLine(kept);
  const text = renderHook({ ...wanted, keptFirstLine });
  if (!isForeign && found !== undefined && readText(path) === text && isRunnable(found)) {
    return "already there";
  }
  replaceFile(path, text, HOOK_MODE);
  const too = keptFirstLine === undefined ? "" : `; ${kept} is run too`;
  return `${found === undefined || isForeign ? "installed" : "renewed"}${too}`;
}

/** A second name for the old hook: its own is taken over by the rename of ours. */
function keep(path: string, kept: string, found: Stats): void {
  if (!found.isFile() && !found.isSymbolicLink()) {
    throw new WatchdogError("git.refused", `${path} is no file, expected a hook or nothing`, {
      hint: `ls -ld ${path}`,
    });
  }
  if (inspect(kept) !== undefined) {
    if (readText(kept) === readText(path)) return;
    throw new WatchdogError(
      "git.refused",
      `${path} and ${kept} are two hooks that were there before, and only one can be kept`,
      { hint: `diff ${path} ${kept}` },
    );
  }
  linkSync(path, kept);
}

function uninstall(path: string): Done {
  const kept = `${path}${KEPT_SUFFIX}`;
  const found = inspect(path);
  if (found !== undefined && !isOurs(path, found)) return "left alone, it is not watchdog's";
  if (inspect(kept) !== undefined) {
    renameSync(kept, path);
    return "the hook from before is back";
  }
  if (found === undefined) return "not there";
  unlinkSync(path);
  return "removed";
}

function inspect(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function isOurs(path: string, found: Stats): boolean {
  return found.isFile() && isOurHook(readText(path));
}

function isRunnable({ mode }: Stats): boolean {
  return (mode & 0o111) === 0o111;
}

/** More than any script that somebody has written. */
const LONGEST_HOOK = 16_777_216;

/** As latin1, so that two programs are alike only byte by byte; a link that leads nowhere is "". */
function readText(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || !found.isFile() || found.size > LONGEST_HOOK) return "";
  return readFileSync(path, "latin1");
}

function readFirstLine(path: string): string {
  return readText(path).split("\n", 1)[0] ?? "";
}

/** EACCES, EROFS, ENOSPC, EPERM (a file system without hard links) … */
function asUnusable(hooks: string, cause: unknown): unknown {
  if (cause instanceof WatchdogError || !(cause instanceof Error) || !("code" in cause)) {
    return cause;
  }
  return new WatchdogError("git.unusable", `${hooks} cannot be written: ${cause.message}`, {
    hint: `ls -ld ${hooks}`,
    cause,
  });
}
