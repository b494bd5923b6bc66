/**
 * No planted secret survives in any field of whatever is masked, wherever the text is cut; masking
 * twice is masking once; a text of ordinary words stays.
 */
import { expect, test } from "bun:test";
import { array, assert, boolean, constantFrom, nat, property, string } from "fast-check";
import { makeMask, maskTail } from "../../src/core/masking.ts";

const RUNS = 400;
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const secrets = string({
  unit: constantFrom(...letters, "+", "/", "=", "%", "&", ".", "$"),
  minLength: 12,
}).filter((text) => /[A-Za-z]/.test(text) && !text.startsWith("/"));
const words = array(
  constantFrom("backup", "of", "the", "night", "ended", "well", "3", "files", "in", "/srv/a"),
  { minLength: 1, maxLength: 20 },
);
const places = constantFrom(
  (secret: string) => secret,
  (secret: string) => `"${secret}"`,
  (secret: string) => `https://h/p?x=${encodeURIComponent(secret)}`,
  (secret: string) => `--api-token=${secret}`,
  (secret: string) => JSON.stringify({ deep: secret }),
);

test("a planted secret survives in no field", () => {
  assert(
    property(secrets, words, places, (secret, around, place) => {
      const mask = makeMask({ environment: [`MY_TOKEN=${secret}`] });
      const text = [...around, place(secret), ...around].join(" ");
      const record = { command: [text], nested: { lines: [text, { text }] }, text };
      expect(JSON.stringify(mask.value(record))).not.toContain(JSON.stringify(secret).slice(1, -1));
      expect(mask.text(text)).not.toContain(secret);
      expect(mask.text(text)).not.toContain(encodeURIComponent(secret));
    }),
    { numRuns: RUNS },
  );
});

test("the value of a secret option survives nowhere in the command", () => {
  assert(
    property(secrets, words, boolean(), (secret, around, isAttached) => {
      const flag = isAttached ? [`--db-password=${secret}`] : ["--db-password", secret];
      const command = [...around, ...flag, "-c", `echo ${secret}`];
      const mask = makeMask({ command });
      expect(mask.command(command).join(" ")).not.toContain(secret);
    }),
    { numRuns: RUNS },
  );
});

test("the password behind the name of a user survives nowhere in the command", () => {
  const places = constantFrom<(secret: string) => string[]>(
    (secret) => ["-u", `me:${secret}`],
    (secret) => ["--proxy-user", `me:${secret}`],
    (secret) => [`--user=me:${secret}`],
  );
  assert(
    property(secrets, words, places, (secret, around, place) => {
      const command = [...around, ...place(secret), "-c", `echo ${secret}`];
      const mask = makeMask({ command });
      expect(mask.command(command).join(" ")).not.toContain(secret);
    }),
    { numRuns: RUNS },
  );
});

test("wherever an output was cut, no end of a secret is left at its beginning", () => {
  assert(
    property(secrets, words, nat(), (secret, around, seed) => {
      const mask = makeMask({ environment: [`MY_TOKEN=${secret}`] });
      const text = `${around.join(" ")} ${secret} ${around.join(" ")}\n${secret}\nlast\n`;
      const at = seed % text.length;
      const masked = maskTail(text.slice(at), at > 0, mask);
      for (let length = 6; length <= secret.length; length += 1) {
        expect(masked).not.toContain(secret.slice(secret.length - length));
      }
    }),
    { numRuns: RUNS },
  );
});

test("wherever something was left out, no part of a secret is left on either side", () => {
  const both = property(secrets, words, nat(), nat(), (secret, around, one, other) => {
    const mask = makeMask({ environment: [`MY_TOKEN=${secret}`] });
    const text = `${around.join(" ")} ${secret}${secret} ${around.join(" ")}\n${secret}\nlast\n`;
    const [from, to] = [one % text.length, other % text.length].toSorted((a, b) => a - b);
    const omission = `\n[watchdog: ${(to ?? 0) - (from ?? 0)} bytes omitted here]\n`;
    const masked = maskTail(`${text.slice(0, from)}${omission}${text.slice(to)}`, false, mask);
    for (let begin = 0; begin + 6 <= secret.length; begin += 1) {
      expect(masked).not.toContain(secret.slice(begin, begin + 6));
    }
  });
  assert(both, { numRuns: RUNS });
});

test("masking twice is masking once", () => {
  assert(
    property(secrets, words, places, (secret, around, place) => {
      const mask = makeMask({ environment: [`MY_TOKEN=${secret}`] });
      const once = mask.text([...around, place(secret)].join(" "));
      expect(mask.text(once)).toBe(once);
    }),
    { numRuns: RUNS },
  );
});

test("ordinary words stay, whatever secrets there are", () => {
  assert(
    property(secrets, words, (secret, around) => {
      const mask = makeMask({ environment: [`MY_TOKEN=${secret}`] });
      const text = around.join(" ");
      if (!text.includes(secret)) expect(mask.text(text)).toBe(text);
    }),
    { numRuns: RUNS },
  );
});
