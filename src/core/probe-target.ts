/**
 * What a probe asks: an address of HTTP, TCP or a unix socket, or a command, from its text to its
 * parts. Pure; knows no file, no name service and no connection.
 *
 * Always: a target that is given back can be asked as it stands, and neither its `url` nor what is
 * shown of it holds credentials; a refusal says what was found and what was expected, and its words
 * hold no credentials either.
 */

export interface HttpTarget {
  readonly kind: "http" | "https";
  /** Normalized, without credentials: what is fetched. */
  readonly url: string;
  /** A name or an address; of IPv6 without the brackets. */
  readonly host: string;
  readonly port: number;
  /** With the query: `/health?deep=1`. */
  readonly path: string;
  /** `user:password` of the address, decoded; undefined: there was none. */
  readonly userInfo: string | undefined;
}

export interface TcpTarget {
  readonly kind: "tcp";
  readonly host: string;
  readonly port: number;
}

/** HTTP over a unix socket. */
export interface UnixTarget {
  readonly kind: "unix";
  readonly socketPath: string;
  /** That of the request; `/` where none was given. */
  readonly path: string;
}

export interface CommandTarget {
  readonly kind: "cmd";
  /** For `sh -c`. */
  readonly command: string;
}

export type ProbeTarget = HttpTarget | TcpTarget | UnixTarget | CommandTarget;

export const TARGET_FORMS =
  "http://HOST/PATH, https://HOST/PATH, tcp://HOST:PORT, unix:/SOCKET or cmd:COMMAND";

export type TargetRefusal =
  | "no-scheme"
  | "unknown-scheme"
  | "not-an-address"
  | "no-port"
  | "not-a-port"
  | "fragment"
  | "not-a-socket-path"
  | "no-command";

export type TargetParsing =
  | { readonly kind: "target"; readonly target: ProbeTarget }
  | {
      readonly kind: "refused";
      readonly because: TargetRefusal;
      readonly found: string;
      readonly expected: string;
    };

/** sun_path holds 108 bytes with the zero at its end (unix(7)). */
export const LONGEST_SOCKET_PATH_BYTES = 107;
const LARGEST_PORT = 65_535;

export function parseProbeTarget(text: string): TargetParsing {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case "http":
    case "https":
      return parseHttp(scheme, text);
    case "tcp":
      return parseTcp(text);
    case "unix":
      return parseUnix(text);
    case "cmd":
      return parseCommand(text);
    default: {
      // `localhost:8080` looks like a scheme too.
      const isScheme = scheme !== undefined && text.startsWith("//", scheme.length + 1);
      return refuse(isScheme ? "unknown-scheme" : "no-scheme", text, TARGET_FORMS);
    }
  }
}

export type ProbeArgument =
  | { readonly kind: "probe"; readonly name: string | undefined; readonly target: ProbeTarget }
  | Extract<TargetParsing, { kind: "refused" }>;

/** A name cannot hold the `:` that every target has before its first `=`. */
const NAMED = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.*)$/s;

export const PROBE_NAME_FORM = "a name of 1 to 64 letters, digits, dots, dashes and underscores";

/** Whether a probe can be called so: `NAME` of `NAME=URL`. */
export function isProbeName(text: string): boolean {
  return NAMED.test(`${text}=`) && !text.includes("=");
}

/** `[NAME=]URL`. */
export function parseProbeArgument(text: string): ProbeArgument {
  const [, name, rest] = NAMED.exec(text) ?? [];
  const parsing = parseProbeTarget(rest ?? text);
  return parsing.kind === "refused" ? parsing : { kind: "probe", name, target: parsing.target };
}

/**
 * For people, records and names: without credentials, and without the query, which is where tokens
 * are. Of a command the first word alone, for the same reason.
 */
export function renderTarget(target: ProbeTarget): string {
  switch (target.kind) {
    case "http":
    case "https":
      return target.url.replace(/\?.*$/s, "");
    case "tcp":
      return `tcp://${target.host.includes(":") ? `[${target.host}]` : target.host}:${target.port}`;
    case "unix": {
      const path = target.path.replace(/\?.*$/s, "");
      return `unix:${target.socketPath}${path === "/" ? "" : `:${path}`}`;
    }
    case "cmd":
      return `cmd:${firstWord(target.command)}`;
  }
}

/** A variable that is set for the command alone (`TOKEN=x curl …`) is not its first word. */
function firstWord(command: string): string {
  const words = command.trim().split(/\s+/);
  return words.find((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(word)) ?? "";
}

function parseHttp(kind: "http" | "https", text: string): TargetParsing {
  const expected = `${kind}://HOST[:PORT]/PATH`;
  // URL takes blanks, lines and tabs away, and `http:HOST` for an address (url.spec.whatwg.org).
  const isWhole = /^https?:\/\/[^/?#\\]/i.test(text) && !/[\s\p{Cc}\\]/u.test(text);
  if (!isWhole || !URL.canParse(text)) return refuse("not-an-address", text, expected);
  const url = new URL(text);
  if (text.includes("#")) {
    return refuse("fragment", text, `${expected}: a part after # is never sent (%23 for a #)`);
  }
  if (url.port === "0") return refuse("not-a-port", text, `a port of 1–${LARGEST_PORT}`);
  const userInfo = readUserInfo(url);
  if (userInfo === undefined) return refuse("not-an-address", text, expected);
  url.username = "";
  url.password = "";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? DEFAULT_PORTS[kind] : Number(url.port);
  const path = `${url.pathname}${url.search}`;
  const target = { kind, url: url.href, host, port, path, userInfo: userInfo.text };
  return { kind: "target", target };
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Undefined: what is percent-encoded there is no text. */
function readUserInfo(url: URL): { readonly text: string | undefined } | undefined {
  if (url.username === "" && url.password === "") return { text: undefined };
  try {
    return { text: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}` };
  } catch {
    return undefined; // URIError: `%` without two hex digits, or no UTF-8
  }
}

function parseTcp(text: string): TargetParsing {
  const expected = "tcp://HOST:PORT, of IPv6 tcp://[ADDRESS]:PORT";
  const match = /^tcp:\/\/(\[[0-9a-f:.]+\]|[^\s\p{Cc}:/@?#[\]\\]+)(?::([^/]*))?\/?$/iu.exec(text);
  const [, name, port] = match ?? [];
  if (name === undefined || !URL.canParse(`http://${name}/`)) {
    return refuse("not-an-address", text, expected);
  }
  if (port === undefined || port === "") return refuse("no-port", text, expected);
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > LARGEST_PORT) {
    return refuse("not-a-port", text, `a port of 1–${LARGEST_PORT}`);
  }
  const host = new URL(`http://${name}/`).hostname.replace(/^\[|\]$/g, "");
  return { kind: "target", target: { kind: "tcp", host, port: Number(port) } };
}

/**
 * `unix:/run/app.sock`, and with the path of the request behind a second colon, as nginx writes it
 * (ngx_http_proxy_module, `proxy_pass`): `unix:/run/app.sock:/health`.
 */
function parseUnix(text: string): TargetParsing {
  const rest = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
  const split = rest.indexOf(":/");
  const socketPath = split < 0 ? rest : rest.slice(0, split);
  const path = split < 0 ? "/" : rest.slice(split + 1);
  const bytes = new TextEncoder().encode(socketPath).length;
  const isPath = /^\/[^\0]*[^/\0]$/.test(socketPath) && bytes <= LONGEST_SOCKET_PATH_BYTES;
  if (!isPath) {
    const expected = `unix:/SOCKET, absolute and of at most ${LONGEST_SOCKET_PATH_BYTES} bytes`;
    return refuse("not-a-socket-path", text, expected);
  }
  if (path.includes("#")) return refuse("fragment", text, "a path without a # (%23 for a #)");
  if (!/^[!-~]+$/.test(path)) {
    return refuse("not-an-address", text, "unix:/SOCKET:/PATH, the path percent-encoded");
  }
  return { kind: "target", target: { kind: "unix", socketPath, path } };
}

function parseCommand(text: string): TargetParsing {
  const command = text.slice("cmd:".length);
  if (command.trim() === "" || command.includes("\0")) {
    return refuse("no-command", text, "cmd:COMMAND, for sh -c");
  }
  return { kind: "target", target: { kind: "cmd", command } };
}

const LONGEST_SHOWN = 80;

function refuse(because: TargetRefusal, text: string, expected: string): TargetParsing {
  return { kind: "refused", because, found: `"${shorten(hideTargetSecrets(text))}"`, expected };
}

/**
 * What was given as a target or `NAME=TARGET`, right or wrong, without what may be a secret in it.
 * All up to the last `@` may be a password, also where it holds a slash that it must not.
 */
export function hideTargetSecrets(text: string): string {
  const [, name, rest = text] = NAMED.exec(text) ?? [];
  const shown = rest.replace(/^([a-z0-9+.-]*:\/\/)?.*@/is, "$1***@").replace(/\?.*$/s, "?***");
  return name === undefined ? shown : `${name}=${shown}`;
}

function shorten(shown: string): string {
  const letters = Array.from(shown);
  return letters.length > LONGEST_SHOWN ? `${letters.slice(0, LONGEST_SHOWN).join("")}…` : shown;
}
