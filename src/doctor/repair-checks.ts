/**
 * Whether the way of a repair is open before it is needed: it has to write in each lease directory
 * and beside it, and to signal and read each living owner. Nobody is signalled: only the right to
 * is asked for.
 *
 * Always: read only. A lock is asked for a moment, as by every reader. Clock: none. State after a
 * crash: none.
 */
import { accessSync, constants, lstatSync } from "node:fs";
import type { LeaseEvidence } from "../core/evidence.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { LeaseRecord } from "../core/lease-record.ts";
import { LEASES_DIRECTORY, placeOf } from "../lease/files/places.ts";
import { readRecord } from "../lease/files/record-file.ts";
import { gatherEvidence } from "../lease/gather.ts";
import { listKeys } from "../lease/list.ts";
import { kindAt } from "../lease/repair-facts.ts";
import { isAlive, readMachine } from "../os/machine.ts";
import { lookAtProcess, readEnvironmentText } from "../os/proc-look.ts";
import { refusalOfOwner } from "../os/state-sharing.ts";
import { maySignal } from "../tree/signal.ts";
import { type Finding, finding, joinSome, note, ok, textOf } from "./request.ts";

const { R_OK, W_OK, X_OK } = constants;

const ADVICE = "watchdog repair (it shows what can be done), or give them back to their owner";
/** Files of the state directory itself that a repair opens. */
const BESIDE_LEASES = ["repair.lock", "journal.lock", "journal.db"];

export function checkRepairFiles(stateDirectory: string): Finding {
  try {
    const keys = listKeys(stateDirectory);
    const troubles = [
      ...findUnwritable(stateDirectory, "directory"), // whose it may be is a check of its own
      ...troubleAt(`${stateDirectory}/${LEASES_DIRECTORY}`, "directory"),
      ...BESIDE_LEASES.flatMap((name) => troubleAt(`${stateDirectory}/${name}`, "file")),
      ...keys.flatMap((key) => findTroubles(stateDirectory, key)),
    ];
    if (troubles.length === 0) {
      return ok(`the files of ${keys.length} leases are what they should be and can be written`);
    }
    return finding(joinSome(troubles), ADVICE);
  } catch (error) {
    return finding(textOf(error), "look at the modes below leases/");
  }
}

function findTroubles(stateDirectory: string, key: LeaseKey): string[] {
  const place = placeOf(stateDirectory, key);
  const [kindTrouble] = troubleAt(place.kindDirectory, "directory");
  const [trouble] = troubleAt(place.directory, "directory");
  const above = kindTrouble ?? trouble;
  if (above !== undefined) return [above];
  const record = readRecord(place.record).kind;
  return [
    ...troubleAt(place.lock, "file"),
    ...troubleAt(place.fence, "file"),
    ...(record === "unreadable" ? [`the record of ${renderKey(key)} cannot be read`] : []),
    ...(record === "newer" ? [`the record of ${renderKey(key)} is of a newer version`] : []),
  ];
}

/** What is not there yet is made by whoever needs it. */
function troubleAt(path: string, expected: "directory" | "file"): string[] {
  const kind = kindAt(path);
  if (kind === "missing") return [];
  if (kind !== (expected === "file" ? "regular" : "directory")) {
    return [`${path} is ${KINDS[kind] ?? kind}, expected a ${expected}`];
  }
  const refusal = refusalOfOwner(path, lstatSync(path));
  return refusal === undefined ? findUnwritable(path, expected) : [`${path}: ${refusal}`];
}

function findUnwritable(path: string, expected: "directory" | "file"): string[] {
  try {
    accessSync(path, expected === "file" ? R_OK | W_OK : R_OK | W_OK | X_OK);
    return [];
  } catch (error) {
    return [`${path} cannot be written: ${textOf(error)}`]; // EACCES, EROFS
  }
}

const KINDS: Readonly<Record<string, string>> = {
  fifo: "a FIFO",
  link: "a symbolic link",
  directory: "a directory",
  regular: "a regular file",
  special: "a device or a socket",
  unread: "not to be seen",
};

export function checkOwners(stateDirectory: string): Finding {
  const machine = readMachine();
  const looker = { stateDirectory, machine, journal: () => "unread" as const };
  const taken = listKeys(stateDirectory)
    .map((key) => gatherEvidence(looker, key))
    .filter(({ lock }) => lock.kind === "held");
  const seen = taken.filter(isOwnerSeen);
  const troubles = seen.flatMap(({ key, record }) => troubleWith(renderKey(key), record.pid));
  const advice = "repair leases of other users as root, or as their owner";
  if (troubles.length > 0) return finding(joinSome(troubles), advice);
  const unseen = taken.filter((evidence) => !isOwnerSeen(evidence));
  const limits = [
    ...unseen.map(({ key }) => `the owner of ${renderKey(key)} is not to be seen from here`),
    ...seen.flatMap(describeUnsignalable),
  ];
  if (limits.length > 0) return note(joinSome(limits));
  return ok(
    taken.length === 0
      ? "no lease is held at this moment"
      : `${taken.length} living owners may be signalled and read`,
  );
}

type SeenOwner = LeaseEvidence & { readonly record: LeaseRecord };

function isOwnerSeen(evidence: LeaseEvidence): evidence is SeenOwner {
  const { record, ownerAlive, recordedPids } = evidence;
  return record !== undefined && ownerAlive === "yes" && recordedPids === "ours";
}

/** Members with more rights than whoever asks: of a dead owner they are left, and 75 names them. */
function describeUnsignalable({ key, slot }: SeenOwner): string[] {
  const members = slot?.body?.members ?? [];
  const those = members.filter((one) => !maySignal(one.pid) && isAlive(one) === "yes");
  if (those.length === 0) return [];
  const pids = those.map(({ pid }) => pid).join(", ");
  return [`members of ${renderKey(key)} may not be signalled by this user (pid ${pids})`];
}

function troubleWith(key: string, pid: number): string[] {
  if (!maySignal(pid)) return [`the owner of ${key} (pid ${pid}) may not be signalled`];
  const look = lookAtProcess(pid);
  if (look?.environment !== "readable") return [];
  return readEnvironmentText(look) === "hidden"
    ? [`the environment of the owner of ${key} (pid ${pid}) may not be read`]
    : [];
}
