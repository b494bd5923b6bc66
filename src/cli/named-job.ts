/**
 * Which job a person means by a word: that of a job file, or one that the journal knows by its
 * name, and what its own file says of it today.
 *
 * Loaded only for the commands of jobs. Always: nothing is made or changed; two files with one name
 * are never taken for one another.
 */
import { WatchdogError } from "../core/errors.ts";
import type { JobSpec } from "../core/job-spec.ts";
import { quoteForShell } from "../core/own-command.ts";
import { escapeUnprintable } from "../core/printable.ts";
import type { Settings } from "../core/settings.ts";
import { checkPlace } from "../inspect/state.ts";
import { readNewestJob, type StoredJob } from "../journal/job-queries.ts";
import { placeIn } from "../os/own-line.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { renderFinding } from "./job-findings.ts";
import { type ExplainMissing, isNoFile, type JobReading, readJob, refuseJob } from "./load-job.ts";
import { parseName } from "./values.ts";

const HELP = "watchdog help job";

/**
 * Of a word that is no file: whether it is the name of a job, and where that one has its file.
 *
 * @param stateDir  as it was asked for; undefined: that of the user
 * @param verb  of the line that is shown instead: `run`, `status`
 */
export function explainMissing(stateDir: string | undefined, verb: string): ExplainMissing {
  return (word) => {
    const known = parseName(word).kind === "value" ? lookUp(stateDir, word) : undefined;
    if (known === undefined) return { more: "", hint: HELP };
    if (known.file === undefined) return { more: "; no job of this name is known", hint: HELP };
    const file = escapeUnprintable(known.file);
    const line = quoteForShell(["watchdog", "job", verb, known.file]);
    return {
      more: `; a job of this name is known, and its file is ${file}`,
      hint: line === undefined ? HELP : placeIn(line),
    };
  };
}

/** Undefined: nobody can tell. */
function lookUp(
  stateDir: string | undefined,
  name: string,
): { readonly file: string | undefined } | undefined {
  try {
    const stateDirectory = resolveStateDirectory(stateDir);
    checkPlace(stateDirectory);
    const found = readNewestJob(stateDirectory, name);
    if (found.kind === "unreadable") return undefined;
    return { file: found.kind === "read" ? found.value?.record.file : undefined };
  } catch (error) {
    // The state directory is refused or cannot be read: that the file is missing is said first.
    if (error instanceof WatchdogError) return undefined;
    throw error;
  }
}

export interface NamedJob {
  readonly name: string;
  /** The newest of the name; undefined: none was ever begun here. */
  readonly stored: StoredJob | undefined;
  /** As its own file has it today; undefined: nobody can tell. */
  readonly spec: JobSpec | undefined;
  /** The file that was asked about, where it is not that of the job. */
  readonly askedFile: string | undefined;
  /** Lines about what could not be read. */
  readonly troubles: readonly string[];
}

/**
 * @param word  a job file, or the name of a job
 * @throws WatchdogError "config.refused" (78) where it is neither, "state.unusable" (125)
 */
export function findNamedJob(
  word: string,
  stateDirectory: string,
  settings: Settings | undefined,
): NamedJob {
  const asked = readJob(word, settings);
  const explain = explainMissing(stateDirectory, "status");
  const name = asked.kind === "job" ? asked.spec.name : word;
  if (asked.kind === "refused" && !(isNoFile(asked) && parseName(word).kind === "value")) {
    throw refuseJob(word, asked.findings, explain);
  }
  const found = readNewestJob(stateDirectory, name);
  if (found.kind === "unreadable") throw new WatchdogError("state.unusable", found.reason);
  const stored = found.kind === "read" ? found.value : undefined;
  if (stored === undefined) {
    if (asked.kind === "refused") throw refuseJob(word, asked.findings, explain);
    return { name, stored, spec: asked.spec, askedFile: undefined, troubles: [] };
  }
  const { file } = stored.record;
  const isOwn = asked.kind === "job" && asked.spec.file === file;
  const own = isOwn ? asked : readJob(file, settings);
  return {
    name,
    stored,
    spec: specOf(own, stored),
    askedFile: asked.kind === "job" && !isOwn ? asked.spec.file : undefined,
    troubles: listTroubles(own, stored),
  };
}

/** Why the record stands alone. */
function listTroubles(own: JobReading, stored: StoredJob): readonly string[] {
  const { file } = stored.record;
  if (own.kind === "refused") {
    return own.findings.slice(0, 1).map((one) => renderFinding(file, one));
  }
  return specOf(own, stored) === undefined ? [`${file} has another job today`] : [];
}

/** Another job may lie where its file was, or a link to another file. */
function specOf(reading: JobReading, { record }: StoredJob): JobSpec | undefined {
  if (reading.kind === "refused") return undefined;
  const { spec } = reading;
  return spec.name === record.name && spec.file === record.file ? spec : undefined;
}
