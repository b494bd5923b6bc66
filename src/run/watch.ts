/**
 * Sets a supervisor over a command that was just started: its tree, its signals, its limits, its
 * idleness. Everything that happened since the handlers were installed reaches it.
 */
import type { InterruptHandling, RunPolicy, RunState } from "../core/run-state.ts";
import { DEFAULT_KILL_AFTER_MS } from "../core/run-options.ts";
import { maskHolds, SIGHUP, SIGINT } from "../core/signals.ts";
import { canOpenTerminal } from "../os/inheritance.ts";
import { readSignalMasks } from "../os/proc.ts";
import { watchChildren } from "../os/reaper.ts";
import { releaseProgramPages } from "../os/resident.ts";
import { tickEvery, wakeAfter } from "../os/timers.ts";
import { Tree } from "../tree/tree.ts";
import type { Course } from "./course.ts";
import type { Dependencies } from "./dependencies/dependencies.ts";
import { watchIdleness } from "./idle-watch.ts";
import type { Guard } from "./guard.ts";
import { findKept } from "./kept-registry.ts";
import { setDeadlines, watchDeadlines } from "./limits.ts";
import type { RunOutput } from "./output.ts";
import { RunPause } from "./pause.ts";
import { PauseClock } from "./pause-clock.ts";
import type { SignalInbox } from "./signal-inbox.ts";
import { Supervisor } from "./supervisor.ts";

/** A run that lasts longer than this needs little of the code that its start has touched. */
const SETTLED_MS = 2_000;
/** What heartbeats and log have touched by then is given back again. Costs a few ms each time. */
const GIVE_BACK_MS = 180_000;

export interface Watch {
  readonly supervisor: Supervisor;
  readonly tree: Tree;
  /** On which the limits are. */
  readonly clock: PauseClock;
}

export interface WatchRequest {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly inbox: SignalInbox;
  /** Nobody is left to report: what was reported is taken. Never rejects. */
  readonly finishProgress: () => Promise<void>;
  readonly isGood: (state: RunState) => Promise<boolean>;
  readonly guard: Guard | undefined;
  /** Undefined: there is nothing to probe. */
  readonly dependencies: Dependencies | undefined;
  /** Told where the run stands, after each event. */
  readonly onState: (state: RunState) => void;
}

export function beginWatch(request: WatchRequest): Watch {
  const { course, main, output, guard, dependencies } = request;
  const tree = makeTree(request);
  const clock = new PauseClock(course.options.countsPaused);
  const supervisor = new Supervisor({
    main,
    tree,
    policy: policyOf(course),
    ledger: course.ledger,
    output: {
      end: async (state) => {
        await request.finishProgress();
        return output.end(() => request.isGood(state));
      },
      abandon: () => output.abandon(),
    },
    pause: new RunPause({
      course,
      tree,
      clock,
      guard,
      holding: () => dependencies?.holding ?? [],
    }),
    signalMain: (signal) => tree.signalMain(signal),
    onCollected: (change) => {
      guard?.onEnded(change.pid);
      course.telling.onCollected(change);
      dependencies?.onCollected(change);
    },
    onState: (state) => {
      request.onState(state);
      // Nobody waits for them any more, and their locks may be another's.
      if (isEnding(state)) dependencies?.end();
    },
  });
  watchChildren(
    () => supervisor.collect(),
    () => supervisor.isEnding,
  );
  request.inbox.open((signal) => supervisor.feed(describeSignal(signal, main)));
  const deadlines = setDeadlines(course.options, course.identity.askedWallAt, clock);
  watchDeadlines(deadlines, (limit) => supervisor.reachLimit(limit), clock);
  beginIdleWatch(request, { supervisor, tree, clock });
  dependencies?.begin(supervisor);
  wakeAfter(SETTLED_MS, giveBackMemory);
  tickEvery(GIVE_BACK_MS, giveBackMemory);
  supervisor.collect();
  return { supervisor, tree, clock };
}

/** Somebody has asked for the end, or it has come. */
function isEnding({ phase, isAsked, isKilling, stop, limit }: RunState): boolean {
  const reasons = [stop, limit];
  return phase !== "running" || isAsked || isKilling || reasons.some((one) => one !== undefined);
}

function giveBackMemory(): void {
  try {
    releaseProgramPages();
  } catch {
    // EMFILE, no /proc: the pages stay where they are
  }
}

function makeTree({ course, main, guard, dependencies }: WatchRequest): Tree {
  const { stateDirectory, identity } = course;
  return new Tree({
    main,
    inborn: course.request.inherited.inbornChildren,
    runId: identity.runId,
    findHelpers: () =>
      new Set([
        ...(guard?.identity === undefined ? [] : [guard.identity.pid]),
        ...(dependencies?.helpers ?? []),
        ...course.telling.helpers,
      ]),
    findKept: (rows) => findKept(rows, stateDirectory, identity.runId),
  });
}

function policyOf(course: Course): RunPolicy {
  const { options, request } = course;
  return {
    hasTerminal: request.inherited.hasTerminal,
    killAfterMs: options.isKillAfterOnLine ? options.killAfterMs : undefined,
    defaultGraceMs: options.killAfterMs ?? DEFAULT_KILL_AFTER_MS,
    limitSignal: options.signal,
    leftovers: options.leftovers,
  };
}

function describeSignal(signal: number, main: number) {
  return {
    kind: "signal-received",
    signal,
    interrupt: signal === SIGINT ? readInterruptHandling(main) : "unread",
    isTerminalGone: signal === SIGHUP && !canOpenTerminal(),
  } as const;
}

function readInterruptHandling(main: number): InterruptHandling {
  const masks = readSignalMasks(main);
  if (masks === undefined) return "unread";
  // A blocked INT is no ignored one: shells block it for a moment around each fork.
  if (maskHolds(masks.ignored, SIGINT)) return "ignored";
  return maskHolds(masks.caught, SIGINT) ? "caught" : "default";
}

function beginIdleWatch({ course, output }: WatchRequest, watch: Watch): void {
  const { idleTimeoutMs, idleCpuPercent, idleIoBytes } = course.options;
  if (idleTimeoutMs === undefined) return;
  watchIdleness(
    {
      members: () => watch.tree.members(),
      collectedCpuMs: () => watch.supervisor.collectedCpuMs,
      lastOutputAt: () => output.lastOutputAt(),
    },
    { spanMs: idleTimeoutMs, cpuPercent: idleCpuPercent, ioBytesPerMinute: idleIoBytes },
    () => watch.supervisor.reachLimit("idle"),
    watch.clock,
  );
}
