/** The environment of an attempt: the caller's own bytes, and the number of the attempt. */
import { expect, test } from "bun:test";
import { makeAttemptEnvironment } from "../../../src/retry/attempt.ts";

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"));
const texts = (entries: readonly Uint8Array[]): string[] =>
  entries.map((entry) => Buffer.from(entry).toString("latin1"));

test("it is the caller's, byte for byte and twice where it is there twice", () => {
  const entries = ["A=1", "A=2", "B=\xff\xfe", "WATCHDOG_RUN_ID=x", "WATCHDOG_TIMEOUT=5", "=", "C"];
  const made = makeAttemptEnvironment(entries.map(bytes), 3);
  expect(texts(made)).toEqual([...entries, "WATCHDOG_ATTEMPT=3"]);
});

test("the number of another one is replaced", () => {
  const entries = ["WATCHDOG_ATTEMPT=7", "WATCHDOG_ATTEMPTS=2", "WATCHDOG_ATTEMPT=8"];
  const made = makeAttemptEnvironment(entries.map(bytes), 1);
  expect(texts(made)).toEqual(["WATCHDOG_ATTEMPTS=2", "WATCHDOG_ATTEMPT=1"]);
});
