/**
 * The bytes of one HTTP/1.1 request (RFC 9112). Pure.
 *
 * Always: one request a connection (`Connection: close`), the answer wanted as it is
 * (`Accept-Encoding: identity`); what is given cannot end a line and begin another one. Headers
 * that say where a message ends are ours alone.
 */
import type { HttpDetails, ProbeHeader } from "../core/probe-settings.ts";

export interface RequestTarget {
  /** Of the Host header. */
  readonly host: string;
  /** Of the request line: a path, or a whole address for a proxy. */
  readonly path: string;
  /** The value of that header; one among the given headers goes before it. */
  readonly authorization: string | undefined;
}

export type RenderedRequest =
  | { readonly kind: "request"; readonly bytes: Buffer }
  | { readonly kind: "refused"; readonly found: string };

const OURS = ["connection", "content-length", "transfer-encoding"];
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const NO_VALUE = /[\0\r\n]/;

export function renderRequest(target: RequestTarget, http: HttpDetails): RenderedRequest {
  const refused = http.headers.find(({ name, value }) => !isUsable(name, value));
  if (refused !== undefined) {
    return {
      kind: "refused",
      found: `a header ${JSON.stringify(refused.name)} that cannot be sent`,
    };
  }
  if (!TOKEN.test(http.method)) return { kind: "refused", found: "a method that is no word" };
  if (/[\s\0]/.test(target.path)) return { kind: "refused", found: "a path with blanks" };
  if (target.authorization !== undefined && NO_VALUE.test(target.authorization)) {
    return { kind: "refused", found: "credentials of more than one line" };
  }
  const body = Buffer.from(http.body ?? "");
  const headers = [...defaultHeaders(target, http.headers), ...http.headers];
  if (http.body !== undefined) {
    headers.push({ name: "Content-Length", value: String(body.length) });
  }
  const lines = headers.map(({ name, value }) => `${name}: ${value}\r\n`);
  const head = `${http.method} ${target.path} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return { kind: "request", bytes: Buffer.concat([Buffer.from(head), body]) };
}

function isUsable(name: string, value: string): boolean {
  return TOKEN.test(name) && !NO_VALUE.test(value) && !OURS.includes(name.toLowerCase());
}

function defaultHeaders(target: RequestTarget, given: readonly ProbeHeader[]): ProbeHeader[] {
  const defaults: ProbeHeader[] = [
    { name: "Host", value: target.host },
    { name: "User-Agent", value: "watchdog" },
    { name: "Accept", value: "*/*" },
    { name: "Accept-Encoding", value: "identity" },
  ];
  if (target.authorization !== undefined) {
    defaults.push({ name: "Authorization", value: target.authorization });
  }
  const names = new Set(given.map(({ name }) => name.toLowerCase()));
  const missing = defaults.filter(({ name }) => !names.has(name.toLowerCase()));
  return [...missing, { name: "Connection", value: "close" }];
}

/** RFC 7617. @param userInfo  `user:password` */
export function renderBasic(userInfo: string): string {
  return `Basic ${Buffer.from(userInfo).toString("base64")}`;
}

/** What a credentials file holds: `Bearer TOKEN` is a value already, `user:password` is none. */
export function renderAuthorization(text: string): string {
  const line = text.replace(/\r?\n$/, "");
  return /^[A-Za-z][\w-]* +\S/.test(line) ? line : renderBasic(line);
}
