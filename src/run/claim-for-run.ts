/**
 * What a run asks the lease store for: which keys, who the owner is, who ends survivors of a dead
 * one; and what it says meanwhile. Decides nothing about who may have a key.
 */
import { ownMask } from "../os/mask.ts";
import { renderKey, type LeaseKey, orderKeys } from "../core/lease-key.ts";
import type { DeadRun, SeenProcess } from "../core/survivors-view.ts";
import type { Leaving } from "../core/outcome.ts";
import { sys } from "../os/sys.ts";
import { claimLeases } from "../lease/claim/claim.ts";
import type { Claim, ClaimRequest, Refusal, SurvivorKeeper } from "../lease/claim/request.ts";
import type { Looker } from "../lease/gather.ts";
import type { OwnerFacts } from "../lease/claim/grant.ts";
import { resolveWorktreeKey, type WorktreeKey } from "../lease/worktree-place.ts";
import { scanInWorker, tryTwice } from "../tree/scan-handle.ts";
import { continueFrozen, endSurvivors, lookForSurvivors } from "../tree/survivors.ts";
import type { Course } from "./course.ts";
import { limitWait } from "./limits.ts";
import { readOwnSelf } from "./own-self.ts";
import { keptProcesses } from "./kept-registry.ts";
import { describeContinued, hintOfRefusal } from "./takeover.ts";
import { leaveRefused } from "./leave-refused.ts";
import { makeSecondLooker } from "./second-look.ts";

export { keptProcesses } from "./kept-registry.ts";

/** How long the guard of a dead owner may end its tree before a newcomer does. */
const GUARD_WAIT_MS = 2_000;
/** The command line in a record is for people. */
const LONGEST_COMMAND = 1_000;
const STDERR = 2;

/** What the grant needs once the keys are ours to take. */
export interface ClaimedRun {
  readonly claim: Claim;
  readonly owner: OwnerFacts;
}

export type ClaimOfRun =
  | { readonly kind: "without" }
  | ({ readonly kind: "claimed" } & ClaimedRun)
  | { readonly kind: "refused"; readonly leaving: Leaving };

/**
 * A1 to A6 for the keys of this run.
 *
 * @returns "without" for `--no-lease`; "refused" after everything about it was told and written
 * @throws WatchdogError "lease.refused", "lease.unusable": nothing was started
 */
export async function claimForRun(course: Course): Promise<ClaimOfRun> {
  const { options, stateDirectory, runsAround, request } = course;
  if (!options.hasLease) return { kind: "without" };
  const worktree =
    options.worktree === undefined
      ? undefined
      : resolveWorktreeKey(stateDirectory, options.worktree);
  const looker = makeLooker(course);
  const claimed = await claimLeases({
    stateDirectory,
    keys: listKeys(course, worktree),
    runsAround,
    ...limitWaits(course),
    onSurvivors: options.onSurvivors,
    looker,
    survivors: makeSurvivorKeeper(course),
    secondLook: makeSecondLooker(course, worktree),
    waitWorkerUrl: request.workerUrls.wait,
    onWaiting: (refusal) => tellWaiting(course, refusal),
    onContinued: (continued) => course.ledger.tellOnce(describeContinued(continued)),
    onEnding: () => undefined, // told after it was done, with who they were
  });
  if (claimed.kind === "refused") {
    return { kind: "refused", leaving: leaveRefused(course, claimed.refusal) };
  }
  return {
    kind: "claimed",
    claim: claimed.claim,
    owner: describeOwnSelf(course, looker, worktree),
  };
}

/** With `--on-survivors wait` the wait for survivors is one of its own, for as long as it takes. */
function limitWaits({
  options,
  identity,
}: Course): Pick<ClaimRequest, "waitMs" | "survivorWaitMs"> {
  const waitMs = limitWait(options, identity.askedWallAt);
  if (options.onSurvivors !== "wait" || options.waitMs !== undefined) return { waitMs };
  const forever = { ...options, waitMs: Number.POSITIVE_INFINITY };
  const survivorWaitMs = limitWait(forever, identity.askedWallAt) ?? Number.POSITIVE_INFINITY;
  return { waitMs, survivorWaitMs };
}

function listKeys(course: Course, worktree: WorktreeKey | undefined): LeaseKey[] {
  const job = { kind: "job", name: course.identity.jobName };
  return orderKeys([
    job,
    ...course.options.locks,
    ...(worktree === undefined ? [] : [worktree.key]),
  ]);
}

function makeLooker(course: Course): Looker {
  return {
    stateDirectory: course.stateDirectory,
    machine: readOwnSelf().machine,
    journal: (key) => course.journal?.highestLease(key),
  };
}

function makeSurvivorKeeper(course: Course): SurvivorKeeper {
  const scan = () => scanInWorker(course.request.workerUrls.scan);
  const keptOf = (run: DeadRun) => () => keptProcesses(course.stateDirectory, run.runId);
  return {
    look: (run) => tryTwice(() => lookForSurvivors(run, keptOf(run), scan)),
    end: (run) =>
      endSurvivors(run, keptOf(run), {
        scan,
        guardWaitMs: GUARD_WAIT_MS,
        termGraceMs: 0,
        // Told; whether the key is to be had is for the next look at who is left.
        onFault: (error) => course.ledger.noteBug(error),
      }),
    continueFrozen: async (run) => {
      const tally = await continueFrozen(run, keptOf(run), { scan, isFrozen: standsStill });
      if (typeof tally === "string") return tally;
      for (const { error } of tally.faults) course.ledger.noteBug(error);
      return tally.sent.length;
    },
  };
}

/**
 * A debugger's (`t`) is its own matter. In state D one has not acted on its STOP yet, and would
 * stand still as soon as it does.
 */
function standsStill({ state }: SeenProcess): boolean {
  return state === "T" || state === "D";
}

/** Whoever waits at a terminal, or asked with `-v`, is told for what; cron is not. */
function tellWaiting(course: Course, refusal: Refusal): void {
  const isWatched = course.options.isVerbose || sys.isTerminal(STDERR);
  if (!isWatched && refusal.verdict.name === "held") return;
  course.ledger.tellOnce(`watchdog: waiting: ${refusal.text}`);
  const hint = hintOfRefusal(refusal);
  if (hint !== undefined) course.ledger.tellOnce(`watchdog: hint: ${hint}`);
}

function describeOwnSelf(
  course: Course,
  { machine }: Looker,
  worktree: WorktreeKey | undefined,
): OwnerFacts {
  const { identity, options, request } = course;
  const self = readOwnSelf();
  return {
    run_id: identity.runId,
    run_path: course.runPath,
    job: identity.jobName,
    runner: `${machine.user}@${machine.host}`,
    host: machine.host,
    machine_id: machine.machineId,
    boot_id: machine.bootId,
    pid: process.pid,
    pid_start_time: self.identity.start_time,
    pid_namespace: machine.pidNamespace,
    time_namespace: machine.timeNamespace,
    uid: machine.uid,
    session_started_at: new Date(identity.startedWallAt).toISOString(),
    heartbeat_interval_ms: options.heartbeatIntervalMs,
    stale_after_ms: options.staleAfterMs,
    lane: options.lane ?? null,
    task_id: options.task ?? null,
    worktree: worktree?.worktree ?? null,
    branch: worktree?.branch ?? null,
    command: showCommand(request.argv),
    cgroup: machine.cgroup,
    adopters: self.adopters,
  };
}

function showCommand(argv: readonly Uint8Array[]): string {
  const words = argv.map((word) => Buffer.from(word).toString("utf8"));
  const text = ownMask().command(words).join(" ");
  return text.length > LONGEST_COMMAND ? `${text.slice(0, LONGEST_COMMAND)}…` : text;
}

/** For `-v`: what was claimed, and on what ground. */
export function describeClaim(claim: Claim): string[] {
  return claim.keys.map(
    ({ key, verdict }) =>
      `watchdog: ${renderKey(key)} was ${verdict.name} (${verdict.rule} ${verdict.because})`,
  );
}
