/**
 * Takes secrets out of texts: values of variables and options whose names say that they are secret,
 * credentials in URLs, tokens of well-known shapes, and what a person has said. Pure: environment
 * and command are handed in.
 *
 * Always: a text without secrets comes back as it was; masking twice is masking once; the number of
 * letters of a secret cannot be seen. Non-guarantees: a secret that nothing names and that has no
 * shape of its own; one that was encoded in another way than a URL or JSON does; one that a
 * command has printed letter by letter. The raw log of a run is not masked.
 */
import { isBearable } from "./pattern-cost.ts";
import { isSecretName } from "./secret-names.ts";
import { MARKS, TOKEN_SHAPES } from "./token-shapes.ts";
import { HIDDEN, hideUrlSecrets, passwordOf } from "./url-secrets.ts";

/** A shorter value would be found in ordinary words, and is no secret that holds anything. */
export const SHORTEST_SECRET = 6;
/** Of one that is given by hand in full, as on a command line, the place is known. */
const PLAIN_VALUES = new Set([
  "default",
  "disabled",
  "enabled",
  "optional",
  "required",
  "undefined",
  "prompt",
  "keyring",
  "system",
]);

export interface MaskOptions {
  /** `KEY=value` of the environment, as text. */
  readonly environment?: readonly string[];
  /** The command of the run: what its options name is masked everywhere. */
  readonly command?: readonly string[];
  /** Sources of regular expressions, as `--mask` gives them; what each finds is masked. */
  readonly patterns?: readonly string[];
  /** Secrets that are known otherwise: the targets of sinks. */
  readonly values?: readonly string[];
}

export interface Mask {
  /** What it goes by, for another process of ours to make the same one. */
  readonly known: { readonly values: readonly string[]; readonly patterns: readonly string[] };
  text(text: string): string;
  /** Word by word: the value behind `--password` is hidden however short it is. */
  command(words: readonly string[]): readonly string[];
  /** Every text in it, at any depth, but in the fields of EXACT_FIELDS. */
  value<Value>(value: Value): Value;
}

export function makeMask(options: MaskOptions = {}): Mask {
  const { environment = [], command = [], patterns = [], values = [] } = options;
  const known = orderValues([
    ...environment.flatMap(secretsOfEntry),
    ...secretsOfWords(command),
    ...values,
  ]);
  const own = patterns.flatMap((source) => compilePattern(source) ?? []);
  const text = (given: string): string => maskText(given, known, own);
  return {
    known: { values: known, patterns },
    text,
    command: (words) => maskWords(words, text),
    value: (value) => maskValue(value, text) as typeof value,
  };
}

/**
 * Undefined: it is no regular expression, finds nothing in everything, or may not come to an end on
 * an ordinary text (pattern-cost.ts): a run would wait for it.
 */
export function compilePattern(source: string): RegExp | undefined {
  try {
    const pattern = new RegExp(source, "gu");
    return pattern.test("") || !isBearable(source) ? undefined : pattern;
  } catch {
    return undefined; // SyntaxError: whoever has read the option has said so
  }
}

/** What has a shape of its own, without knowing any value. */
export function maskShapes(text: string): string {
  return maskText(text, [], []);
}

function maskText(text: string, known: readonly string[], own: readonly RegExp[]): string {
  if (text.length < SHORTEST_SECRET && own.length === 0) return text;
  let masked = text;
  for (const value of known) {
    if (masked.includes(value)) masked = masked.replaceAll(value, HIDDEN);
  }
  for (const pattern of own) masked = masked.replace(pattern, HIDDEN);
  if (masked.includes("://")) masked = masked.replace(URL_SHAPE, hideInUrl);
  if (MARKS.test(masked)) {
    for (const shape of TOKEN_SHAPES) masked = masked.replace(shape, hideShape);
  }
  // Most texts of a run have none of these, and each start pays for every expression it compiles.
  if (/[=:]/.test(masked)) masked = masked.replace(ASSIGNMENT, hideAssigned);
  if (!/-[a-zA-Z]/.test(masked)) return masked;
  return masked.replace(FLAG_AND_VALUE, hideFlagged).replace(USER_FLAG, hideUser);
}

/** Up to a blank, a quote or a bracket; what ends a sentence is no part of it. */
const URL_SHAPE = /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>\\^{}|]+/gi;

/** In a text only what is a secret for certain: paths and plain queries stay. */
function hideInUrl(url: string): string {
  const [, scheme = "", rest = ""] = /^([^:]+:\/\/)(.*)$/s.exec(url) ?? [];
  const end = rest.search(/[/?#]/);
  const authority = end < 0 ? rest : rest.slice(0, end);
  const behind = end < 0 ? "" : rest.slice(end);
  const at = authority.lastIndexOf("@");
  const userInfo = at < 0 ? "" : hideUserInfo(authority.slice(0, at));
  const query = behind.replace(/([?&;#])([^?&;=#]+)=([^&;#]*)/g, (all, mark, name, value) =>
    isSecretName(name) && value !== "" ? `${mark}${name}=${HIDDEN}` : all,
  );
  return `${scheme}${userInfo}${authority.slice(at + 1)}${query}`;
}

/** `git@`, `user:password@`, `token@`: a name alone may be a token. */
function hideUserInfo(userInfo: string): string {
  const colon = userInfo.indexOf(":");
  if (colon < 0) return userInfo.length >= 16 ? `${HIDDEN}@` : `${userInfo}@`;
  return `${userInfo.slice(0, colon)}:${HIDDEN}@`;
}

function hideShape(_found: string, ...groups: readonly unknown[]): string {
  const named = groups.at(-1);
  const keep = typeof named === "object" && named !== null ? (named as { keep?: string }).keep : "";
  return `${keep ?? ""}${HIDDEN}`;
}

/** `TOKEN=x`, `token: x`, `"token": "x"`, `--token=x`, `X-Api-Key: x`: name, sign and value. */
const ASSIGNMENT = new RegExp(
  [
    /(?<![A-Za-z0-9_.-])([A-Za-z_-][A-Za-z0-9_.-]{0,63})/,
    /(["']?[ \t]{0,3}[=:][ \t]{0,3})/,
    /("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"',;&)}\]]+)/,
  ]
    .map(({ source }) => source)
    .join(""),
  "g",
);

/** Also `--env=TOKEN=x`, `-var=password=x`, where the name stands behind one other. */
function hideAssigned(all: string, name: string, sign: string, value: string): string {
  if (isSecretName(name) || !value.includes("=")) return hideValue(all, name, sign, value);
  return `${name}${sign}${value.replace(ASSIGNMENT, hideValue)}`;
}

function hideValue(all: string, name: string, sign: string, value: string): string {
  if (!isSecretName(name) || value.startsWith(HIDDEN)) return all;
  const quote = /^["']/.exec(value)?.[0] ?? "";
  const bare = quote === "" ? value : value.slice(1, -1);
  if (bare === "" || isReference(bare)) return all;
  // A sentence: `no token: expected one`. A value is one word that is no plain one.
  if (/[ \t]$/.test(sign) && quote === "" && /^([a-z]+|[0-9]+)$/.test(bare)) return all;
  return `${name}${sign}${quote}${HIDDEN}${quote}`;
}

/** `$TOKEN`, `$(cat file)`, `%TOKEN%`, `file:/PATH`: where the value is, and not what. */
function isReference(value: string): boolean {
  return /^(\$|%[A-Za-z_]+%$|<[a-z-]+>$|file:\/)/.test(value);
}

/** `--password x` and `--user name:x` within a text: the flag, blanks, and the next word. */
const FLAG_AND_VALUE = /(?<=^|[\s"'`;|&(])(--?[A-Za-z][A-Za-z0-9_-]*)([ \t]+)((?!-)[^\s"'`;|&)]+)/g;
/** `-uname:x`. */
const USER_FLAG =
  /(?<=^|[\s"'`;|&(])(-u|-U|--user|--proxy-user)(=?)([^\s:=-][^\s:"'`]*:)([^\s"'`;|&)]+)/g;

function hideFlagged(all: string, ...found: readonly string[]): string {
  const [flag = "", blank = "", value = ""] = found;
  if (takesUser(flag)) {
    const colon = value.indexOf(":");
    if (colon < 1) return all;
    return hideUser(all, flag, blank, value.slice(0, colon + 1), value.slice(colon + 1));
  }
  const isHidden = isSecretFlag(flag) && !isReference(value);
  return isHidden ? `${flag}${blank}${HIDDEN}` : all;
}

function hideUser(all: string, ...found: readonly string[]): string {
  const [flag = "", sign = "", name = "", password = ""] = found;
  const isHidden = isLogin(`${name}${password}`) && !isReference(password);
  return isHidden ? `${flag}${sign}${name}${HIDDEN}` : all;
}

/** As curl(1) has it; `docker run -u 1000:1000` names a group, `bench -u https://host/` a place. */
function isLogin(text: string): boolean {
  return !/^[^:]*:[0-9]*$|^https?:\/\//.test(text);
}

/** Of curl(1), and of who follows it: `name:password` is the next word. */
function takesUser(word: string): boolean {
  return ["-u", "-U", "--user", "--proxy-user"].includes(word);
}

/**
 * `name:`, and what is behind it, blanks too; undefined: no password is there. A `$` in a word of a
 * command is no reference any more.
 */
function cutUser(word: string): { readonly name: string; readonly password: string } | undefined {
  const [, name, password] = /^([^:\s-][^:]*:)(.+)$/s.exec(word) ?? [];
  if (name === undefined || password === undefined || !isLogin(word)) return undefined;
  return { name, password };
}

function maskWords(words: readonly string[], text: (word: string) => string): readonly string[] {
  return words.map((word, index) => {
    const before = words[index - 1] ?? "";
    if (takesSecret(before) && !word.startsWith("-") && word !== "") return HIDDEN;
    const user = takesUser(before) ? cutUser(word) : undefined;
    return user === undefined ? text(word) : `${text(user.name)}${HIDDEN}`;
  });
}

/** `--password`, and not `--password=x`, which has its value. */
function takesSecret(word: string): boolean {
  return !word.includes("=") && isSecretFlag(word);
}

/**
 * `--password`, and `-password` of programs whose options have one dash; a shorter one (`-key`,
 * `-pass`) mostly names a file, or says where the secret is.
 */
function isSecretFlag(word: string): boolean {
  return /^-(-[A-Za-z]|[A-Za-z][A-Za-z_-]{4})/.test(word) && isSecretName(word);
}

function maskValue(value: unknown, text: (text: string) => string): unknown {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((each) => maskValue(each, text));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]) => [
    name,
    EXACT_FIELDS.has(name) ? each : maskValue(each, text),
  ]);
  return Object.fromEntries(entries);
}

/**
 * Fields of a record and of what the journal takes that are no text for people: by some of them
 * others find a thing again (a job, a key, a directory, a file), others hold a word of a closed
 * list. A password that is such a word (`postgres` beside a job `postgres-dump`, `webhook`) must
 * not turn the job into another one, nor a sink into none. Sinks are made storable with a mask of
 * their own (core/sink.ts).
 */
const EXACT_FIELDS: ReadonlySet<string> = new Set(
  [
    "id kind name job key subject actId planId bootId boot_id run_id runId run_path runPath",
    "cwd log sinks schedule declared state outcome because last_because status_of signal",
    "ended_by why phase action by basis check role policy verdict degraded looked recovered",
    "started_at ended_at changed_at last_at last_output_at since",
  ].flatMap((line) => line.split(" ")),
);

/** Its value is a secret: by its name, or because it is where one is posted to. */
export function isSecretVariable(name: string): boolean {
  return isSecretName(name) || name === "WATCHDOG_PING";
}

function secretsOfEntry(entry: string): readonly string[] {
  const equals = entry.indexOf("=");
  if (equals < 1) return [];
  const [name, value] = [entry.slice(0, equals), entry.slice(equals + 1)];
  if (isSecretVariable(name) && isSecretValue(value)) return [value];
  const password = passwordOfUrl(value);
  return password === undefined ? [] : [password];
}

function secretsOfWords(words: readonly string[]): readonly string[] {
  return words.flatMap((word, index) => {
    const value = valueOfSecret(word);
    if (value !== undefined) return isSecretValue(value) ? [value] : [];
    if (takesSecret(words[index - 1] ?? "") && !word.startsWith("-")) {
      return isSecretValue(word) ? [word] : [];
    }
    const ofUser = passwordOfUser(word, words[index - 1]);
    if (ofUser !== undefined) return isSecretValue(ofUser) ? [ofUser] : [];
    const password = passwordOfUrl(word);
    return password === undefined ? [] : [password];
  });
}

/** `TOKEN=x`, `--token=x`, and behind one other name: `--env=TOKEN=x`. */
function valueOfSecret(word: string, isBehind = false): string | undefined {
  const [, name, value] = /^-{0,2}([A-Za-z][A-Za-z0-9_.-]*)=(.*)$/s.exec(word) ?? [];
  if (name === undefined || value === undefined) return undefined;
  if (isSecretName(name)) return value;
  return isBehind ? undefined : valueOfSecret(value, true);
}

/** `-u name:x` in two words, `-uname:x` and `--user=name:x` in one. */
function passwordOfUser(word: string, before = ""): string | undefined {
  const [, attached] = /^(?:-[uU]|--(?:proxy-)?user=)(.+)$/s.exec(word) ?? [];
  const user = takesUser(before) ? word : attached;
  return user === undefined ? undefined : cutUser(user)?.password;
}

/** Of a URL that may stand behind `--uri=` or `rest:`. */
function passwordOfUrl(text: string): string | undefined {
  if (!text.includes("://")) return undefined;
  const at = text.search(/[a-z][a-z0-9+.-]*:\/\//i);
  return at < 0 ? undefined : passwordOf(text.slice(at));
}

/** Not a switch, and not the place of a file; a password may begin with a slash as well. */
function isSecretValue(value: string): boolean {
  if (value.length < SHORTEST_SECRET || PLAIN_VALUES.has(value.toLowerCase())) return false;
  return !/^\/([a-z0-9_.-]+\/)+[A-Za-z0-9_.-]+$/.test(value);
}

const SHORTEST_LINE = 16;

/** The longest first, so that no secret hides a part of another; each as it may be written. */
function orderValues(values: readonly string[]): readonly string[] {
  const all = values
    .filter((value) => value.length >= SHORTEST_SECRET)
    .flatMap((value) => [
      value,
      encodeURIComponent(makeWhole(value)),
      JSON.stringify(value).slice(1, -1),
      ...linesOf(value),
    ]);
  return [...new Set(all)].toSorted((one, other) => other.length - one.length);
}

/** Half a letter cannot be encoded. */
function makeWhole(value: string): string {
  return value.isWellFormed() ? value : value.toWellFormed();
}

/** A key of several lines is printed line by line. */
function linesOf(value: string): readonly string[] {
  if (!value.includes("\n")) return [];
  return value
    .split(/\r?\n/)
    .filter((line) => line.length >= SHORTEST_LINE && !line.startsWith("-----"));
}

/** Where a log says that something of the output is not in it (output/log-segments.ts). */
const GAP = /\n?(\[watchdog: [^\]\n]*\])\n/;

/**
 * The masked end of an output of which the beginning may have been cut off in the middle of a
 * secret, and something in between left out: half a secret has no shape, so that at each cut the
 * line goes in which it was, or the word where there is no whole line.
 */
export function maskTail(tail: string, isCut: boolean, mask: Pick<Mask, "text">): string {
  const [first = "", ...rest] = tail.split(GAP);
  const parts = [isCut ? dropBeginning(first) : first];
  for (let index = 0; index + 1 < rest.length; index += 2) {
    const before = dropEnd(parts.pop() ?? "");
    parts.push(before, `${rest[index]}\n`, dropBeginning(rest[index + 1] ?? ""));
  }
  return parts.map((part) => mask.text(part)).join("");
}

function dropBeginning(text: string): string {
  const line = text.indexOf("\n");
  const blank = text.search(/\s/);
  const from = line >= 0 ? line + 1 : blank >= 0 ? blank + 1 : text.length;
  return text.slice(from);
}

function dropEnd(text: string): string {
  const line = text.lastIndexOf("\n");
  if (line >= 0) return text.slice(0, line + 1);
  const [kept = ""] = /^.*\s/s.exec(text) ?? [];
  return kept === "" ? "" : `${kept.trimEnd()}\n`;
}

/** The target of a sink, for a sentence. */
export { hideUrlSecrets };
