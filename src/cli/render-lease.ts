/**
 * Leases for people: a block for `status`, a line for `lease list`, every field for `lease show`.
 * Pure text from a view; decides nothing.
 */

import type { FoundProcess } from "../core/evidence.ts";
import { describeProgress } from "../core/described-progress.ts";
import { renderKey } from "../core/lease-key.ts";
import { escapeUnprintable } from "../core/printable.ts";
import {
  isMainLoopBlocked,
  isTaken,
  mainLoopAgeMs,
  ownerOf,
  runIdOf,
  showLease,
  troubleOf,
} from "../inspect/lease-facts.ts";
import type { LeaseView } from "../inspect/leases.ts";
import { describeItems, describeWork } from "./render-progress.ts";
import {
  renderAge,
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
  UNKNOWN,
} from "./render-words.ts";

/** What a newcomer would find, in words: by the reason of the verdict. */
const REASONS: Readonly<Record<string, string>> = {
  "beat-old": "its owner has not beaten for too long, and lives",
  "being-acquired": "just being acquired",
  members: "its watchdog is dead; processes of it live",
  "tree-unread": "its watchdog is dead; its processes could not be looked for",
  unsignalable: "its watchdog is dead; processes of it live and may not be signalled",
  suspects: "its watchdog is dead; processes may be of it and are not proven to be",
  "ancestor-of-newcomer": "its watchdog is dead; this command is below a process of it",
  "members-not-compared":
    "its watchdog is dead; what its last heartbeat names cannot be compared from here",
  "tree-empty": "its watchdog is dead, and so is every process of it",
  "nothing-recorded": "no file tells of a grant, and the journal could not be read",
  "other-boot": "its watchdog has ended with an earlier boot",
  "other-machine": "its owner belongs to another machine",
  "machine-unread": "its owner belongs to another boot, perhaps of another machine",
  "boot-unread": "nothing tells in which boot its owner ran",
  "other-namespace": "its owner ran in a pid namespace that cannot be seen from here",
  "namespace-unread": "the pid namespace of its owner could not be read",
  "owner-unread": "its lock file was replaced, and whether its owner lives is unknown",
  "lock-replaced": "its lock file was replaced under a living owner",
  "no-generation": "nothing tells its last generation",
};

/** So many processes are named; `--json` has all of them. */
const MOST_NAMED = 10;
const LABEL_WIDTH = 10;

/** One lease with what a person asks first. */
export function renderLeaseBlock(view: LeaseView): string[] {
  const { evidence, verdict } = view;
  const isHolder = runIdOf(view) !== undefined;
  const record = isHolder ? evidence.record : undefined;
  const lines = [
    labelled("run", describeRun(view)),
    labelled("owner", describeOwner(view)),
    labelled("command", record?.command),
    labelled("state", isTaken(view) && isHolder ? describeState(view) : undefined),
    labelled("beat", isTaken(view) && isHolder ? describeBeat(view) : undefined),
    ...(isTaken(view) && isHolder ? describeProgressOf(view) : []),
    labelled("verdict", `${verdict.name} (${verdict.rule} ${verdict.because})`),
    labelled("trouble", troubleOf(view)),
    labelled("fence", describeFence(view)),
    ...describeTree(view),
  ];
  return [escapeUnprintable(describeHead(view)), ...lines.flatMap((line) => line ?? [])];
}

function labelled(label: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  return `  ${label.padEnd(LABEL_WIDTH)}${escapeUnprintable(text)}`;
}

function describeHead(view: LeaseView): string {
  const { key, verdict } = view;
  const since = sinceOf(view);
  const word = since === undefined ? verdict.name : `${verdict.name} since ${renderInstant(since)}`;
  const reason = reasonOf(view);
  return `${renderKey(key)}  ${word}${reason === undefined ? "" : `: ${reason}`}`;
}

function reasonOf({ verdict, evidence }: LeaseView): string | undefined {
  const { repairer, waitingStart } = evidence;
  if (repairer === undefined && verdict.because === "being-acquired" && waitingStart) {
    return `a start (pid ${waitingStart.pid}) waits for its dependencies`;
  }
  if (repairer === undefined) return REASONS[verdict.because];
  return `watchdog repair${repairer.pid === null ? "" : ` (pid ${repairer.pid})`} is at work on it`;
}

/** When it was granted to whoever has it, or given back. */
function sinceOf(view: LeaseView): string | undefined {
  const { record } = view.evidence;
  if (runIdOf(view) === undefined || record === undefined) return undefined;
  if (isTaken(view)) return record.acquired_at;
  return view.verdict.name === "free" ? (record.released_at ?? undefined) : undefined;
}

function describeRun(view: LeaseView): string | undefined {
  const { source } = view.evidence;
  if (runIdOf(view) === undefined || source.kind !== "read") return undefined;
  return `${source.runId} (generation ${source.generation})`;
}

function describeOwner(view: LeaseView): string | undefined {
  const owner = ownerOf(view);
  if (owner === undefined) return undefined;
  const runner = view.evidence.record?.runner;
  return `pid ${owner.pid}${runner === undefined ? "" : `, ${runner}`}`;
}

function describeState({ evidence }: LeaseView): string | undefined {
  const { slot } = evidence;
  if (slot === undefined) return undefined;
  const count = slot.body?.memberCount;
  const tree = count === undefined ? "" : `, ${renderCount(count, "process", "processes")}`;
  return `${slot.head.runState}${tree}`;
}

function describeBeat(view: LeaseView): string {
  const ageMs = view.evidence.beatAgeMs;
  const beat = ageMs === undefined ? "age unread" : renderAge(ageMs);
  return isMainLoopBlocked(view) === true
    ? `${beat}; main loop blocked for ${renderSpanText(mainLoopAgeMs(view))}`
    : beat;
}

/** That it lives is told by its beat; this is whether it works. */
function describeProgressOf(view: LeaseView): (string | undefined)[] {
  const progress = describeProgress(view.evidence.slot);
  if (progress === undefined) return [];
  return [
    labelled("items", describeItems(progress)),
    labelled("message", progress.lastMessage ?? undefined),
    labelled("work", describeWork(view)),
  ];
}

function describeFence({ evidence: { fence } }: LeaseView): string | undefined {
  if (fence?.isTaken !== "yes") return undefined;
  const named = fence.by.slice(0, MOST_NAMED).map(({ pid, command }) => `${pid} ${command}`);
  return `taken by ${named.length === 0 ? "somebody who is not seen from here" : named.join(", ")}`;
}

function describeTree({ evidence }: LeaseView): (string | undefined)[] {
  if (evidence.tree === "unread") return [];
  const { members, suspects } = evidence.tree;
  return [...nameAll("survivor", members), ...nameAll("suspect", suspects)];
}

function nameAll(label: string, processes: readonly FoundProcess[]): (string | undefined)[] {
  const named = processes.slice(0, MOST_NAMED).map(({ pid, command }) => `${pid} ${command}`);
  const more = processes.length - named.length;
  const lines = more > 0 ? [...named, `and ${more} more`] : named;
  return lines.map((line) => labelled(label, line));
}

/** One line a lease: key, verdict, generation, owner, age. */
export function renderLeaseList(views: readonly LeaseView[]): string {
  if (views.length === 0) return "no lease is known\n";
  return renderLines(renderColumns(views.map(listCells)));
}

function listCells(view: LeaseView): string[] {
  const { key, evidence, verdict } = view;
  const { source, record } = evidence;
  const isHolder = runIdOf(view) !== undefined && verdict.name !== "free";
  const pid = ownerOf(view)?.pid;
  const owner = isHolder && pid !== undefined ? `pid ${pid}, ${record?.runner ?? UNKNOWN}` : "";
  return [
    renderKey(key),
    verdict.name,
    `${verdict.rule} ${verdict.because}`,
    source.kind === "read" ? `generation ${source.generation}` : "",
    owner,
    isTaken(view) && isHolder ? `beat ${describeBeat(view)}` : (troubleOf(view) ?? ""),
  ];
}

/** Every field, as `--json` names it, one a line. */
export function renderLeaseShow(view: LeaseView): string {
  const rows = Object.entries(showLease(view)).map(([name, value]) => [name, renderField(value)]);
  return renderLines(renderColumns(rows));
}

function renderField(value: unknown): string {
  if (value === null || value === undefined) return UNKNOWN;
  return typeof value === "string" ? value : JSON.stringify(value);
}
