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
import { Tree } from "../tree/tree.ts";
import type { Course } from "./course.ts";
import { watchIdleness } from "./idle-watch.ts";
import { findKept } from "./kept-registry.ts";
import { setDeadlines, watchDeadlines } from "./limits.ts";
import type { RunOutput } from "./output.ts";
import type { SignalInbox } from "./signal-inbox.ts";
import { Supervisor } from "./supervisor.ts";

export interface Watch {
  readonly supervisor: Supervisor;
  readonly tree: Tree;
}

export interface WatchRequest {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly inbox: SignalInbox;
  readonly isGood: (state: RunState) => boolean;
}

export function beginWatch(request: WatchRequest): Watch {
  const { course, main, output } = request;
  const tree = makeTree(course, main);
  const supervisor = new Supervisor({
    main,
    tree,
    policy: policyOf(course),
    ledger: course.ledger,
    output: {
      end: (state) => output.end(request.isGood(state)),
      abandon: () => output.abandon(),
    },
    signalMain: (signal) => tree.signalMain(signal),
  });
  watchChildren(() => supervisor.collect());
  request.inbox.open((signal) => supervisor.feed(describeSignal(signal, main)));
  watchDeadlines(setDeadlines(course.options), (limit) => supervisor.reachLimit(limit));
  beginIdleWatch(course, { supervisor, tree }, output);
  supervisor.collect();
  return { supervisor, tree };
}

function makeTree(course: Course, main: number): Tree {
  const { stateDirectory, identity } = course;
  return new Tree({
    main,
    inborn: course.request.inherited.inbornChildren,
    runId: identity.runId,
    findKept: (rows) => findKept(rows, stateDirectory, identity.runId),
  });
}

function policyOf(course: Course): RunPolicy {
  const { options, request } = course;
  return {
    hasTerminal: request.inherited.hasTerminal,
    killAfterMs: options.killAfterMs,
    defaultGraceMs: DEFAULT_KILL_AFTER_MS,
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

function beginIdleWatch(course: Course, watch: Watch, output: RunOutput): void {
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
  );
}
