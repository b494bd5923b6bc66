/**
 * Which parts of a URL are secrets: credentials, values of secret-looking query keys, and segments
 * of the path that are made like a token. Pure.
 *
 * Always: a part that cannot be told from a secret counts as one; a URL without any comes back as
 * it was, letter by letter.
 */

import { isSecretName } from "./secret-names.ts";

export const HIDDEN = "***";

export interface UrlView {
  /** Of services whose path is the secret: Slack, Discord, ntfy. */
  readonly hidesPath: boolean;
}

export function hideUrlSecrets(
  text: string,
  { hidesPath }: UrlView = { hidesPath: false },
): string {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? [];
  if (scheme === undefined || rest === undefined) return HIDDEN;
  const [, place = "", fragment = ""] = /^([^#]*)(#.*)?$/s.exec(rest) ?? [];
  const [, before = "", query] = /^([^?]*)(\?.*)?$/s.exec(place) ?? [];
  // All up to the last `@` may be a password, also where it holds a slash that it must not.
  const open = before.replace(/^.*@/s, `${HIDDEN}@`);
  const slash = open.indexOf("/");
  const host = slash < 0 ? open : open.slice(0, slash);
  const path = slash < 0 ? "" : open.slice(slash);
  return `${scheme}${host}${hidePath(path, hidesPath)}${hideQuery(query)}${hideFragment(fragment)}`;
}

function hidePath(path: string, isSecret: boolean): string {
  if (isSecret) return path.length > 1 ? `/${HIDDEN}` : path;
  return path.replace(/[^/]+/g, (segment) => (looksRandom(segment) ? HIDDEN : segment));
}

/** Every value: a token may be called anything there. A key without a value may be one itself. */
function hideQuery(query: string | undefined): string {
  if (query === undefined || query === "?") return query ?? "";
  return query.replace(/[^?&;]+/g, (pair) => {
    const equals = pair.indexOf("=");
    if (equals < 0) return looksRandom(pair) || isSecretName(pair) ? HIDDEN : pair;
    return equals === pair.length - 1 ? pair : `${pair.slice(0, equals)}=${HIDDEN}`;
  });
}

function hideFragment(fragment: string): string {
  return fragment.length > 1 ? `#${HIDDEN}` : fragment;
}

const SHORTEST_RANDOM = 16;

/** UUIDs, hex, base64 and the like; not `nightly-backup`, `2026-11-30` or `v1`. */
function looksRandom(segment: string): boolean {
  if (segment.length < SHORTEST_RANDOM) return false;
  const isMixed = /[0-9]/.test(segment) && /[a-z]/.test(segment) && /[A-Z]/.test(segment);
  return isMixed || holdsToken(segment);
}

/** The same for a word of a command, where names of files are mixed like that, too. */
export function holdsToken(word: string): boolean {
  if (/[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}/i.test(word)) return true;
  const parts = word.split(/[-_.~]/);
  return parts.some((part) => part.length >= SHORTEST_RANDOM && !/^[a-z]+$/.test(part));
}

const SHORTEST_PASSWORD = 6;

/** The password of a URL, as it stands there; undefined: it has none that can be told. */
export function passwordOf(text: string): string | undefined {
  const [, password] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#:@]*:([^/?#]+)@/i.exec(text) ?? [];
  return password !== undefined && password.length >= SHORTEST_PASSWORD ? password : undefined;
}
