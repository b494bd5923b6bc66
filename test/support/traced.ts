/**
 * Whom a watchdog signals, as two witnesses tell it: the kernel's side by strace(1), for any
 * binary, and the kill seam's own evidence in the fault build. Trusts nothing that watchdog says.
 */
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { FAULTS, type Ended, type RunOptions, type Scene, type Started } from "./scene.ts";

export const hasStrace: boolean = Bun.which("strace") !== null;
if (!hasStrace) console.error("needs strace, not run here: who is signalled, seen from outside");

const CALLS = "trace=kill,tkill,tgkill,pidfd_send_signal";
/** Of each point so many are witnessed; a delay of nothing changes nothing. */
const MOST_SIGNALS = 300;
const SEAM = ["tree.signal", "tree.kill", "tree.survivor"] as const;

let count = 0;

export interface Traced {
  readonly started: Started;
  readonly trace: string;
  readonly faults: string;
}

/** Any program under strace, with its descendants; `WATCHDOG_FAULT` speaks to the fault build. */
export function startTraced(
  scene: Scene,
  argv: readonly string[],
  options: RunOptions = {},
): Traced {
  count += 1;
  const [trace, faults] = [scene.path(`traced-${count}`), scene.path(`traced-${count}.faults`)];
  const plan = SEAM.flatMap((point) =>
    Array.from({ length: MOST_SIGNALS }, (_, n) => `${point}#${n + 1}=delay:0`),
  ).join(",");
  const env = { ...options.env, WATCHDOG_FAULT: plan, WATCHDOG_FAULT_DIR: faults };
  const strace = ["strace", "-f", "-yy", "--seccomp-bpf", "-e", CALLS, "-o", trace];
  const started = scene.startProgram([...strace, ...argv], { ...options, env });
  return { started, trace, faults };
}

export interface Witnessed {
  readonly ended: Ended;
  /** Pids that were signalled, sorted; of others than the signalling process itself. */
  readonly targets: readonly number[];
}

/** `watchdog WORDS…` of the fault build to its end; both witnesses have to agree. */
export async function witness(
  scene: Scene,
  words: readonly string[],
  options: RunOptions = {},
): Promise<Witnessed> {
  const traced = startTraced(scene, [FAULTS, ...words], options);
  const ended = await traced.started.ended;
  const targets = readTargets(traced.trace);
  const seam = readSeam(traced.faults).map(({ state }) => state.pid);
  expect([...new Set(seam)].sort((a, b) => a - b)).toEqual(targets);
  return { ended, targets };
}

const CALL = new RegExp(
  [
    /^(\d+) +/,
    /(?:(kill)\((-?\d+)|t(?:g)?kill\((\d+)(?:, \d+)?|pidfd_send_signal\(\d+(?:<pid:(-?\d+)>)?)/,
    /, (\w+)/,
  ]
    .map(({ source }) => source)
    .join(""),
);

/**
 * Signal 0 only asks whether one may; who is gone is not hit; and what a process sends to itself,
 * or to its own threads, is the engine's or the way out.
 */
export function readTargets(trace: string): number[] {
  const lines = readFileSync(trace, "utf8").split("\n");
  const traced = new Set(lines.map((line) => Number(line.split(" ")[0])));
  const targets = lines.flatMap((line) => {
    if (!/^\d+ +(kill|tkill|tgkill|pidfd_send_signal)\(/.test(line)) return [];
    const [, caller, , pid, group, member, signal] = CALL.exec(line) ?? [];
    const target = Number(pid ?? group ?? member);
    if (Number.isNaN(target)) throw new Error(`not understood of strace: ${line}`);
    if (signal === "0" || line.includes("= -1 ESRCH") || target === Number(caller)) return [];
    return group !== undefined && traced.has(target) ? [] : [target];
  });
  return [...new Set(targets)].sort((a, b) => a - b);
}

export interface SeamEvidence {
  readonly point: string;
  readonly state: { readonly pid: number; readonly signal: number };
}

/** What the seam itself has left, right before each call. */
export function readSeam(faults: string): SeamEvidence[] {
  if (!existsSync(faults)) return [];
  return readdirSync(faults).map((name) => JSON.parse(readFileSync(`${faults}/${name}`, "utf8")));
}
