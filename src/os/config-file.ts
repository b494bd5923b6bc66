/**
 * Reads configuration files: where they are, whether they may be trusted, and the table that their
 * TOML gives.
 *
 * Knows nothing of what is in them. Always: a file that somebody else owns or may write is refused
 * and not read, because whoever runs a command would run it as that other person wants; a default
 * file that is not there is no trouble, one that cannot be read is, and so is a link to nothing.
 *
 * State after a crash: none, nothing is written.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { statSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { findHome } from "./state-dir.ts";
import { decodeUtf8, readAtMost } from "./read-text.ts";

export const SYSTEM_CONFIG = "/etc/watchdog/config.toml";
/** Below the home of the password database; never HOME, which cron and the shell set apart. */
export const USER_CONFIG = ".config/watchdog/config.toml";
export const LARGEST_CONFIG_BYTES = 256 * 1024;

const OTHERS_MAY_WRITE = 0o022;

export interface ConfigText {
  readonly kind: "text";
  readonly path: string;
  readonly text: string;
  readonly ownerUid: number;
}

export type ConfigFileReading =
  | ConfigText
  | { readonly kind: "missing"; readonly path: string }
  /** Found, and what was expected: clauses for people. */
  | {
      readonly kind: "refused";
      readonly path: string;
      readonly found: string;
      readonly expected: string;
    };

/** The path of the user's file; undefined: he has no home. */
export function findUserConfig(): string | undefined {
  const home = findHome(process.getuid?.() ?? 0);
  return home === undefined ? undefined : `${home}/${USER_CONFIG}`;
}

/**
 * Follows links: a file is known by who owns it and who may write it, not by where it lies. A FIFO
 * is not waited for.
 */
export function readConfigFile(path: string): ConfigFileReading {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (cause) {
    return describeOpenError(path, codeOf(cause));
  }
  try {
    const found = fstatSync(descriptor);
    const refusal = refusalOf(found);
    if (refusal !== undefined) return { kind: "refused", path, ...refusal };
    const bytes = readAtMost(descriptor, LARGEST_CONFIG_BYTES);
    if (bytes === undefined) {
      const expected = `at most ${LARGEST_CONFIG_BYTES} bytes`;
      return { kind: "refused", path, found: "a larger file", expected };
    }
    const text = decodeUtf8(bytes);
    if (text === undefined) {
      return { kind: "refused", path, found: "bytes that are no text", expected: "UTF-8" };
    }
    return { kind: "text", path, text, ownerUid: found.uid };
  } catch (cause) {
    const expected = "a file that can be read"; // EIO, EISDIR
    return { kind: "refused", path, found: String(codeOf(cause)), expected };
  } finally {
    closeSync(descriptor);
  }
}

function describeOpenError(path: string, code: string | undefined): ConfigFileReading {
  if (code === "ENOENT" || code === "ENOTDIR") return describeGap(path);
  if (code === "EACCES" && !mayEnterHome(path)) return { kind: "missing", path };
  const found = code === "EACCES" ? "a file that may not be read" : `an error (${code})`;
  return { kind: "refused", path, found, expected: "a file that can be read" };
}

/**
 * What stands in the way of a file is no missing file: behind it there may be a policy, on a disk
 * that is not mounted yet.
 */
function describeGap(path: string): ConfigFileReading {
  const expected = "a file that can be read, or nothing at all";
  if (isThere(path)) return { kind: "refused", path, found: "a link that leads nowhere", expected };
  const above = dirname(path);
  if (!isThere(above) || isDirectory(above)) return { kind: "missing", path };
  return { kind: "refused", path, found: `no directory at ${above}`, expected };
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // ENOTDIR, EACCES: not even its directory is there
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false; // ELOOP, ENOTDIR: a link that leads to none
  }
}

/** A user whose home is another's has no file in it (as for the place of the state directory). */
function mayEnterHome(path: string): boolean {
  if (!path.endsWith(`/${USER_CONFIG}`)) return true;
  try {
    statSync(`${path.slice(0, -USER_CONFIG.length)}.`); // access(2) would ask for the real uid
    return true;
  } catch {
    return false; // EACCES: the home itself may not be entered
  }
}

function refusalOf(found: Stats): { found: string; expected: string } | undefined {
  const uid = process.geteuid?.() ?? 0;
  if (found.isDirectory()) return { found: "a directory", expected: "a file" };
  if (!found.isFile()) return { found: "no regular file", expected: "a file" };
  if (found.uid !== 0 && found.uid !== uid) {
    const expected = uid === 0 ? "one of root" : `one of root or uid ${uid}`;
    return { found: `a file of uid ${found.uid}`, expected };
  }
  if ((found.mode & OTHERS_MAY_WRITE) === 0) return undefined;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, "0");
  const expected = "one that only its owner may write (chmod go-w)";
  return { found: `a file that others may write (mode ${mode})`, expected };
}

export type TomlReading =
  | { readonly kind: "table"; readonly table: Readonly<Record<string, unknown>> }
  | {
      readonly kind: "not-toml";
      /** Undefined: none of the first MOST_LINES lines. */
      readonly line: number | undefined;
      /** A clause: where, and what is wrong there. */
      readonly found: string;
    };

/** The table of a text of TOML, or on which line it stops being one. */
export function parseToml(text: string): TomlReading {
  try {
    return { kind: "table", table: Bun.TOML.parse(text) as Record<string, unknown> };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const line = findWrongLine(text);
    const where = line === undefined ? `behind line ${MOST_LINES}` : `on line ${line}`;
    return { kind: "not-toml", line, found: `${where}: ${plainMessage(message)}` };
  }
}

function plainMessage(message: string): string {
  const plain = message.replace(/^TOML Parse error: /, "");
  return plain.slice(0, 1).toLowerCase() + plain.slice(1);
}

/** Beyond this the search would take longer than a person would. */
const MOST_LINES = 2_000;

/**
 * The parser does not say where it stopped. The longest beginning of whole lines that is TOML ends
 * right before the wrong one, or before a value of several lines that is wrong within.
 */
function findWrongLine(text: string): number | undefined {
  const all = text.split("\n");
  const lines = all.slice(0, MOST_LINES);
  if (all.length > MOST_LINES && isToml(`${lines.join("\n")}\n`)) return undefined;
  for (let count = lines.length - 1; count > 0; count -= 1) {
    if (isToml(`${lines.slice(0, count).join("\n")}\n`)) return count + 1;
  }
  return 1;
}

function isToml(text: string): boolean {
  try {
    Bun.TOML.parse(text);
    return true;
  } catch {
    return false; // SyntaxError, which is the answer
  }
}

/** Where the files of the machine and of the user are, or would be; weakest first. */
export function listDefaultConfigs(): readonly string[] {
  const user = findUserConfig();
  return user === undefined ? [SYSTEM_CONFIG] : [SYSTEM_CONFIG, user];
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
}
