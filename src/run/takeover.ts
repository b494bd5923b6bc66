/**
 * What is said about a lease beside the sentence of its refusal: that it was taken over from an
 * owner that never gave it back, and which command tells more. Pure text.
 */
import type { LeaseEvidence } from "../core/evidence.ts";
import { renderKey } from "../core/lease-key.ts";
import { quoteForShell } from "../core/own-command.ts";
import type { AbandonedOwner, Continued, Refusal } from "../lease/claim/request.ts";

const MOST_HINTED = 20;

/** A command that tells more, where a person has to decide something. */
export function hintOfRefusal({
  key,
  verdict,
  users,
  because,
  evidence,
}: Refusal): string | undefined {
  if (users.length > 0) {
    const pids = users.slice(0, MOST_HINTED).map(({ pid }) => pid);
    return `ps -fp ${pids.join(",")}`;
  }
  const repairer = evidence.repairer?.pid ?? evidence.ownerEnding?.repairer;
  if (because === "repair-at-work") {
    return repairer === undefined || repairer === null ? "watchdog repair" : `ps -fp ${repairer}`;
  }
  if (verdict.name === "held") return undefined;
  return quoteForShell(["watchdog", "lease", "show", renderKey(key)]) ?? "watchdog lease list";
}

/** Told once when a lease was taken over from an owner that is gone. */
export function describeTakeover(
  evidence: LeaseEvidence,
  { verdict, because }: Pick<AbandonedOwner, "verdict" | "because">,
): string {
  const fact = FACTS[verdict] ?? because;
  return (
    `watchdog: took over ${renderKey(evidence.key)} from ${describeOwner(evidence)}, which did ` +
    `not give it back: ${fact} (${because})`
  );
}

/** Told when survivors that are waited for were let go on. */
export function describeContinued({ key, run, count }: Continued): string {
  const those = count === 1 ? "1 process" : `${count} processes`;
  return (
    `watchdog: continued ${those} of run ${run.runId}, which its watchdog had paused under ` +
    `${renderKey(key)} before it was killed`
  );
}

const FACTS: Readonly<Record<string, string>> = {
  dead: "it is dead, and so is every process of it",
  orphaned: "it is dead, and its processes were ended",
  elsewhere: "it cannot be seen from here, and nothing was heard of it for the whole limit",
};

function describeOwner({ record, source, beatAgeMs }: LeaseEvidence): string {
  if (record === undefined) return source.kind === "read" ? `run ${source.runId}` : "a run";
  const age = beatAgeMs === undefined ? "" : `, last beat ${describeAge(beatAgeMs)}`;
  return `run ${record.run_id} (pid ${record.pid}, ${record.runner}${age})`;
}

function describeAge(ageMs: number): string {
  const seconds = Math.round(Math.abs(ageMs) / 1000);
  return ageMs < 0 ? `${seconds} s in the future` : `${seconds} s ago`;
}
