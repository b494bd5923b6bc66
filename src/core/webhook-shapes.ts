/**
 * What is posted to a webhook: the notice as JSON, or in the form that a chat service takes. Pure.
 *
 * Always: within the limits that each service documents; whatever comes from a job (its output, its
 * name, a reason) is shown as it is and stays text there: it mentions nobody, makes no link and
 * closes no block.
 *
 * - Slack, incoming webhooks: `text` and `blocks`
 *   (docs.slack.dev/messaging/sending-messages-using-incoming-webhooks); `&`, `<` and `>` are
 *   escaped (docs.slack.dev/messaging/formatting-message-text); a header holds 150 characters, a
 *   section 3,000 (docs.slack.dev/reference/block-kit/blocks).
 * - Discord, execute webhook: `content` up to 2,000 characters, `allowed_mentions`, `flags`
 *   (docs.discord.com/developers/resources/webhook).
 * - ntfy, publish as JSON to the root of the server: `topic`, `title`, `message`, `priority` 1 to
 *   5, `tags`; a message longer than 4,096 bytes becomes an attachment (docs.ntfy.sh/publish).
 */
import { factsOf, renderNotice, tailOf, titleOf, type Urgency, urgencyOf } from "./notice-text.ts";
import type { Notice } from "./notice.ts";
import { unprintable } from "./printable.ts";
import type { WebhookShape } from "./sink.ts";

export interface WebhookPost {
  /** Where it goes: for ntfy the root of the server, else as it was given. */
  readonly url: string;
  readonly contentType: string;
  readonly body: string;
}

/** @param url  of the sink; undefined as a result: it is no address of such a service */
export function shapeWebhook(
  url: URL,
  shape: WebhookShape,
  notice: Notice,
): WebhookPost | undefined {
  const post = (body: unknown, to = url.href): WebhookPost => ({
    url: to,
    contentType: "application/json",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  switch (shape) {
    case "json":
      return post(renderNotice(notice));
    case "slack":
      return post(shapeSlack(notice));
    case "discord":
      return post(shapeDiscord(notice));
    case "ntfy": {
      const place = splitTopic(url);
      return place && post(shapeNtfy(place.topic, notice), place.root);
    }
  }
}

const SLACK_HEADER = 150;
const SLACK_SECTION = 3_000;
/** All blocks together: more than some 13,000 characters are refused (slackapi/bolt-js#2509). */
const SLACK_OUTPUT = 6_000;

function shapeSlack(notice: Notice): unknown {
  const title = titleOf(notice);
  const facts = factsOf(notice).join("\n");
  const output = outputOf(notice, SLACK_OUTPUT);
  return {
    // What a phone shows, and what a reader without blocks hears.
    text: escapeSlack(cut(`${title}\n${facts}`, SLACK_SECTION / 2)),
    blocks: [
      {
        type: "header",
        text: { type: "plain_text", text: cut(title, SLACK_HEADER), emoji: false },
      },
      {
        type: "section",
        text: { type: "plain_text", text: cut(facts, SLACK_SECTION), emoji: false },
      },
      ...(output === "" ? [] : [preformat(output)]),
    ],
    unfurl_links: false,
    unfurl_media: false,
  };
}

/** Its text is never read as markup, so that it needs no escapes. */
function preformat(text: string): unknown {
  return {
    type: "rich_text",
    elements: [{ type: "rich_text_preformatted", elements: [{ type: "text", text }] }],
  };
}

function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const DISCORD_CONTENT = 2_000;
/** SUPPRESS_EMBEDS of the message flags. */
const DISCORD_FLAGS = 4;
const FENCE = "```";

/** All but the title stands in a block of code, where neither links nor mentions are made. */
function shapeDiscord(notice: Notice): unknown {
  const title = `**${escapeMarkdown(cut(titleOf(notice), 200))}**\n`;
  const room = DISCORD_CONTENT - title.length - 2 * (FENCE.length + 1);
  const facts = cut(unfence(factsOf(notice).join("\n")), room / 2);
  const output = unfence(outputOf(notice, room));
  const left = room - facts.length - 2;
  const text = output === "" ? facts : `${facts}\n\n${tailOfLetters(output, left)}`;
  return {
    content: `${title}${FENCE}\n${text}\n${FENCE}`,
    allowed_mentions: { parse: [] },
    flags: DISCORD_FLAGS,
  };
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\*_~`|<>()[\]#@:/-]/g, "\\$&");
}

/** A zero-width space behind each backtick, so that no three of them close the block. */
function unfence(text: string): string {
  return text.replaceAll("`", "`\u200b");
}

const NTFY_MESSAGE_BYTES = 4_096;
const NTFY_TITLE_BYTES = 250;
const NTFY_LOOKS: Readonly<Record<Urgency, { readonly priority: number; readonly tag: string }>> = {
  good: { priority: 3, tag: "white_check_mark" },
  news: { priority: 2, tag: "information_source" },
  trouble: { priority: 4, tag: "warning" },
  bad: { priority: 4, tag: "rotating_light" },
};

function shapeNtfy(topic: string, notice: Notice): unknown {
  const facts = tailOf(factsOf(notice).join("\n"), NTFY_MESSAGE_BYTES / 2);
  const room = NTFY_MESSAGE_BYTES - new TextEncoder().encode(facts).length - 2;
  const output = tailOf(outputOf(notice, room), room);
  const { priority, tag } = NTFY_LOOKS[urgencyOf(notice)];
  return {
    topic,
    title: tailOf(titleOf(notice), NTFY_TITLE_BYTES),
    message: output === "" ? facts : `${facts}\n\n${output}`,
    priority,
    tags: [tag],
  };
}

/** `https://ntfy.sh/mytopic`: the topic is the last part of the path. */
function splitTopic(url: URL): { readonly topic: string; readonly root: string } | undefined {
  const [, before = "", topic] = /^(.*\/)([A-Za-z0-9_-]{1,64})\/?$/.exec(url.pathname) ?? [];
  if (topic === undefined) return undefined;
  const root = new URL(url.href);
  root.pathname = before;
  return { topic, root: root.href };
}

/** The end of the output in printable characters, lines kept. */
function outputOf({ log_tail: tail }: Notice, most: number): string {
  if (tail === null) return "";
  const plain = tail.replace(/[^\n]+/g, (line) => line.replace(unprintable(), "")).trimEnd();
  return tailOfLetters(plain, most);
}

/** At most so many UTF-16 units, from the end, no letter in two. */
function tailOfLetters(text: string, most: number): string {
  if (text.length <= most) return text;
  return text.slice(text.length - most).replace(/^[\udc00-\udfff]/, "");
}

/** At most so many UTF-16 units, from the beginning, no letter in two. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, Math.floor(most) - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
