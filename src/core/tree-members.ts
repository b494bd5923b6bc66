/**
 * Which processes belong to the tree of a run, decided from what was seen in `/proc`. Knows no
 * system call.
 *
 * While watchdog lives, membership is a matter of descent alone: it is the subreaper, so every
 * process of the job has a chain of parents that ends at watchdog. Never a member: watchdog, its
 * ancestors, process 1, children from before the run (inborn), helpers, what was started by
 * `watchdog keep` and everything below those. Names, command lines, users and ages are never looked
 * at.
 */

/** One process as it was seen. */
export interface ProcessRow {
  readonly pid: number;
  readonly ppid: number;
  readonly startTicks: number;
  /** The state letter of proc(5): Z and X are dead. */
  readonly state: string;
  /** Runs watchdog's own program: passes signals on to its tree by itself. */
  readonly isWatchdog: boolean;
}

/**
 * Whether a process carries the cookie of the run; `unread` where its environment cannot be read.
 */
export type Cookie = "yes" | "no" | "unread";

export interface TreeView {
  readonly self: number;
  readonly main: number;
  /** Everything below `self`, in any order. */
  readonly rows: readonly ProcessRow[];
  readonly ancestors: ReadonlySet<number>;
  readonly inborn: ReadonlySet<number>;
  /** Whether there ever were any: what they leave behind when they end is not of the job either. */
  readonly hadInborn: boolean;
  readonly helpers: ReadonlySet<number>;
  readonly kept: ReadonlySet<number>;
  /** Members that an earlier look has proven, by pid and start: `4711@98765`. */
  readonly proven: ReadonlySet<string>;
  /** Asked only for adopted processes, and only if there are inborn children. */
  readonly cookieOf: (pid: number) => Cookie;
}

export type Membership =
  | { readonly kind: "member"; readonly because: "main" | "descends" | "proven" | "cookie" }
  | {
      readonly kind: "spared";
      readonly because:
        | "self"
        | "ancestor"
        | "process-one"
        | "inborn"
        | "helper"
        | "kept"
        | "below-spared"
        | "adopted-unproven"
        | "outside";
    };

/** A chain of parents longer than this is a loop in what was read. */
const LONGEST_CHAIN = 100_000;

export function identify(row: { readonly pid: number; readonly startTicks: number }): string {
  return `${row.pid}@${row.startTicks}`;
}

/** Decides for one process of the view. Total: every pid gets an answer. */
export function decideMembership(view: TreeView, pid: number): Membership {
  return decideOne(view, indexRows(view), pid);
}

/** Decides for all of them at once. */
export function decideMembers(view: TreeView): Map<number, Membership> {
  const index = indexRows(view);
  return new Map(view.rows.map((row) => [row.pid, decideOne(view, index, row.pid)]));
}

/**
 * Decides for one process by what was decided for its parent: for a walk from the root down that
 * acts before it has seen everybody. The answer is that of `decideMembers` on the whole.
 *
 * @param parent  undefined: its parent is `view.self`
 */
export function decideChild(
  view: TreeView,
  row: ProcessRow,
  parent: Membership | undefined,
): Membership {
  const named = decideByName(view, row.pid);
  if (named !== undefined) return named;
  if (parent === undefined) return decideRoot(view, row, row.pid);
  if (parent.because === "main") return { kind: "member", because: "descends" };
  if (parent.kind === "member" || parent.because === "adopted-unproven") return parent;
  return { kind: "spared", because: "below-spared" };
}

function indexRows(view: TreeView): ReadonlyMap<number, ProcessRow> {
  return new Map(view.rows.map((row) => [row.pid, row]));
}

function decideOne(
  view: TreeView,
  index: ReadonlyMap<number, ProcessRow>,
  pid: number,
): Membership {
  const named = decideByName(view, pid);
  if (named !== undefined) return named;
  let row = index.get(pid);
  for (let step = 0; row !== undefined && step < LONGEST_CHAIN; step += 1) {
    const above = row.ppid === view.self ? undefined : decideByName(view, row.ppid);
    if (above !== undefined) return { kind: "spared", because: "below-spared" };
    if (row.ppid === view.self) return decideRoot(view, row, pid);
    row = index.get(row.ppid);
  }
  return { kind: "spared", because: "outside" };
}

/** What the lists say about a pid without looking at its parents. */
function decideByName(view: TreeView, pid: number): Membership | undefined {
  const spared = (because: "self" | "ancestor" | "process-one" | "inborn" | "helper" | "kept") =>
    ({ kind: "spared", because }) as const;
  if (pid === view.self) return spared("self");
  if (pid === 1) return spared("process-one");
  if (view.ancestors.has(pid)) return spared("ancestor");
  if (view.inborn.has(pid)) return spared("inborn");
  if (view.helpers.has(pid)) return spared("helper");
  return view.kept.has(pid) ? spared("kept") : undefined;
}

/** `root` is a direct child of watchdog, `pid` itself or the last link above it. */
function decideRoot(view: TreeView, root: ProcessRow, pid: number): Membership {
  if (root.pid === view.main) {
    return { kind: "member", because: pid === view.main ? "main" : "descends" };
  }
  if (!view.hadInborn) return { kind: "member", because: "descends" };
  if (view.proven.has(identify(root))) return { kind: "member", because: "proven" };
  if (view.cookieOf(root.pid) === "yes") return { kind: "member", because: "cookie" };
  return { kind: "spared", because: "adopted-unproven" };
}

export function isDead(row: ProcessRow): boolean {
  return row.state === "Z" || row.state === "X";
}

/**
 * Everybody who is told to end: each living member, but nothing below a nested watchdog that lives:
 * it passes it on.
 */
export function decideAsked(view: TreeView): ProcessRow[] {
  const index = indexRows(view);
  return view.rows.filter(
    (row) =>
      !isDead(row) &&
      decideOne(view, index, row.pid).kind === "member" &&
      !isBelowWatchdog(index, row),
  );
}

function isBelowWatchdog(index: ReadonlyMap<number, ProcessRow>, row: ProcessRow): boolean {
  let above = index.get(row.ppid);
  for (let step = 0; above !== undefined && step < LONGEST_CHAIN; step += 1) {
    if (above.isWatchdog && !isDead(above)) return true;
    above = index.get(above.ppid);
  }
  return false;
}

/**
 * Whom a round of KILL hits: members that are direct children, because their pids cannot be used
 * again before we collect them; deeper ones become direct children when their parents die.
 */
export function decideKilled(view: TreeView): ProcessRow[] {
  const index = indexRows(view);
  return view.rows.filter(
    (row) =>
      row.ppid === view.self && !isDead(row) && decideOne(view, index, row.pid).kind === "member",
  );
}
