/**
 * A probe by HTTP/1.1: one request over a connection of its own, bounded in time and bytes over
 * everything, from the name to the last byte of the body.
 *
 * Bun's `fetch` is not used (1.4.5, measured in a compiled binary): it keeps connections for the
 * next request, so that a server which takes no new ones looks well; it tells neither address nor
 * stage; of an endless body it had taken 600 MB within 0.7 s, and it obeys the caller's proxy
 * variables unless told otherwise each time. A connection of our own (wire.ts) does none of this:
 * aborting closes it at once in every stage.
 *
 * Always: redirects are not followed; no connection is used twice; nothing is left open when it is
 * over; nothing rejects. The environment is not looked at: a proxy is handed in.
 * Clock: monotonic. State after a crash: none.
 */
import type { ProbeResult, ProbeVerdict } from "../core/probe-result.ts";
import type { HttpDetails } from "../core/probe-settings.ts";
import type { HttpTarget } from "../core/probe-target.ts";
import { findAddresses, type LookUp } from "./addresses.ts";
import type { AnswerHead } from "./answer-reader.ts";
import { connectToAny, type Connected } from "./connect.ts";
import { converse, type Conversation } from "./converse.ts";
import { judgeAnswer, judgeHead } from "./judge.ts";
import { NodeWire, openNodeWire } from "./node-wire.ts";
import { openPlainWire } from "./plain-wire.ts";
import { type HttpRequest, prepare, unusable } from "./prepare.ts";
import { openTunnel, parseProxy, type Proxy } from "./proxy.ts";
import { secure } from "./secure.ts";
import { StageTimes } from "./stage-times.ts";
import { TimeLimit } from "./time-limit.ts";
import type { OpenWire, Wire } from "./wire.ts";

export interface ProbeOptions {
  readonly signal?: AbortSignal | undefined;
  /** Of chooseProxy, where the settings ask for one. */
  readonly proxy?: string | undefined;
  /** For tests; else getaddrinfo(3). */
  readonly lookUp?: LookUp | undefined;
  /** Called right before an expression is tried on the body, which may not come to an end. */
  readonly onExpression?: ((source: string) => void) | undefined;
}

/** A stage that failed, on its way out. */
type Step<Value> = ({ readonly kind: "failed" } & ProbeVerdict) | Value;

export function probeHttp(
  settings: {
    readonly target: HttpTarget;
    readonly http: HttpDetails;
    readonly timeoutMs: number;
  },
  options: ProbeOptions = {},
): Promise<ProbeResult> {
  const { target, http, timeoutMs } = settings;
  const { lookUp } = options;
  const request: HttpRequest = {
    host: hostOf(target),
    path: target.path,
    userInfo: target.userInfo,
    tlsHost: target.kind === "https" ? target.host : undefined,
    http,
    timeoutMs,
  };
  if (!http.usesProxy || options.proxy === undefined) {
    const reach: Reach = (course, open) => reachHost(target, course, { lookUp, open });
    return exchangeHttp(request, reach, options);
  }
  const proxy = parseProxy(options.proxy);
  const reach: Reach = async (course, open) => {
    if (proxy === undefined) return unusable("a proxy whose address is no http://HOST:PORT");
    return reachByProxy({ target, proxy }, course, { lookUp, open });
  };
  return exchangeHttp(
    target.kind === "http" ? toProxy(request, target, proxy) : request,
    reach,
    options,
  );
}

/** As the address has it: with the port, where that is not the scheme's own. */
function hostOf({ kind, host, port }: HttpTarget): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (kind === "http" ? 80 : 443) ? name : `${name}:${port}`;
}

/** The whole address in the request line (RFC 9112, section 3.2.2), and what the proxy asks for. */
function toProxy(request: HttpRequest, target: HttpTarget, proxy: Proxy | undefined): HttpRequest {
  if (proxy?.authorization === undefined) return { ...request, path: target.url };
  const own = { name: "Proxy-Authorization", value: proxy.authorization };
  const http = { ...request.http, headers: [...request.http.headers, own] };
  return { ...request, path: target.url, http };
}

async function reachByProxy<Kind extends Wire>(
  { target, proxy }: { readonly target: HttpTarget; readonly proxy: Proxy },
  course: Course,
  by: ReachBy<Kind>,
): Promise<Connected<Kind>> {
  const connected = await reachHost(proxy, course, by);
  if (connected.kind === "failed") return { ...connected, detail: `proxy: ${connected.detail}` };
  if (target.kind === "http") return connected;
  course.times.begin("proxy");
  const host = target.host.includes(":") ? `[${target.host}]` : target.host;
  const asked = { authority: `${host}:${target.port}`, proxy };
  const tunnel = await openTunnel(connected.wire, asked, course.limit);
  return tunnel.kind === "failed" ? tunnel : connected;
}

/** What a probe on its way has: the limit for all of it, and its stages. */
export class Course {
  readonly limit: TimeLimit;
  readonly times = new StageTimes();
  address: string | undefined;
  status: number | undefined;

  constructor(timeoutMs: number, signal: AbortSignal | undefined) {
    this.limit = new TimeLimit(timeoutMs, signal);
  }

  finish({ because, detail }: ProbeVerdict): ProbeResult {
    this.limit.close();
    return {
      isGood: because === "good",
      because,
      stages: this.times.finish(),
      ...(this.status === undefined ? {} : { status: this.status }),
      ...(this.address === undefined ? {} : { address: this.address }),
      detail,
    };
  }
}

export interface ReachBy<Kind extends Wire> {
  readonly lookUp: LookUp | undefined;
  readonly open: OpenWire<Kind>;
}

/** Gets the connection, within the limit. */
export type Reach = <Kind extends Wire>(
  course: Course,
  open: OpenWire<Kind>,
) => Promise<Connected<Kind>>;

export async function reachHost<Kind extends Wire>(
  target: { readonly host: string; readonly port: number },
  course: Course,
  { lookUp, open }: ReachBy<Kind>,
): Promise<Connected<Kind>> {
  course.times.begin("name");
  const found = await findAddresses(target.host, course.limit, lookUp);
  if (found.kind === "failed") return found;
  course.times.begin("connect");
  return connectToAny(found.addresses, target.port, { limit: course.limit, open });
}

export async function exchangeHttp(
  request: HttpRequest,
  reach: Reach,
  options: ProbeOptions,
): Promise<ProbeResult> {
  const course = new Course(request.timeoutMs, options.signal);
  const prepared = prepare(request);
  if (prepared.kind === "failed") return course.finish(prepared);
  const reached = await reachWire(request, reach, { ca: prepared.ca, course });
  if (reached.kind === "failed") return course.finish(reached);
  const conversation = await ask(reached.wire, prepared.bytes, request.http, course);
  if (conversation.kind === "failed") return course.finish(conversation);
  return course.finish(judgeAnswer(conversation.answer, request.http, options.onExpression));
}

/** TLS can be put on a connection by node:net alone, which costs more. */
async function reachWire(
  { tlsHost, http }: HttpRequest,
  reach: Reach,
  { ca, course }: { readonly ca: string | undefined; readonly course: Course },
): Promise<Step<{ readonly kind: "reached"; readonly wire: Wire }>> {
  const { times, limit } = course;
  if (tlsHost === undefined) {
    const connected = await reach(course, openPlainWire);
    if (connected.kind === "failed") return connected;
    course.address = connected.address;
    return { kind: "reached", wire: connected.wire };
  }
  const connected = await reach(course, openNodeWire);
  if (connected.kind === "failed") return connected;
  course.address = connected.address;
  times.begin("tls");
  const { socket } = connected.wire;
  const secured = await secure(socket, { host: tlsHost, ca, isInsecure: http.isInsecure }, limit);
  if (secured.kind === "failed") return secured;
  return { kind: "reached", wire: new NodeWire(secured.socket) };
}

function ask(
  wire: Wire,
  request: Buffer,
  http: HttpDetails,
  course: Course,
): Promise<Conversation> {
  course.times.begin("headers");
  const onHead = (head: AnswerHead): ProbeVerdict | undefined => {
    course.status = head.status;
    course.times.begin("body");
    return judgeHead(head, http);
  };
  const isHead = http.method === "HEAD";
  return converse(wire, { request, isHead, maxBytes: http.maxBytes, onHead }, course.limit);
}
