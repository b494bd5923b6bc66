/** Which expressions may be laid over every line of a run, and which may not come to an end. */
import { describe, expect, test } from "bun:test";
import { isBearable } from "../../../src/core/pattern-cost.ts";

const REFUSED = [
  "(a+)+",
  "(a|a)*b",
  "(?:a|b)+",
  "a*a*b",
  "a*a*a*a*b",
  ".*x.*y",
  "x.*y.*z",
  "\\w+\\d+x+",
  "(a+){3}",
  "((?:a|b*)c?)*",
  "(x+y?){2,}",
  "(a?){50}",
  "(?:a{1,20}){1,20}",
  "a{1,60}b?a{1,60}b?a{1,60}",
  "(?=a+b)a+",
  "(a+|b)c+",
  "(\\w+)\\1+x",
  "a{2,}a{2,}b",
  "[a-z]+[^0-9]+!",
];

const TAKEN = [
  "a+",
  "(ab)+c",
  "[(+]+x",
  "\\(+a*",
  "(?:id|nr)-[0-9]+",
  "acct-[0-9]+-[a-z]+",
  "token=\\S+",
  "user=\\w+ pass=\\w+",
  "[^&]+&[^;]+;[^,]+,",
  "AKIA[0-9A-Z]{16}",
  "sk-[A-Za-z0-9]{20,48}",
  "(?<name>pw)=[^ ]+",
  "(?<=key: )\\w+",
  "\\bid\\b",
  "x?y?z?",
  ".+@.{1,20}",
  "\\p{Lu}+-\\d+",
  "\\u{1F600}+x",
  "(?:x|y)?z+",
  "[\\]a]+-\\d+",
];

test.each(REFUSED)("%s may not come to its end", (source) => {
  expect([new RegExp(source, "u").source, isBearable(source)]).toEqual([source, false]);
});

test.each(TAKEN)("%s comes to its end", (source) => {
  expect([new RegExp(source, "u").source, isBearable(source)]).toEqual([source, true]);
});

describe("what is taken", () => {
  test.each(TAKEN)("%s is done with every text that repeats its own letters", (source) => {
    const pattern = new RegExp(source, "gu");
    for (const letters of [
      "a",
      "ab",
      "-a",
      "1-",
      "(",
      "=",
      "a ",
      "token=",
      "user=a ",
      "&;",
      "@x",
    ]) {
      const text = `${letters.repeat(4_000 / letters.length)}!`;
      const began = performance.now();
      text.replace(pattern, "***");
      // The cube of the length would be minutes; this is no measure, but a bound for the hopeless.
      expect(performance.now() - began).toBeLessThan(5_000);
    }
  });
});
