/** What follows from each answer and from each end of a hook. */
import { describe, expect, test } from "bun:test";
import {
  decideReply,
  decideMailed,
  decideSent,
  LONGEST_RETRY_AFTER_MS,
  readRetryAfter,
} from "../../../src/core/delivery.ts";
import { decidePingReply, readBodyLimit, shapePing } from "../../../src/core/ping.ts";
import { limitHook } from "../../../src/core/hook-order.ts";
import type { ProbeResult } from "../../../src/core/probe-result.ts";
import { sampleNotice } from "../../support/sample-notice.ts";

const reply = { status: 200, retryAfter: null, text: "", nowMs: 0 };

test("every status there is is delivered, refused or tried again, by its class", () => {
  const kinds = Array.from({ length: 600 - 200 }, (_, index) => 200 + index).map((status) => {
    const { kind } = decideReply({ ...reply, status });
    return [status, kind] as const;
  });
  const passing = [408, 425, 429];
  for (const [status, kind] of kinds) {
    const isForGood = status >= 400 && status <= 499 && !passing.includes(status);
    expect([status, kind]).toEqual([
      status,
      status < 300 ? "delivered" : isForGood ? "refused" : "failed",
    ]);
  }
});

test("what a receiver says is kept up to a bound, in one line", () => {
  const sent = decideReply({ ...reply, status: 500, text: `a\r\n\u001b[2J${"b".repeat(5_000)}` });
  const detail = sent.kind === "failed" ? sent.detail : "";
  expect(detail).toStartWith("status 500: a [2Jbbb");
  expect(detail.length).toBeLessThan(220);
});

describe("Retry-After", () => {
  const now = Date.parse("2026-11-30T02:00:00Z");
  test.each([
    ["7", 7_000],
    ["0", 0],
    [" 0.25 ", 250],
    ["Mon, 30 Nov 2026 02:00:30 GMT", 30_000],
    ["Mon, 30 Nov 2026 01:00:00 GMT", 0],
    ["9999999999", LONGEST_RETRY_AFTER_MS],
    ["soon", undefined],
    ["-5", undefined],
    ["", undefined],
    [null, undefined],
  ])("%j is %p ms", (retryAfter, ms) => {
    expect(readRetryAfter({ retryAfter, nowMs: now })).toBe(ms as number);
  });
});

describe("the end of a hook", () => {
  const result = (because: ProbeResult["because"], detail: string): ProbeResult => ({
    isGood: because === "good",
    because,
    detail,
    stages: [],
  });
  test.each([
    ["good", "status 0", "delivered"],
    ["command-failed", "status 1, expected status 0", "refused"],
    ["command-failed", "status 75, expected status 0", "failed"],
    ["command-failed", "status 7, expected status 0; it said: status 75,", "refused"],
    ["command-failed", "signal KILL, expected status 0", "refused"],
    ["command-timeout", "the command had no end within 10 s", "refused"],
    ["command-not-started", "the command cannot be started: ENOMEM", "failed"],
  ] as const)("%s (%s) is %s", (because, detail, kind) => {
    expect(decideSent(result(because, detail), "x").kind).toBe(kind);
  });

  test.each([
    ["good", "status 0", "delivered"],
    ["command-failed", "status 1, expected status 0", "failed"],
    ["command-failed", "status 6, expected status 0", "failed"],
    ["command-failed", "status 64, expected status 0", "refused"],
    ["command-failed", "status 65, expected status 0; it said: invalid recipient", "refused"],
    ["command-failed", "status 67, expected status 0", "refused"],
    ["command-failed", "status 7, expected status 0; it said: status 67,", "failed"],
    ["command-failed", "status 75, expected status 0", "failed"],
    ["command-failed", "signal KILL, expected status 0", "failed"],
    ["command-timeout", "the command had no end within 10 s", "failed"],
    ["command-not-started", "the command cannot be started: ENOMEM", "failed"],
  ] as const)("that takes mail: %s (%s) is %s", (because, detail, kind) => {
    expect(decideMailed(result(because, detail), "x").kind).toBe(kind);
  });

  test("without an answer is tried again, and says how its helper went", () => {
    const sent = {
      kind: "failed",
      because: "hook-not-started",
      detail: "its helper died",
    } as const;
    expect(decideSent(undefined, "its helper died")).toEqual(sent);
  });
});

describe("a ping", () => {
  const url = new URL("https://hc.example.org/ping/u/");
  test.each([
    [{ event: "start" }, "/ping/u/start"],
    [{ event: "success", exit_status: 0 }, "/ping/u/0"],
    [{ event: "recovered", exit_status: 0 }, "/ping/u/0"],
    [{ event: "success", exit_status: 24 }, "/ping/u"],
    [{ event: "failure", exit_status: 255 }, "/ping/u/255"],
    [{ event: "timeout", exit_status: 124 }, "/ping/u/124"],
    [{ event: "failure", exit_status: 0 }, "/ping/u/fail"],
    [{ event: "failure", exit_status: 300 }, "/ping/u/fail"],
    [{ event: "abandoned", exit_status: null }, "/ping/u/fail"],
    [{ event: "lease_lost", exit_status: 76 }, "/ping/u/76"],
    [{ event: "stalled" }, "/ping/u/log"],
    [{ event: "overdue" }, "/ping/u/log"],
    [{ event: "failure", details: { is_test: true } }, "/ping/u/log"],
  ] as const)("of %j goes to %s", (changes, path) => {
    expect(new URL(shapePing(url, sampleNotice(changes)).url).pathname).toBe(path);
  });

  test("names the run only by an id that the service takes", () => {
    expect(shapePing(url, sampleNotice({ run_id: "no-uuid" })).url).not.toContain("rid");
    const given = new URL("https://h/p?rid=own");
    expect(new URL(shapePing(given, sampleNotice()).url).search).toBe("?rid=own");
  });

  test("without output says what has happened", () => {
    const { body } = shapePing(url, sampleNotice({ log_tail: null }));
    expect(body).toStartWith("nightly ended with status 3\n");
  });

  test("is cut at a line, and never in a letter", () => {
    for (let limit = 0; limit < 40; limit += 1) {
      const { body } = shapePing(url, sampleNotice({ log_tail: "aé\n😀é😀\nlast é\n" }), limit);
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(limit);
      expect(body).not.toContain("\ufffd");
      expect("aé\n😀é😀\nlast é\n".endsWith(body)).toBe(true);
    }
  });

  test("says nothing of a start but that it is one, and never more than some limit", () => {
    expect(shapePing(url, sampleNotice({ event: "start" })).body).toBe("");
    const { body } = shapePing(url, sampleNotice({ log_tail: "x\n".repeat(200_000) }), 10 ** 9);
    expect(body).toHaveLength(100_000);
  });

  test("hears a limit only from a number", () => {
    expect(["100", "0", " 7 ", "-1", "1e3", "", null, "99999999999"].map(readBodyLimit)).toEqual([
      100,
      0,
      7,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(readBodyLimit("999999999")).toBe(100_000);
  });

  test("that was not taken with 200 is not taken for delivered", () => {
    expect(decidePingReply({ ...reply, text: "OK" }).kind).toBe("delivered");
    expect(decidePingReply({ ...reply, text: "OK (not found)" }).kind).toBe("refused");
    expect(decidePingReply({ ...reply, text: "OK (rate limited)" }).kind).toBe("failed");
    expect(decidePingReply({ ...reply, status: 404, text: "not found" }).kind).toBe("refused");
  });
});

test("a hook has its limit, or what its grace leaves of the time there is, or is not begun", () => {
  const limits = [60_000, 10_000, 9_999, 4_900, 2_000, 1_999, 0].map(limitHook);
  expect(limits).toEqual([10_000, 10_000, 8_499, 3_400, 500, undefined, undefined]);
});
