/**
 * `watchdog job run` and `job resume`, from the side of the run around all steps: a run as any
 * other, with its lease, guard, limits and notices, whose command is watchdog itself as the runner
 * of the job (runner-command.ts).
 *
 * Always: what a person sees as the command is the line that was typed. State after a crash: that
 * of a run; the next one goes on with the job.
 */
import { keyOf } from "../core/environment-entries.ts";
import { JOB_COMMAND, type JobOrder, listStepEnvironment } from "../core/job-order.ts";
import type { Leaving } from "../core/outcome.ts";
import { readNewestJob } from "../journal/job-queries.ts";
import { isFaultVariable } from "../os/faults.ts";
import type { Inheritance } from "../os/inheritance.ts";
import type { OwnProgram } from "../os/own-program.ts";
import { resolveStateDirectory } from "../os/state-dir.ts";
import { OrderEnd } from "./channel.ts";
import { encode, OURSELVES } from "./step-command.ts";
import { tellKilled } from "./telling.ts";

export interface JobCommandRequest {
  readonly order: JobOrder;
  /** As a person reads it: `watchdog job run nightly.yaml`. */
  readonly words: readonly string[];
  readonly inherited: Inheritance;
  /** As it was asked for; undefined: that of the user. */
  readonly stateDir: string | undefined;
  /** Runs it (run/run-command.ts). */
  readonly run: (argv: readonly Uint8Array[], program: OwnProgram) => Promise<Leaving>;
}

/**
 * @returns how watchdog itself must leave
 * @throws WatchdogError "job.unusable" (125), and those of a run
 */
export async function jobCommand(request: JobCommandRequest): Promise<Leaving> {
  const { order, words, inherited, run } = request;
  const channel = new OrderEnd(order);
  try {
    return await run(words.map(encode), {
      argv: [OURSELVES, JOB_COMMAND].map(encode),
      // Of the fault build: the runner is to fail as it was told to.
      environment: inherited.environment.filter((entry) => isFaultVariable(keyOf(entry))),
      redirections: channel.redirections,
      secrets: listStepEnvironment(order.spec),
      readVerdict: () => channel.readVerdict(),
      tellKilled: (runId) => tellOfKilled(request, runId),
    });
  } finally {
    channel.close();
  }
}

/** By the journal, if it can be read, while the lease is still that of the run. */
function tellOfKilled({ order, stateDir }: JobCommandRequest, runId: string): void {
  const found = readNewestJob(resolveStateDirectory(stateDir), order.spec.name);
  const record = found.kind === "read" ? found.value?.record : undefined;
  // Whoever has taken the job over runs its steps now.
  if (record?.runId === runId) tellKilled(order, record);
}
