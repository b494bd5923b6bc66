/**
 * `repair.<generation>`: that a person has approved the end of the living owner of this grant, and
 * how far that has come. A file of its own, because the record is the owner's while it lives: it is
 * read together with the record of that generation and run only, so that it never touches another
 * grant, whoever writes it how late.
 *
 * Guarantees: `intended` counts only while the repair that has written it lives and is not stopped:
 * it may be about to ask; what it has not done by its end was not done. `asked` counts for ever: a
 * living owner was asked to end. Non-guarantees: that the word is there when an owner ends faster
 * than it is written. Clock: none but that of the mark. Crash behaviour: the old word or the new
 * one; a file that is left is removed with the next grant (grant.ts) or the directory (sweep.ts).
 */
import { unlinkSync } from "node:fs";
import type { OwnerEnding } from "../../core/evidence.ts";
import type { ProcessIdentity, RepairMark } from "../../core/lease-record.ts";
import { replaceFile } from "../../os/files.ts";
import { isAlive, type Machine } from "../../os/machine.ts";
import { readStat } from "../../os/proc.ts";
import { fileModeAt } from "../../os/state-sharing.ts";
import { codeOf, readOwnFile } from "./own-file.ts";
import type { LeasePlace } from "./places.ts";
import { isRepairMark } from "./record-file.ts";

const FORMAT = 1;
const LONGEST_BYTES = 4096;
export const ENDING_NAME = /^repair\.([1-9][0-9]{0,15})$/;

export interface EndingContent {
  readonly runId: string;
  readonly state: "intended" | "asked";
  readonly mark: RepairMark;
  /** The repair that writes it. */
  readonly by: ProcessIdentity;
  readonly pidNamespace: string;
}

export interface EndingQuestion {
  readonly generation: number;
  readonly runId: string;
  readonly machine: Machine;
}

export function endingPath(place: LeasePlace, generation: number): string {
  return `${place.directory}/repair.${generation}`;
}

/** @throws the error of the system call, with the old word whole. Blocks: two fsyncs. */
export function writeEnding(place: LeasePlace, generation: number, content: EndingContent): void {
  const path = endingPath(place, generation);
  const { runId: run_id, state, mark, by, pidNamespace: pid_namespace } = content;
  const value = { format: FORMAT, generation, run_id, state, repair: mark, by, pid_namespace };
  replaceFile(path, `${JSON.stringify(value)}\n`, fileModeAt(path));
}

/** What is written of this grant, whether it counts or not; undefined: nothing of any use. */
export function readEnding(
  place: LeasePlace,
  { generation, runId }: Omit<EndingQuestion, "machine">,
): EndingContent | undefined {
  const file = readOwnFile(endingPath(place, generation), LONGEST_BYTES);
  if (file.kind !== "read") return undefined;
  const found = parse(new TextDecoder().decode(file.bytes));
  const isOfGrant = found?.["generation"] === generation && found["run_id"] === runId;
  if (!isOfGrant || found["format"] !== FORMAT) return undefined;
  const { state, repair: mark, by, pid_namespace: pidNamespace } = found;
  const isState = state === "intended" || state === "asked";
  if (!isState || !isRepairMark(mark) || !isIdentity(by)) return undefined;
  return { runId, state, mark, by, pidNamespace: String(pidNamespace) };
}

/** What counts of it for whoever finds the owner gone. */
export function findOwnerEnding(
  place: LeasePlace,
  question: EndingQuestion,
): OwnerEnding | undefined {
  const content = readEnding(place, question);
  if (content === undefined) return undefined;
  const { state, mark, by } = content;
  if (state === "asked") return { mark, repairer: undefined };
  return isAtWork(content, question.machine) ? { mark, repairer: by.pid } : undefined;
}

/** A repair that cannot be looked up from here holds nobody up. */
function isAtWork({ mark, by, pidNamespace }: EndingContent, machine: Machine): boolean {
  const isHere =
    mark.boot_id === machine.bootId &&
    mark.time_namespace === machine.timeNamespace &&
    pidNamespace === machine.pidNamespace;
  if (!isHere || isAlive(by) !== "yes") return false;
  return !["T", "t"].includes(readStat(by.pid)?.state ?? "T");
}

/** Fine if there is none. @throws the error of the system call */
export function removeEnding(place: LeasePlace, generation: number): void {
  try {
    unlinkSync(endingPath(place, generation));
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined; // SyntaxError: cut off or edited, and then nobody's word
  }
}

function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== "object" || value === null) return false;
  const { pid, start_time } = value as Readonly<Record<string, unknown>>;
  return Number.isSafeInteger(pid) && Number(pid) > 0 && Number.isSafeInteger(start_time);
}
