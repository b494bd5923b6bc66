/**
 * What a job reports: however its file is cut into pieces, and whatever else stands in it, the
 * counts are those of its lines, and the bounds are passed at the same line.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ItemLimits, parseProgressLine } from "../../src/core/item-counts.ts";
import { renderReport, REPORT_BYTES } from "../../src/core/item-report.ts";
import { LineCounter, LONGEST_LINE } from "../../src/progress/line-counter.ts";

const LINES = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("ok", "fail", "ok 3", "fail 2", "fail 1 no answer") },
  fc.constantFrom("total 50", "checkpoint ä\u{1f600}", "message x", "", "\r", "nonsense", "ok -1"),
  fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", " ")),
  fc.integer({ min: LONGEST_LINE - 2, max: LONGEST_LINE + 3 }).map((length) => "x".repeat(length)),
);
const LIMITS: ItemLimits = { maxFailRate: 20, maxConsecutiveFails: 4 };

function rateOf(failed: number, ok: number): string | undefined {
  return failed > (ok + failed) / 5 ? `rate ${failed} of ${ok + failed}` : undefined;
}

/** Told by a loop over all lines at once, in numbers of its own. */
function expectedOf(lines: readonly string[]) {
  let [ok, failed, inRow, ignored] = [0, 0, 0, 0];
  let failure: string | undefined;
  for (const line of lines) {
    const [word, number = ""] = line.trim().split(/\s+/);
    const kind = kindOf(line);
    if (kind === "unknown") ignored += 1;
    if (kind !== "ok" && kind !== "fail") continue;
    const count = /^[0-9]+$/.test(number) ? Number(number) : 1;
    if (word === "ok") [ok, inRow] = [ok + count, count > 0 ? 0 : inRow];
    else [failed, inRow] = [failed + count, inRow + count];
    if (inRow >= 4) failure ??= `row ${failed} of ${ok + failed}`;
    else if (ok + failed >= 20) failure ??= rateOf(failed, ok);
  }
  failure ??= rateOf(failed, ok);
  return { ok, failed, ignored, failure };
}

function kindOf(line: string): string {
  return Buffer.byteLength(line) > LONGEST_LINE ? "unknown" : parseProgressLine(line).kind;
}

function foundIn(counter: LineCounter) {
  const { ok, failed, ignored } = counter.counts;
  const { because, done, failed: bad } = counter.failure ?? {};
  const word = because === "too-many-failed" ? "rate" : "row";
  return { ok, failed, ignored, failure: because && `${word} ${bad} of ${done}` };
}

test("any cut of any file gives the counts and the failure of its lines", () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 9_000 }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.array(LINES, { maxLength: 60 }), pieces, fc.boolean(), (all, cuts, isEnded) => {
      const lines = all.map((line) => line.replaceAll("\uFFFD", "?"));
      const text = lines.join("\n") + (isEnded ? "\n" : "");
      const bytes = new Uint8Array(Buffer.from(text));
      const counter = new LineCounter(LIMITS);
      let at = 0;
      for (const length of cuts) {
        counter.take(bytes.subarray(at, at + length));
        at += length;
      }
      counter.take(bytes.subarray(at));
      counter.end();
      expect(foundIn(counter)).toEqual(expectedOf(lines) as never);
    }),
    { numRuns: 400 },
  );
});

test("what tick writes is read as what it was told, and is one write", () => {
  const numbers = fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined });
  const texts = fc.option(fc.string({ unit: "binary", maxLength: 3_000 }), { nil: undefined });
  const reports = fc.record({
    ok: numbers,
    failed: numbers,
    total: numbers,
    checkpoint: texts,
    message: texts,
  });
  fc.assert(
    fc.property(reports, (report) => {
      const text = renderReport(report);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(REPORT_BYTES);
      expect(text.endsWith("\n")).toBe(true);
      const counter = new LineCounter({ maxFailRate: undefined, maxConsecutiveFails: undefined });
      counter.take(new Uint8Array(Buffer.from(text)));
      const { counts } = counter;
      const isNothing = text === "ok\n";
      expect(counts.ignored).toBe(0);
      expect(counts.ok).toBe(isNothing ? 1 : (report.ok ?? 0));
      expect(counts.failed).toBe(report.failed ?? 0);
      expect(counts.total).toBe(report.total);
    }),
    { numRuns: 500 },
  );
});
