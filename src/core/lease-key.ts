/**
 * Keys of leases: `kind:name`, what they may be, their one order, and how they stand in the
 * environment of a command. Pure; which file belongs to a key is a matter of `lease/`.
 *
 * Always: the order of keys depends on their text alone, so that two runs that want the same two
 * keys ask for them in the same order and never wait for each other.
 */

/** The right to run under this key is one lease. */
export interface LeaseKey {
  /** Small letters, digits and dashes. `job`, `lane`, `task` and `worktree` have short forms. */
  readonly kind: string;
  /** Any text that is not empty and holds no NUL. */
  readonly name: string;
}

const KIND = /^[a-z][a-z0-9-]{0,31}$/;
/** Longer names are refused; the file name of a long one is cut and hashed (os/state-dir.ts). */
export const LONGEST_KEY_NAME = 1024;

export function isKind(text: string): boolean {
  return KIND.test(text);
}

/** `lane:server` → its parts; undefined where it is no key. */
export function parseKey(text: string): LeaseKey | undefined {
  const colon = text.indexOf(":");
  if (colon < 0) return undefined;
  const [kind, name] = [text.slice(0, colon), text.slice(colon + 1)];
  const isName = name !== "" && name.length <= LONGEST_KEY_NAME && !name.includes("\0");
  return isKind(kind) && isName ? { kind, name } : undefined;
}

export function renderKey(key: LeaseKey): string {
  return `${key.kind}:${key.name}`;
}

/** Without duplicates, in the one order in which every run takes them. */
export function orderKeys(keys: readonly LeaseKey[]): LeaseKey[] {
  const byText = new Map(keys.map((key) => [renderKey(key), key]));
  return [...byText].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, key]) => key);
}

/** The value of WATCHDOG_LEASE: each key percent-encoded, blanks between them. */
export function encodeKeys(keys: readonly LeaseKey[]): string {
  return keys.map((key) => encodeURIComponent(renderKey(key).toWellFormed())).join(" ");
}

/** The keys of WATCHDOG_LEASE; what is no key is left out. */
export function decodeKeys(value: string): LeaseKey[] {
  return value.split(" ").flatMap((word) => decodeKey(word) ?? []);
}

function decodeKey(word: string): LeaseKey | undefined {
  try {
    return parseKey(decodeURIComponent(word));
  } catch {
    return undefined; // URIError: nothing that encodeKeys has written
  }
}
