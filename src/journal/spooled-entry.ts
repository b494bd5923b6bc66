/**
 * Whether what was read from a spool file is an entry that can be applied. By hand, as far as the
 * code relies on it: zod would cost more than the whole journal on the way of `run`.
 */
import type { JournalEntry } from "../core/journal-entry.ts";
import type { NamedEntry } from "./apply.ts";
import { isLease, isRecord } from "./rows.ts";

type Fields = Readonly<Partial<Record<string, unknown>>>;

export function isNamedEntry(found: unknown): found is NamedEntry {
  return isFields(found) && typeof found["id"] === "string" && isEntry(found["entry"]);
}

const CHECKS: Readonly<Record<JournalEntry["kind"], (entry: Fields) => boolean>> = {
  "run-started": (entry) =>
    isRecord(entry["run"]) &&
    typeof entry["runPath"] === "string" &&
    isIdentity(entry["owner"]) &&
    isIdentity(entry["child"]) &&
    areLeases(entry["leases"]),
  "run-ended": (entry) =>
    isRecord(entry["run"]) &&
    typeof entry["runPath"] === "string" &&
    typeof entry["isReleased"] === "boolean" &&
    areLeases(entry["leases"]),
  "run-abandoned": (entry) =>
    typeof entry["runId"] === "string" &&
    typeof entry["because"] === "string" &&
    typeof entry["by"] === "string" &&
    (entry["run"] === null || isRecord(entry["run"])) &&
    areLeases(entry["leases"]),
  audit: (entry) =>
    ["actId", "phase", "planId", "action", "because", "who", "bootId"].every(
      (name) => typeof entry[name] === "string",
    ) &&
    ["uid", "pid", "monotonicMs"].every((name) => Number.isFinite(entry[name])) &&
    entry["key"] !== null &&
    isKeyOrNull(entry["key"]) &&
    isFields(entry["evidence"]),
  "schedule-forgotten": (entry) => typeof entry["job"] === "string",
  patrolled: (entry) =>
    typeof entry["bootId"] === "string" &&
    ["pid", "monotonicMs"].every((name) => Number.isFinite(entry[name])) &&
    typeof entry["isExpected"] === "boolean" &&
    ["findings", "looked", "recovered", "jobs"].every((name) => areFields(entry[name])),
  event: (entry) =>
    typeof entry["name"] === "string" &&
    ["runId", "job", "because"].every((name) => isTextOrNull(entry[name])) &&
    isKeyOrNull(entry["key"]) &&
    isFields(entry["data"]),
};

function isEntry(found: unknown): found is JournalEntry {
  if (!isFields(found) || !Number.isFinite(found["at"])) return false;
  const kind = found["kind"];
  return typeof kind === "string" && Object.hasOwn(CHECKS, kind)
    ? CHECKS[kind as JournalEntry["kind"]](found)
    : false;
}

function isFields(found: unknown): found is Fields {
  return typeof found === "object" && found !== null;
}

function areFields(found: unknown): boolean {
  return Array.isArray(found) && found.every((one) => isFields(one) || typeof one === "string");
}

function areLeases(found: unknown): boolean {
  return Array.isArray(found) && found.every(isLease);
}

function isTextOrNull(found: unknown): boolean {
  return found === null || typeof found === "string";
}

function isKeyOrNull(found: unknown): boolean {
  if (found === null) return true;
  return isFields(found) && typeof found["kind"] === "string" && typeof found["name"] === "string";
}

function isIdentity(found: unknown): boolean {
  if (found === null) return true;
  return isFields(found) && Number.isInteger(found["pid"]) && Number.isInteger(found["start_time"]);
}
