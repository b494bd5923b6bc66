/**
 * The members of the tree as a beat writes them down, by the `children` files of `/proc` alone:
 * nothing here reads an environment or a memory, which could hang. Signals nobody.
 *
 * Always: what is written down may be killed by a newcomer after our death, so only those are
 * members that are proven (core/tree-members.ts): below the main command, or adopted while no child
 * from before the run could have left it to us, or seen as a member earlier. Whoever else carries
 * the cookie is found then by a scan. Of a tick that is not over yet only the main command is
 * written down: a pid that is used again within it would have the same start. Clock: BOOTTIME, in
 * ticks; what was read may have changed already.
 */
import type { ProcessIdentity } from "../../core/lease-record.ts";
import { MOST_SLOT_MEMBERS } from "../../core/lease-record.ts";
import {
  decideMembers,
  identify,
  isDead,
  type Membership,
  type ProcessRow,
} from "../../core/tree-members.ts";
import { bootTicksNow } from "../../os/clock.ts";
import { readChildren, readStat } from "../../os/proc.ts";
import type { ShownProcesses } from "./state.ts";

/** More processes than this are not looked at in one beat. */
const MOST_PROCESSES = 20_000;
const NOBODY: ReadonlySet<number> = new Set();

export interface MemberList {
  /**
   * The first MOST_SLOT_MEMBERS: the living first, parents before children. Where there are more,
   * those come first that the main command's group would not tell after our death.
   */
  readonly members: readonly ProcessIdentity[];
  /**
   * Of these and of those who may be members and are not proven: they are counted and never listed.
   * Members of a tick that is not over are not counted.
   */
  readonly memberCount: number;
}

/** The processes that main has named. */
type Shown = Pick<ShownProcesses, "mainChild" | "mainGroup" | "guard">;

interface GroupRow extends ProcessRow {
  readonly groupId: number;
  readonly sessionId: number;
}

export class MemberWatch {
  readonly #inborn: readonly ProcessIdentity[];
  readonly #sessionId: number;
  #proven: ReadonlySet<string> = new Set();

  /**
   * @param inborn  children of this process from before the run
   * @param sessionId  of this process
   */
  constructor(inborn: readonly ProcessIdentity[], sessionId: number) {
    this.#inborn = inborn;
    this.#sessionId = sessionId;
  }

  look({ mainChild: main, mainGroup, guard }: Shown): MemberList {
    const now = bootTicksNow();
    const rows = findBelow();
    const decided = decideMembers({
      self: process.pid,
      main: main?.pid ?? 0,
      rows,
      ancestors: NOBODY,
      inborn: new Set(this.#inborn.flatMap((one) => (isAmong(rows, one) ? [one.pid] : []))),
      hadInborn: this.#inborn.length > 0,
      helpers: new Set(guard === null ? [] : [guard.pid]),
      kept: NOBODY,
      proven: this.#proven,
      cookieOf: () => "unread",
    });
    const members = rows.filter((row) => decided.get(row.pid)?.kind === "member");
    this.#proven = new Set(members.map(identify));
    const isTold = (row: GroupRow): boolean =>
      row.groupId === mainGroup?.pid && row.sessionId === this.#sessionId;
    const listed = members.filter((row) => row.startTicks < now || row.pid === main?.pid);
    const doubtful = rows.filter((row) => isDoubtful(decided.get(row.pid)));
    const memberCount = listed.length + doubtful.length;
    return { members: chooseListed(listed, isTold), memberCount };
  }
}

/** One whom the job or a child from before the run may have left. */
function isDoubtful(membership: Membership | undefined): boolean {
  return membership?.kind === "spared" && membership.because === "adopted-unproven";
}

/** A zombie may have living threads, and is then the only trace of them: it comes last. */
function chooseListed(
  members: readonly GroupRow[],
  isTold: (row: GroupRow) => boolean,
): ProcessIdentity[] {
  const living = members.filter((row) => !isDead(row));
  const sorted =
    members.length > MOST_SLOT_MEMBERS
      ? [...living.filter((row) => !isTold(row)), ...living.filter(isTold)]
      : living;
  return [...sorted, ...members.filter(isDead)]
    .slice(0, MOST_SLOT_MEMBERS)
    .map((row) => ({ pid: row.pid, start_time: row.startTicks }));
}

/** An inborn child that was collected: its pid may be a member's by now. */
function isAmong(rows: readonly ProcessRow[], one: ProcessIdentity): boolean {
  return rows.some((row) => row.pid === one.pid && row.startTicks === one.start_time);
}

/** Everything below this process, level by level. */
function findBelow(): GroupRow[] {
  const rows: GroupRow[] = [];
  const seen = new Set<number>([process.pid]);
  for (let level = readChildren("self"); level.length > 0 && rows.length < MOST_PROCESSES;) {
    const fresh = level.filter((pid) => !seen.has(pid));
    for (const pid of fresh) seen.add(pid);
    rows.push(...fresh.flatMap(lookAt));
    level = fresh.flatMap(readChildren);
  }
  return rows;
}

function lookAt(pid: number): GroupRow[] {
  const stat = readStat(pid);
  if (stat === undefined) return []; // gone; its children are somebody else's now
  const { ppid, startTicks, state, groupId, sessionId } = stat;
  return [{ pid, ppid, startTicks, state, groupId, sessionId, isWatchdog: false }];
}
