/** What is said of dependencies on standard error: one line for a change of state. Pure text. */
import type { StartRefusal } from "../../core/outcome.ts";
import { quoteForShell } from "../../core/own-command.ts";
import type { ProbeVerdict } from "../../core/probe-result.ts";
import type { ProbeNote, SharedCircuit } from "../../core/shared-circuit.ts";

const WHY_NOT_STARTED: Readonly<Record<StartRefusal, (openFor: string) => string>> = {
  "circuit-open": (openFor) => `its circuit has been open for ${openFor}`,
  "trial-failed": (openFor) => `a trial has failed, its circuit has been open for ${openFor}`,
  "startup-wait": () => "no good answer within --probe-startup-wait",
  "max-attempts": () => "no good answer in as many probes as are allowed",
  "max-elapsed": () => "no good answer within the time that is allowed",
};

const WHAT_FOLLOWS = {
  stop: "the job is stopped",
  pause: "the job stands still until it is back",
  notify: "the job goes on",
} as const;

export type Policy = keyof typeof WHAT_FOLLOWS;

/** The last probe of a circuit that calls have opened may have been a good one. */
function lastOf(note: ProbeNote | null | undefined): string {
  if (note === null || note === undefined) return "";
  return note.because === "good" ? ": calls to it have failed" : `: ${note.detail}`;
}

function span(ms: number): string {
  return ms < 10_000 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

export const sentences = {
  notStarted: (
    name: string,
    because: StartRefusal,
    { last, openForMs }: { readonly last: ProbeNote | undefined; readonly openForMs: number },
  ): string => {
    const why = WHY_NOT_STARTED[because](span(openForMs));
    // Closed, and yet no answer: somebody else has the lock of the circuit, and does not ask.
    const isOpen = because === "circuit-open" || because === "trial-failed";
    const isUnasked = !isOpen && (last === undefined || last.because === "good");
    if (isUnasked)
      return `watchdog: not started: ${name} was not asked by whoever probes it, ${why}`;
    return `watchdog: not started: ${name} is down, ${why}${lastOf(last)}`;
  },
  nextTrial: (name: string, inMs: number): string =>
    `watchdog: hint: the next trial of ${name} may be made in ${span(inMs)}`,
  answered: (name: string, { because, detail }: ProbeVerdict): string =>
    `watchdog: probe of ${name}: ${detail} (${because})`,
  down: (name: string, policy: Policy, last: ProbeNote | null): string =>
    `watchdog: ${name} is down, ${WHAT_FOLLOWS[policy]}${lastOf(last)}`,
  givenUp: (name: string, policy: Policy): string =>
    `watchdog: ${name} has not come back in as many trials, or within the time, as are allowed` +
    (policy === "notify" ? "; the job goes on" : "; the job is stopped"),
  back: (name: string, afterMs: number): string =>
    `watchdog: ${name} is back after ${span(afterMs)}`,
  unready: (name: string, policy: Exclude<Policy, "stop">, detail: string): string =>
    `watchdog: ${name} is not ready, ${WHAT_FOLLOWS[policy]}: ${detail}`,
  ready: (name: string): string => `watchdog: ${name} is ready again`,
  unshared: (reason: string): string =>
    `watchdog: circuits are not shared with other runs: ${reason}`,
  trouble: (name: string, detail: string): string =>
    `watchdog: ${name} cannot be probed: ${detail}`,
  otherSettings: (
    { job, name }: SharedCircuit,
    { own, isInUse }: { readonly own: string; readonly isInUse: boolean },
  ): string => {
    const whose = job === null ? "another job" : `job ${job}`;
    const reset = commandAbout("reset", name);
    const how = isInUse ? "which probes with them now" : `until \`${reset}\` has it forget them`;
    return `circuit ${name} has other settings than job ${own}: those of ${whose}, ${how}`;
  },
} as const;

/** To be pasted; without the name where it cannot be. */
export function commandAbout(word: "show" | "reset", circuit: string): string {
  const quoted = quoteForShell([circuit]);
  return quoted === undefined ? "watchdog circuit list" : `watchdog circuit ${word} ${quoted}`;
}
