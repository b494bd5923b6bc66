/**
 * The front door: the real arguments, processes and clocks meet here, and nothing is decided. The
 * only file that leaves the process.
 */
import { cutCommandLine } from "./cli/command-line.ts";
import { renderError } from "./cli/render-error.ts";
import { isOptionVariable } from "./cli/variables-table.ts";
import { WatchdogError } from "./core/errors.ts";
import type { Leaving } from "./core/outcome.ts";
import { readInheritance } from "./os/inheritance.ts";
import { leaveBySignal, leaveWithStatus } from "./os/leave.ts";
import { say, writeAnswer } from "./os/say.ts";
import { traceStep, writeTrace } from "./os/trace.ts";
import { messages } from "./run/messages.ts";
import { runCommand } from "./run/run-command.ts";

declare const WATCHDOG_VERSION: string;
declare const WATCHDOG_COMMIT: string;

const build = { version: WATCHDOG_VERSION, commit: WATCHDOG_COMMIT };
const workerUrls = {
  copy: new URL("./output/copy-worker.ts", import.meta.url),
  log: new URL("./output/log-worker.ts", import.meta.url),
};
const OK: Leaving = { kind: "status", code: 0 };
/** The answer could not be written: ENOSPC, EIO. */
const UNWRITTEN: Leaving = { kind: "status", code: 125 };
const BUG: Leaving = { kind: "status", code: 125 };

async function main(): Promise<Leaving> {
  traceStep("first line");
  const inherited = readInheritance();
  traceStep("inheritance read");
  const words = process.argv.slice(2);
  const cut = cutCommandLine(words, process.env);
  traceStep("words cut");
  switch (cut.kind) {
    case "version":
    case "help": {
      const { answerQuestion } = await import("./cli/commands.ts");
      return writeAnswer(await answerQuestion(cut, build)) ? OK : UNWRITTEN;
    }
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
    case "run":
      return runCommand({
        options: cut.options,
        argv: inherited.words.slice(cut.commandAt),
        inherited,
        isOptionVariable,
        build,
        workerUrls,
      });
  }
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
