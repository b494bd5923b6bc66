/**
 * `watchdog lease explain` for people: the lease, each signal, each rule with what of it is not so,
 * what a newcomer would do, and what a repair may do. Pure text; decides nothing.
 */
import type { ExplainedRule, RuleMiss } from "../core/explained-rules.ts";
import type { ExplainedOption, Explanation } from "../core/explanation.ts";
import { renderKey } from "../core/lease-key.ts";
import type { Verdict } from "../core/lease-verdict.ts";
import type { NewcomerDecision, NewcomerRefusal } from "../core/newcomer.ts";
import { isFenced, isSuspicious } from "../core/repair-plan.ts";
import type { SurvivorPolicy } from "../core/run-options.ts";
import { ownLine } from "../os/own-line.ts";
import { renderLeaseBlock } from "./render-lease.ts";
import { REASONS } from "../repair/lines.ts";
import { ACTIONS } from "./render-repair.ts";
import { renderColumns, renderCount, renderLines, renderSpanText } from "./render-words.ts";

const MISSES: Readonly<Record<RuleMiss, string>> = {
  "lock-askable": "the lock can be asked",
  "lock-free": "the lock is free",
  released: "the record says released",
  "released-by-journal": "the journal says released",
  "not-released": "neither record nor journal says released",
  "used-before": "something was granted before, or that cannot be read",
  "record-unreadable": "the record cannot be read",
  "generation-unknown": "nothing tells the last generation",
  "same-boot": "the owner is of this boot",
  "other-boot": "the owner is of another boot",
  "owner-gone": "the recorded owner is gone",
  "other-lock-file": "the owner had another lock file",
  "lock-file-unread": "it cannot be told which lock file the owner had",
};

export function renderExplanation(explanation: Explanation): string {
  const { signals, rules, verdict } = explanation;
  const blocks = [
    renderLeaseBlock(explanation),
    ["signals", ...indent(signals.map(({ name, says, raw }) => [name, says, raw]))],
    ["rules, the first that fits decides", ...indent(rules.map((rule) => rowOf(rule, verdict)))],
    ["a newcomer", ...describeNewcomer(explanation)],
    ["a repair", ...describeRepair(explanation)],
  ];
  return blocks.map(renderLines).join("\n");
}

function indent(rows: readonly (readonly string[])[]): string[] {
  return renderColumns(rows).map((line) => `  ${line}`);
}

function rowOf({ rule, state, misses }: ExplainedRule, verdict: Verdict): string[] {
  if (state === "not-asked") return [rule, "not asked"];
  if (state === "decided") return [rule, "decides", `${verdict.name}, because ${verdict.because}`];
  return [rule, "does not fit", misses.map((miss) => MISSES[miss]).join("; ")];
}

/** One line where it is the same whatever `--on-survivors` says. */
function describeNewcomer({ newcomer, evidence, cooldownMs, verdict }: Explanation): string[] {
  const tell = (decision: NewcomerDecision, policy: SurvivorPolicy = "kill"): string => {
    if (isFencedOff(decision)) return FENCED[policy];
    return isWaitForSurvivors(decision, policy)
      ? `waits until they have ended, as long as it takes; --wait bounds it (${decision.because})`
      : describeDecision(decision, verdict, evidence.staleAfterMs);
  };
  const all = (Object.entries(newcomer) as [SurvivorPolicy, NewcomerDecision][]).map(
    ([policy, decision]) => [`--on-survivors ${policy}`, tell(decision, policy)],
  );
  const isOne = new Set(all.map(([, text]) => text)).size === 1;
  const lines = isOne ? [`  ${tell(newcomer.kill)}`] : indent(all);
  if (cooldownMs > 0) {
    lines.push(
      "  a repair has ended its living owner: unless told otherwise by --repair-cooldown it is " +
        `refused with 75 for ${renderSpanText(cooldownMs)} more`,
    );
  }
  if (evidence.key.kind === "worktree" && newcomer.kill.kind !== "refuse") {
    lines.push("  but while another run works in the checkout it is refused with 75");
  }
  return lines;
}

function isFencedOff(decision: NewcomerDecision): boolean {
  return decision.kind === "refuse" && decision.because === "fenced-operation";
}

/** What it does about whoever has the fence of a key that is free otherwise. */
const FENCED: Readonly<Record<SurvivorPolicy, string>> = {
  kill: "waits 30 s for whoever has the fence, or as --wait says, then 75 (fenced-operation)",
  wait: "waits until nobody has the fence; --wait bounds it (fenced-operation)",
  refuse: "is refused with 75 (fenced-operation); with --wait it waits",
};

/** The wait of `--on-survivors wait` needs no `--wait`. */
function isWaitForSurvivors(
  decision: NewcomerDecision,
  policy: SurvivorPolicy,
): decision is NewcomerRefusal {
  return policy === "wait" && decision.kind === "refuse" && decision.because === "survivors-alive";
}

function describeDecision(
  decision: NewcomerDecision,
  verdict: Verdict,
  staleAfterMs: number,
): string {
  switch (decision.kind) {
    case "acquire":
      return `takes the lease (${decision.because})`;
    case "end-survivors": {
      const count = renderCount(decision.members.length, "process", "processes");
      return `ends ${count}, proves that none is left, takes the lease (${verdict.because})`;
    }
    case "refuse":
      return describeRefusal(decision, staleAfterMs);
  }
}

function describeRefusal(refusal: NewcomerRefusal, staleAfterMs: number): string {
  const { status, because, canWait, leavesNote } = refusal;
  const code = status === "locked" ? "75" : "78";
  const waits = canWait ? "with --wait it waits" : "--wait does not help";
  const later = renderSpanText(staleAfterMs);
  const note = leavesNote ? `; it notes the time, and one ${later} later takes the lease` : "";
  return `is refused with ${code} (${because}); ${waits}${note}`;
}

function describeRepair(explanation: Explanation): string[] {
  const { verdict, options } = explanation;
  if (!isSuspicious(verdict) && !isFenced(explanation))
    return [`  has nothing to do (${verdict.because})`];
  return options.flatMap((option) => describeOption(explanation, option));
}

function describeOption({ key }: Explanation, option: ExplainedOption): string[] {
  const { action, because, needs, planId } = option;
  if (action === "none") return [`  ${ACTIONS.none}: ${REASONS[because] ?? because}`];
  const words = ["repair", renderKey(key)];
  if (needs === "apply") words.push("--apply");
  else if (planId !== null) words.push("--approve", planId);
  const line = ownLine(words);
  return [`  ${ACTIONS[action]} (${because})`, ...(line === undefined ? [] : [`    ${line}`])];
}
