/**
 * How a person writes who is to be told: `--on failure='cmd'`, `--webhook slack:URL`, `--ping URL`,
 * `--mail ADDRESS`, and the same words in a table `[sinks.NAME]`. Pure text.
 *
 * Always: what is refused is shown without what may be a secret in it.
 */
import { isMailAddress } from "./mail-text.ts";
import { maskShapes } from "./masking.ts";
import { NOTICE_EVENTS, type NoticeEvent, parseNoticeEvent } from "./notice.ts";
import { type SinkKind, type SinkWords, WEBHOOK_SHAPES } from "./sink.ts";
import { hideUrlSecrets } from "./url-secrets.ts";

export type SinkParsing =
  | { readonly kind: "sink"; readonly words: SinkWords }
  | { readonly kind: "refused"; readonly expected: string };

export const WEBHOOK_FORM =
  "http://… or https://…, or file:/PATH, with slack:, discord:, ntfy: or json: before it " +
  "where the host does not say so";
export const PING_FORM = "http://… or https://…, or file:/PATH";
export const MAIL_FORM = "an address such as ops@example.org or root, or file:/PATH";
export const COMMAND_FORM = "a command for sh -c";
export const ON_FORM = `EVENT[,EVENT]='COMMAND' with events of ${NOTICE_EVENTS.join(", ")}`;
export const EVENTS_FORM = `events of ${NOTICE_EVENTS.join(", ")}`;

/** The target alone: `webhook = "…"` of a table, the value of an option. */
export function parseSinkTarget(kind: SinkKind, text: string): SinkParsing {
  if (kind === "command") return parseCommand(text);
  const { shape, rest } = kind === "webhook" ? splitShape(text) : { shape: undefined, rest: text };
  const source = parseSource(rest);
  if (source === undefined) return refuse(FORMS[kind]);
  if (source.kind === "literal" && !isTarget(kind, source.text)) return refuse(FORMS[kind]);
  return { kind: "sink", words: { kind, shape, source } };
}

const FORMS = {
  webhook: WEBHOOK_FORM,
  ping: PING_FORM,
  mail: MAIL_FORM,
  command: COMMAND_FORM,
} as const satisfies Record<SinkKind, string>;

function refuse(expected: string): SinkParsing {
  return { kind: "refused", expected };
}

function splitShape(text: string): Pick<SinkWords, "shape"> & { readonly rest: string } {
  const shape = WEBHOOK_SHAPES.find((each) => text.startsWith(`${each}:`));
  return { shape, rest: shape === undefined ? text : text.slice(shape.length + 1) };
}

function parseSource(text: string): SinkWords["source"] | undefined {
  if (!text.startsWith("file:")) return { kind: "literal", text };
  // As a URL has it, too: file:///etc/hook.
  const path = text.slice("file:".length).replace(/^\/\/(?=\/)/, "");
  const isPath = path.startsWith("/") && !/[\0\n]/.test(path) && !path.endsWith("/");
  return isPath ? { kind: "file", path } : undefined;
}

function isTarget(kind: SinkKind, text: string): boolean {
  if (kind === "mail") return isMailAddress(text);
  // URL takes blanks, lines and tabs away.
  const isWhole = /^https?:\/\/[^/?#\\]/i.test(text) && !/[\s\p{Cc}\\]/u.test(text);
  return isWhole && URL.canParse(text) && !text.includes("#");
}

function parseCommand(text: string): SinkParsing {
  if (text.trim() === "" || text.includes("\0")) return refuse(COMMAND_FORM);
  return { kind: "sink", words: { kind: "command", source: { kind: "literal", text } } };
}

/** `failure,recovered=./tell.sh`. */
export function parseOn(text: string): SinkParsing {
  const equals = text.indexOf("=");
  const events = equals < 0 ? undefined : parseEvents(text.slice(0, equals));
  if (events === undefined) return refuse(ON_FORM);
  const parsed = parseCommand(text.slice(equals + 1));
  return parsed.kind === "refused" ? refuse(ON_FORM) : withEvents(parsed, events);
}

export function withEvents(
  { words }: Extract<SinkParsing, { kind: "sink" }>,
  events: readonly NoticeEvent[],
): SinkParsing {
  return { kind: "sink", words: { ...words, events } };
}

/** Undefined: one of them is none, or there is none. */
export function parseEvents(text: string): readonly NoticeEvent[] | undefined {
  const events = text.split(",").map(parseNoticeEvent);
  const isWhole = events.every((event) => event !== undefined);
  return isWhole ? [...new Set(events)] : undefined;
}

/** What was given, right or wrong, without what may be a secret in it. */
export function hideSinkSecrets(text: string): string {
  const { shape, rest } = splitShape(text);
  if (rest.startsWith("file:")) return text;
  const hidesPath = shape !== undefined && shape !== "json";
  return `${shape === undefined ? "" : `${shape}:`}${hideUrlSecrets(rest, { hidesPath })}`;
}

/** Of a command, and of what stands before it. */
export function hideCommandSecrets(text: string): string {
  return maskShapes(text);
}
