/**
 * Asks several dependencies once, all at the same time as a start does, and tells what each has
 * answered. No run, no circuit, no state directory: nothing is counted and nothing is kept.
 *
 * Always: each has a result, in the order of the settings, within its own limit and what a helper
 * needs beside it. State after a crash: none.
 */
import type { ProbeResult } from "../../core/probe-result.ts";
import type { ProbeSettings } from "../../core/probe-settings.ts";
import type { Inheritance } from "../../os/inheritance.ts";
import { becomeReaper, collectChildren, watchChildren } from "../../os/reaper.ts";
import { keyOf } from "../../core/environment-entries.ts";
import { isFaultVariable } from "../../os/faults.ts";
import { CommandProbes } from "./command-probe.ts";
import { Probing } from "./probing.ts";

export interface AskEachRequest {
  readonly settings: readonly ProbeSettings[];
  readonly inherited: Inheritance;
  /** Whether a variable stands for an option of ours: a command has none, as in a run. */
  readonly isOptionVariable: (name: string) => boolean;
  /** Of probe/probe-worker.ts. */
  readonly probeUrl: URL;
}

export interface AskedProbe {
  readonly settings: ProbeSettings;
  readonly result: ProbeResult;
}

export async function askEach(request: AskEachRequest): Promise<readonly AskedProbe[]> {
  const { settings, probeUrl } = request;
  const commands = makeCommands(request);
  const probing = new Probing({ workerUrl: probeUrl, commands });
  const { signal } = new AbortController();
  try {
    return await Promise.all(
      settings.map(async (each) => ({
        settings: each,
        result: await probing.ask(each, each.timeoutMs, signal),
      })),
    );
  } finally {
    probing.close();
  }
}

function makeCommands({ settings, inherited, isOptionVariable }: AskEachRequest): CommandProbes {
  const environment = inherited.environment.filter((entry) => {
    const key = keyOf(entry);
    return !isOptionVariable(key) && !isFaultVariable(key);
  });
  const commands = new CommandProbes({ inherited, environment: () => environment });
  if (settings.some(({ target }) => target.kind === "cmd")) {
    becomeReaper();
    watchChildren(() => {
      for (const change of collectChildren()) commands.onEnded(change);
    });
  }
  return commands;
}
