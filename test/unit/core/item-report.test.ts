/** One report as the lines that stand for it. */
import { expect, test } from "bun:test";
import { type ItemReport, renderReport, REPORT_BYTES } from "../../../src/core/item-report.ts";

const NOTHING: ItemReport = {
  ok: undefined,
  failed: undefined,
  total: undefined,
  checkpoint: undefined,
  message: undefined,
};

test.each([
  [{}, "ok\n"],
  [{ ok: 10 }, "ok 10\n"],
  [{ ok: 0 }, "ok 0\n"],
  [{ failed: 3, message: "2 of them late" }, "fail 3 2 of them late\n"],
  [{ ok: 9, failed: 1, message: "late" }, "ok 9\nfail 1 late\n"],
  [{ ok: 9, message: "late" }, "ok 9 late\n"],
  [{ message: "half\n way\t\u001b[2J" }, "message half  way [2J\n"],
  [{ total: 30, checkpoint: "dump", message: "x" }, "total 30\ncheckpoint dump\nmessage x\n"],
] as const)("%j is written as %j", (report, wanted) => {
  expect(renderReport({ ...NOTHING, ...report })).toBe(wanted);
});

test("a text that is too long ends before a whole word, and the whole stays one write", () => {
  const long = `${"wörd ".repeat(100)}${"ä".repeat(3_000)}`;
  const text = renderReport({ ok: 1e9, failed: 1e9, total: 1e9, checkpoint: long, message: long });
  expect(text).not.toContain("\uFFFD");
  expect(text).toContain("checkpoint wörd ");
  expect(text.match(/wörd …$/gm)).toHaveLength(2);
  expect(renderReport({ ...NOTHING, message: "x".repeat(2_000) })).toBe("message …\n");
  expect(Buffer.byteLength(text)).toBeLessThan(REPORT_BYTES);
});
