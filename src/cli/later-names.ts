/**
 * The names that watchdog knows but this version does not have: options, commands.
 *
 * Holds no meaning of theirs. Always: such a name is refused and never ignored, because a
 * protection that was asked for and is not there is worse than none. The lists stay text until one
 * of them is asked for: every start loads this file, and next to none needs them.
 */

import { variableOf } from "./option-row.ts";

const LEASES = "leases come with a later version";
const PROBES = "probes come with a later version";
const RESULTS = "the check of results comes with a later version";
const NOTICES = "notifications come with a later version";
const CONFIGURATION = "the configuration file comes with a later version";

const FLAGS_BY_REASON: readonly (readonly [reason: string, flags: string])[] = [
  [
    LEASES,
    "--lock --lane --task --worktree --wait --conflict-exit-code --heartbeat-interval " +
      "--stale-after --on-survivors --strict-worktree --repair-cooldown --guard-grace " +
      "--assume-local-state --state-group --store",
  ],
  [
    PROBES,
    "--probe --ready-probe --on-unready --on-open --count-paused --probe-startup-wait " +
      "--probe-period --probe-timeout --probe-initial-delay --probe-failure-threshold " +
      "--probe-success-threshold --probe-expect-status --probe-expect-body " +
      "--probe-expect-json --probe-method --probe-body --probe-header --probe-backoff " +
      "--probe-backoff-factor --probe-max-attempts --probe-max-elapsed",
  ],
  [
    RESULTS,
    "--expect-file --expect-match --expect-output --fail-match --min-duration " +
      "--max-fail-rate --max-consecutive-fails --strict",
  ],
  [
    NOTICES,
    "--on --on-start --on-success --on-failure --on-recovered --on-stalled --on-lease-lost " +
      "--on-lock-restored --on-suspended --on-circuit-open --on-circuit-closed --on-timeout " +
      "--on-leftovers --on-reclaimed --on-abandoned --on-overdue --webhook --ping --every " +
      "--schedule --remind-every",
  ],
  [CONFIGURATION, "--config"],
];

/** Why a flag is refused; undefined: this version knows no such name. */
export function reasonOfLaterFlag(flag: string): string | undefined {
  return FLAGS_BY_REASON.find(([, flags]) => flags.split(" ").includes(flag))?.[0];
}

/** The flag that a variable of the environment stands for; undefined: none of a later version. */
export function laterFlagOf(variable: string): string | undefined {
  const flag = `--${variable.slice("WATCHDOG_".length).toLowerCase().replaceAll("_", "-")}`;
  const isLater = variableOf(flag) === variable && reasonOfLaterFlag(flag) !== undefined;
  return isLater ? flag : undefined;
}

/** In the order of the reasons. */
export function listLaterFlags(): readonly string[] {
  return FLAGS_BY_REASON.flatMap(([, flags]) => flags.split(" "));
}

const COMMANDS =
  "status history logs lease stop repair fence probe circuit retry tick patrol report why " +
  "doctor notify config job";

export function listLaterCommands(): readonly string[] {
  return COMMANDS.split(" ");
}
