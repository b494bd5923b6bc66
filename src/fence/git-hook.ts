/**
 * What an installed hook of git asks: whether git may go on in this checkout. Gathers, and tells
 * the answer; what is decided is in core/git-hook.ts.
 *
 * Guarantees: nothing of a lease is made, changed or waited for but the moment in which somebody
 * starts under the key; whatever goes wrong ends with a status other than 0, so that git stops.
 * Non-guarantees: that the answer is still true when git has written: a hook is check-then-act.
 * Clock: CLOCK_MONOTONIC. State after a crash: none.
 */
import { EXIT } from "../core/errors.ts";
import type { LeaseEvidence } from "../core/evidence.ts";
import { decideGitHook, type HookReason } from "../core/git-hook.ts";
import { movesBranch } from "../core/git-words.ts";
import { type LeaseKey, orderKeys, renderKey } from "../core/lease-key.ts";
import type { Verdict } from "../core/lease-verdict.ts";
import type { Leaving } from "../core/outcome.ts";
import { findWorktreeKey } from "../lease/worktree-place.ts";
import { monotonicNow } from "../os/clock.ts";
import { say } from "../os/say.ts";
import { wakeAfter } from "../os/timers.ts";
import { wantsNoHooks } from "./git-above.ts";
import { gitMessages } from "./git-messages.ts";
import { readEnvironment } from "./hold.ts";

/** Who starts under a key has written its record in a moment; a queue of starters takes longer. */
const ACQUIRING_MS = 3_000;
const LOOK_AGAIN_MS = 50;
const ALLOWED: Leaving = { kind: "status", code: EXIT.ok };
const REFUSED: Leaving = { kind: "status", code: 1 };

/** A lease as it was looked at. */
export interface LookedAt {
  readonly key: LeaseKey;
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
}

export interface GitHookRequest {
  /** Resolved, absolute and checked; it need not be there. */
  readonly findState: () => string;
  /** Of the hook: the run path of whoever has started git. */
  readonly environment: readonly Uint8Array[];
  readonly hook: string;
  /** What git has given to the hook. */
  readonly words: readonly string[];
  /** Beside the key of the checkout. */
  readonly keys: readonly LeaseKey[];
  /** Of the hook's standard input, all of it; asked only where it is needed. */
  readonly readInput: () => string;
  /** Evidence and verdicts: of another room, which looks at the trees of dead owners, too. */
  readonly look: (
    stateDirectory: string,
    keys: readonly LeaseKey[],
  ) => Promise<readonly LookedAt[]>;
}

/**
 * @returns 0: go on; 1: refused, and said why
 * @throws WatchdogError "lease.refused", "state.refused" (78), "state.unusable" (125) …
 */
export async function gitHookCommand(request: GitHookRequest): Promise<Leaving> {
  if (request.hook === "reference-transaction" && !isOfInterest(request)) return ALLOWED;
  const stateDirectory = request.findState();
  const own = findWorktreeKey(stateDirectory, process.cwd());
  for (const key of orderKeys([own, ...request.keys])) {
    const refused = await findRefusal(request, stateDirectory, key);
    if (refused === undefined) continue;
    say(gitMessages.hookRefused(request.hook, refused));
    return REFUSED;
  }
  return ALLOWED;
}

/**
 * Only what is about to be done can be refused, and only branches and HEAD are of a checkout. Git
 * passes by pre-commit and pre-push itself where it was told to, and nothing else.
 */
function isOfInterest({ words, readInput }: GitHookRequest): boolean {
  return words[0] === "prepared" && movesBranch(readInput()) && !wantsNoHooks(process.pid);
}

export interface RefusedHook {
  readonly because: HookReason;
  readonly seen: LookedAt;
}

async function findRefusal(
  request: GitHookRequest,
  stateDirectory: string,
  key: LeaseKey,
): Promise<RefusedHook | undefined> {
  const environment = readEnvironment(request.environment);
  const until = monotonicNow() + ACQUIRING_MS;
  for (;;) {
    const [seen] = await request.look(stateDirectory, [key]);
    if (seen === undefined) throw new Error(`nothing was told about ${renderKey(key)}`);
    const decided = decideGitHook(environment, seen);
    if (decided.kind === "allow") return undefined;
    const { because } = decided;
    if (because !== "being-acquired" || monotonicNow() >= until) return { because, seen };
    await pause();
  }
}

function pause(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  wakeAfter(LOOK_AGAIN_MS, resolve);
  return promise;
}
