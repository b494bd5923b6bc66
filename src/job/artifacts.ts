/**
 * What the steps of a job have to do with their artifacts: look before the start, check and hash at
 * the end, verify at a resume, remove before a step runs again. Every trouble of a place is a
 * result of that place; the others are looked at all the same.
 *
 * Guarantees: those of hash.ts and removal.ts. Blocks the calling thread: `ArtifactWorker` does the
 * same in a thread of its own. Clock: the kernel's clock of changes. State after a crash: nothing
 * but what was removed.
 */
import {
  type ArtifactCheck,
  type ArtifactSight,
  type ArtifactVerdict,
  decideArtifact,
  decideSame,
  type Hashing,
} from "../core/artifact.ts";
import type { FileSight } from "../core/file-changes.ts";
import type { ArtifactSpec } from "../core/job-spec.ts";
import type { ArtifactRecord } from "../core/step-record.ts";
import { awaitNextTick } from "../os/file-tick.ts";
import { hashPlace, lookAtPlace, troubleOf } from "./hash.ts";
import { type Removal, removePlace } from "./removal.ts";
import { DEFAULT_READING, newestOf, type Reading, sightOf } from "./survey.ts";

/**
 * @param directory  the job's, absolute, as realpath(3) gives it
 * @param path  relative, normalized, as the job file has it; an input's is no other
 */
export async function hashArtifact(
  directory: string,
  path: string,
  reading: Reading = DEFAULT_READING,
): Promise<Hashing> {
  return (await hashPlace(directory, path, reading)).hashing;
}

/** @returns one check for each record, in their order */
export async function verifyArtifacts(
  directory: string,
  records: readonly ArtifactRecord[],
  reading: Reading = DEFAULT_READING,
): Promise<readonly ArtifactCheck[]> {
  const checks: ArtifactCheck[] = [];
  for (const record of records) {
    checks.push(decideSame(record, await hashArtifact(directory, record.path, reading)));
  }
  return checks;
}

/**
 * Right before a step is started: what a write from now on will differ from. Waits, where something
 * was written within the present tick of the kernel's clock of changes, for the next one.
 */
export async function lookAtArtifacts(
  directory: string,
  specs: readonly ArtifactSpec[],
  reading: Reading = DEFAULT_READING,
): Promise<readonly ArtifactSight[]> {
  const sights: ArtifactSight[] = [];
  let newest = 0n;
  for (const { path } of specs) {
    const look = lookOnce(directory, path, reading);
    if (look.newest > newest) newest = look.newest;
    sights.push({ path, sight: look.sight });
  }
  await awaitNextTick(newest);
  return sights;
}

function lookOnce(
  directory: string,
  path: string,
  reading: Reading,
): { sight: FileSight; newest: bigint } {
  try {
    const survey = lookAtPlace(directory, path, reading);
    if (survey === undefined) return { sight: NOTHING, newest: 0n };
    return { sight: sightOf(survey), newest: newestOf(survey) };
  } catch (error) {
    return { sight: { kind: "unread", reason: troubleOf(error).reason }, newest: 0n };
  }
}

/**
 * When a step's command has said that all is well and its tree is gone: whether each artifact is
 * there, large enough and of this step, and its hash.
 *
 * @param before  what `lookAtArtifacts` saw; of a path that is not among them nothing is known
 * @returns one verdict for each, in the order of `specs`
 */
export async function checkNew(
  directory: string,
  specs: readonly ArtifactSpec[],
  before: readonly ArtifactSight[],
  reading: Reading = DEFAULT_READING,
): Promise<readonly ArtifactVerdict[]> {
  const known = new Map(before.map(({ path, sight }) => [path, sight]));
  const verdicts: ArtifactVerdict[] = [];
  for (const spec of specs) {
    const { hashing, survey } = await hashPlace(directory, spec.path, reading);
    const before = known.get(spec.path) ?? NOT_LOOKED;
    const after = survey === undefined ? NOTHING : sightOf(survey);
    verdicts.push(decideArtifact({ spec, hashing, before, after }));
  }
  return verdicts;
}

const NOTHING: FileSight = { kind: "seen", files: new Map() };
const NOT_LOOKED: FileSight = { kind: "unread", reason: "nobody looked" };

/** @returns one result for each, in their order; one that is refused stops none of the others */
export function removeArtifacts(
  directory: string,
  paths: readonly string[],
  reading: Reading = DEFAULT_READING,
): readonly Removal[] {
  return paths.map((path) => removePlace(directory, path, reading));
}
