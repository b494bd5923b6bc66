/** The name of a run that was given none. */
import { expect, test } from "bun:test";
import { deriveJobName } from "../../../src/core/job-name.ts";

const DIGEST = "0123456789abcdef0123456789abcdef";

test.each([
  ["backup.sh", "backup.sh-01234567"],
  ["./nightly-backup.sh", "nightly-backup.sh-01234567"],
  ["/usr/bin/python3", "python3-01234567"],
  ["a b", "a b-01234567"],
  ["ünïcode", "ünïcode-01234567"],
  ["new\nline\u001b[31m", "new_line_[31m-01234567"],
  ["\u007f\u0085", "__-01234567"],
  ["bad\ufffdbyte", "bad_byte-01234567"],
  ["", "command-01234567"],
  ["/", "command-01234567"],
  ["directory/", "command-01234567"],
])("the name of %j is %j", (command, name) => {
  expect(deriveJobName(command, DIGEST)).toBe(name);
});

test("a long name is cut, and the digest stays", () => {
  const name = deriveJobName("x".repeat(500), DIGEST);
  expect(name).toBe(`${"x".repeat(80)}-01234567`);
});

test("two digests make two names", () => {
  expect(deriveJobName("sh", "a".repeat(64))).not.toBe(deriveJobName("sh", "b".repeat(64)));
});
