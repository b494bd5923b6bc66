/**
 * What an entry of the journal is to those who are told: a state that changed, something that
 * occurred, or nothing. Pure.
 *
 * Always: a run that ended is told by its end alone; the events that the journal also has of the
 * same thing (`lease_lost`, `dependency_down`, `refused`) are not told beside it. A start that was
 * refused because another run is at work is no failure, and is told to nobody; one that was refused
 * by its own job is none either, and changes nothing of what was bad before; a run of one step of a
 * job that went well leaves the job as it was, and so what is told of it.
 */
import type { EventName } from "./journal-entry.ts";
import type { NoticeEvent } from "./notice.ts";
import { isOfOneStep } from "./one-step.ts";
import { isRefusedByJob } from "./refused-start.ts";
import type { RunRecord } from "./run-record.ts";
import type { Happening } from "./told-state.ts";

const ENDINGS: Readonly<Partial<Record<string, NoticeEvent>>> = {
  timeout: "timeout",
  idle_timeout: "timeout",
  lease_lost: "lease_lost",
  abandoned: "abandoned",
};

/** @param verdict  of the key that was refused; null: none was, or its holder is well */
export function happeningOfEnd(
  { outcome, because }: Pick<RunRecord, "outcome" | "because">,
  verdict: string | null,
): Happening | undefined {
  if (outcome === null || isOfOneStep({ because })) return undefined;
  if (isRefusedByJob({ because })) return { kind: "refused" };
  if (outcome === "ok") return { kind: "went-well" };
  if (outcome === "locked" && verdict === null) return undefined;
  const events: NoticeEvent[] =
    verdict === "stalled" ? ["stalled", "failure"] : [ENDINGS[outcome] ?? "failure"];
  const what = verdict === null ? outcome : `${outcome} ${verdict}`;
  return { kind: "went-bad", events, what, isEnding: true };
}

/**
 * The entry by which each notice about the end of a run has its key, whoever tells it. One that was
 * taken for dead and was not has two ends, and both are told.
 */
export function entryIdOfEnd({ run_id: id, outcome }: Pick<RunRecord, "run_id" | "outcome">) {
  return `${outcome === "abandoned" ? "abandoned" : "end"}:${id}`;
}

const OCCURRENCES: Readonly<Partial<Record<string, NoticeEvent>>> = {
  lock_restored: "lock_restored",
  suspended: "suspended",
  leftovers: "leftovers",
  reclaimed: "reclaimed",
};

/** @param about  what it is about, where one job may have several: a circuit, a key */
export function happeningOfEvent(
  name: EventName | string,
  data: Readonly<Record<string, unknown>>,
): Happening | undefined {
  const about = typeof data["name"] === "string" ? data["name"] : "";
  if (name === "circuit_open") return { kind: "opened", event: name, about };
  if (name === "circuit_closed") return { kind: "closed", event: name, about };
  if (name === "overdue" || name === "stalled") {
    return { kind: "went-bad", events: [name], what: name, isEnding: false };
  }
  // Of a run that ends well its end tells.
  if (name === "recovered") return { kind: "healed", what: about === "" ? "stalled" : about };
  const event = OCCURRENCES[name];
  return event === undefined ? undefined : { kind: "occurred", event, about };
}

/** What the end of a run brings to light beside its outcome. */
export function occurrencesOfRun(
  run: RunRecord,
): readonly { readonly name: "leftovers" | "suspended"; readonly data: Record<string, unknown> }[] {
  const left = run.leftovers.length;
  return [
    ...(left === 0 ? [] : [{ name: "leftovers" as const, data: { leftovers: run.leftovers } }]),
    ...(run.suspended_ms === 0
      ? []
      : [{ name: "suspended" as const, data: { suspended_ms: run.suspended_ms } }]),
  ];
}
