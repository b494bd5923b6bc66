/**
 * Who was in the way of a start, as a clause: from what the record of a refused run holds. Pure.
 *
 * Always: says that a run held the key only where that was so; a dead one has left it, and one that
 * was not to be seen has last held it.
 */
import type { HolderSummary } from "./run-record.ts";

/** @param holder  null: nobody was written down */
export function describeHolder(holder: HolderSummary | null): string {
  if (holder === null) return "the holder is not known";
  const run = holder.run_id === null ? "another run" : `run ${holder.run_id}`;
  const pid = holder.pid === null ? undefined : `pid ${holder.pid}`;
  const who = [pid, holder.runner ?? undefined].filter((one) => one !== undefined).join(", ");
  const named = who === "" ? "" : ` (${who})`;
  const describe = IN_THE_WAY[holder.because] ?? held;
  return `${holder.key} ${describe(run, named, holder.because)}`;
}

type Described = (run: string, named: string, because: string) => string;

const held: Described = (run, named) => `was held by ${run}${named}`;
const left: Described = (run, named, because) =>
  `was left by ${run}${named}, which is dead (${because})`;
const unseen: Described = (run, named, because) =>
  `was last held by ${run}${named}, which was not to be seen (${because})`;
const fenced: Described = (_, named) => `had an operation in progress under its fence${named}`;

/** By the reason of a refusal; any other: a living run had it. */
const IN_THE_WAY: Readonly<Record<string, Described>> = {
  "being-acquired": () => "was just being acquired by another run",
  "repair-at-work": (_, named) => `was in the hands of watchdog repair${named}`,
  "repair-cooldown": () => "was granted to nobody: a repair had ended its living owner",
  "worktree-in-use": (run, named) => `was worked in by ${run}${named}`,
  "worktree-unread": () => "was free, and who worked in it could not be looked for",
  "fenced-operation": fenced,
  "fenced-around": fenced,
  "tree-unread": left,
  unsignalable: left,
  suspects: left,
  "ancestor-of-newcomer": left,
  "survivors-alive": left,
  "survivors-remain": left,
  "members-not-compared": left,
  "other-machine": unseen,
  "machine-unread": unseen,
  "boot-unread": unseen,
  "other-namespace": unseen,
  "namespace-unread": unseen,
  "owner-unread": unseen,
};
