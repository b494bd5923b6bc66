/**
 * The options of `watchdog run` about leases: which keys it takes, how long it waits for them, and
 * how its life is told to others.
 *
 * A part of the one table in options-table.ts. Each row reads its own value; what the options must
 * be to each other is checked in finish-run-options.ts.
 */

import { DEFAULT_CONFLICT_EXIT_CODE } from "../core/run-options.ts";
import type { RunOptions } from "../core/run-options.ts";
import * as leaseValues from "./lease-values.ts";
import { option, toggle } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import * as values from "./values.ts";

const KEY_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--lock",
    "key",
    {
      valueName: "KIND:NAME",
      example: "db:orders",
      defaultText: "the lease of the run's name alone",
      help:
        "Take the lease of this key too: of all runs with it one goes at a time. May be given " +
        "more than once; all leases are taken, or none.",
    },
    (text) => values.mapped(leaseValues.parseLeaseKey(text), (key) => ({ locks: [key] })),
  ),
  option(
    "--lane",
    "text",
    {
      valueName: "NAME",
      example: "gpu",
      defaultText: "none",
      help: "Short for --lock lane:NAME: a resource that one run uses at a time.",
    },
    (text) => values.mapped(leaseValues.parseKeyName("lane", text), ({ name }) => ({ lane: name })),
  ),
  option(
    "--task",
    "text",
    {
      valueName: "ID",
      example: "T42",
      defaultText: "none",
      help: "Short for --lock task:ID: a piece of work that one run does at a time.",
    },
    (text) => values.mapped(leaseValues.parseKeyName("task", text), ({ name }) => ({ task: name })),
  ),
  option(
    "--worktree",
    "path",
    {
      valueName: "PATH",
      example: "/srv/repo",
      defaultText: "none",
      help:
        "Take the lease of the checkout that PATH is in; another path to the same directory " +
        "is the same key. Refused too while a process of another run works in it.",
    },
    (text) => values.mapped(values.parsePath(text), (worktree) => ({ worktree })),
  ),
  toggle("--no-lease", { help: "Run without a lease, beside any other run." }, (isOn) => ({
    hasLease: !isOn,
  })),
];

const CONFLICT_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--wait",
    "span",
    {
      valueName: "SPAN",
      example: "10m",
      defaultText: "do not wait",
      help: "Wait this long for a lease that another run holds, first come first served.",
    },
    (text) =>
      values.mapped(values.parseSpan(text), (ms) => ({ waitMs: ms === 0 ? undefined : ms })),
  ),
  option(
    "--conflict-exit-code",
    "exit code",
    {
      valueName: "CODE",
      example: "0",
      defaultText: String(DEFAULT_CONFLICT_EXIT_CODE),
      help: "The exit status where another run holds the lease.",
    },
    (text) =>
      values.mapped(leaseValues.parseExitCode(text), (conflictExitCode) => ({ conflictExitCode })),
  ),
  option(
    "--on-survivors",
    "choice",
    {
      valueName: "kill|wait|refuse",
      example: "wait",
      defaultText: "kill",
      help:
        "What happens to processes that are alive of a run whose watchdog is dead: end them, " +
        "wait for their end (within --wait where it is given), or refuse.",
    },
    (text) =>
      values.mapped(
        values.parseChoice(text, ["kill", "wait", "refuse"] as const),
        (onSurvivors) => ({ onSurvivors }),
      ),
  ),
  toggle(
    "--strict-worktree",
    {
      help:
        "With --worktree: any process that works in the checkout is in the way, not only one of " +
        "another run; those above watchdog and in its session are not.",
    },
    (isStrictWorktree) => ({ isStrictWorktree }),
  ),
  option(
    "--repair-cooldown",
    "span",
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: "10m",
      help:
        "Refuse a lease this long after a repair has ended its living owner, so that a person " +
        "can look. 0: do not.",
    },
    (text) => values.mapped(values.parseSpan(text), (repairCooldownMs) => ({ repairCooldownMs })),
  ),
];

const LIFE_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--heartbeat-interval",
    "span",
    {
      valueName: "SPAN",
      example: "5s",
      defaultText: "10s",
      help:
        "Tell others this often that the run is alive. Where only --stale-after is given: a " +
        "quarter of it.",
    },
    (text) =>
      values.mapped(leaseValues.parseInterval(text), (heartbeatIntervalMs) => ({
        heartbeatIntervalMs,
      })),
  ),
  option(
    "--stale-after",
    "span",
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: "40s",
      help:
        "Call the run stalled when it has told nothing for this long, at least two intervals; " +
        "nobody takes its lease for that. Where only --heartbeat-interval is given: four of them.",
    },
    (text) =>
      values.mapped(leaseValues.parseStaleAfter(text), (staleAfterMs) => ({ staleAfterMs })),
  ),
  option(
    "--guard-grace",
    "span",
    {
      valueName: "SPAN",
      example: "5s",
      defaultText: "0",
      help:
        "When watchdog itself is killed, its guard ends the tree: with KILL at once, or with " +
        "TERM and this long before KILL.",
    },
    (text) => values.mapped(values.parseSpan(text), (guardGraceMs) => ({ guardGraceMs })),
  ),
];

export const LEASE_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  ...KEY_ROWS,
  ...CONFLICT_ROWS,
  ...LIFE_ROWS,
];

export const localStateRow: OptionRow<Partial<RunOptions>> = toggle(
  "--assume-local-state",
  {
    help:
      "Take the state directory even where its file system looks like a network one, whose " +
      "locks may not hold between machines.",
  },
  (assumesLocalState) => ({ assumesLocalState }),
);

export const stateGroupRow: OptionRow<Partial<RunOptions>> = option(
  "--state-group",
  "text",
  {
    valueName: "GROUP",
    example: "backup",
    defaultText: "none",
    help:
      "Make the state directory one that the members of GROUP share; you must be one of them. " +
      "One that is there must be so already.",
  },
  (text) => values.mapped(values.parseName(text), (stateGroup) => ({ stateGroup })),
);
