/**
 * Who is told: the sinks of a run, and what a sink is called in files and on a terminal without
 * giving away what reaches it. Pure; reads no file and no variable, so that a secret which stands
 * in one is only named here.
 *
 * Always: `id` is the same for the same target, wherever it was written, so that a later run which
 * has the same sink can deliver what an earlier one could not; a password is not part of it, as it
 * stands in names and records, where a short one could be found by trying. `shown` never holds a
 * secret.
 */
import { BAD_ENDINGS, DEFAULT_EVENTS, ENDINGS, type NoticeEvent } from "./notice.ts";
import { renderCanonical } from "./plan-id.ts";
import { escapeUnprintable } from "./printable.ts";
import { hideUrlSecrets, holdsToken } from "./url-secrets.ts";

export const SINK_KINDS = ["command", "webhook", "ping", "mail"] as const;
export type SinkKind = (typeof SINK_KINDS)[number];

/** What is posted to a webhook. */
export const WEBHOOK_SHAPES = ["json", "slack", "discord", "ntfy"] as const;
export type WebhookShape = (typeof WEBHOOK_SHAPES)[number];

/** Where the target of a sink stands: a command for `sh -c`, a URL, an address. */
export type SinkSource =
  | { readonly kind: "literal"; readonly text: string }
  /** Its first line, read again for each delivery. */
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "variable"; readonly name: string }
  /** It was not to be stored: whoever has a sink with the same id can deliver. */
  | { readonly kind: "hidden" };

export interface SinkSpec {
  readonly kind: SinkKind;
  /** Of a webhook alone; undefined: by the host of the URL, known when it is read. */
  readonly shape?: WebhookShape;
  readonly events: readonly NoticeEvent[] | "default";
  readonly source: SinkSource;
  readonly id: string;
  readonly shown: string;
}

/** A sink whose target was read. Holds the secret: never stored, never shown. */
export interface ResolvedSink {
  readonly spec: SinkSpec;
  /** A command, a URL or an address. */
  readonly target: string;
}

export interface SinkWords {
  readonly kind: SinkKind;
  readonly shape?: WebhookShape | undefined;
  readonly events?: readonly NoticeEvent[] | "default";
  readonly source: Exclude<SinkSource, { readonly kind: "hidden" }>;
  /** What stands in the variable: its target, so that it is the same sink as on a line. */
  readonly value?: string;
}

export function makeSink({ kind, shape, events = "default", source, value }: SinkWords): SinkSpec {
  const shaped = shape === undefined ? {} : { shape };
  const text = source.kind === "literal" ? source.text : value;
  const named = nameSource(kind, shape, { source, text });
  return { kind, ...shaped, events, source, ...named };
}

function nameSource(
  kind: SinkKind,
  shape: WebhookShape | undefined,
  { source, text }: { readonly source: SinkSource; readonly text: string | undefined },
): Pick<SinkSpec, "id" | "shown"> {
  if (source.kind === "file") {
    const shown = `${kind} file:${escapeUnprintable(source.path)}`;
    return { id: hashOf({ kind, shape: shape ?? "", file: source.path }), shown };
  }
  const target = text ?? "";
  const resolved = kind === "webhook" ? (shape ?? shapeOfUrl(target)) : "";
  const id = hashOf({ kind, shape: resolved, target: withoutPassword(kind, target) });
  const shownTarget = escapeUnprintable(showTarget(kind, resolved, target));
  return { id, shown: `${kind} ${shownTarget}` };
}

const ID_DIGITS = 16;

function hashOf(fields: Readonly<Record<string, string>>): string {
  return new Bun.CryptoHasher("sha256")
    .update(renderCanonical(fields))
    .digest("hex")
    .slice(0, ID_DIGITS);
}

function withoutPassword(kind: SinkKind, target: string): string {
  if (!isUrlKind(kind) || !URL.canParse(target)) return target;
  const url = new URL(target);
  url.password = "";
  return url.href;
}

export function isUrlKind(kind: SinkKind): kind is "webhook" | "ping" {
  return kind === "webhook" || kind === "ping";
}

/** The target without what may be a secret in it; of a command its first word. */
export function showTarget(kind: SinkKind, shape: WebhookShape | "", target: string): string {
  if (kind === "command") return firstWordOf(target);
  if (kind === "mail") return target;
  return hideUrlSecrets(target, { hidesPath: shape !== "" && shape !== "json" });
}

/** A variable that is set for the command alone (`TOKEN=x curl …`) is not its first word. */
function firstWordOf(command: string): string {
  const words = command.trim().split(/\s+/);
  const first = words.find((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(word)) ?? "";
  return words.length > 1 ? `${first} …` : first;
}

/**
 * Slack: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks. Discord:
 * https://docs.discord.com/developers/resources/webhook. ntfy: https://docs.ntfy.sh/publish.
 */
export function shapeOfUrl(text: string): WebhookShape {
  if (!URL.canParse(text)) return "json";
  const { hostname, pathname } = new URL(text);
  if (hostname === "hooks.slack.com") return "slack";
  const isDiscord = /^((ptb|canary)\.)?discord(app)?\.com$/.test(hostname);
  if (isDiscord && /^\/api\/(v\d+\/)?webhooks\//.test(pathname)) return "discord";
  return hostname === "ntfy.sh" ? "ntfy" : "json";
}

export function shapeOf({ spec, target }: ResolvedSink): WebhookShape {
  return spec.shape ?? shapeOfUrl(target);
}

/** `failure` covers every bad ending; a ping hears of each start and each end whatever it names. */
export function wantsEvent({ kind, events }: SinkSpec, event: NoticeEvent): boolean {
  if (kind === "ping" && (event === "start" || ENDINGS.includes(event))) return true;
  const named = events === "default" ? DEFAULT_EVENTS : events;
  return named.includes(event) || (named.includes("failure") && BAD_ENDINGS.includes(event));
}

/**
 * The sink as it may stand in a file: its target only where masking would change nothing in it.
 *
 * @param mask  see masking.ts
 */
export function storableSink(spec: SinkSpec, mask: (text: string) => string): SinkSpec {
  const { source, kind, shape } = spec;
  const shown = mask(spec.shown);
  if (source.kind !== "literal") return { ...spec, shown };
  const { text } = source;
  const resolved = kind === "webhook" ? (shape ?? shapeOfUrl(text)) : "";
  const isOpen = mask(text) === text && showsNoSecret(kind, resolved, text);
  return isOpen ? { ...spec, shown } : { ...spec, shown, source: { kind: "hidden" } };
}

function showsNoSecret(kind: SinkKind, shape: WebhookShape | "", text: string): boolean {
  if (isUrlKind(kind)) return showTarget(kind, shape, text) === text;
  // What is made like a token may be one: the id of a check in the address that a hook calls.
  return !text.split(/[^A-Za-z0-9_.~-]+/).some(holdsToken);
}

/** Each target once: of two that name events the one sink hears both. */
export function mergeSinks(specs: readonly SinkSpec[]): readonly SinkSpec[] {
  const merged = new Map<string, SinkSpec>();
  for (const spec of specs) {
    const before = merged.get(spec.id);
    merged.set(
      spec.id,
      before === undefined ? spec : { ...before, events: joinEvents(before, spec) },
    );
  }
  return [...merged.values()];
}

function joinEvents(one: SinkSpec, other: SinkSpec): SinkSpec["events"] {
  if (one.events === "default" && other.events === "default") return "default";
  const list = ({ events }: SinkSpec): readonly NoticeEvent[] =>
    events === "default" ? DEFAULT_EVENTS : events;
  return [...new Set([...list(one), ...list(other)])];
}
