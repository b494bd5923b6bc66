/** What is said of a connection that could not be had, by the errors of its addresses. */
import { expect, test } from "bun:test";
import { connectToAny } from "../../../src/probe/connect.ts";
import { TimeLimit } from "../../../src/probe/time-limit.ts";
import type { Wire } from "../../../src/probe/wire.ts";

async function verdictOf(codes: readonly string[], limitMs = 60_000): Promise<string> {
  const left = [...codes];
  const limit = new TimeLimit(limitMs);
  const connected = await connectToAny<Wire>(
    codes.map((_, index) => `127.0.0.${index + 1}`),
    80,
    {
      limit,
      open: () => {
        const code = left.shift() ?? "";
        if (code === "silent") return { kind: "on-its-way", close: () => undefined };
        return { kind: "failed", code };
      },
    },
  );
  limit.close();
  return connected.kind === "failed" ? connected.because : "connected";
}

test.each([
  [["ECONNREFUSED"], "refused"],
  [["EHOSTUNREACH", "ECONNREFUSED"], "refused"],
  [["ENETUNREACH"], "unreachable"],
  [["ETIMEDOUT", "EHOSTUNREACH"], "connect-timeout"],
  [["EMFILE"], "out-of-resources"],
  [["ENFILE", "ECONNREFUSED"], "out-of-resources"],
  [["ECONNREFUSED", "ENOBUFS"], "out-of-resources"],
  [["ENOMEM", "ETIMEDOUT"], "out-of-resources"],
])("of %j it is %s", async (codes, expected) => {
  expect(await verdictOf(codes)).toBe(expected);
});

test("at the limit, too: an address that was not tried is no answer", async () => {
  expect(await verdictOf(["EMFILE", "silent"], 20)).toBe("out-of-resources");
  expect(await verdictOf(["ECONNREFUSED", "silent"], 20)).toBe("connect-timeout");
});
