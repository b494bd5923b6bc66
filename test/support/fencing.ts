/**
 * Jobs that fence something, and strangers that carry the environment of a run but are not of its
 * tree: what such an environment was is written down by the job itself. Trusts nothing that
 * watchdog says.
 */
import { readFileSync } from "node:fs";
import { RELEASE, type RunOptions, type Scene, type Started } from "./scene.ts";
import { waitForText } from "./processes.ts";

/** `$W` in the scripts of jobs; `fence` is a word of its own there. */
export const FENCE = '"$W" fence';

/** A run under `job:NAME`, of which the script knows the binary as `$W`. */
export function startJob(
  scene: Scene,
  name: string,
  script: string,
  options: RunOptions & { readonly words?: readonly string[] } = {},
): Started {
  const { words = [], ...others } = options;
  return scene.start(["--name", name, "--log", "off", ...words, "--", "sh", "-c", script], {
    ...others,
    env: { W: RELEASE, ...options.env },
  });
}

/** A line for the script: puts its environment down in a file, whole, and goes on. */
export function saveEnvironment(path: string): string {
  return `env -0 >'${path}.new'; mv '${path}.new' '${path}'; echo saved >'${path}.done'`;
}

/** What the job has put down. */
export async function readEnvironment(path: string): Promise<Record<string, string>> {
  await waitForText(`${path}.done`);
  const entries = readFileSync(path, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => [
      entry.slice(0, entry.indexOf("=")),
      entry.slice(entry.indexOf("=") + 1),
    ]),
  );
}

/**
 * Runs `watchdog fence WORDS` as a child of the test: in the environment of a run, and no member of
 * its tree by descent.
 */
export function startStranger(
  scene: Scene,
  environment: Readonly<Record<string, string>>,
  words: readonly string[],
  options: RunOptions = {},
): Started {
  const { binary = RELEASE, env, ...others } = options;
  return scene.startProgram([binary, "fence", ...words], {
    ...others,
    env: { ...environment, ...env },
  });
}
