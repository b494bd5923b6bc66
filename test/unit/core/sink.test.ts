/** What a sink is called, who hears what, and what of it may stand in a file. */
import { describe, expect, test } from "bun:test";
import { makeMask } from "../../../src/core/masking.ts";
import { NOTICE_EVENTS, type NoticeEvent } from "../../../src/core/notice.ts";
import {
  makeSink,
  mergeSinks,
  shapeOfUrl,
  type SinkSpec,
  type SinkWords,
  storableSink,
  wantsEvent,
} from "../../../src/core/sink.ts";
import { hideSinkSecrets, parseOn, parseSinkTarget } from "../../../src/core/sink-words.ts";

function sink(text: string, words: Partial<SinkWords> = {}): SinkSpec {
  return makeSink({ kind: "webhook", source: { kind: "literal", text }, ...words });
}

const asItIs = (text: string): string => text;

describe("the id of a sink", () => {
  test("is that of its target, wherever it stands", () => {
    const text = "https://example.org/hook";
    const ofVariable = makeSink({
      kind: "webhook",
      source: { kind: "variable", name: "WATCHDOG_WEBHOOK" },
      value: text,
    });
    expect(ofVariable.id).toBe(sink(text).id);
    expect(sink(text, { events: ["start"] }).id).toBe(sink(text).id);
    expect(sink(text, { shape: "json" }).id).toBe(sink(text).id);
  });

  test("is another one for another target, kind or shape", () => {
    const ids = [
      sink("https://example.org/a"),
      sink("https://example.org/b"),
      sink("https://example.org/a", { kind: "ping" }),
      sink("https://example.org/a", { shape: "ntfy" }),
      sink("https://example.org/a", { kind: "command" }),
      makeSink({ kind: "webhook", source: { kind: "file", path: "/a" } }),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("holds no password, so that a short one cannot be found by trying", () => {
    expect(sink("https://u:one@h/x").id).toBe(sink("https://u:two@h/x").id);
    expect(sink("https://u:one@h/x").id).not.toBe(sink("https://v:one@h/x").id);
  });
});

describe("a sink is shown and stored without its secret", () => {
  test.each([
    ["http://127.0.0.1:18484/h", "http://127.0.0.1:18484/h", true],
    ["https://example.org/nightly-backup/v1", "https://example.org/nightly-backup/v1", true],
    ["https://u:p@h/x", "https://***@h/x", false],
    ["https://u:p@ss/w@h/x", "https://***@h/x", false],
    ["https://h/x#a-fragment", "https://h/x#***", false],
    ["no address with a t0ken", "***", false],
    ["https://h/x?token=abc", "https://h/x?token=***", false],
    ["https://h/x?a=b", "https://h/x?a=***", false],
    ["https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com/***", false],
    ["https://discord.com/api/webhooks/1/x", "https://discord.com/***", false],
    ["https://ntfy.sh/alerts", "https://ntfy.sh/***", false],
    ["https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278", "https://hc-ping.com/***", false],
    ["https://h/a/b7f3c2d4e5f60718293a", "https://h/a/***", false],
  ])("%s", (text, shown, isOpen) => {
    const stored = storableSink(sink(text), asItIs);
    expect(stored.shown).toBe(`webhook ${shown}`);
    const source = isOpen ? { kind: "literal", text } : { kind: "hidden" };
    expect(stored.source as unknown).toEqual(source);
    if (!isOpen) expect(JSON.stringify(stored)).not.toContain(text);
  });

  test("where a mask would change something in a command", () => {
    const { text: mask } = makeMask();
    const open = sink("./tell.sh now", { kind: "command" });
    expect(storableSink(open, mask).source).toEqual(open.source);
    const closed = sink("curl -H 'X-Api-Key: k12345' h", { kind: "command" });
    expect(storableSink(closed, mask)).toMatchObject({
      source: { kind: "hidden" },
      shown: "command curl …",
    });
    const uuid = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278";
    for (const text of [`curl https://hc-ping.com/${uuid}/fail`, "./tell 9f8e7d6c5b4a39281706"]) {
      expect(storableSink(sink(text, { kind: "command" }), mask).source.kind).toBe("hidden");
    }
    for (const text of [
      "/usr/local/bin/tell-the-operators --to ops",
      "systemctl restart a.service",
    ]) {
      expect(storableSink(sink(text, { kind: "command" }), mask).source.kind).toBe("literal");
    }
  });

  test("a file and a variable are named", () => {
    const file = makeSink({ kind: "webhook", source: { kind: "file", path: "/etc/hook" } });
    expect(storableSink(file, asItIs)).toEqual(file);
    expect(file.shown).toBe("webhook file:/etc/hook");
  });
});

test("the shape is told by the host, and by nothing that only looks like it", () => {
  const shapes = [
    "https://hooks.slack.com/services/T/B/x",
    "https://discord.com/api/webhooks/1/x",
    "https://canary.discord.com/api/v10/webhooks/1/x",
    "https://ntfy.sh/a",
    "https://hooks.slack.com.evil.org/x",
    "https://discord.com/channels/1",
    "https://example.org/hooks.slack.com",
    "nonsense",
  ].map(shapeOfUrl);
  const json = ["json", "json", "json", "json"] as const;
  expect(shapes).toEqual(["slack", "discord", "discord", "ntfy", ...json]);
});

describe("who hears what", () => {
  const heard = (words: Partial<SinkWords>): NoticeEvent[] =>
    NOTICE_EVENTS.filter((event) => wantsEvent(sink("https://h/x", words), event));

  test("by default what a person should know of", () => {
    expect(heard({})).toEqual([
      "failure",
      "recovered",
      "stalled",
      "lease_lost",
      "lock_restored",
      "circuit_open",
      "circuit_closed",
      "timeout",
      "abandoned",
      "overdue",
    ]);
  });

  test("failure covers every bad ending, and nothing else", () => {
    expect(heard({ events: ["failure"] })).toEqual([
      "failure",
      "lease_lost",
      "timeout",
      "abandoned",
    ]);
    expect(heard({ events: ["timeout"] })).toEqual(["timeout"]);
  });

  test("a ping hears each start and each end, whatever it names", () => {
    const ends = ["start", "success", "failure", "recovered", "lease_lost", "timeout", "abandoned"];
    expect(heard({ kind: "ping", events: ["overdue"] })).toEqual([...ends, "overdue"] as never);
  });
});

test("of two that name one target the one sink hears both", () => {
  const [one, ...more] = mergeSinks([
    sink("https://h/x", { events: ["start"] }),
    sink("https://h/x", { events: ["failure", "start"] }),
  ]);
  expect([one?.events, more]).toEqual([["start", "failure"], []]);
  expect(mergeSinks([sink("https://h/x"), sink("https://h/x")])[0]?.events).toBe("default");
  expect(mergeSinks([sink("https://h/x"), sink("https://h/y")])).toHaveLength(2);
});

describe("words", () => {
  test.each([
    ["webhook", "https://h/x", true],
    ["webhook", "slack:https://h/x", true],
    ["webhook", "json:file:/etc/hook", true],
    ["webhook", "file:///etc/hook", true],
    ["webhook", "file:relative", false],
    ["webhook", "file:/dir/", false],
    ["webhook", "ftp://h/x", false],
    ["webhook", "https://h/x#part", false],
    ["webhook", "https://h/a b", false],
    ["webhook", "https:h", false],
    ["webhook", "teams:https://h", false],
    ["webhook", "", false],
    ["ping", "http://h/ping/x", true],
    ["ping", "slack:https://h", false],
    ["mail", "root", true],
    ["mail", "file:/etc/who", true],
    ["mail", "-x", false],
    ["command", "true", true],
    ["command", " ", false],
    ["command", "a\0b", false],
  ] as const)("%s %j are right: %p", (kind, text, isRight) => {
    expect(parseSinkTarget(kind, text).kind === "sink").toBe(isRight);
  });

  test("of --on are events and a command", () => {
    expect(parseOn("failure,lock-restored=./a.sh x=y")).toEqual({
      kind: "sink",
      words: {
        kind: "command",
        source: { kind: "literal", text: "./a.sh x=y" },
        events: ["failure", "lock_restored"],
      },
    });
    for (const text of ["failure", "failure=", "=x", "nightly=x", "failure,=x", ""]) {
      expect([text, parseOn(text).kind]).toEqual([text, "refused"]);
    }
  });

  test("are shown without secrets, also where they are wrong", () => {
    expect(hideSinkSecrets("slack:https://h/secret")).toBe("slack:https://h/***");
    expect(hideSinkSecrets("tok_secret")).toBe("***");
    expect(hideSinkSecrets("file:/etc/hook")).toBe("file:/etc/hook");
    expect(hideSinkSecrets("https://h/x")).toBe("https://h/x");
  });
});
