/**
 * `jobs/<encoded name>`: that steps of a job of that name may have run, and which job it was. It
 * lies beside the journal, because one that was set aside, removed or replaced knows nothing of the
 * job, and the next run would begin it anew, with every step that must not run twice; an older copy
 * of it that was put back knows nothing of what later runs have done, and a later generation in the
 * marker gives it away.
 *
 *     {"format":1,"name":"nightly","job_id":"…","run_id":"…","generation":7}
 *
 * Always: it is on the disk before the first step of a job is started, and after the job is in the
 * journal, so that a kill in between leaves a job of which no step has run; it goes when the
 * journal says that the job is done. A file that cannot be read counts as one that names a lost
 * job.
 *
 * Clock: none. After a crash: the old content or the new one (os/files.ts).
 */
import { closeSync, constants, existsSync, fstatSync, openSync } from "node:fs";
import { readFileSync, unlinkSync } from "node:fs";
import { replaceFile, syncDirectory } from "../os/files.ts";
import { encodeName } from "../os/state-dir.ts";
import { fileModeAt, makeStateDirectory, refusalOfOwner } from "../os/state-sharing.ts";
import type { JournalPlace } from "./places.ts";
import { codeOf } from "./trouble.ts";

const FORMAT = 1;
const LONGEST_FILE = 65_536;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

export interface JobMarker {
  readonly name: string;
  readonly jobId: string;
  readonly runId: string;
  /** Of the last run that took the job over; 0: an older version has written the marker. */
  readonly generation: number;
}

export type MarkerLook =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly marker: JobMarker }
  | { readonly kind: "unreadable"; readonly reason: string };

export function markerPath({ directory }: JournalPlace, name: string): string {
  return `${directory}/jobs/${encodeName(name)}`;
}

/** Never throws. */
export function readMarker(place: JournalPlace, name: string): MarkerLook {
  const path = markerPath(place, name);
  try {
    const found = parseMarker(readOwnFile(path));
    if (found?.name === name) return { kind: "found", marker: found };
    return { kind: "unreadable", reason: `${path} names no job ${name}` };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { kind: "none" };
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "unreadable", reason: `${path} cannot be read: ${reason}` };
  }
}

function readOwnFile(path: string): string {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const found = fstatSync(fd);
    const refusal = found.isFile() ? refusalOfOwner(path, found) : "it is not a regular file";
    if (refusal !== undefined) throw new Error(refusal);
    if (found.size > LONGEST_FILE) throw new Error("it is too long");
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

function parseMarker(text: string): JobMarker | undefined {
  const found: unknown = JSON.parse(text);
  if (typeof found !== "object" || found === null) return undefined;
  const fields = found as Partial<Record<string, unknown>>;
  const { name, job_id: jobId, run_id: runId, generation = 0 } = fields;
  const isMarker =
    typeof name === "string" && typeof jobId === "string" && typeof runId === "string";
  return isMarker && typeof generation === "number"
    ? { name, jobId, runId, generation }
    : undefined;
}

/**
 * On the disk when it comes back.
 * @throws the error of the system call (ENOSPC, EACCES …); the one before stands then
 * Blocks: two fsyncs, four where it is the first one of a state directory.
 */
export function writeMarker(place: JournalPlace, marker: JobMarker): void {
  const path = markerPath(place, marker.name);
  const jobs = `${place.directory}/jobs`;
  if (!existsSync(jobs)) {
    makeStateDirectory(jobs);
    syncDirectory(place.directory);
  }
  const { name, jobId, runId, generation } = marker;
  const content = { format: FORMAT, name, job_id: jobId, run_id: runId, generation };
  replaceFile(path, `${JSON.stringify(content)}\n`, fileModeAt(path));
}

/**
 * Only where it names this job: a newer one has written its own over it.
 * @throws the error of unlink(2); it may stay, because the journal knows the job
 */
export function removeMarker(place: JournalPlace, name: string, jobId: string): void {
  const found = readMarker(place, name);
  if (found.kind !== "found" || found.marker.jobId !== jobId) return;
  unlinkSync(markerPath(place, name));
  syncDirectory(`${place.directory}/jobs`);
}
