/**
 * `watchdog __hook` and `watchdog __probe-command`: runs one hook for a watchdog that has something
 * to tell, or one `cmd:` probe for one that asks, ends everything that this has started, and
 * answers with one line on standard output (see attended-command.ts).
 *
 * What to run stands in memory behind ORDER_DESCRIPTOR. The shell reads it from a descriptor too,
 * so that a token in it, out of a configuration file, is on nobody's command line.
 */
import { fstatSync, readSync, writeSync } from "node:fs";
import { keyOf } from "../core/environment-entries.ts";
import { type HookOrder, ORDER_DESCRIPTOR, parseOrder } from "../core/hook-order.ts";
import type { Leaving } from "../core/outcome.ts";
import { close, moveHigh, NONE } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { sys } from "../os/sys.ts";
import { answerNotStarted, attendCommand, type AttendedRequest } from "./attended-command.ts";

const SHELL = "/bin/sh";
/** The shell's own redirections are single digits; 9 is the least likely to be used by a hook. */
const SCRIPT_DESCRIPTOR = 9;
const NOT_ORDERED: Leaving = { kind: "status", code: 64 };

/** @returns 0 with an answer, whatever it is; 64: nobody has told what to run */
export async function hookCommand(inherited: Inheritance): Promise<Leaving> {
  const order = readOrder();
  if (order === undefined) return NOT_ORDERED;
  if (order.cwd !== null) work(order.cwd);
  const input = order.input === null ? undefined : keepInMemory("watchdog-input", order.input);
  const { run } = order;
  const script = run.kind === "shell" ? keepInMemory("watchdog-hook", run.command) : undefined;
  const request: AttendedRequest = {
    argv: wordsOf(run).map((word) => new TextEncoder().encode(word)),
    environment: addVariables(inherited.environment, order.variables),
    timeoutMs: order.timeoutMs,
    graceMs: order.graceMs,
    leftovers: leftoversOf(run),
    ...(input === undefined ? {} : { input }),
    redirections: script === undefined ? [] : [{ target: SCRIPT_DESCRIPTOR, source: script }],
    // Nothing of ours is for the hook.
    inherited: { ...inherited, descriptors: [] },
  };
  if (input === NONE || script === NONE) return answerNotStarted(request, "no memory is left");
  return attendCommand(request);
}

/**
 * A mail program may deliver in a process that it leaves behind (dma does, whatever it is told):
 * ended at once, that would write half a mail, or leave it in a queue that nobody may run.
 */
function leftoversOf(run: HookOrder["run"]): "end" | "await" {
  return run.kind === "program" ? "await" : "end";
}

function wordsOf(run: HookOrder["run"]): readonly string[] {
  if (run.kind === "program") return run.argv;
  return [SHELL, `/proc/self/fd/${SCRIPT_DESCRIPTOR}`];
}

/** Longer orders than the largest log tail with its JSON are none of ours. */
const LONGEST_ORDER_BYTES = 8 * 1024 * 1024;

function readOrder(): HookOrder | undefined {
  try {
    const { size } = fstatSync(ORDER_DESCRIPTOR);
    if (size === 0 || size > LONGEST_ORDER_BYTES) return undefined;
    const bytes = new Uint8Array(size);
    const length = readSync(ORDER_DESCRIPTOR, bytes, { position: 0 });
    close(ORDER_DESCRIPTOR);
    return parseOrder(bytes.subarray(0, length));
  } catch {
    return undefined; // EBADF: a person has typed the word
  }
}

/** The directory of the run may be gone by now, or closed to us. */
function work(cwd: string): void {
  for (const place of [cwd, "/"]) {
    try {
      process.chdir(place);
      return;
    } catch {
      continue; // ENOENT, ENOTDIR, EACCES: the next one
    }
  }
}

/** @returns NONE where there is no room for it */
function keepInMemory(name: string, text: string): number {
  const fd = moveHigh(sys.memoryFile(name));
  if (fd === NONE) return NONE;
  const bytes = new TextEncoder().encode(text);
  try {
    // By position, so that whoever inherits the descriptor reads from the beginning.
    for (let done = 0; done < bytes.length;) {
      done += writeSync(fd, bytes, done, bytes.length - done, done);
    }
    return fd;
  } catch {
    return close(fd); // EFBIG
  }
}

function addVariables(
  environment: readonly Uint8Array[],
  variables: HookOrder["variables"],
): readonly Uint8Array[] {
  const kept = environment.filter((entry) => !Object.hasOwn(variables, keyOf(entry)));
  const added = Object.entries(variables).map(([name, value]) =>
    new TextEncoder().encode(`${name}=${value}`),
  );
  return [...kept, ...added];
}
