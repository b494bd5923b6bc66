/**
 * Makes the options of a run of what its flags and variables said, and checks what they must be to
 * each other.
 *
 * Reads no value and no environment. Always: what comes out is complete, `staleAfterMs` is at least
 * two heartbeat intervals, and a run without a lease asks for none.
 */

import { NO_EXPECTATIONS } from "../core/expectations.ts";
import { orderKeys } from "../core/lease-key.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import { DEFAULT_REMIND_EVERY_MS } from "../core/notice-part.ts";
import {
  DEFAULT_CONFLICT_EXIT_CODE,
  DEFAULT_HEARTBEAT_INTERVAL_MS,
  DEFAULT_NOTIFY_TIMEOUT_MS,
  DEFAULT_REPAIR_COOLDOWN_MS,
  DEFAULT_STALE_AFTER_MS,
  LONGEST_STALE_AFTER_MS,
  SHORTEST_HEARTBEAT_INTERVAL_MS,
} from "../core/run-options.ts";
import type { RunOptions } from "../core/run-options.ts";
import { collectExpectations } from "./check-options.ts";
import { problem } from "./cut-options.ts";
import type { Problem } from "./cut-options.ts";
import { renderSpan } from "./lease-values.ts";
import type { RunPart } from "./probe-options.ts";
import { isOfFileAlone, nameOf, rankOf, setTo } from "./read-line.ts";
import type { ReadLine } from "./read-line.ts";
import { settleSchedule } from "./schedule-options.ts";
import { showWord } from "./shown-words.ts";

/** What holds where neither a flag nor a variable says otherwise. */
export const DEFAULT_RUN_OPTIONS: RunOptions = {
  name: undefined,
  stateDir: undefined,
  timeoutMs: undefined,
  idleTimeoutMs: undefined,
  idleCpuPercent: 1,
  idleIoBytes: 64 * 1024,
  notAfter: undefined,
  signal: 15,
  killAfterMs: undefined,
  isKillAfterOnLine: false,
  leftovers: "kill",
  log: "auto",
  logMaxBytes: 10 * 1024 ** 2,
  logKeepBytes: 1024 ** 3,
  isQuiet: false,
  isVerbose: false,
  resultFile: undefined,
  successExitCodes: [0],
  locks: [],
  lane: undefined,
  task: undefined,
  worktree: undefined,
  waitMs: undefined,
  hasLease: true,
  conflictExitCode: DEFAULT_CONFLICT_EXIT_CODE,
  heartbeatIntervalMs: DEFAULT_HEARTBEAT_INTERVAL_MS,
  staleAfterMs: DEFAULT_STALE_AFTER_MS,
  guardGraceMs: 0,
  assumesLocalState: false,
  onSurvivors: "kill",
  isStrictWorktree: false,
  repairCooldownMs: DEFAULT_REPAIR_COOLDOWN_MS,
  stateGroup: undefined,
  configFile: undefined,
  probes: [],
  readyProbes: [],
  countsPaused: false,
  ...NO_EXPECTATIONS,
  maxFailRate: undefined,
  maxConsecutiveFails: undefined,
  everyMs: undefined,
  cron: undefined,
  timeZone: undefined,
  sinks: [],
  masks: [],
  remindEveryMs: DEFAULT_REMIND_EVERY_MS,
  notifyTimeoutMs: DEFAULT_NOTIFY_TIMEOUT_MS,
};

/** Beats within the span after which an owner that sends none is called stalled. */
const FEWEST_BEATS = 2;
/** So many where only one of the two spans is given (product.md, section 3). */
const USUAL_BEATS = 4;

/**
 * @param parts  what each option decides; those of variables first. What they say of probes is not
 *   heard here: see finish-probes.ts
 */
export function finishRunOptions(
  line: ReadLine,
  parts: readonly RunPart[],
): { readonly kind: "finished"; readonly options: RunOptions } | Problem {
  const { probing: _, ...asked }: RunPart = Object.assign({}, ...parts);
  const keys = collectKeys(parts, asked);
  if (keys.kind === "problem") return keys;
  const spans = relateSpans(line, asked);
  if (spans.kind === "problem") return spans;
  const expected = collectExpectations(parts);
  if (expected.kind === "problem") return expected;
  const isKillAfterOnLine = line.given.get("--kill-after")?.at !== undefined;
  const told = { ...asked, ...keys.options, ...spans.options, ...expected.options };
  const options = { ...DEFAULT_RUN_OPTIONS, ...told, isKillAfterOnLine };
  const settled = settleLease(line, options);
  if ("kind" in settled) return settled;
  const scheduled = settleSchedule(line, settled);
  return "kind" in scheduled ? scheduled : { kind: "finished", options: scheduled };
}

type Piece = { readonly kind: "piece"; readonly options: Partial<RunOptions> } | Problem;

/**
 * `--lock` adds, where any other option replaces. `--lock lane:gpu` and `--lane gpu` say the same,
 * so either gives both the key and the lane. A worktree is no key before the run has found the
 * directory that its path leads to.
 */
function collectKeys(parts: readonly Partial<RunOptions>[], asked: Partial<RunOptions>): Piece {
  const locks = parts.flatMap((part) => part.locks ?? []);
  const short: LeaseKey[] = [];
  if (asked.lane !== undefined) short.push({ kind: "lane", name: asked.lane });
  if (asked.task !== undefined) short.push({ kind: "task", name: asked.task });
  const worktrees = new Set(locks.flatMap((key) => (key.kind === "worktree" ? key.name : [])));
  if (asked.worktree !== undefined) worktrees.add(asked.worktree);
  const [worktree, other] = worktrees;
  if (worktree !== undefined && other !== undefined) {
    return problem(
      `a run takes the lease of one worktree, found ${showWord(worktree)} and ${showWord(other)}`,
    );
  }
  const first = (kind: string): string | undefined => locks.find((key) => key.kind === kind)?.name;
  return {
    kind: "piece",
    options: {
      locks: orderKeys([...locks.filter((key) => key.kind !== "worktree"), ...short]),
      lane: asked.lane ?? first("lane"),
      task: asked.task ?? first("task"),
      worktree,
    },
  };
}

function relateSpans(line: ReadLine, asked: Partial<RunOptions>): Piece {
  const { heartbeatIntervalMs, staleAfterMs } = asked;
  if (heartbeatIntervalMs === undefined && staleAfterMs === undefined) {
    return { kind: "piece", options: {} };
  }
  if (heartbeatIntervalMs === undefined) {
    const quarter = Math.floor((staleAfterMs ?? 0) / USUAL_BEATS);
    const followed = Math.max(quarter, SHORTEST_HEARTBEAT_INTERVAL_MS);
    return { kind: "piece", options: { heartbeatIntervalMs: followed } };
  }
  const usual = Math.min(heartbeatIntervalMs * USUAL_BEATS, LONGEST_STALE_AFTER_MS);
  if (staleAfterMs === undefined) return { kind: "piece", options: { staleAfterMs: usual } };
  if (staleAfterMs >= heartbeatIntervalMs * FEWEST_BEATS) return { kind: "piece", options: {} };
  const least = renderSpan(heartbeatIntervalMs * FEWEST_BEATS);
  const message =
    `${nameOf(line, "--stale-after")}: found ${renderSpan(staleAfterMs)}, expected at least ` +
    `${least}: two intervals of ${nameOf(line, "--heartbeat-interval")}`;
  const isOfFile = isOfFileAlone(line, ["--stale-after", "--heartbeat-interval"]);
  return { ...problem(message, [setTo(line, "--stale-after", renderSpan(usual))]), isOfFile };
}

/**
 * `--no-lease` and an option about a lease contradict each other: a flag beats a variable, a
 * variable a file, and two of one kind are refused. `--wait 0` asks for nothing.
 */
function settleLease(line: ReadLine, options: RunOptions): RunOptions | Problem {
  if (options.hasLease) return options;
  const flags = ["--lock", "--lane", "--task", "--worktree"];
  if (options.waitMs !== undefined) flags.push("--wait");
  const asking = flags.filter((flag) => line.given.has(flag));
  const strongest = Math.max(...asking.map((flag) => rankOf(line, flag)));
  const first = asking.find((flag) => rankOf(line, flag) === strongest);
  const refusing = rankOf(line, "--no-lease");
  if (first === undefined) return options;
  if (refusing > strongest) return { ...options, ...ASKS_FOR_NOTHING };
  if (refusing < strongest) return { ...options, hasLease: true };
  const message =
    `${nameOf(line, "--no-lease")} runs without a lease, ` +
    `found ${nameOf(line, first)}, which is about one`;
  const isOfFile = isOfFileAlone(line, ["--no-lease", first]);
  return { ...problem(message, [setTo(line, "--no-lease", undefined)]), isOfFile };
}

const ASKS_FOR_NOTHING = {
  locks: [],
  lane: undefined,
  task: undefined,
  worktree: undefined,
  waitMs: undefined,
} as const satisfies Partial<RunOptions>;
