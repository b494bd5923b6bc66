/**
 * Sends one notice to one sink, once. Refuses to know whether it was sent before, when it is tried
 * again, and where a target is stored.
 *
 * Guarantees: an answer within the limit (of a hook: its own, and its grace); nothing rejects; no
 * secret of the target stands in what is told. Non-guarantees: that the other side has not taken it
 * where the answer is `failed`; each attempt has the same key, by which it can know.
 * Clock: MONOTONIC, by timers. State after a crash: as after `failed`.
 */
import { decideReply, type Sent } from "../core/delivery.ts";
import { limitHook } from "../core/hook-order.ts";
import { isMailAddress } from "../core/mail-text.ts";
import type { Notice } from "../core/notice.ts";
import { decidePingReply, readBodyLimit, shapePing, USUAL_BODY_LIMIT } from "../core/ping.ts";
import type { Environment } from "../core/proxy-choice.ts";
import { type ResolvedSink, shapeOf } from "../core/sink.ts";
import { shapeWebhook } from "../core/webhook-shapes.ts";
import { faultPoint } from "../os/faults.ts";
import { ownMask } from "../os/mask.ts";
import { type HookRunner, runHook } from "./hook.ts";
import { sendMail } from "./mail.ts";
import { post, type PostEnd, type PostOrder } from "./post.ts";

export type { Sent, SentReason } from "../core/delivery.ts";
export type { HookEnd, HookRunner } from "./hook.ts";

export interface SendTerms {
  /** Of an exchange over the network; a hook and the mail program have what limitHook gives. */
  readonly timeoutMs: number;
  /** Instead of that. */
  readonly hookTimeoutMs?: number | undefined;
  /** How a program is started here: `Helpers` of tree/own-processes.ts. */
  readonly hooks: HookRunner;
  /** Of watchdog. */
  readonly version: string;
  /** Whose proxy variables count; our own unless given. */
  readonly environment?: Environment | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Tests put another mail program here. */
  readonly sendmail?: string | undefined;
}

/** Never rejects. */
export async function sendNotice(
  sink: ResolvedSink,
  notice: Notice,
  terms: SendTerms,
): Promise<Sent> {
  try {
    const { kind, id } = sink.spec;
    faultPoint("sink.send", { kind, sink: id, event: notice.event, notice: notice.id });
    return await send(sink, notice, terms);
  } catch (error) {
    // A fault, or a bug of ours: another attempt may go better, and has bounds.
    // Its message may hold the address.
    const detail = error instanceof Error ? error.name : "an error";
    return { kind: "failed", because: "not-connected", detail };
  }
}

function send(sink: ResolvedSink, notice: Notice, terms: SendTerms): Promise<Sent> {
  const { target, spec } = sink;
  const { hookTimeoutMs = limitHook(terms.timeoutMs) } = terms;
  switch (spec.kind) {
    case "command":
      if (hookTimeoutMs === undefined) return postpone();
      return runHook(target, notice, { ...terms, hookTimeoutMs });
    case "mail":
      if (!isMailAddress(target)) return refuse("no address of a mail box");
      if (hookTimeoutMs === undefined) return postpone();
      return sendMail(target, notice, { ...terms, hookTimeoutMs });
    case "webhook":
      return sendWebhook(sink, notice, terms);
    case "ping":
      return sendPing(sink, notice, terms);
  }
}

function postpone(): Promise<Sent> {
  const detail = "no time is left for a program";
  return Promise.resolve({ kind: "failed", because: "stopped", detail });
}

function refuse(detail: string): Promise<Sent> {
  return Promise.resolve({ kind: "refused", because: "not-an-address", detail });
}

async function sendWebhook(sink: ResolvedSink, notice: Notice, terms: SendTerms): Promise<Sent> {
  const url = parseUrl(sink.target);
  if (url === undefined) return refuse(NO_URL);
  const shape = shapeOf(sink);
  const shaped = shapeWebhook(url, shape, notice);
  if (shaped === undefined) return refuse(`no address of a topic of ${shape}`);
  const headers = { "Content-Type": shaped.contentType };
  return readEnd(await post(orderOf(shaped, headers, { notice, terms })), decideReply);
}

/** What the servers of this process have said that they keep. */
const bodyLimits = new Map<string, number>();

async function sendPing(sink: ResolvedSink, notice: Notice, terms: SendTerms): Promise<Sent> {
  const url = parseUrl(sink.target);
  if (url === undefined) return refuse(NO_URL);
  const { id } = sink.spec;
  const first = await ping(bodyLimits.get(id) ?? USUAL_BODY_LIMIT);
  const limit = bodyLimits.get(id);
  const isTooLong = first.kind === "reply" && first.reply.status === 413;
  // A server may refuse what is longer than what it keeps, and says then how long that is.
  const end = isTooLong && limit !== undefined ? await ping(limit) : first;
  return readEnd(end, decidePingReply);

  async function ping(bodyLimit: number): Promise<PostEnd> {
    const shaped = shapePing(url as URL, notice, bodyLimit);
    const headers = { "Content-Type": "text/plain; charset=utf-8" };
    const answer = await post(orderOf(shaped, headers, { notice, terms }));
    if (answer.kind === "reply") {
      const named = readBodyLimit(answer.headers.get("ping-body-limit"));
      if (named !== undefined) bodyLimits.set(id, named);
    }
    return answer;
  }
}

const NO_URL = "no http:// or https:// address";

function parseUrl(target: string): URL | undefined {
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return undefined;
  return new URL(target);
}

function orderOf(
  shaped: { readonly url: string; readonly body: string },
  headers: Readonly<Record<string, string>>,
  { notice, terms }: { readonly notice: Notice; readonly terms: SendTerms },
): PostOrder {
  return {
    ...shaped,
    headers: {
      ...headers,
      // draft-ietf-httpapi-idempotency-key-header
      "Idempotency-Key": notice.id,
      "User-Agent": `watchdog/${terms.version}`,
      "X-Watchdog-Event": notice.event,
    },
    timeoutMs: terms.timeoutMs,
    environment: terms.environment ?? process.env,
    signal: terms.signal,
  };
}

function readEnd(
  end: PostEnd,
  decide: (reply: Extract<PostEnd, { kind: "reply" }>["reply"]) => Sent,
): Sent {
  // A receiver may give back what it was sent, and what is quoted of it is cut.
  if (end.kind === "reply") return decide({ ...end.reply, text: ownMask().text(end.reply.text) });
  return { kind: "failed", because: end.because, detail: end.detail };
}
