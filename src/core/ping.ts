/**
 * The pinging protocol of healthchecks.io (https://healthchecks.io/docs/http_api/): which of its
 * endpoints a notice goes to, with what, and what its answers mean. Pure.
 *
 * - `/start`, the exit status, `/fail` and `/log` are added to the path of the address; what else
 *   stands in it (a slug, `?create=1`) stays.
 * - `rid` is the id of the run, so that the service measures one run among several.
 * - The body is kept up to a limit that each answer names in `Ping-Body-Limit`; the beginning of a
 *   longer one is kept, where we would keep the end, so that it is cut here.
 * - An unknown or hurried check by its UUID is answered with 200 and says so in the body.
 */
import { decideReply, type HttpReply, type Sent } from "./delivery.ts";
import { factsOf, tailOf } from "./notice-text.ts";
import { BAD_ENDINGS, type Notice } from "./notice.ts";

/** What a server that names no limit keeps (PING_BODY_LIMIT of a self-hosted Healthchecks). */
export const USUAL_BODY_LIMIT = 10_000;
/** The hosted service keeps 100 kB; more than this is never sent. */
export const LARGEST_BODY_LIMIT = 100_000;

export interface PingPost {
  readonly url: string;
  readonly body: string;
}

export function shapePing(url: URL, notice: Notice, bodyLimit = USUAL_BODY_LIMIT): PingPost {
  const to = new URL(url.href);
  to.pathname = `${to.pathname.replace(/\/+$/, "")}${endpointOf(notice)}`;
  if (isUuid(notice.run_id) && !to.searchParams.has("rid")) {
    to.search += `${to.search === "" ? "?" : "&"}rid=${notice.run_id}`;
  }
  return { url: to.href, body: bodyOf(notice, bodyLimit) };
}

function endpointOf(notice: Notice): string {
  const { event, exit_status: status, details } = notice;
  if (details["is_test"] === true) return "/log";
  if (event === "start") return "/start";
  // A status that counts as success (`--success-exit-codes`) would be a failure there.
  if (event === "success" || event === "recovered") return status === 0 ? "/0" : "";
  if (!BAD_ENDINGS.includes(event)) return "/log";
  const isStatus = status !== null && status >= 1 && status <= 255;
  return isStatus ? `/${status}` : "/fail";
}

function isUuid(text: string | null): text is string {
  return text !== null && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** The end of the output where there is one, else what has happened. */
function bodyOf(notice: Notice, bodyLimit: number): string {
  if (notice.event === "start") return "";
  const { log_tail: tail } = notice;
  const text = tail === null || tail === "" ? factsOf(notice).join("\n") : tail;
  return tailOf(text, Math.min(bodyLimit, LARGEST_BODY_LIMIT));
}

/** Undefined: the answer names no limit that can be one. */
export function readBodyLimit(header: string | null): number | undefined {
  if (header === null || !/^[0-9]{1,9}$/.test(header.trim())) return undefined;
  return Math.min(Number(header), LARGEST_BODY_LIMIT);
}

export function decidePingReply(reply: HttpReply): Sent {
  const isOk = reply.status >= 200 && reply.status <= 299;
  if (isOk && reply.text.startsWith("OK (not found)")) {
    return { kind: "refused", because: "rejected", detail: "the service knows no such check" };
  }
  if (isOk && reply.text.startsWith("OK (rate limited)")) {
    return { kind: "failed", because: "rate-limited", detail: "pinged too often in a minute" };
  }
  return decideReply(reply);
}
