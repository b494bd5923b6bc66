/**
 * The directory of all circuits, `circuits` in the state directory. Whoever waits for his
 * dependencies before a start has it open, so that others can tell him from one that just acquires
 * a key: the kernel closes it with him, and nothing has to be written or cleared away.
 * Clock: none. State after a crash: the directory stays.
 */
import { closeSync, constants, openSync } from "node:fs";
import { makeOneStateDirectory } from "./state-sharing.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

export function circuitsDirectoryOf(stateDirectory: string): string {
  return `${stateDirectory}/circuits`;
}

/** Where it cannot be had nobody can tell, which is no trouble. @returns ends it */
export function holdCircuitsOpen(stateDirectory: string): () => void {
  const path = circuitsDirectoryOf(stateDirectory);
  try {
    makeOneStateDirectory(path);
    const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    return () => closeSync(fd);
  } catch {
    return () => undefined; // EACCES, ENOSPC, EMFILE, ELOOP: it is said where it matters
  }
}
