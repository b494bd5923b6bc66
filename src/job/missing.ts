/**
 * Whether what the steps of a job read, and where they work, is there. Reads no content, and
 * changes nothing.
 *
 * Always: what cannot be looked at is not called missing. Clock: none.
 */
import { statSync } from "node:fs";
import { listMissing, type Sights } from "../core/job-missing.ts";
import type { JobSpec } from "../core/job-spec.ts";
import { closeQuietly, statEntry } from "../os/entries.ts";
import { ENOENT } from "../os/sys.ts";
import { troubleOf } from "./hash.ts";
import { reachPlace } from "./place.ts";
import { directoryOf } from "./step-command.ts";

/** @returns a line for each thing that is not there */
export function findMissing(
  spec: JobSpec,
  will: Pick<Sights, "willWrite" | "willRun">,
): readonly string[] {
  const { directory } = spec;
  const missing = listMissing(spec, {
    ...will,
    isInputMissing: (path) => isMissing(directory, path),
    isDirectoryMissing: (step) => step.cwd !== undefined && isGone(directoryOf(directory, step)),
  });
  return missing.map(({ step, input }) => {
    const what = input === undefined ? `directory ${directoryOf(directory, step)}` : input;
    return `step ${step.name}: its ${input === undefined ? "" : "input "}${what} is not there`;
  });
}

function isMissing(directory: string, path: string): boolean {
  try {
    const place = reachPlace(directory, path);
    const stat = statEntry(place.directory, place.name);
    closeQuietly(place.directory);
    return stat === -ENOENT;
  } catch (error) {
    return troubleOf(error).kind === "missing";
  }
}

/** A file in its place is no directory either. */
function isGone(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR";
  }
}
