/**
 * Who we are by the kernel, and what passwd(5) and group(5) call it. Never HOME, USER or LOGNAME.
 * Names that only a directory service knows are not found; their numbers always serve.
 *
 * Read anew at each question, nothing is kept. Clock: none. State after a crash: none.
 */
import { readFileSync } from "node:fs";
import type { Caller } from "../core/policy.ts";

const LARGEST_ID = 4_294_967_294;

interface NamedId {
  readonly name: string;
  readonly id: number;
}

/** By the effective ids: those that the kernel asks for a file. */
export function readCaller(): Caller {
  const uid = process.geteuid?.() ?? 0;
  const named = readEntries("/etc/group");
  const groups = [...readOwnGroups()].map((gid) => ({ gid, name: nameOf(named, gid) }));
  return { uid, user: nameOf(readEntries("/etc/passwd"), uid), groups };
}

/** Whether we are in a group, by our effective group or a supplementary one. */
export function isMember(gid: number): boolean {
  return readOwnGroups().has(gid);
}

function readOwnGroups(): ReadonlySet<number> {
  return new Set([process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])]);
}

/** The number of a group by its name, or by its number in digits as in chgrp(1). */
export function findGroup(word: string): number | undefined {
  const named = readEntries("/etc/group").find(({ name }) => name === word);
  if (named !== undefined) return named.id;
  if (!/^(0|[1-9][0-9]{0,9})$/.test(word)) return undefined;
  return Number(word) <= LARGEST_ID ? Number(word) : undefined;
}

export function findUser(uid: number): string | undefined {
  return nameOf(readEntries("/etc/passwd"), uid);
}

export function isUser(name: string): boolean {
  return readEntries("/etc/passwd").some((entry) => entry.name === name);
}

/** The name of a group, else its number in digits. */
export function nameGroup(gid: number): string {
  return nameOf(readEntries("/etc/group"), gid) ?? String(gid);
}

/** Of two entries with one number the first, which is the one that getpwuid(3) finds. */
function nameOf(entries: readonly NamedId[], wanted: number): string | undefined {
  return entries.find(({ id }) => id === wanted)?.name;
}

/** passwd(5) and group(5) both have lines of `name:x:number:…`. */
function readEntries(path: string): readonly NamedId[] {
  return readWhole(path)
    .split("\n")
    .map((line) => line.split(":"))
    .filter(([name, , digits]) => name !== "" && /^[0-9]+$/.test(digits ?? ""))
    .map(([name = "", , digits]) => ({ name, id: Number(digits) }));
}

function readWhole(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // ENOENT, EACCES: then there are only numbers
  }
}
