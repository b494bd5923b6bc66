/**
 * The front door: the real arguments, processes and clocks meet here, and nothing is decided. The
 * only file that leaves the process.
 */
import { cutCommandLine } from "./cli/command-line.ts";
import type * as cuts from "./cli/cut.ts";
import { renderError } from "./cli/render-error.ts";
import { makeReadSettings, ownVariables } from "./cli/settings.ts";
import { isOptionVariable } from "./cli/variables-table.ts";
import { WatchdogError } from "./core/errors.ts";
import type { Leaving } from "./core/outcome.ts";
import type { RunOptions } from "./core/run-options.ts";
import type { JobCommandRequest } from "./job/job-command.ts";
import { type Inheritance, readInheritance } from "./os/inheritance.ts";
import { leaveBySignal, leaveWithStatus } from "./os/leave.ts";
import { rememberOwnLine } from "./os/own-line.ts";
import { say, writeAnswer } from "./os/say.ts";
import { traceStep, writeTrace } from "./os/trace.ts";
import type { OwnProgram } from "./os/own-program.ts";
import { deriveName } from "./run/identity.ts";
import { messages } from "./run/messages.ts";
import { runCommand } from "./run/run-command.ts";

declare const WATCHDOG_VERSION: string;
declare const WATCHDOG_COMMIT: string;

const build = { version: WATCHDOG_VERSION, commit: WATCHDOG_COMMIT };
const workerUrls = {
  copy: new URL("./output/copy-worker.ts", import.meta.url),
  log: new URL("./output/log-worker.ts", import.meta.url),
  match: new URL("./output/match-worker.ts", import.meta.url),
  beat: new URL("./lease/beat/beat-worker.ts", import.meta.url),
  wait: new URL("./lease/claim/wait-worker.ts", import.meta.url),
  scan: new URL("./tree/scan-worker.ts", import.meta.url),
  probe: new URL("./probe/probe-worker.ts", import.meta.url),
  artifact: new URL("./job/artifact-worker.ts", import.meta.url),
};
const readSettings = makeReadSettings();
const variables = ownVariables(process.env);

type Fencing = cuts.FenceCut | cuts.FenceGitPushCut | cuts.FenceInstallGitHooksCut;
type Accompanying = cuts.KeepCut | cuts.RetryCut | cuts.TickCut;
/** What no person types. */
type Internal =
  | cuts.GitHookCut
  | cuts.BuryCut
  | cuts.LockProbeCut
  | cuts.ProbeCommandCut
  | cuts.HookCut
  | cuts.JobRunnerCut;
type Wraps = "run" | Accompanying["kind"] | Internal["kind"] | Fencing["kind"] | "job-run";
type WrapsNothing = Exclude<cuts.Cut, { kind: Wraps }>;

const OK: Leaving = { kind: "status", code: 0 };
/** The answer could not be written: ENOSPC, EIO. */
const UNWRITTEN: Leaving = { kind: "status", code: 125 };
const BUG: Leaving = { kind: "status", code: 125 };

async function main(): Promise<Leaving> {
  traceStep("first line");
  const inherited = readInheritance();
  traceStep("inheritance read");
  const words = process.argv.slice(2);
  const nameJob = (commandAt: number): string => deriveName(inherited.words.slice(commandAt));
  const cut = cutCommandLine(words, variables, readSettings, nameJob);
  rememberOwnLine(words, "commandAt" in cut ? cut.commandAt : undefined);
  traceStep("words cut");
  if (isInternal(cut)) return serve(cut, inherited);
  switch (cut.kind) {
    case "run":
      return run(cut.options, inherited.words.slice(cut.commandAt), inherited);
    case "job-run":
      return runJob(cut, inherited);
    case "keep":
    case "retry":
    case "tick":
      return accompany(cut, inherited);
    case "fence":
    case "fence-git-push":
    case "fence-install-git-hooks":
      return fence(cut, inherited);
    case "version":
    case "help": {
      const { answerQuestion } = await import("./cli/commands.ts");
      return writeAnswer(await answerQuestion(cut, build)) ? OK : UNWRITTEN;
    }
    default:
      return answer(cut, inherited);
  }
}

/** @param program  what is started in the place of `argv`, which is shown */
function run(
  options: RunOptions,
  argv: readonly Uint8Array[],
  inherited: Inheritance,
  program?: OwnProgram,
): Promise<Leaving> {
  return runCommand({
    options,
    argv,
    ...(program === undefined ? {} : { program }),
    inherited,
    policyFiles: readSettings(options.configFile).policies,
    isOptionVariable,
    build,
    workerUrls,
  });
}

/** What a command calls for one of its own. */
async function accompany(cut: Accompanying, inherited: Inheritance): Promise<Leaving> {
  switch (cut.kind) {
    case "keep": {
      const { keepCommand } = await import("./run/keep.ts");
      keepCommand({
        argv: inherited.words.slice(cut.commandAt),
        inherited,
        output: cut.options.outputPath,
        stateDir: cut.options.stateDir,
      });
      return OK;
    }
    case "retry": {
      const { retryCommand } = await import("./retry/retry-command.ts");
      const { openCircuitStore } = await import("./journal/circuit-rows.ts");
      const { findKept } = await import("./run/kept-registry.ts");
      return retryCommand({
        options: cut.options,
        argv: inherited.words.slice(cut.commandAt),
        inherited,
        build,
        openStore: openCircuitStore,
        findKept,
      });
    }
    case "tick": {
      const { tickCommand } = await import("./progress/tick.ts");
      const { WATCHDOG_PROGRESS: path, WATCHDOG_RUN_ID: runId } = variables;
      tickCommand({ report: cut.report, path, runId });
      return OK;
    }
  }
}

const INTERNAL: readonly cuts.Cut["kind"][] = [
  "git-hook",
  "bury",
  "lock-probe",
  "probe-command",
  "hook",
  "runner",
] satisfies Internal["kind"][];

function isInternal(cut: cuts.Cut): cut is Internal {
  return INTERNAL.includes(cut.kind);
}

/** A hook of git, the guard of a run and the helpers that we start ourselves. */
async function serve(cut: Internal, inherited: Inheritance): Promise<Leaving> {
  switch (cut.kind) {
    case "git-hook": {
      const { answerGitHook } = await import("./cli/answer-git-hook.ts");
      const { environment } = inherited;
      return answerGitHook(cut, { scanUrl: workerUrls.scan, environment });
    }
    case "bury": {
      const { buryCommand } = await import("./run/bury.ts");
      await buryCommand({ runId: cut.runId, stateDirectory: cut.stateDir });
      return OK;
    }
    case "probe-command":
    case "hook": {
      const { hookCommand } = await import("./run/hook-command.ts");
      return hookCommand(inherited);
    }
    case "runner": {
      const { runnerCommand } = await import("./job/runner-command.ts");
      const { findKept } = await import("./run/kept-registry.ts");
      return runnerCommand({ inherited, artifactUrl: workerUrls.artifact, findKept });
    }
    case "lock-probe": {
      const { probeLock } = await import("./doctor/lock-probe.ts");
      probeLock(cut.path);
      return OK;
    }
  }
}

/** What starts something that is not a run needs the same pieces of the front door. */
async function fence(cut: Fencing, inherited: Inheritance): Promise<Leaving> {
  const { findKept } = await import("./run/kept-registry.ts");
  const surroundings = { inherited, isOptionVariable, findKept };
  switch (cut.kind) {
    case "fence": {
      const { fenceCommand } = await import("./fence/fence-command.ts");
      const { commandAt, options } = cut;
      const argv = commandAt === undefined ? undefined : inherited.words.slice(commandAt);
      return fenceCommand({ ...surroundings, options, argv });
    }
    case "fence-git-push": {
      const { gitPushCommand } = await import("./fence/git-push.ts");
      return gitPushCommand({ ...surroundings, options: cut });
    }
    case "fence-install-git-hooks": {
      const { installGitHooksCommand } = await import("./fence/git-hooks.ts");
      return installGitHooksCommand({ ...surroundings, options: cut, program: process.execPath });
    }
  }
}

/** A job of many steps: a run around its runner. */
async function runJob(cut: cuts.JobRunCut, inherited: Inheritance): Promise<Leaving> {
  const { prepareJob } = await import("./cli/prepare-job.ts");
  const { jobCommand } = await import("./job/job-command.ts");
  const { options, ...prepared } = prepareJob(cut, readSettings, inherited.hasTerminal);
  const runIt: JobCommandRequest["run"] = (argv, program) => run(options, argv, inherited, program);
  return jobCommand({ ...prepared, stateDir: options.stateDir, inherited, run: runIt });
}

/** The commands that wrap no other. */
async function answer(cut: WrapsNothing, inherited: Inheritance): Promise<Leaving> {
  if (cut.kind === "version" || cut.kind === "help") {
    const { answerQuestion } = await import("./cli/commands.ts");
    return writeAnswer(await answerQuestion(cut, build)) ? OK : UNWRITTEN;
  }
  const { answerCommand, tell } = await import("./cli/reading-commands.ts");
  if (cut.kind === "job-schema") {
    const { answerJobSchema } = await import("./cli/answer-job.ts");
    return tell(answerJobSchema());
  }
  const { scan: scanUrl, probe: probeUrl, artifact: artifactUrl } = workerUrls;
  const around = { scanUrl, probeUrl, artifactUrl, build, variables, readSettings, inherited };
  return answerCommand(cut, around);
}

function report(error: unknown): Leaving {
  if (error instanceof WatchdogError) {
    for (const line of renderError(error).trimEnd().split("\n")) say(line);
    return { kind: "status", code: error.exitStatus };
  }
  say(`watchdog: bug: ${error instanceof Error ? error.message : String(error)}`);
  return BUG;
}

function leave(leaving: Leaving): never {
  traceStep("leave");
  writeTrace();
  if (leaving.kind === "signal") return leaveBySignal(leaving.signal);
  return leaveWithStatus(leaving.code);
}

// Trouble in a callback of ours must not end a watchdog that has a command to watch.
process.on("uncaughtException", (error) => say(messages.bug(error)));
process.on("unhandledRejection", (error) => say(messages.bug(error)));
main().then(leave, (error: unknown) => leave(report(error)));
