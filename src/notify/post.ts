/**
 * One POST over HTTP, bounded in time and in bytes over everything, from the name to the end of
 * what is read of the answer. Refuses to know what is posted and what an answer means.
 *
 * By Bun's `fetch` (1.4.5, measured): it takes no more of an endless body than what has come when
 * it is aborted (a few MB), and refuses a head without an end. Always: redirects are not followed,
 * as they would carry a notice and its key to somebody else; no connection is used twice; a proxy
 * is the one that curl would take, and no other; certificates are looked at whatever the
 * environment says; nothing rejects; no address stands in what is told of an error.
 * Clock: MONOTONIC, by a timer. State after a crash: the other side may have it.
 */
import type { HttpReply, SentReason } from "../core/delivery.ts";
import { chooseProxy, type Environment } from "../core/proxy-choice.ts";
import { wallNow } from "../os/clock.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";

export interface PostOrder {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  /** Of the proxy variables. */
  readonly environment: Environment;
  readonly signal?: AbortSignal | undefined;
}

export type PostEnd =
  | { readonly kind: "reply"; readonly reply: HttpReply; readonly headers: Headers }
  | { readonly kind: "trouble"; readonly because: SentReason; readonly detail: string };

/** Of the body of an answer. */
export const MOST_ANSWER_BYTES = 4_096;
/** The status has said what became of the notice; the body is for people and comes in one piece. */
const BODY_MS = 1_000;

/** Never rejects. */
export async function post(order: PostOrder): Promise<PostEnd> {
  const { signal } = order;
  if (isStopped(signal)) return STOPPED;
  // Bun warns of it on standard error, and nothing of it is believed below.
  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  const abort = new AbortController();
  const limit = limitTime(order.timeoutMs, abort);
  const onStop = (): void => abort.abort();
  signal?.addEventListener("abort", onStop);
  try {
    const response = await ask(order, abort.signal);
    const text = await readBeginning(response);
    const { status, headers } = response;
    const retryAfter = headers.get("retry-after");
    const reply = { status, retryAfter, text, nowMs: wallNow() };
    return { kind: "reply", reply, headers };
  } catch (error) {
    if (isStopped(signal)) return STOPPED;
    return limit.isOver() ? late(order) : describeError(error);
  } finally {
    limit.end();
    signal?.removeEventListener("abort", onStop);
    abort.abort(); // closes the connection, and ends a body that goes on
  }
}

/** Asked anew each time: it may have happened meanwhile. */
function isStopped(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function ask(order: PostOrder, signal: AbortSignal): Promise<Response> {
  const { headers, body, environment } = order;
  const { url, credentials } = separateCredentials(order.url);
  const authorization = credentials === undefined ? {} : { Authorization: credentials };
  const { protocol, hostname } = new URL(url);
  const proxy = chooseProxy({ kind: protocol.replace(":", ""), host: hostname }, environment);
  const options = {
    method: "POST",
    headers: { ...headers, ...authorization },
    body,
    redirect: "manual" as const,
    signal,
    keepalive: false,
    decompress: false,
    // `false` is the only word for none: undefined takes the variables (measured).
    proxy: proxy === undefined ? false : withScheme(proxy),
    tls: { rejectUnauthorized: true },
  };
  return fetch(url, options as unknown as BunFetchRequestInit);
}

function separateCredentials(address: string): {
  readonly url: string;
  readonly credentials: string | undefined;
} {
  const url = new URL(address);
  if (url.username === "" && url.password === "") return { url: url.href, credentials: undefined };
  const pair = `${decode(url.username)}:${decode(url.password)}`;
  url.username = "";
  url.password = "";
  const credentials = `Basic ${Buffer.from(pair).toString("base64")}`;
  return { url: url.href, credentials };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // URIError: a lone `%` is meant as it stands
  }
}

/** As curl takes it: without a scheme it is HTTP. */
function withScheme(proxy: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
}

/**
 * Never rejects: a body that drips, hangs or breaks off takes nothing from a status that is there.
 * The notice was taken, or refused, and must not be sent again for what is missing behind it.
 */
async function readBeginning(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const parts: Uint8Array[] = [];
  const limit = wakeAfter(BODY_MS, () => void reader.cancel().catch(() => undefined));
  try {
    for (let length = 0; length < MOST_ANSWER_BYTES;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value.subarray(0, MOST_ANSWER_BYTES - length));
      length += value.length;
    }
  } catch {
    // ECONNRESET, or the limit of the whole: what has come is enough.
  } finally {
    limit.cancel();
  }
  return new TextDecoder().decode(Buffer.concat(parts));
}

interface TimeLimit {
  isOver(): boolean;
  end(): void;
}

/** A timer is cut at 30 s (os/timers.ts), and so is a limit. */
function limitTime(timeoutMs: number, abort: AbortController): TimeLimit {
  let isOver = false;
  const timer: Timer = wakeAfter(timeoutMs, () => {
    isOver = true;
    abort.abort();
  });
  return { isOver: () => isOver, end: () => timer.cancel() };
}

function late({ timeoutMs }: PostOrder): PostEnd {
  return { kind: "trouble", because: "no-answer", detail: `no answer within ${timeoutMs} ms` };
}

const STOPPED: PostEnd = {
  kind: "trouble",
  because: "stopped",
  detail: "stopped before it was over",
};

/** Of certificates, as node names them: `CERT_HAS_EXPIRED`, `SELF_SIGNED_CERT_IN_CHAIN` … */
const TLS_CODES = /CERT|TLS|SSL|EPROTO|UNABLE_TO_|SIGNATURE/;

/** By its code alone: a message of `fetch` holds the whole address. */
function describeError(error: unknown): PostEnd {
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  const word = typeof code === "string" ? code : String(name ?? "error");
  if (word === "ECONNRESET") {
    return { kind: "trouble", because: "no-answer", detail: "the connection was closed" };
  }
  if (TLS_CODES.test(word)) return { kind: "trouble", because: "tls-error", detail: word };
  if (/^(Malformed|ResponseHeaders|Invalid)/.test(word)) {
    return { kind: "trouble", because: "no-answer", detail: `no answer of HTTP (${word})` };
  }
  return { kind: "trouble", because: "not-connected", detail: word };
}
