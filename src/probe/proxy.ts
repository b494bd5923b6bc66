/**
 * A proxy between the probe and its target, for settings that ask for one: which, and the tunnel
 * through it. Refuses to look at the environment by itself: it is handed in.
 *
 * Always: a proxy is spoken to by plain HTTP; what is no `http://` address is refused and not
 * passed over, since a probe that goes another way than was said proves nothing.
 */
import { expectsStatus } from "../core/probe-settings.ts";
import type { ProbeVerdict } from "../core/probe-result.ts";
import { AnswerReader, LARGEST_HEAD_BYTES } from "./answer-reader.ts";
import { renderBasic } from "./request.ts";
import type { TimeLimit } from "./time-limit.ts";
import type { Wire } from "./wire.ts";

export interface Proxy {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization. */
  readonly authorization: string | undefined;
}

/** @returns undefined: no address of a proxy that can be used */
export function parseProxy(text: string): Proxy | undefined {
  // As curl takes it: without a scheme it is HTTP.
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port, username, password } = new URL(url);
  if (protocol !== "http:" || hostname === "") return undefined;
  const userInfo = decode(`${username}:${password}`);
  if (userInfo === undefined) return undefined;
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? 80 : Number(port),
    authorization: username === "" ? undefined : renderBasic(userInfo),
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // URIError: a lone `%`
  }
}

export type Tunnel = { readonly kind: "open" } | ({ readonly kind: "failed" } & ProbeVerdict);

/**
 * CONNECT (RFC 9110, section 9.3.6): afterwards the connection is one to the target.
 *
 * @param authority  HOST:PORT of the target
 */
export function openTunnel(
  wire: Wire,
  { authority, proxy }: { readonly authority: string; readonly proxy: Proxy },
  limit: TimeLimit,
): Promise<Tunnel> {
  return new Promise((resolve) => {
    const reader = new AnswerReader({ isHead: true, maxBytes: LARGEST_HEAD_BYTES });
    const settle = (tunnel: Tunnel): void => {
      forget();
      wire.hear(undefined);
      if (tunnel.kind === "failed") wire.close();
      resolve(tunnel);
    };
    const fail = (because: ProbeVerdict["because"], detail: string): void =>
      settle({ kind: "failed", because, detail: `proxy: ${detail}` });
    const onClose = (): void => fail("reset", "the connection was closed without an answer");
    const onBytes = (bytes: Uint8Array): void => {
      const state = reader.push(bytes);
      if (state.kind === "in-head") return;
      if ("found" in state) return fail(state.kind, state.found);
      const status = reader.head?.status ?? 0;
      if (expectsStatus([{ from: 200, to: 299 }], status)) return settle({ kind: "open" });
      fail("proxy-refused", `status ${status} for a tunnel to ${authority}`);
    };
    let forget = (): void => undefined;
    wire.hear({ onBytes, onEnd: onClose, onBreak: onClose });
    forget = limit.onEnd((end) => {
      if (end === "stopped") fail("stopped", "stopped before it answered");
      else fail("no-answer", `no answer within ${limit.shown}`);
    });
    wire.send(Buffer.from(renderConnect(authority, proxy)));
  });
}

function renderConnect(authority: string, { authorization }: Proxy): string {
  const credentials =
    authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`;
}
