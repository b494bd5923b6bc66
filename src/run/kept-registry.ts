/**
 * What was started by `watchdog keep` within a run: one small file for each, in `<state>/kept/<run
 * id>/`. The supervisor reads it when it has to know who belongs to the job; `keep` writes it
 * before the process exists.
 *
 * A process counts as kept if it is the registered one (pid and start), or carries the registered
 * token in its environment (a daemon that forks once more), or descends from either. State after a
 * crash: the files remain, name dead processes, and are harmless.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { KeptProcesses } from "../core/survivors-view.ts";
import { identify, type ProcessRow } from "../core/tree-members.ts";
import { replaceFile } from "../os/files.ts";
import { readEnvironment } from "../os/proc.ts";
import { fileModeAt, makeStateDirectory } from "../os/state-sharing.ts";

export const KEPT_VARIABLE = "WATCHDOG_KEPT";
/** More registrations of one run than this are not read. */
const MOST_KEPT = 1000;

export interface KeptEntry {
  readonly token: string;
  /** `pid@start`; empty until the process exists. */
  readonly identity: string;
}

function directoryOf(stateDirectory: string, runId: string): string {
  return `${stateDirectory}/kept/${runId}`;
}

/**
 * @throws the error of the system call: then nothing may be started, because nobody would know it
 */
export function registerKept(stateDirectory: string, runId: string, entry: KeptEntry): void {
  const directory = directoryOf(stateDirectory, runId);
  makeStateDirectory(directory);
  const path = `${directory}/${entry.token}`;
  replaceFile(path, entry.identity, fileModeAt(path));
}

export function readKept(stateDirectory: string, runId: string): KeptEntry[] {
  const directory = directoryOf(stateDirectory, runId);
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return []; // ENOENT: nothing was kept
  }
  return names
    .filter((name) => /^[0-9a-f]{32}$/.test(name))
    .slice(0, MOST_KEPT)
    .map((token) => ({ token, identity: readIdentity(`${directory}/${token}`) }));
}

/** What was registered within a run, in the words of the decision about survivors. */
export function keptProcesses(stateDirectory: string, runId: string): KeptProcesses {
  const entries = readKept(stateDirectory, runId);
  return {
    identities: new Set(entries.map((entry) => entry.identity).filter((one) => one !== "")),
    tokens: new Set(entries.map((entry) => entry.token)),
  };
}

function readIdentity(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // ENOENT: replaced at this moment; the token still tells
  }
}

export function forgetKept(stateDirectory: string, runId: string): void {
  const directory = directoryOf(stateDirectory, runId);
  if (existsSync(directory)) rmSync(directory, { recursive: true, force: true });
}

/** The kept ones among the processes of a tree. */
export function findKept(
  rows: readonly ProcessRow[],
  stateDirectory: string,
  runId: string,
): ReadonlySet<number> {
  const entries = readKept(stateDirectory, runId);
  if (entries.length === 0) return NOBODY;
  const identities = new Set(entries.map((entry) => entry.identity));
  const tokens = new Set(entries.map((entry) => `${KEPT_VARIABLE}=${entry.token}`));
  const kept = rows.filter((row) => identities.has(identify(row)) || carriesToken(row.pid, tokens));
  return new Set(kept.map((row) => row.pid));
}

const NOBODY: ReadonlySet<number> = new Set();

function carriesToken(pid: number, tokens: ReadonlySet<string>): boolean {
  return readEnvironment(pid)?.some((entry) => tokens.has(entry)) ?? false;
}
