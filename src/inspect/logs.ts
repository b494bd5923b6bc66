/**
 * Which kept output is meant by a name, a key or an id. Every log stands below `logs/<job>/` under
 * the id of its run, and ids are in the order of starts (UUIDv7), so that the files themselves are
 * asked first and the journal only where they leave a question.
 *
 * Always: of a job or a key it is the last run that kept something, and the caller is told where a
 * later one kept nothing. Read only; no link is followed. Clock: none.
 */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { type LeaseKey, parseKey } from "../core/lease-key.ts";
import { isRunId } from "../core/run-id.ts";
import { findRun, type JournalRun, lastRunOf, readHistory } from "../journal/queries.ts";
import { encodeName } from "../os/state-dir.ts";
import { viewAnswer } from "./journal-runs.ts";
import { runIdOf } from "./lease-facts.ts";
import { gatherLeases } from "./leases.ts";

export type LogFinding =
  | {
      readonly kind: "found";
      readonly runId: string;
      readonly path: string;
      /** A later run of the job, which has kept nothing (yet). */
      readonly silentLast: JournalRun | undefined;
    }
  /** `run`: what the journal knows of it; undefined: no such run is known. */
  | {
      readonly kind: "none";
      readonly run: JournalRun | undefined;
      readonly troubles: readonly string[];
    };

/** So far back the last run of a key that kept something is looked for. */
const LOOK_BACK = 100;
const LOG_NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.log$/;

/**
 * @param target  the name of a job, a key, the id of a run, or eight letters or more of its
 *   beginning
 * @throws WatchdogError "state.unusable" where the logs cannot be listed; of a key also
 *   "lease.refused", "lease.unusable"
 */
export function findLog(stateDirectory: string, target: string): LogFinding {
  const root = `${stateDirectory}/logs`;
  const known = isRunId(target) ? findById(root, target) : undefined;
  if (known !== undefined) return known;
  const ofJob = findByJob(stateDirectory, target);
  if (ofJob !== undefined) return ofJob;
  const key = parseKey(target);
  if (key !== undefined) return findByKey(stateDirectory, key, target);
  const { value: run, troubles } = viewAnswer(findRun(stateDirectory, target), undefined);
  const byBeginning = run === undefined ? undefined : findById(root, run.runId);
  return byBeginning ?? { kind: "none", run, troubles };
}

function findById(root: string, runId: string): LogFinding | undefined {
  for (const job of listDirectories(root)) {
    const path = `${root}/${job}/${runId}.log`;
    if (isThere(path)) return { kind: "found", runId, path, silentLast: undefined };
  }
  return undefined;
}

function findByJob(stateDirectory: string, job: string): LogFinding | undefined {
  const directory = `${stateDirectory}/logs/${encodeName(job)}`;
  const runId = list(directory)
    .flatMap(({ name }) => LOG_NAME.exec(name)?.[1] ?? [])
    .toSorted()
    .at(-1);
  if (runId === undefined) return undefined;
  const { value: last } = viewAnswer(lastRunOf(stateDirectory, job), undefined);
  const silentLast = last !== undefined && last.runId > runId ? last : undefined;
  return { kind: "found", runId, path: `${directory}/${runId}.log`, silentLast };
}

/** Of `job:NAME` it is the job; else the run that holds the key, or those that held it before. */
function findByKey(stateDirectory: string, key: LeaseKey, target: string): LogFinding {
  const ofJob = key.kind === "job" ? findByJob(stateDirectory, key.name) : undefined;
  if (ofJob !== undefined) return ofJob;
  const { value: runs, troubles } = viewAnswer<JournalRun[]>(
    readHistory(stateDirectory, { target, limit: LOOK_BACK }),
    [],
  );
  const holders = gatherLeases({ stateDirectory, keys: [key] }).flatMap(
    (view) => runIdOf(view) ?? [],
  );
  const [last, ...earlier] = new Set([...holders, ...runs.map(({ runId }) => runId)]);
  const run = runs.find(({ runId }) => runId === last) ?? runs[0];
  for (const runId of last === undefined ? [] : [last, ...earlier]) {
    const found = findById(`${stateDirectory}/logs`, runId);
    if (found?.kind === "found") return { ...found, silentLast: runId === last ? undefined : run };
  }
  return { kind: "none", run, troubles };
}

function listDirectories(path: string): string[] {
  return list(path).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/**
 * None where it is missing.
 * @throws WatchdogError "state.unusable": EACCES, EIO, a link or no directory in its place
 */
function list(path: string): Dirent[] {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    if (found.isDirectory()) return readdirSync(path, { withFileTypes: true });
    throw unreadable(path, found.isSymbolicLink() ? "it is a symbolic link" : NO_DIRECTORY);
  } catch (cause) {
    throw cause instanceof WatchdogError ? cause : unreadable(path, reasonOf(cause));
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const isBelowFile = "code" in cause && cause.code === "ENOTDIR";
  return isBelowFile ? "what is above it is not a directory" : cause.message;
}

const NO_DIRECTORY = "it is not a directory";

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw unreadable(path, reasonOf(cause));
  }
}

function unreadable(path: string, reason: string): WatchdogError {
  return new WatchdogError("state.unusable", `${path} cannot be read: ${reason}`, {
    hint: `ls -ld ${path}`,
  });
}
