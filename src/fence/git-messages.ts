/** What is said about git on standard error: one line each. Pure text. */
import type { HookReason } from "../core/git-hook.ts";
import type { Pusher, RemoteReading, RemoteReason } from "../core/git-fence.ts";
import { renderKey } from "../core/lease-key.ts";
import { escapeUnprintable } from "../core/printable.ts";
import type { RefusedHook } from "./git-hook.ts";

interface SeenRemote {
  readonly pusher: Pusher;
  readonly ref: string;
  readonly reading: RemoteReading;
}

type Sentence = (seen: SeenRemote) => string;

function named({ reading }: SeenRemote): string {
  if (reading.kind !== "read") return "nobody";
  return `generation ${reading.fence.generation}, run ${reading.fence.runId}`;
}

/** Whoever knows that nobody pushes from there any more can take the ref away. */
function takeAway({ ref }: SeenRemote): string {
  return `hint: if nobody else pushes any more: git push REMOTE :${ref}`;
}

const SENTENCES: Readonly<Record<RemoteReason, Sentence>> = {
  "later-generation": (seen) =>
    `${named(seen)} has pushed, this is generation ${seen.pusher.generation}`,
  "same-generation-of-another-run": (seen) =>
    `${named(seen)} has pushed, and not run ${seen.pusher.runId} of the same number; ` +
    takeAway(seen),
  "another-machine": (seen) =>
    `the fence there is of ${machineOf(seen)} (${named(seen)}), whose numbers cannot be compared ` +
    `with those of ${nameMachine(seen.pusher.machineId)}; ${takeAway(seen)}`,
  "another-state": (seen) =>
    `the fence there is of another state directory (${stateOf(seen)}, ${named(seen)}), whose ` +
    `numbers cannot be compared; ${takeAway(seen)}`,
  "another-key": (seen) =>
    `${seen.ref} there is the fence of another key (${keyOf(seen)}); ${takeAway(seen)}`,
  unreadable: (seen) =>
    `the fence there cannot be read: ${
      seen.reading.kind === "unreadable" ? seen.reading.reason : "nothing in it"
    }; ${takeAway(seen)}`,
};

function nameMachine(machineId: string | null): string {
  return machineId === null ? "a machine without an id" : `machine ${machineId}`;
}

function machineOf({ reading }: SeenRemote): string {
  return nameMachine(reading.kind === "read" ? reading.fence.machineId : null);
}

function stateOf({ reading }: SeenRemote): string {
  return (reading.kind === "read" ? reading.fence.stateDirectory : undefined) ?? "unknown";
}

function keyOf({ reading }: SeenRemote): string {
  return reading.kind === "read" ? reading.fence.key : "unknown";
}

const HOOK_SENTENCES: Readonly<Record<HookReason, (owner: string) => string>> = {
  held: (owner) => `is held by ${owner}, and this is not inside it`,
  survivors: (owner) =>
    `is of ${owner}, whose watchdog is dead and whose processes may not be, and this is not ` +
    "inside it",
  "being-acquired": () => "is being acquired by somebody",
  elsewhere: (owner) => `is of ${owner}, of which it cannot be told from here whether it lives`,
  unknowable: () => "may be held by somebody: nobody can tell",
};

/** How each of them is passed by; what starts no hook of any kind serves for all commands. */
const PASSES_BY: Readonly<Record<string, string>> = {
  "pre-commit": "git commit --no-verify",
  "pre-push": "git push --no-verify",
};
const PASSES_ALL_BY = "--no-verify, or git -c core.hooksPath=/dev/null COMMAND";

/** What follows must be on the same screen. */
const LONGEST_COMMAND = 60;

function cut(command: string): string {
  const text = escapeUnprintable(command);
  return text.length > LONGEST_COMMAND ? `${text.slice(0, LONGEST_COMMAND)}…` : text;
}

function describeOwner({ seen }: RefusedHook): string {
  const { record, source } = seen.evidence;
  if (record !== undefined) {
    const { run_id, generation, runner, pid, command } = record;
    return `run ${run_id}, generation ${generation} (${runner}, pid ${pid}: ${cut(command)})`;
  }
  return source.kind === "read" ? `run ${source.runId}` : "an unknown run";
}

export const gitMessages = {
  hookRefused: (hook: string, refused: RefusedHook): string =>
    `watchdog: ${hook} refused: ${renderKey(refused.seen.key)} ` +
    `${HOOK_SENTENCES[refused.because](describeOwner(refused))} ` +
    `(${refused.seen.verdict.name}, ${refused.seen.verdict.because}); ` +
    `hint: wait for it, or ${PASSES_BY[hook] ?? PASSES_ALL_BY}`,
  refused: (because: RemoteReason, seen: SeenRemote): string =>
    `watchdog: fence refused: ${renderKey(seen.pusher.key)} at the remote: ` +
    SENTENCES[because](seen),
  again: (times: number, most: number): string =>
    `watchdog: fence: another push under this key came first; trying again (${times} of ${most})`,
  outrun: (most: number): string =>
    `watchdog: fence refused: other pushes under this key came first, ${most + 1} times`,
} as const;
