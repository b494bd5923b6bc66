/** Arguments and environment as the kernel hands them out: bytes, each with a NUL at its end. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { splitAtNul } from "../../../src/os/inheritance.ts";

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));
const split = (text: string): string[] =>
  splitAtNul(bytes(text)).map((part) => Buffer.from(part).toString("latin1"));

test.each([
  ["nothing", "", []],
  ["one word", "sh\0", ["sh"]],
  ["words", "sh\0-c\0exit 3\0", ["sh", "-c", "exit 3"]],
  ["an empty last word", "echo\0\0", ["echo", ""]],
  ["empty words alone", "\0\0\0", ["", "", ""]],
  ["an empty first word", "\0a\0", ["", "a"]],
  ["a title that a program has put over its arguments", "nginx: master", ["nginx: master"]],
  ["bytes that are no text", "a\xff\xfe\0\x80\0", ["a\xff\xfe", "\x80"]],
])("%s", (_, text, parts) => {
  expect(split(text)).toEqual(parts);
});

test("whatever was joined comes apart again", () => {
  const word = fc.uint8Array({ min: 1, max: 255, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 30 }), (words) => {
      const joined = Buffer.concat(words.flatMap((each) => [each, Uint8Array.of(0)]));
      const parts = splitAtNul(new Uint8Array(joined)).map((part) => [...part]);
      expect(parts).toEqual(words.map((each) => [...each]));
    }),
    { numRuns: 500 },
  );
});
