/** What is posted to each service, against what it documents; a job's text stays text. */
import { describe, expect, test } from "bun:test";
import type { Notice } from "../../../src/core/notice.ts";
import { shapeWebhook } from "../../../src/core/webhook-shapes.ts";
import type { WebhookShape } from "../../../src/core/sink.ts";
import { sampleNotice } from "../../support/sample-notice.ts";

/** Whatever was posted: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

function bodyOf(shape: WebhookShape, changes: Partial<Notice> = {}): Parsed {
  const url = new URL("https://example.org/topic");
  return JSON.parse(shapeWebhook(url, shape, sampleNotice(changes))?.body ?? "null");
}

/** What a hostile job prints, and is called. */
const HOSTILE =
  "@everyone @here <!channel> <@U123> <http://evil/|click> [click](http://evil/) ``` " +
  "*b* _i_ ~s~\n" +
  "\u001b[31m\u202e &amp; <b>";
const LONG = `${"é😀x".repeat(20_000)}\nend`;

describe("Slack", () => {
  test("gets a text, a header, the facts and the output", () => {
    const body = bodyOf("slack");
    expect(Object.keys(body)).toEqual(["text", "blocks", "unfurl_links", "unfurl_media"]);
    expect(body.text).toContain("nightly: failure on host1\nnightly ended with status 3");
    expect(body.blocks.map((block: Parsed) => block.type)).toEqual([
      "header",
      "section",
      "rich_text",
    ]);
    expect(body.blocks[0].text).toEqual({
      type: "plain_text",
      text: "nightly: failure on host1",
      emoji: false,
    });
    const [preformatted] = body.blocks[2].elements;
    expect(preformatted).toEqual({
      type: "rich_text_preformatted",
      elements: [{ type: "text", text: "first line\nlast line" }],
    });
  });

  test("makes nothing of what a job says", () => {
    const body = bodyOf("slack", { job: HOSTILE, summary: HOSTILE, log_tail: HOSTILE });
    expect(body.text).not.toMatch(/<|>|&(?!amp;|lt;|gt;)/);
    for (const { text } of body.blocks.slice(0, 2)) expect(text.type).toBe("plain_text");
    expect(JSON.stringify(body)).not.toContain("mrkdwn");
    expect(JSON.stringify(body)).not.toMatch(/\\u001b|\u202e/);
  });

  test("is kept within what it takes", () => {
    const body = bodyOf("slack", { job: LONG, summary: LONG, log_tail: LONG });
    expect(body.blocks[0].text.text.length).toBeLessThanOrEqual(150);
    expect(body.blocks[1].text.text.length).toBeLessThanOrEqual(3_000);
    expect(JSON.stringify(body).length).toBeLessThan(13_000);
    expect(JSON.stringify(body).isWellFormed()).toBe(true);
    expect(body.blocks[2].elements[0].elements[0].text).toEndWith("\nend");
  });

  test("of a run without output gets no empty block", () => {
    expect(bodyOf("slack", { log_tail: null }).blocks).toHaveLength(2);
    expect(bodyOf("slack", { log_tail: "\n" }).blocks).toHaveLength(2);
  });
});

describe("Discord", () => {
  test("gets a content that mentions nobody", () => {
    const body = bodyOf("discord", { job: HOSTILE, summary: HOSTILE, log_tail: HOSTILE });
    expect(body.allowed_mentions).toEqual({ parse: [] });
    expect(body.flags).toBe(4);
    // All but the title stands between two fences, and nothing in it closes them.
    expect(body.content.split("```")).toHaveLength(3);
    expect(body.content).toEndWith("\n```");
    const [title] = body.content.split("\n");
    expect(title).not.toMatch(/(?<!\\)[<>[\]()@:_`~]/);
    expect(title.replace(/^\*\*|\*\*$/g, "")).not.toMatch(/(?<!\\)\*/);
  });

  test("is kept within 2,000 characters, with the end of the output", () => {
    for (const summary of ["short", LONG]) {
      const { content } = bodyOf("discord", { job: LONG, summary, log_tail: LONG });
      expect(content.length).toBeLessThanOrEqual(2_000);
      expect(content).toEndWith("\nend\n```");
      expect(content.isWellFormed()).toBe(true);
    }
    const fences = bodyOf("discord", { log_tail: "```".repeat(1_000) });
    expect(fences.content.length).toBeLessThanOrEqual(2_000);
    expect(fences.content.split("```")).toHaveLength(3);
  });
});

describe("ntfy", () => {
  test("gets topic, title, message, priority and tag", () => {
    expect(bodyOf("ntfy")).toEqual({
      topic: "topic",
      title: "nightly: failure on host1",
      message: expect.stringContaining("nightly ended with status 3"),
      priority: 4,
      tags: ["rotating_light"],
    });
    expect(bodyOf("ntfy", { event: "recovered" })).toMatchObject({
      priority: 3,
      tags: ["white_check_mark"],
    });
  });

  test("is kept below what would become an attachment", () => {
    const { message, title } = bodyOf("ntfy", { job: LONG, summary: LONG, log_tail: LONG });
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4_096);
    expect(Buffer.byteLength(title)).toBeLessThanOrEqual(250);
    expect(message).toEndWith("end");
  });

  test("is kept below it also where the facts are of long letters, and the output is short", () => {
    const facts = { summary: "ü".repeat(850) };
    for (let length = 2_400; length < 2_500; length += 1) {
      const { message } = bodyOf("ntfy", { ...facts, log_tail: "x".repeat(length) });
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4_096);
    }
  });

  test.each([
    ["https://ntfy.sh/alerts", "https://ntfy.sh/", "alerts"],
    ["https://ntfy.sh/alerts/", "https://ntfy.sh/", "alerts"],
    ["https://h/ntfy/my_topic?auth=x", "https://h/ntfy/?auth=x", "my_topic"],
  ])("of %s is posted to %s", (address, root, topic) => {
    const post = shapeWebhook(new URL(address), "ntfy", sampleNotice());
    expect(post?.url).toBe(root);
    expect(JSON.parse(post?.body ?? "").topic).toBe(topic);
  });

  test("without a topic is no address", () => {
    expect(shapeWebhook(new URL("https://ntfy.sh/"), "ntfy", sampleNotice())).toBeUndefined();
  });
});

test("no service gets half a letter, wherever a text is cut", () => {
  for (const shape of ["slack", "discord", "ntfy"] as const) {
    for (const before of ["", "x", "xx", "xxx"]) {
      const text = before + "😀".repeat(10_000);
      const body = shapeWebhook(
        new URL("https://example.org/topic"),
        shape,
        sampleNotice({ job: text, summary: text, log_tail: text }),
      )?.body;
      // JSON writes a lone half as an escape.
      expect(body).not.toMatch(/\\u[dD][89a-fA-F]/);
      expect(body?.isWellFormed()).toBe(true);
    }
  }
});

test("generic JSON is the notice as it is, with its format", () => {
  expect(bodyOf("json", { log_tail: HOSTILE })).toEqual({
    format: 1,
    ...sampleNotice({ log_tail: HOSTILE }),
  });
});
