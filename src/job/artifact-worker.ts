/**
 * Front door of the Worker that looks at artifacts: one task after the other, an answer for each.
 * Decides nothing.
 *
 * Always: the pulse counts up as long as something is read; a file system that does not answer
 * blocks this thread only.
 */
import type { ArtifactAnswer, ArtifactMessage, ArtifactOrder } from "./artifact-messages.ts";
import {
  checkNew,
  hashArtifact,
  lookAtArtifacts,
  removeArtifacts,
  verifyArtifacts,
} from "./artifacts.ts";
import { DEFAULT_READING, type Reading } from "./survey.ts";

declare const self: {
  onmessage: ((event: MessageEvent<ArtifactOrder>) => void) | null;
  postMessage(message: ArtifactMessage): void;
};

self.onmessage = async ({ data: order }) => {
  self.postMessage(await perform(order));
};

async function perform({ task, pulse }: ArtifactOrder): Promise<ArtifactMessage> {
  const count = new Int32Array(pulse);
  const onStep = (): void => void Atomics.add(count, 0, 1);
  try {
    return { kind: "answer", answer: await answer(task, { ...DEFAULT_READING, onStep }) };
  } catch (error) {
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
}

async function answer(task: ArtifactOrder["task"], reading: Reading): Promise<ArtifactAnswer> {
  const { directory } = task;
  switch (task.kind) {
    case "hash":
      return hashArtifact(directory, task.path, reading);
    case "verify":
      return verifyArtifacts(directory, task.records, reading);
    case "look":
      return lookAtArtifacts(directory, task.specs, reading);
    case "check":
      return checkNew(directory, task.specs, task.before, reading);
    case "remove":
      return removeArtifacts(directory, task.paths, reading);
  }
}
