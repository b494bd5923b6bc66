/**
 * `watchdog run`: one run from start to end, as a list of steps.
 *
 * Order for speed: the command is spawned before any thread of ours starts. Order for safety:
 * signal handlers and the reaper stand before the spawn, so that no signal and no death of a child
 * can fall between.
 */
import { decideOutcome, type Leaving, outcomeOfRefusal } from "../core/outcome.ts";
import type { RunState } from "../core/run-state.ts";
import { faultPoint } from "../os/faults.ts";
import { findFfiTrouble } from "../os/libc.ts";
import { becomeReaper, killChildren } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import { type SpawnResult, spawnProcess } from "../os/spawn.ts";
import { nameErrno } from "../os/sys.ts";
import { traceStep } from "../os/trace.ts";
import { type Course, makeCommandEnvironment, prepareCourse, type RunRequest } from "./course.ts";
import { describeStart } from "./evidence.ts";
import { messages } from "./messages.ts";
import { conclude } from "./conclude.ts";
import { RunOutput } from "./output.ts";
import { recordOfEnded, recordOfRunning, unstarted, writeRecord } from "./record.ts";
import { SignalInbox } from "./signal-inbox.ts";
import { beginWatch } from "./watch.ts";

/**
 * Runs the command and everything around it.
 *
 * @returns how watchdog itself must leave
 * @throws WatchdogError "state.refused" before anything was started, "spawn.failed" where no pipe
 *   is to be had
 */
export async function runCommand(request: RunRequest): Promise<Leaving> {
  const course = prepareCourse(request);
  const trouble = findFfiTrouble();
  if (trouble !== undefined) return (await import("./degraded.ts")).runDegraded(course, trouble);
  const output = new RunOutput(course);
  if (course.options.isVerbose) for (const line of describeStart(course, output.names)) say(line);
  becomeReaper();
  const inbox = new SignalInbox(request.inherited.ignoredSignals);
  writeRecord(course, recordOfRunning(course, undefined));
  traceStep("ready to spawn");
  const spawned = spawn(course, output);
  traceStep("spawned");
  output.release();
  if (spawned.kind === "refused") return leaveUnstarted(course, spawned);
  try {
    return await attend({ course, main: spawned.pid, output, inbox });
  } catch (error) {
    // Nothing can watch the command: rather none than one that nobody watches.
    course.ledger.noteBug(error);
    killChildren(request.inherited.inbornChildren);
    throw error;
  }
}

interface Attendance {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly inbox: SignalInbox;
}

/** From the spawn to the end. */
async function attend({ course, main, output, inbox }: Attendance): Promise<Leaving> {
  faultPoint("spawn.after", { runId: course.identity.runId, pid: main });
  // The copy first: the watch may find that a quick command has ended already, and end the output.
  output.start();
  const watch = beginWatch({
    course,
    main,
    output,
    inbox,
    isGood: (state) => isGood(course, state),
  });
  traceStep("watching");
  // A slow disk under the record holds up neither the copy nor what the kernel delivers meanwhile.
  writeRecord(course, recordOfRunning(course, main));
  const state = await watch.supervisor.finished;
  traceStep("tree empty, output delivered");
  return conclude({ course, main, output, tree: watch.tree, state });
}

function spawn(course: Course, output: RunOutput): SpawnResult {
  const { inherited, argv } = course.request;
  faultPoint("spawn.before", { runId: course.identity.runId });
  const result = spawnProcess(
    {
      argv,
      environment: makeCommandEnvironment(course),
      group: inherited.hasTerminal ? "shared" : "own-group",
      redirections: output.redirections(),
    },
    inherited,
  );
  // From here on for files of ours: whatever the caller's umask takes away or leaves open.
  process.umask(PRIVATE_UMASK);
  return result;
}

const PRIVATE_UMASK = 0o077;

function leaveUnstarted(
  course: Course,
  refused: Extract<SpawnResult, { kind: "refused" }>,
): Leaving {
  const outcome = outcomeOfRefusal(refused.because);
  const name = Buffer.from(course.request.argv[0] ?? "").toString("utf8");
  say(messages.notStarted(name, nameErrno(refused.errorNumber)));
  if (refused.because === "system") say("watchdog: hint: ulimit -a");
  writeRecord(course, recordOfEnded(course, undefined, unstarted(outcome)));
  return outcome.leaving;
}

/**
 * Whether the run went well as far as can be told before its output has arrived: `--quiet` prints
 * nothing then.
 */
function isGood(course: Course, state: RunState): boolean {
  const { successExitCodes } = course.options;
  return decideOutcome({ ...state, successExitCodes, hasLostOutput: false }).name === "ok";
}
