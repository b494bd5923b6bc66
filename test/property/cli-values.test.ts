/**
 * What holds for every value: spans and sizes read back as what was written, and nothing throws.
 */

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import * as values from "../../src/cli/values.ts";

const RUNS = { numRuns: 2_000 };

/** Writes a span digit by digit, apart from the reader: `1d2h3m4s5ms`. */
function writeSpan(ms: number): string {
  let rest = ms;
  const parts: string[] = [];
  for (const [unit, unitMs] of Object.entries({
    d: 86_400_000,
    h: 3_600_000,
    m: 60_000,
    s: 1_000,
  })) {
    if (rest >= unitMs) parts.push(`${Math.floor(rest / unitMs)}${unit}`);
    rest %= unitMs;
  }
  return rest > 0 || parts.length === 0 ? [...parts, `${rest}ms`].join("") : parts.join("");
}

const span = fc.integer({ min: 0, max: values.MAX_SPAN_MS });

test("a span reads back as what was written, with units and in decimal seconds", () => {
  fc.assert(
    fc.property(span, (ms) => {
      const wanted = { kind: "value", value: ms } as const;
      expect(values.parseSpan(writeSpan(ms))).toEqual(wanted);
      const seconds = `${Math.floor(ms / 1_000)}.${String(ms % 1_000).padStart(3, "0")}`;
      expect(values.parseSpan(seconds)).toEqual(wanted);
      expect(values.parseSpan(`${ms}ms`)).toEqual(wanted);
    }),
    RUNS,
  );
});

test("a size reads back as what was written", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 20 }), (amount) => {
      const bytes = values.parseSize(String(amount));
      const binary = values.parseSize(`${amount}MiB`);
      expect(bytes).toEqual({ kind: "value", value: amount });
      expect(binary).toEqual({ kind: "value", value: amount * 2 ** 20 });
    }),
    RUNS,
  );
});

test("any text gives a value within the bounds or a refusal, and a positive one is never 0", () => {
  const digits = fc.stringMatching(/^[0-9.]{0,20}(?:[a-zA-Z%:,-]{0,4}[0-9.]{0,6}){0,3}$/);
  const text = fc.oneof(digits, fc.string({ unit: "binary", maxLength: 80 }));
  let accepted = 0;
  fc.assert(
    fc.property(text, (word) => {
      for (const read of [values.parseSpan, values.parseSize, values.parsePercent]) {
        const parsed = read(word);
        if (parsed.kind === "refused") continue;
        accepted += 1;
        expect(Number.isFinite(parsed.value) && parsed.value >= 0).toBe(true);
        expect(parsed.value > 0).toBe(/[1-9]/.test(word));
      }
      values.parseTimeOfDay(word);
      values.parseSignal(word);
      values.parseExitCodes(word);
      values.parseName(word);
      values.parsePath(word);
      values.parseSwitch(word);
    }),
    RUNS,
  );
  expect(accepted).toBeGreaterThan(50);
});
