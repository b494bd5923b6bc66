/** Which answer is a good one, and what is said of one that is not. */
import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { DEFAULT_HTTP, type HttpDetails } from "../../../src/core/probe-settings.ts";
import type { Answer } from "../../../src/probe/answer-reader.ts";
import { judgeAnswer } from "../../../src/probe/judge.ts";

function answer(
  body: string | Uint8Array,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return { status, headers: new Map(Object.entries(headers)), body: bytes };
}

function judge(given: Answer, http: Partial<HttpDetails> = {}): string {
  const { because, detail } = judgeAnswer(given, { ...DEFAULT_HTTP, ...http });
  return `${because}: ${detail}`;
}

describe("the status", () => {
  test("is a good one from 200 to 299, if nothing else is said", () => {
    expect(judge(answer("", 200))).toBe("good: status 200");
    expect(judge(answer("", 299))).toBe("good: status 299");
    expect(judge(answer("", 199))).toBe("status: status 199, expected 200-299");
    expect(judge(answer("", 300))).toBe("status: status 300, expected 200-299");
    expect(judge(answer("", 500))).toBe("status: status 500, expected 200-299");
  });

  test("is the one that is expected, also where that is no success", () => {
    const expectStatus = [
      { from: 401, to: 401 },
      { from: 500, to: 503 },
    ];
    expect(judge(answer("", 401), { expectStatus })).toStartWith("good");
    expect(judge(answer("", 200), { expectStatus })).toBe(
      "status: status 200, expected 401,500-503",
    );
  });

  test("of a redirect is told with its target, and is no success", () => {
    const location = "http://u:secret@b.test/login?token=secret";
    const redirect = answer("", 302, { location });
    expect(judge(redirect)).toBe(
      'redirect: status 302, redirect to "http://b.test/login", expected 200-299',
    );
    expect(judge(redirect, { expectStatus: [{ from: 302, to: 302 }] })).toStartWith("good");
  });

  test("comes before the body", () => {
    expect(judge(answer("ok", 500), { expectBody: "ok" })).toStartWith("status");
  });
});

describe("the body", () => {
  test("must match where an expression is given", () => {
    const body = answer('{"status":false}\n');
    expect(judge(body, { expectBody: '"status":false' })).toStartWith("good");
    expect(judge(body, { expectBody: '"status":true' })).toBe(
      'body-mismatch: the body "{"status":false}\\n" does not match /"status":true/',
    );
  });

  test("is quoted in printable characters, and not all of it", () => {
    const shown = judge(answer(`\x1b[2J${"x".repeat(500)}`), { expectBody: "y" });
    expect(shown).toContain("\\x1b[2Jxxx");
    expect(shown.length).toBeLessThan(250);
  });

  test("is announced before the expression is tried, and only then", () => {
    const announced: string[] = [];
    const http = { ...DEFAULT_HTTP, expectBody: "a" };
    judgeAnswer(answer("a"), http, (source) => announced.push(source));
    expect(announced).toEqual(["a"]);
    judgeAnswer(answer("a"), DEFAULT_HTTP, (source) => announced.push(source));
    judgeAnswer(answer("a", 500), http, (source) => announced.push(source));
    expect(announced).toEqual(["a"]);
  });

  test("cannot be compared with what is no expression", () => {
    expect(judge(answer("("), { expectBody: "(" })).toStartWith("unusable-settings");
  });
});

describe("JSON", () => {
  const document = answer('{"a":{"b":[true,"x"]},"n":1}');
  const wants = (path: string, value: string) => ({ expectJson: [{ path, value }] });

  test("must hold every value that is expected", () => {
    expect(judge(document, wants("a.b[0]", "true"))).toStartWith("good");
    const both = [...wants("a.b[1]", "x").expectJson, ...wants("n", "2").expectJson];
    expect(judge(document, { expectJson: both })).toBe("json-mismatch: n is 1, expected 2");
    expect(judge(document, wants("a.c", "1"))).toBe("json-mismatch: a.c is nothing, expected 1");
  });

  test("must be JSON", () => {
    expect(judge(answer("<html>"), wants("a", "1"))).toBe(
      'json-mismatch: the body "<html>" is no JSON',
    );
    expect(judge(answer("["), wants("a", "1"))).toStartWith("json-mismatch");
  });

  test("is looked for along paths only", () => {
    expect(judge(document, wants("a..b", "1"))).toStartWith("unusable-settings");
  });
});

describe("a body with a content coding", () => {
  const http = { expectBody: "^hello$" };

  test.each([
    ["gzip", gzipSync("hello")],
    ["deflate", deflateSync("hello")],
    ["br", brotliCompressSync("hello")],
  ])("%s is looked at without it", (coding, body) => {
    expect(judge(answer(body, 200, { "content-encoding": coding }), http)).toStartWith("good");
  });

  test("that grows beyond the limit is too long", () => {
    for (const [coding, compress] of [
      ["gzip", gzipSync],
      ["br", brotliCompressSync],
    ] as const) {
      const bomb = answer(compress(Buffer.alloc(100_000)), 200, { "content-encoding": coding });
      expect(judge(bomb, { ...http, maxBytes: 99_999 })).toStartWith("too-long");
      expect(judge(bomb, { ...http, maxBytes: 100_000 })).toStartWith("body-mismatch");
    }
  });

  test("is left alone where nobody wants to see the body", () => {
    const broken = answer("no gzip", 200, { "content-encoding": "gzip" });
    expect(judge(broken)).toStartWith("good");
    expect(judge(broken, http)).toStartWith("malformed");
    const unknown = answer("x", 200, { "content-encoding": "zstd" });
    expect(judge(unknown, http)).toStartWith("malformed");
  });
});
