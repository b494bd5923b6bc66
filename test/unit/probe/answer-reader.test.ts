/** Reading an answer from its bytes: framing, limits, and whatever the pieces are. */
import { describe, expect, test } from "bun:test";
import { array, assert, constantFrom, nat, oneof, property, string } from "fast-check";
import {
  AnswerReader,
  LARGEST_HEAD_BYTES,
  type ReaderState,
} from "../../../src/probe/answer-reader.ts";

interface Read {
  readonly state: ReaderState["kind"];
  readonly status: number | undefined;
  readonly body: string;
}

function read(
  pieces: readonly string[],
  options: { isHead?: boolean; maxBytes?: number; closes?: boolean } = {},
): Read {
  const { isHead = false, maxBytes = 10_000, closes = false } = options;
  const reader = new AnswerReader({ isHead, maxBytes });
  let state: ReaderState = { kind: "in-head" };
  for (const piece of pieces) state = reader.push(Buffer.from(piece, "latin1"));
  if (closes) state = reader.end();
  const body = state.kind === "ended" ? Buffer.from(reader.answer.body).toString("latin1") : "";
  return { state: state.kind, status: reader.head?.status, body };
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

describe("the end of an answer", () => {
  test("is where its length says", () => {
    expect(read([`${HEAD}Content-Length: 2\r\n\r\nokay`])).toEqual({
      state: "ended",
      status: 200,
      body: "ok",
    });
    expect(read([`${HEAD}Content-Length: 5\r\n\r\nokay`]).state).toBe("in-body");
    expect(read([`${HEAD}Content-Length: 0\r\n\r\n`]).state).toBe("ended");
  });

  test("is not the end of the connection where a length was promised", () => {
    expect(read([`${HEAD}Content-Length: 5\r\n\r\nok`], { closes: true }).state).toBe("in-body");
    expect(read([HEAD], { closes: true }).state).toBe("in-head");
    expect(read([`${CHUNKED}2\r\nok\r\n`], { closes: true }).state).toBe("in-body");
  });

  test("is the end of the connection where nothing else is said", () => {
    expect(read([`${HEAD}\r\nok`]).state).toBe("in-body");
    expect(read([`${HEAD}\r\nok`], { closes: true })).toMatchObject({ state: "ended", body: "ok" });
  });

  test("is the last chunk, behind its trailers", () => {
    const whole = `${CHUNKED}2;a=b\r\nok\r\n3\r\n, 1\r\n0\r\nX: y\r\n\r\n`;
    expect(read([whole])).toEqual({ state: "ended", status: 200, body: "ok, 1" });
    expect(read([whole.slice(0, -1)]).state).toBe("in-body");
  });

  test.each(["HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", "HTTP/1.0 304 x\r\n\r\n"])(
    "is the head where there can be no body: %j",
    (text) => {
      expect(read([text]).state).toBe("ended");
    },
  );

  test("is the head where only that was asked for", () => {
    const text = `${HEAD}Content-Length: 9\r\n\r\n`;
    expect(read([text], { isHead: true }).state).toBe("ended");
    expect(read([text]).state).toBe("in-body");
  });

  test("does not come with an interim answer", () => {
    const interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    expect(read([interim]).state).toBe("in-head");
    expect(read([`${interim}HTTP/1.1 503 x\r\nContent-Length: 1\r\n\r\n!`])).toEqual({
      state: "ended",
      status: 503,
      body: "!",
    });
  });
});

test.each([
  ["something else that listens", "SSH-2.0-OpenSSH_9.2\r\n"],
  ["TLS", "\x15\x03\x01\x00\x02\x02\x16"],
  ["no status", "HTTP/1.1 OK\r\n\r\n"],
  ["HTTP/2", "HTTP/2 200\r\n\r\n"],
  ["a status that is none", "HTTP/1.1 000 x\r\n\r\n"],
  ["a line that is no header", `${HEAD}what is this\r\n\r\n`],
  ["a name with a blank behind it", `${HEAD}Content-Length : 2\r\n\r\nok`],
  ["two lengths", `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!`],
  ["a length that is no number", `${HEAD}Content-Length: -2\r\n\r\nok`],
  ["a chunk without a size", `${CHUNKED}\r\nok\r\n`],
  ["a chunk that is longer than its size", `${CHUNKED}1\r\nok\r\n0\r\n\r\n`],
  ["a size beyond all sense", `${CHUNKED}fffffffffffffffffff\r\n`],
  ["a size without an end", `${CHUNKED}1;${"x".repeat(5000)}`],
  ["trailers without an end", `${CHUNKED}0\r\n${`A: ${"x".repeat(1000)}\r\n`.repeat(70)}`],
  ["a transfer coding that was not asked for", `${HEAD}Transfer-Encoding: gzip\r\n\r\n`],
])("%s is malformed", (_, text) => {
  expect(read([text], { maxBytes: 1e9 }).state).toBe("malformed");
});

test("the same length twice is one length", () => {
  const text = `${HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`;
  expect(read([text])).toMatchObject({ state: "ended", body: "ok" });
});

describe("too long", () => {
  const whole = `${HEAD}Content-Length: 20\r\n\r\n${"x".repeat(20)}`;

  test.each([
    ["of a length", whole],
    ["in chunks", `${CHUNKED}f;a=b\r\n${"x".repeat(15)}\r\n5\r\n${"x".repeat(5)}\r\n0\r\n\r\n`],
    ["until the end", `${HEAD}\r\n${"x".repeat(20)}`],
  ])("is a body with more bytes than the limit, and not one with as many: %s", (_, text) => {
    for (const pieces of [[text], [...text]]) {
      expect(read(pieces, { maxBytes: 20, closes: true }).state).toBe("ended");
      expect(read(pieces, { maxBytes: 19, closes: true }).state).toBe("too-long");
    }
  });

  test("is not what follows an answer that is complete", () => {
    expect(read([whole + "x".repeat(100)], { maxBytes: 20 }).state).toBe("ended");
  });

  test("is a body as soon as its length is known", () => {
    expect(read([`${HEAD}Content-Length: 20000\r\n\r\n`]).state).toBe("too-long");
    expect(read([`${HEAD}Content-Length: 9000\r\n\r\n`]).state).toBe("in-body");
  });

  test("is a head beyond its own limit, with an end or without one, in whatever pieces", () => {
    const header = `A: ${"x".repeat(997)}\r\n`;
    const long = HEAD + header.repeat(1 + LARGEST_HEAD_BYTES / header.length);
    const interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(LARGEST_HEAD_BYTES / 25);
    for (const text of [long, `${long}\r\n`, interim + long.slice(0, 100)]) {
      const pieces = text.match(/[^]{1,1000}/g) ?? [];
      expect(read([text], { maxBytes: 1e9 }).state).toBe("too-long");
      expect(read(pieces, { maxBytes: 1e9 }).state).toBe("too-long");
    }
    expect(read([HEAD + header], { maxBytes: 1e9 }).state).toBe("in-head");
    expect(read([HEAD + header.repeat(60)], { maxBytes: 1 }).state).toBe("in-head");
  });

  test("is what stands between chunks, where it is longer than any body may be", () => {
    const most = 1_000;
    const chunk = `1;${"x".repeat(3_000)}\r\na\r\n`;
    expect(read([CHUNKED + chunk.repeat(20)], { maxBytes: most }).state).toBe("in-body");
    expect(read([CHUNKED + chunk.repeat(30)], { maxBytes: most }).state).toBe("too-long");
  });

  test("stays so, whatever comes", () => {
    expect(read([whole, whole, whole], { maxBytes: 19 }).state).toBe("too-long");
  });
});

describe("the pieces in which an answer comes", () => {
  const answers = [
    `${HEAD}Content-Length: 5\r\nX: y\r\n\r\nhello`,
    `${CHUNKED}2\r\nok\r\n3\r\n, 1\r\n0\r\n\r\n`,
    `HTTP/1.1 100 C\r\n\r\n${HEAD}\nX: y\n\n`,
    `HTTP/1.0 200 OK\nContent-Length: 2\n\nok`,
    `HTTP/1.1 200 OK\nContent-Length: 2\n\r\nok`,
    `HTTP/1.1 200 OK\nContent-Length: 6\r\n\no\r\n\r\nk`,
  ];

  test.each(answers)("do not matter: %j", (text) => {
    const options = { closes: true };
    const whole = read([text], options);
    expect(whole.state).toBe("ended");
    expect(read([...text], options)).toEqual(whole);
    assert(
      property(array(nat(text.length)), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
        expect(read(pieces, options)).toEqual(whole);
      }),
    );
  });

  test("may be anything: it is an answer, too long, or malformed, and nothing throws", () => {
    const tokens = [
      ...answers,
      HEAD,
      CHUNKED,
      "\r\n",
      "\n\n",
      "0\r\n\r\n",
      "5\r\n",
      "\0",
      "HTTP/1",
    ];
    assert(
      property(array(oneof(constantFrom(...tokens), string())), (pieces) => {
        read(pieces, { closes: true, maxBytes: 300 });
      }),
    );
  });
});

test("a value may go on in the next line, and is one", () => {
  const reader = new AnswerReader({ isHead: true, maxBytes: 1000 });
  reader.push(Buffer.from(`${HEAD}A: one\r\n\t two\n three\r\nB: x\r\n\r\n`));
  expect([...(reader.head?.headers ?? [])]).toEqual([
    ["a", "one two three"],
    ["b", "x"],
  ]);
});

test("fields of one name are one, and names have no case", () => {
  const reader = new AnswerReader({ isHead: true, maxBytes: 1000 });
  reader.push(Buffer.from(`${HEAD}VARY: a\r\nvary:  b \r\nEmpty:\r\n\r\n`));
  expect([...(reader.head?.headers ?? [])]).toEqual([
    ["vary", "a, b"],
    ["empty", ""],
  ]);
});
