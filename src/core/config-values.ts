/**
 * The values of a configuration file: from what TOML gave for a key to the texts that the reader of
 * an option takes, and the findings where that cannot be.
 *
 * Knows no key. Always: a finding shows no secret, and never more of a value than a sentence bears.
 */

/**
 * How a value is written: `amount` is a number or a text such as "2h", `codes` a number, a text or
 * a list of numbers, `texts` a text or a list of them.
 */
export type ConfigValueKind = "switch" | "amount" | "text" | "codes" | "texts";

export interface ValueRefusal {
  /** A clause: what was expected instead of the text. */
  readonly expected: string;
  /** A clause that says more than the text, without its secrets. */
  readonly found?: string;
}

export interface ConfigKey {
  readonly kind: ConfigValueKind;
  /** Undefined: the text is accepted. */
  readonly refusalOf: (text: string) => ValueRefusal | undefined;
  /** The text without its secrets; undefined: it may be shown. */
  readonly hide?: ((text: string) => string) | undefined;
}

export type ConfigKeys = ReadonlyMap<string, ConfigKey>;

export type FindingReason =
  | "unreadable"
  | "not-toml"
  | "unknown-key"
  | "later-key"
  | "misplaced-key"
  | "key-of-one-job"
  | "wrong-kind"
  | "wrong-value"
  | "unknown-name"
  | "contradiction";

export interface ConfigFinding {
  readonly because: FindingReason;
  /** `run.idle_timeout`; empty: the file as a whole. */
  readonly path: string;
  /** A clause: what was found. */
  readonly found: string;
  /** A clause: what was expected. */
  readonly expected: string;
  /** What the key may have been meant to be. */
  readonly candidates?: readonly string[];
}

export type Table = Readonly<Record<string, unknown>>;

/** By the names of the keys: the texts of each, as they would stand on the command line. */
export type ConfigTexts = ReadonlyMap<string, readonly string[]>;

/** What the keys of one table are, and what is said of one that is none of them. */
export interface KeysOfTable {
  /** `run.`, with which the paths of the keys begin. */
  readonly prefix: string;
  readonly keys: ConfigKeys;
  readonly refuse: (name: string, path: string) => ConfigFinding;
}

/** The texts of a table that holds values alone. */
export function readKeys(
  table: Table,
  { prefix, keys, refuse }: KeysOfTable,
  findings: ConfigFinding[],
): ConfigTexts {
  const texts = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(table)) {
    const path = `${prefix}${quoteKey(name)}`;
    const key = keys.get(name);
    if (key === undefined) findings.push(refuse(name, path));
    else {
      const found = readTexts({ path, value, key }, findings);
      if (found !== undefined) texts.set(name, found);
    }
  }
  return texts;
}

export function laterKey(path: string, reason: string): ConfigFinding {
  const found = "a key that is not available in this version";
  return { because: "later-key", path, found, expected: `none: ${reason}` };
}

/** A run inside of another hears the file too: both would have one name, result file or key. */
export function keyOfOneJob(path: string): ConfigFinding {
  const found = "an option that belongs to one job";
  const expected = "it in a table [jobs.NAME], or on the line of that job: [run] is for all";
  return { because: "key-of-one-job", path, found, expected };
}

export function misplacedKey(path: string, expected: string): ConfigFinding {
  return { because: "misplaced-key", path, found: "a key in the wrong place", expected };
}

export function unknownKey(
  path: string,
  expected: string,
  candidates: readonly string[],
): ConfigFinding {
  return { because: "unknown-key", path, found: "an unknown key", expected, candidates };
}

export function wrongKind(path: string, value: unknown, expected: string): ConfigFinding {
  return { because: "wrong-kind", path, found: describeValue(value), expected };
}

interface Found {
  readonly path: string;
  readonly value: unknown;
  readonly key: ConfigKey;
}

/** The texts of a value; undefined: there is a finding. */
function readTexts(found: Found, findings: ConfigFinding[]): readonly string[] | undefined {
  const { path, value, key } = found;
  const texts = textsOf(value, key.kind);
  if (texts === undefined) {
    findings.push(wrongKind(path, value, EXPECTED_KIND[key.kind]));
    return undefined;
  }
  let isRight = true;
  for (const text of texts) {
    const refusal = key.refusalOf(text);
    if (refusal === undefined) continue;
    isRight = false;
    const one = key.kind === "texts" || typeof value === "string" ? text : value;
    const shown = typeof one === "string" ? (key.hide?.(one) ?? one) : one;
    const { expected, found: told = describeValue(shown) } = refusal;
    findings.push({ because: "wrong-value", path, found: told, expected });
  }
  return isRight ? texts : undefined;
}

const EXPECTED_KIND: Readonly<Record<ConfigValueKind, string>> = {
  switch: "true or false",
  amount: "a number or a text in quotes",
  text: "a text in quotes",
  codes: "a number, a text in quotes, or a list of numbers",
  texts: "a text in quotes, or a list of them",
};

function textsOf(value: unknown, kind: ConfigValueKind): readonly string[] | undefined {
  if (kind === "switch") return typeof value === "boolean" ? [value ? "on" : "off"] : undefined;
  if (typeof value === "string") return [value];
  if (kind === "text") return undefined;
  if (kind === "texts") return isListOf(value, "string") && value.length > 0 ? value : undefined;
  if (typeof value === "number") return [String(value)];
  const isCodes = kind === "codes" && isListOf(value, "number") && value.length > 0;
  return isCodes ? [value.join(",")] : undefined;
}

export function isListOf(value: unknown, type: "string"): value is string[];
export function isListOf(value: unknown, type: "number"): value is number[];
export function isListOf(value: unknown, type: "string" | "number"): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === type);
}

export function isTable(value: unknown): value is Table {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype; // a date is an object too
}

const LONGEST_SHOWN = 60;

/** For a sentence: a text in quotes, cut where it is long. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") {
    const letters = Array.from(value.slice(0, LONGEST_SHOWN * 2));
    const isLong = letters.length > LONGEST_SHOWN;
    return `"${isLong ? `${letters.slice(0, LONGEST_SHOWN).join("")}…` : value}"`;
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return isTable(value) ? "a table" : "a date or a time without quotes";
}

/** A key as TOML writes it: bare where that can be. */
export function quoteKey(name: string): string {
  return /^[A-Za-z0-9_-]{1,60}$/.test(name) ? name : describeValue(name);
}
