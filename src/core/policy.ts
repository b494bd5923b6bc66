/**
 * Who may run, repair and approve in a state directory: what the `[policy]` tables of the
 * configuration say, and what holds where they say nothing. Knows no file and no user database;
 * whoever asks has read them.
 *
 * Always: an answer is a grant or says what is missing and who can give it. A file that the caller
 * has chosen, or that belongs to neither root nor the owner of the state directory, never grants:
 * it can only take away (one that others may write is not read at all). Rights of the policy come
 * on top of those of the file system, which decides first, and take none of them away from a
 * program that is not watchdog.
 */

export const RIGHTS = ["run", "repair", "approve"] as const;
export type Right = (typeof RIGHTS)[number];

/** One word of a list: `alice`, `uid:1000`, `@ops`. */
export type PolicyEntry =
  | { readonly kind: "user"; readonly name: string }
  | { readonly kind: "uid"; readonly uid: number }
  /** By its name, or by its number in digits where no group has that name. */
  | { readonly kind: "group"; readonly name: string };

/** Who asks, by the effective ids; names are undefined where the databases have none. */
export interface Caller {
  readonly uid: number;
  readonly user: string | undefined;
  /** The effective group and the supplementary ones. */
  readonly groups: readonly { readonly gid: number; readonly name: string | undefined }[];
}

/** The `[policy]` table of one configuration file; a missing list: the file says nothing of it. */
export interface PolicyFile {
  readonly path: string;
  readonly ownerUid: number;
  /** Named by whoever asks: it may have been written for another state directory. */
  readonly isChosen: boolean;
  readonly lists: Readonly<Partial<Record<Right, readonly PolicyEntry[]>>>;
}

export interface Policy {
  readonly stateDirectory: string;
  /** Undefined: it is not there yet, and belongs to whoever makes it. */
  readonly stateOwnerUid: number | undefined;
  /** In the order in which they are read; empty: no file, or none with a `[policy]`. */
  readonly files: readonly PolicyFile[];
}

export type RightAnswer =
  | {
      readonly kind: "granted";
      readonly because: "listed" | "no-list-and-open" | "no-list-and-owner" | "no-list-and-root";
    }
  | {
      readonly kind: "missing";
      readonly because: "not-listed" | "no-list-and-not-owner";
      /** A clause for people: who lacks what, by which file, and who can give it. */
      readonly what: string;
    };

/**
 * Each list that a file has must contain the caller. Where no file that may grant has a list, the
 * default holds besides: `run` for everybody who can open the directory, `repair` and `approve` for
 * its owner and root.
 */
export function decideRight(right: Right, who: Caller, policy: Policy): RightAnswer {
  const files = policy.files.filter(({ lists }) => lists[right] !== undefined);
  const refusing = files.find((file) => !(file.lists[right] ?? []).some((one) => fits(one, who)));
  if (refusing !== undefined) {
    const what = `${nameCaller(who)} is not in '${right}' of [policy] in ${refusing.path}`;
    return { kind: "missing", because: "not-listed", what: `${what}; ${nameGranter(refusing)}` };
  }
  if (files.some((file) => mayGrant(file, policy))) return { kind: "granted", because: "listed" };
  return decideDefault(right, who, { policy, ignored: files[0] });
}

/** Whether a file can give rights: nobody but root and the owner has a hand in it, or picks it. */
export function mayGrant(file: PolicyFile, policy: Policy): boolean {
  const isTrusted = file.ownerUid === 0 || file.ownerUid === policy.stateOwnerUid;
  return isTrusted && !file.isChosen;
}

function decideDefault(
  right: Right,
  who: Caller,
  { policy, ignored }: { readonly policy: Policy; readonly ignored: PolicyFile | undefined },
): RightAnswer {
  if (right === "run") return { kind: "granted", because: "no-list-and-open" };
  if (who.uid === (policy.stateOwnerUid ?? who.uid)) {
    return { kind: "granted", because: "no-list-and-owner" };
  }
  if (who.uid === 0) return { kind: "granted", because: "no-list-and-root" };
  const owner = `uid ${policy.stateOwnerUid}, the owner of ${policy.stateDirectory},`;
  const why =
    ignored === undefined
      ? `no [policy] has a list '${right}'`
      : `'${right}' of [policy] in ${ignored.path} cannot grant it (${whyNot(ignored)})`;
  return {
    kind: "missing",
    because: "no-list-and-not-owner",
    what: `${nameCaller(who)} may not ${right}: ${why}; ${owner} or root can do it or grant it`,
  };
}

function whyNot(file: PolicyFile): string {
  if (file.isChosen) return "a file of --config or WATCHDOG_CONFIG only takes rights away";
  return `it belongs to uid ${file.ownerUid}`;
}

function nameCaller(who: Caller): string {
  return who.user === undefined ? `uid ${who.uid}` : `${who.user} (uid ${who.uid})`;
}

function nameGranter(file: PolicyFile): string {
  const owner = file.ownerUid === 0 ? "root" : `uid ${file.ownerUid} or root`;
  return `${owner} can add 'uid:N', a user or '@group' there`;
}

function fits(entry: PolicyEntry, who: Caller): boolean {
  switch (entry.kind) {
    case "uid":
      return entry.uid === who.uid;
    case "user":
      return entry.name === who.user;
    case "group":
      return who.groups.some(({ gid, name }) => entry.name === (name ?? String(gid)));
  }
}

const LARGEST_ID = 4_294_967_294;

/** Reads one word of a list; undefined: it is none, and what was expected is POLICY_ENTRY_FORMS. */
export function parsePolicyEntry(word: string): PolicyEntry | undefined {
  const uid = /^uid:(0|[1-9][0-9]{0,9})$/.exec(word)?.[1];
  if (uid !== undefined) {
    return Number(uid) <= LARGEST_ID ? { kind: "uid", uid: Number(uid) } : undefined;
  }
  if (!NAME.test(word.replace(/^@/, ""))) return undefined;
  if (word.startsWith("@")) return { kind: "group", name: word.slice(1) };
  // Digits alone would be a uid for some programs and a name for others.
  return /^[0-9]+$/.test(word) ? undefined : { kind: "user", name: word };
}

/** As useradd(8) takes them, with letters of any script; a `*` for everybody is none. */
const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.+-]*\$?$/u;

export const POLICY_ENTRY_FORMS = "a user name, 'uid:N' or '@group'";
