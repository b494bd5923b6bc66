/** Names and sizes of a log's parts. */
import { describe, expect, test } from "bun:test";
import {
  layOutLog,
  parseSegmentName,
  renderSegmentName,
} from "../../../src/output/log-segments.ts";

describe("log parts", () => {
  test("head and two segments are exactly the limit, about half of it the head", () => {
    for (let maxBytes = 4; maxBytes <= 4_096; maxBytes += 1) {
      const { headBytes, segmentBytes } = layOutLog(maxBytes);
      expect(headBytes + 2 * segmentBytes).toBe(maxBytes);
      expect(headBytes - maxBytes / 2).toBeWithin(0, 4);
    }
  });

  test("a segment's name says whose it is, the size of the head and its place", () => {
    const name = renderSegmentName("a.log", 4096, 123_456_789_012);
    expect(parseSegmentName(name)).toEqual({
      name,
      logName: "a.log",
      headBytes: 4096,
      offset: 123_456_789_012,
    });
  });

  test.each([
    "a.log",
    "a.log.tail-1",
    "a.log.tail-1-",
    "a.log.tail-x-1",
    "a.log.joining",
    "a.tail-1-2",
  ])("%s is no segment", (name) => expect(parseSegmentName(name)).toBeUndefined());
});
